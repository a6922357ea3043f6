#!/usr/bin/env python3
"""What a step of independent subnets costs a site, beside its share of a step of the whole net by the flops formula.

    python3 tests/peers/subnet_step.py --einc target/release/einc [--rounds 5] [--folder F] [--net NAME …]

No peer: einc with `ist` on 4 sites against einc with `sync` on one, in turns: on the nets of examples/ist with 4,096 features, whose rows
every site reads whole (batch 64), and on the paper's figure-2 network (1,000 features, three hidden layers of 4,000, 200 labels, batch 512).
All is time of many steps less that of few: what begins and ends a run drops out. Two comparisons: elapsed time, a step of the whole net on all
cores beside one of all sites on all cores; and processor time, beside a step of the whole net on one thread, which has the machine for itself
while sites share its caches and memory. With rounds of 100 steps
one deal of the neurons is in it, with rounds of 10 steps ten. The share of the arithmetic is B (4 F + 6 L) / n + 6 B I / n² of
B (4 F + 6 L + 6 I), F, L and I being the numbers of weights of the first, the last and all inner layers.
"""

import argparse
import os
import pathlib
import re
import resource
import statistics
import subprocess
import tempfile
import time

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "ist"
SITES = 4
# Net: what is put out, F, L, I, few and many steps of `sync`, and the same of rounds of so many steps.
NETS = {
    "speech2": ("b2", 4096 * 1024, 1024 * 35, 0, (20, 120), {100: (20, 120), 10: (20, 120)}),
    "speech3": ("b3", 4096 * 1024, 1024 * 35, 1024 * 1024, (20, 120), {100: (20, 120), 10: (20, 120)}),
    "paper": ("b4", 1000 * 4000, 4000 * 200, 2 * 4000 * 4000, (2, 6), {10: (10, 40)}),
}

PAPER_DATA = """
dim N = 8192; dim F = 1000
input X: f32[N, F] = normal(0, 1)
y[n < N] = n % 200
output X -> "paper_x.npy"
output y -> "paper_y.npy"
"""

PAPER = """
use std.nn
dim N; dim F; dim H = 4000; dim C = 200
input X: f32[N, F] = load("paper_x.npy")
input y: i64[N]    = load("paper_y.npy")
param W1: f32[F, H] = he_normal
param n1: nn.ist_norm(H)
param W2: f32[H, H] = he_normal
param n2: nn.ist_norm(H)
param W3: f32[H, H] = he_normal
param n3: nn.ist_norm(H)
param W4: f32[H, C] = he_normal
param b4: f32[C]    = zeros
fn layer(x[.., d], w[d, k]) -> a[.., k] { a[.., k] = x[.., d] * w[d, k] }
a1 = n1(layer(X, W1));   h1[n,k] = relu(a1[n,k])
a2 = n2(layer(h1, W2));  h2[n,k] = relu(a2[n,k])
a3 = n3(layer(h2, W3));  h3[n,k] = relu(a3[n,k])
logits[n,c] = h3[n,k] * W4[k,c] + b4[c]
loss        = mean[n] nn.cross_entropy(logits, y)[n]
train {
  loss:      loss
  data:      (X, y) over N by 512 shuffle
  steps:     800
  optimizer: sgd(lr: 0.1)
  strategy:  sync
}
output b4
"""


def times(command, folder):
    """Processor time of a command, and elapsed time."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    after, elapsed = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - began
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, elapsed


def program(net, strategy, steps):
    text = PAPER if net == "paper" else (EXAMPLES / f"{net}.ein").read_text()
    text = re.sub(r"strategy: .*", f"strategy: {strategy}", text)
    text = re.sub(r"^  steps: +\d+", f"  steps: {steps}", text, flags=re.M)
    text = re.sub(r"(?m)^  validate: .*\n|^output .*\n", "", text)
    return text + f"output {NETS[net][0]}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--einc", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", help="where the data are, or are made (200 MB)")
    parser.add_argument("--net", action="append", choices=NETS, help="this one, not all")
    options = parser.parse_args()
    einc = str(pathlib.Path(options.einc).resolve())
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(options.folder or made)
        if not (folder / "test_y.npy").exists():
            subprocess.run([einc, "run", EXAMPLES / "speech_data.ein"], cwd=folder, check=True, capture_output=True)
        if not (folder / "paper_y.npy").exists():
            (folder / "paper_data.ein").write_text(PAPER_DATA)
            subprocess.run([einc, "run", "paper_data.ein"], cwd=folder, check=True, capture_output=True)
        for net in options.net or NETS:
            _, first, last, inner, few_and_many, of_rounds = NETS[net]
            cores = len(os.sched_getaffinity(0))
            ways = {f"sync {threads}": ("sync", 1, threads, few_and_many) for threads in {1, cores}}
            ways |= {j: (f"ist(local_steps: {j}, state: reset)", SITES, SITES, steps) for j, steps in of_rounds.items()}
            found = {name: [] for name in ways}
            for _ in range(options.rounds):
                for name, (strategy, sites, threads, few_and_many) in ways.items():
                    taken = []
                    for steps in few_and_many:
                        file = folder / f"step-{net}.ein"
                        file.write_text(program(net, strategy, steps))
                        command = [einc, "run", file.name, "--sites", str(sites), "--threads", str(threads), "--progress", "none"]
                        taken.append(times(command, folder))
                    few, many = few_and_many
                    found[name].append([(b - a) / (many - few) for a, b in zip(*taken)])
            whole = 4 * first + 6 * last + 6 * inner
            share = ((4 * first + 6 * last) / SITES + 6 * inner / SITES**2) / whole
            step = {name: [1e3 * statistics.median(kind) for kind in zip(*turns)] for name, turns in found.items()}
            alone, all_cores = step["sync 1"][0], step[f"sync {cores}"][1]
            print(f"{net}: a step of the whole net {all_cores:.2f} ms, on one thread {alone:.2f} ms; a site's share of its arithmetic {share:.3f}")
            for steps in of_rounds:
                processor, elapsed = step[steps]
                print(f"  rounds of {steps} steps: a step of {SITES} sites {elapsed:.2f} ms, {elapsed / all_cores / share / SITES:.2f} times their share;", end=" ")
                print(f"processor time of a site {processor / SITES:.2f} ms, {processor / SITES / alone / share:.2f} times its share", flush=True)


if __name__ == "__main__":
    main()
