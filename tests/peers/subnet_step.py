#!/usr/bin/env python3
"""What a step of independent subnets costs a site, beside its share of a step of the whole net by the flops formula.

    python3 tests/peers/subnet_step.py --einc target/release/einc [--rounds 5] [--folder F]

No peer: einc with `ist` on 4 sites against einc with `sync` on one, in turns, on the nets of examples/ist with 4,096 features. All is processor
time, of all sites together, of 100 steps more or less: what begins and ends a run drops out. With rounds of 100 steps one deal of the neurons
is in it, with rounds of 10 steps ten. The share of the arithmetic is B (4 F + 6 L) / n + 6 B I / n² of B (4 F + 6 L + 6 I), F, L and I
being the numbers of weights of the first, the last and all inner layers.
"""

import argparse
import pathlib
import re
import resource
import statistics
import subprocess
import tempfile

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "ist"
SITES = 4
# Net: F, L, I.
NETS = {"speech2": (4096 * 1024, 1024 * 35, 0), "speech3": (4096 * 1024, 1024 * 35, 1024 * 1024)}
STEPS = (20, 120)


def processor(command, folder):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def program(net, strategy, steps):
    text = (EXAMPLES / f"{net}.ein").read_text()
    text = re.sub(r"strategy: .*", f"strategy: {strategy}", text)
    text = re.sub(r"^  steps: +\d+", f"  steps: {steps}", text, flags=re.M)
    text = re.sub(r"(?m)^  validate: .*\n|^output .*\n", "", text)
    return text + f"output b{net[-1]}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--einc", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", help="where the data are, or are made (160 MB)")
    options = parser.parse_args()
    einc = str(pathlib.Path(options.einc).resolve())
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(options.folder or made)
        if not (folder / "test_y.npy").exists():
            subprocess.run([einc, "run", EXAMPLES / "speech_data.ein"], cwd=folder, check=True, capture_output=True)
        for net, (first, last, inner) in NETS.items():
            ways = {"sync": ("sync", 1)}
            ways |= {f"ist {steps}": (f"ist(local_steps: {steps}, state: reset)", SITES) for steps in (100, 10)}
            found = {name: [] for name in ways}
            for _ in range(options.rounds):
                for name, (strategy, sites) in ways.items():
                    times = []
                    for steps in STEPS:
                        file = folder / f"step-{net}.ein"
                        file.write_text(program(net, strategy, steps))
                        command = [einc, "run", file.name, "--sites", str(sites), "--threads", str(sites), "--progress", "none"]
                        times.append(processor(command, folder))
                    found[name].append((times[1] - times[0]) / (STEPS[1] - STEPS[0]) / sites)
            whole = 4 * first + 6 * last + 6 * inner
            share = ((4 * first + 6 * last) / SITES + 6 * inner / SITES**2) / whole
            sync = statistics.median(found["sync"])
            print(f"{net}: a step of the whole net {1e3 * sync:.2f} ms, a site's share of its arithmetic {share:.3f}")
            for steps in (100, 10):
                ist = statistics.median(found[f"ist {steps}"])
                print(f"  rounds of {steps} steps: a step of a site {1e3 * ist:.2f} ms, {ist / sync / share:.2f} times its share", flush=True)


if __name__ == "__main__":
    main()
