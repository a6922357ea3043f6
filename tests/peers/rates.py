"""Random statements beside the best that the same bytes and operations can take: gathers, scatters, guards, affine reads, windows, `%`, every reduction over
every index. There is no peer: the best case is a copy of as many bytes, or the operations of a long polynomial, whichever takes longer, both
measured with einc in the same run. What stays below a third of it is printed; above 1 a statement is faster than the estimate.

    EINC=target/release/einc EIN_THREADS=1 python tests/peers/rates.py [first] [count]     statements of these seeds; 300 without arguments
    ... rates.py 17 1 text                                                                  the program of one seed
"""

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import peers

EINC = os.environ.get("EINC", peers.ROOT / "target/release/einc")
ROUNDS, PART = 5, 1 / 3
ROWS, COLUMNS, GROUPS = 2048, 1024, 512
HEAD = f"""dim N = {ROWS}; dim M = {COLUMNS}; dim K = {GROUPS}
input A: TYPE[N, M] = uniform(0.1, 0.9)
input B: TYPE[N, M] = uniform(0.1, 0.9)
input u: TYPE[N] = uniform(0.1, 0.9)
input v: TYPE[M] = uniform(0.1, 0.9)
input row: i64[N] = uniform(0, {ROWS})
input column: i64[M] = uniform(0, {COLUMNS})
input group: i64[N] = uniform(0, {GROUPS})
input kind: i64[M] = uniform(0, {GROUPS})
"""
REDUCTIONS = ("sum", "max", "min", "mean", "prod", "logsumexp", "norm", "norm1", "argmax", "argmin")


def read(numbers, name):
    """A read of a matrix at its own element, or at another place of its row or column."""
    form = numbers.randrange(12)
    places = {4: ("(i + 1) % N", "j"), 5: ("i", "(j + 1) % M"), 6: ("row[i]", "j"), 7: ("i", "column[j]"), 8: ("N - 1 - i", "j"), 9: ("i", "M - 1 - j")}
    i, j = places.get(form, ("i", "j"))
    if form in (0, 1):
        i += numbers.choice([" + 1", " - 1"])
    elif form in (2, 3):
        j += numbers.choice([" + 1", " - 1"])
    return f"({name}[{i}, {j}] else 0)" if form < 4 else f"{name}[{i}, {j}]"


def value(numbers):
    """An expression over i and j that depends on the round's number c."""
    first = f"max({read(numbers, 'A')}, c)"
    form = numbers.randrange(8)
    if form == 0:
        return first
    if form == 1:
        return f"{numbers.choice(['exp', 'tanh', 'sqrt', 'abs'])}({first})"
    if form == 2:
        return f"{first} * {numbers.choice(['u[i]', 'v[j]', 'u[i] * v[j]'])}"
    if form == 3:
        return f"where({numbers.choice(['i > 3', 'j > 3', 'j <= i', 'A[i, j] > 0.5', 'i % 2 == 0', 'j % 3 == 0'])}, {first}, 0.0)"
    if form == 4:
        return f"{first} / (1 + {read(numbers, 'B')})"
    return f"{first} {numbers.choice('+-*')} {read(numbers, 'B')}"


def statement(numbers):
    """A statement that defines y, and the element of it that the next round begins with."""
    form, body = numbers.randrange(10), value(numbers)
    if form < 2:
        return f"y[i < N, j < M] = {body}", "y[0, 0]"
    if form == 2:
        return f"y[j < M, i < N] = {body}", "y[0, 0]"
    if form == 3:
        left = numbers.choice(["group[i], j]: TYPE[K, M]", "i, kind[j]]: TYPE[N, K]", "row[i], j]: TYPE[N, M]"])
        return f"y[{left} {numbers.choice(['+=', 'max='])} {body}", "y[0, 0]"
    if form == 4:
        bounds = numbers.choice([("r < 3", "A[i + r, j]"), ("r < 3", "A[i, j + r]"), ("r < 3, s < 3", "A[i + r, j + s]")])
        return f"y[i < N - 2, j < M - 2] = {numbers.choice(['sum', 'max', 'mean'])}[{bounds[0]}] max({bounds[1]}, c)", "y[0, 0]"
    if form == 5:
        index, size = numbers.choice([("i", "N"), ("j", "M")])
        other = body.replace(f"[{index}", "[m").replace(f"{index}]", "m]")
        return f"y[i < N, j < M] = {numbers.choice(['sum', 'max'])}[m < {size}] where(m <= {index}, max(A[{'m, j' if index == 'i' else 'i, m'}], c), 0.0)", "y[0, 0]"
    reduction = numbers.choice(REDUCTIONS)
    over, left = numbers.choice([("i < N", "y[j < M]"), ("j < M", "y[i < N]"), ("i < N, j < M", "y"), ("j < M, i < N", "y")])
    first = {"y[j < M]": "y[0]", "y[i < N]": "y[0]", "y": "y"}[left]
    return f"{left} = {reduction}[{over}] ({body})", first


def program(seed):
    numbers = random.Random(seed)
    dtype = numbers.choice(["f32", "f32", "f64"])
    line, first = statement(numbers)
    text = f"{HEAD}repeat t < ROUNDS {{\n  state c = TYPE(0.0)\n  {line}\n  next c = 0.0001 * TYPE({first})\n}}\noutput c\n"
    return text.replace("TYPE", dtype), f"{dtype} {line.replace('TYPE', dtype)}"


def stated(text):
    """Bytes that the steps of a round read and write, each operand once, and their operations."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "p.ein")
        source.write_text(text.replace("ROUNDS", str(ROUNDS)))
        plan = json.loads(subprocess.run([EINC, "plan", source, "--format", "json"], check=True, capture_output=True, text=True).stdout)
    steps = {step["step"]: step for step in plan["steps"]}
    bytes_, operations = 0, 0
    for step in plan["steps"]:
        if step["times"] == ROUNDS and step["operator"] != "state" and not step["passes"]:
            bytes_ += step["memory"]
        if step["times"] == ROUNDS:
            bytes_ += sum(steps[i]["memory"] for i in step["inputs"] if not steps[i]["passes"])
            operations += step["flops"]
    return bytes_, operations


def seconds(text):
    return statistics.median(peers.seconds_of_rounds(text.replace("ROUNDS", str(ROUNDS + 1)), ROUNDS + 1, ["--threads", str(peers.THREADS)]))


def best_rates():
    """Bytes a second of a copy, operations a second of a polynomial, by einc."""
    rates = {}
    for dtype in ("f32", "f64"):
        around = f"{HEAD}repeat t < ROUNDS {{\n  state c = TYPE(0.0)\n  LINE\n  next c = 0.0001 * y[0, 0]\n}}\noutput c\n".replace("TYPE", dtype)
        copy = around.replace("LINE", "y[i, j] = max(A[i, j], c)")
        chain = "x[i, j]"
        for number in range(24):
            chain = f"({chain} * A[i, j] + {0.1 + number / 100})"
        polynomial = around.replace("LINE", f"y[i, j] = {chain.replace('x[i, j]', 'max(A[i, j], c)')}")
        bytes_, _ = stated(copy)
        _, operations = stated(polynomial)
        rates[dtype] = bytes_ / seconds(copy), operations / seconds(polynomial)
        print(f"{dtype}: {rates[dtype][0] / 1e9:.1f} GB/s, {rates[dtype][1] / 1e9:.1f} operations a nanosecond", flush=True)
    return rates


def main():
    first, count = (int(a) for a in (sys.argv[1:3] if len(sys.argv) > 2 else ("0", "300")))
    if "text" in sys.argv:
        print(program(first)[0])
        return
    rates, below = best_rates(), []
    for seed in range(first, first + count):
        text, line = program(seed)
        try:
            own, (bytes_, operations) = seconds(text), stated(text)
        except (subprocess.CalledProcessError, statistics.StatisticsError) as error:
            print(f"{seed:4} no figure ({type(error).__name__}): {line}", flush=True)
            continue
        copied, computed = rates[line.split()[0]]
        rate = max(bytes_ / copied, operations / computed) / own
        if rate < PART:
            below.append(rate)
            print(f"{seed:4} {rate:5.2f} of the best case {own * 1e3:8.2f} ms  {line}", flush=True)
    print(f"{len(below)} of {count} statements below a third")


main()
