"""What the comparison scripts share: einc's side, turns, medians, tables.

einc's side is the bench `peer` of ein-kernels, which runs the kernels of a program's steps as a program does. All contestants take
turns in one run, with a pause between them in which their spinning threads go to sleep, so that ratios mean something on a busy machine.

    python tests/peers/contractions.py gemm tccg          the subjects to measure; all without
    EIN_THREADS=1 EIN_PEER_CLOCK=processor python ...     processor time of one thread: the steadier measure on a busy machine
"""

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
THREADS = int(os.environ.get("EIN_THREADS", "2"))
# Rounds of turns; seconds that a turn lasts at least, and the pause after it.
ROUNDS, TURN, PAUSE = int(os.environ.get("EIN_PEER_ROUNDS", "7")), 0.02, 0.03
PROCESSOR = os.environ.get("EIN_PEER_CLOCK") == "processor"


def clean_environment():
    """Starts the script anew without the settings that halve OpenBLAS, and with the same threads for all."""
    wanted = {name: str(THREADS) for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")}
    unwanted = [name for name in os.environ if name.startswith("OPENBLAS_") and name not in wanted]
    if unwanted or any(os.environ.get(name) != value for name, value in wanted.items()):
        environment = {name: value for name, value in os.environ.items() if name not in unwanted}
        os.execve(sys.executable, [sys.executable, *sys.argv], {**environment, **wanted})


def peer_executable():
    """The bench executable, built if it must be."""
    command = ["cargo", "bench", "-p", "ein-kernels", "--bench", "peer", "--no-run", "--message-format=json"]
    built = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    messages = [json.loads(line) for line in built.splitlines()]
    return next(m["executable"] for m in messages if m.get("executable") and m["target"]["name"] == "peer")


class Einc:
    """einc's side: tensors, kernels, and the seconds of a run."""

    def __init__(self):
        pipe = subprocess.PIPE
        executable = os.environ.get("EIN_PEER") or peer_executable()
        self.process = subprocess.Popen([executable], stdin=pipe, stdout=pipe, text=True)

    def tell(self, *lines):
        for line in lines:
            self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def ask(self, line):
        self.tell(line)
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"einc's side ended at {line!r}")
        return float(answer)

    def timed(self, line):
        """Seconds that a request takes: as einc's side says, or of its process's processor time."""
        if not PROCESSOR:
            return self.ask(line)
        # Linux: the clock of a process by its number.
        clock = ~self.process.pid << 3 | 2
        began = time.clock_gettime(clock)
        self.ask(line)
        return time.clock_gettime(clock) - began

    def run(self):
        return self.timed("run")

    def load(self, tensors, kernels, sweep=None):
        """`tensors`: name -> (type, shape); `kernels`: (name, text, names of operands); `sweep`: how many of them are taken together."""
        self.tell("clear")
        for name, (dtype, shape) in tensors.items():
            self.tell(f"tensor {name} {dtype} {' '.join(map(str, shape))}")
        for name, text, operands in kernels:
            self.tell(f"kernel {name} {text} of {' '.join(operands)}")
        if sweep:
            self.tell(f"sweep {sweep} 1")


def seconds_of_rounds(text, rounds, arguments=()):
    """Seconds of each round of a program that is one loop of so many, by its own trace; the first is left out: nothing is warm in it."""
    with tempfile.TemporaryDirectory() as folder:
        source, trace = Path(folder, "p.ein"), Path(folder, "t.json")
        source.write_text(text)
        command = [os.environ.get("EINC", ROOT / "target/release/einc"), "run", source, "--profile", trace, *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        events = [e for e in json.loads(trace.read_text())["traceEvents"] if e["ph"] == "X"]
    steps = {}
    for event in events:
        steps.setdefault(event["args"]["step"], []).append(event["dur"] / 1e6)
    return [sum(times) for times in zip(*(t for t in steps.values() if len(t) == rounds))][1:]


def einsum_kernel(spec, sizes, dtype="f32"):
    """The kernel of an einsum with two operands, as a plan prints it."""
    inputs, output = spec.split("->")
    inputs = inputs.split(",")
    summed = [i for i in dict.fromkeys("".join(inputs)) if i not in output]
    shape = lambda indices: ", ".join(str(sizes[i]) for i in indices)
    operands = ", ".join(f"{dtype}[{shape(i)}]" for i in inputs)
    index = lambda indices: ", ".join(f"{i}: {sizes[i]}" for i in indices)
    reads = " * ".join(f"a{n}[{', '.join(i)}]" for n, i in enumerate(inputs))
    over, reduction = (f" | {index(summed)}", "sum ") if summed else ("", "")
    return f"({operands}) [{index(output)}{over}] {dtype} = {reduction}{reads}"


def timed(call):
    clock = time.process_time if PROCESSOR else time.perf_counter
    began = clock()
    call()
    return clock() - began


def turns(contestants, rounds=ROUNDS):
    """Medians of seconds a call. A contestant is a function that returns the seconds of one call, or None."""
    counts = {}
    for name, call in contestants.items():
        call()
        counts[name] = max(1, math.ceil(TURN / max(call(), 1e-6)))
    seconds = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, call in contestants.items():
            time.sleep(PAUSE)
            call()
            seconds[name].append(statistics.median(call() for _ in range(counts[name])))
    return {name: statistics.median(times) for name, times in seconds.items()}


def row(subject, seconds, flops=None):
    """Prints one line; returns the ratios: a peer's time over einc's."""
    own = seconds["einc"]
    rate = f"{flops / own / 1e9:7.0f} GF/s" if flops else ""
    others = {name: t / own for name, t in seconds.items() if name != "einc"}
    peers = "".join(f"   {name} x {ratio:5.2f}" for name, ratio in others.items())
    print(f"{subject:44} einc {own * 1e3:9.3f} ms {rate}{peers}", flush=True)
    return others


def geometric_mean(values):
    return math.exp(statistics.fmean(map(math.log, values)))
