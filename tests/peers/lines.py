"""Random programs, cut into lines in three ways: sub-expressions written where they are used, all of them named, or some. Work that plans state and
seconds that runs take should not depend on it. Printed is what differs by more than a tenth in work or by more than 1.3 in time: the largest over the
least.

    EINC=target/release/einc EIN_THREADS=1 python tests/peers/lines.py [first] [count]     programs of these seeds; 40 without arguments
    ... lines.py 17 1 text                                                                  the three forms of one program
"""

import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import peers

EINC = os.environ.get("EINC", peers.ROOT / "target/release/einc")
# Runs of a form, of which the fastest counts; operations of a program that is measured: shorter ones say nothing, longer ones take too long.
TURNS, LEAST, MOST = 3, 3e6, 3e9
SIZES = {"i": 400, "j": 300, "k": 240, "l": 160}
INPUTS = {"A": "ik", "B": "kj", "C": "ij", "D": "kl", "E": "jl", "F": "ij", "G": "ik", "u": "i", "v": "j", "w": "k", "z": "l"}
HEAD = "".join(f"dim N{index} = {size}\n" for index, size in SIZES.items())
HEAD += "".join(f"input {name}: f32[{', '.join('N' + i for i in indices)}] = uniform(0.1, 0.9)\n" for name, indices in INPUTS.items())
HEAD += "input tok: i64[Ni] = uniform(0, 300)\n"


class Expression:
    """Texts and expressions in turns, and the indices that the value is over; a leaf is never named."""

    def __init__(self, pieces, over, leaf=False):
        self.pieces, self.over, self.leaf = pieces, over, leaf

    def text(self, named, lines):
        text = ""
        for piece in self.pieces:
            if isinstance(piece, str):
                text += piece
                continue
            inner = piece.text(named, lines)
            if not piece.leaf and named():
                name = f"t{len(lines)}"
                lines.append(f"{piece.left(name, True)} = {inner}")
                inner = piece.left(name, False)
            text += inner
        return text

    def left(self, name, bound):
        places = [f"{i} < N{i}" if bound else i for i in sorted(self.over)]
        return f"{name}[{', '.join(places)}]" if places else name


def read(numbers, scope):
    inputs = [(name, indices) for name, indices in INPUTS.items() if set(indices) <= scope]
    if not inputs:
        return Expression(["0.5"], frozenset(), True)
    name, indices = numbers.choice(inputs)
    places, over, otherwise, form = list(indices), set(indices), False, numbers.random()
    if form < 0.15:
        places[numbers.randrange(len(places))] += numbers.choice([" + 1", " - 1"])
        otherwise = True
    elif form < 0.23 and "i" in scope and "j" in over:
        places[indices.index("j")], otherwise = "tok[i]", True
        over = over - {"j"} | {"i"}
    text = f"{name}[{', '.join(places)}]"
    return Expression([f"({text} else 0)" if otherwise else text], frozenset(over), True)


def expression(numbers, scope, depth):
    if depth == 0 or numbers.random() < 0.1:
        return read(numbers, scope)
    part = lambda: expression(numbers, scope, depth - 1)
    form = numbers.random()
    if form < 0.22:
        front, back = numbers.choice([("(-", ")"), ("sqrt(abs(", "))"), ("tanh(", ")"), ("exp(", ")"), ("abs(", ")"), ("sigmoid(", ")")])
        inner = part()
        return Expression([front, inner, back], inner.over)
    if form < 0.62:
        a, b = part(), part()
        middle, back = numbers.choice([(" + ", ")"), (" - ", ")"), (" * ", ")"), (" * ", ")"), (" / (1 + abs(", ")))")])
        return Expression(["(", a, middle, b, back], a.over | b.over)
    if form < 0.7:
        a, b, c = part(), part(), part()
        return Expression(["where(", a, " > ", b, ", ", c, ", 0.0)"], a.over | b.over | c.over)
    free = sorted(set(SIZES) - scope)
    own = numbers.sample(free, min(len(free), numbers.choice([1, 1, 2])))
    inner = expression(numbers, scope | set(own), depth - 1)
    own = [i for i in own if i in inner.over]
    if not own:
        return inner
    reduction = numbers.choice(["sum", "sum", "sum", "max", "mean", "logsumexp"])
    return Expression([f"({reduction}[{', '.join(f'{i} < N{i}' for i in own)}] (", inner, "))"], inner.over - set(own))


def forms(seed):
    """The three forms of a program."""
    numbers = random.Random(seed)
    value = expression(numbers, set(numbers.choice(["", "i", "j", "ij", "ik", "k"])), 5)
    programs = []
    for named in (lambda: False, lambda: True, lambda: numbers.random() < 0.4):
        lines = []
        text = value.text(named, lines)
        programs.append(HEAD + "\n".join([*lines, f"{value.left('y', True)} = {text}"]) + "\noutput y\n")
    return programs


def work(source):
    plan = subprocess.run([EINC, "plan", source, "--format", "json"], check=True, capture_output=True, text=True)
    return max(1, json.loads(plan.stdout)["cost"]["flops_per_site_max"])


def seconds(source, trace):
    """Seconds of the steps, those that make inputs left out."""
    subprocess.run([EINC, "run", source, "--profile", trace, "--threads", str(peers.THREADS)], check=True, stdout=subprocess.DEVNULL)
    events = [event for event in json.loads(trace.read_text())["traceEvents"] if event["ph"] == "X"]
    return sum(event["dur"] for event in events if event["name"].split(" · ")[0] not in {*INPUTS, "tok"}) / 1e6


def main():
    first, count = (int(a) for a in (sys.argv[1:3] if len(sys.argv) > 2 else ("0", "40")))
    if "text" in sys.argv:
        print("\n".join(forms(first)))
        return
    measured = apart = slow = 0
    with tempfile.TemporaryDirectory() as folder:
        source, trace = Path(folder, "p.ein"), Path(folder, "t.json")
        for seed in range(first, first + count):
            operations, times = [], []
            for text in forms(seed):
                source.write_text(text)
                operations.append(work(source))
                if LEAST <= operations[-1] <= MOST:
                    times.append(min(seconds(source, trace) for _ in range(TURNS)))
            more = max(operations) / min(operations)
            longer = max(times) / min(times) if len(times) == 3 else 1
            measured, apart, slow = measured + (len(times) == 3), apart + (more > 1.1), slow + (longer > 1.3)
            if more > 1.1 or longer > 1.3:
                figures = ", ".join(f"{t * 1e3:.1f} ms" for t in times)
                print(f"{seed:4}  work x {more:5.2f}  time x {longer:5.2f}  {figures}", flush=True)
    print(f"{apart} of {count} programs differ in work, {slow} of {measured} in time")


main()
