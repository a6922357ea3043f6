#!/usr/bin/env python3
"""What a step of independent subnets costs a site, beside its share of a step of the whole net by the flops formula.

    python3 tests/peers/subnet_step.py --einc target/release/einc [--rounds 5] [--folder F]

No peer: einc with `ist(local_steps: 10)` on 4 sites against einc with `sync` on one, in turns, on the nets of examples/ist with 4,096 features. All
is processor time, of all sites together, of 20 steps more or less: what begins and ends a run drops out, what deals neurons does not. The share
is that of design/ist.md, section 2: B (4 F + 6 L) / n + 6 B I / n², F, L and I being the numbers of weights of the first, the last and
all inner layers.
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
            ways = {"ist": ("ist(local_steps: 10, state: reset)", SITES), "sync": ("sync", 1)}
            found = {name: [] for name in ways}
            for _ in range(options.rounds):
                for name, (strategy, sites) in ways.items():
                    times = []
                    for steps in STEPS:
                        file = folder / f"step-{net}-{name}.ein"
                        file.write_text(program(net, strategy, steps))
                        command = [einc, "run", file.name, "--sites", str(sites), "--threads", str(sites), "--progress", "none"]
                        times.append(processor(command, folder))
                    found[name].append((times[1] - times[0]) / (STEPS[1] - STEPS[0]) / sites)
            ist, sync = statistics.median(found["ist"]), statistics.median(found["sync"])
            whole = 4 * first + 6 * last + 6 * inner
            share = ((4 * first + 6 * last) / SITES + 6 * inner / SITES**2) / whole
            print(
                f"{net}: a step of a site {1e3 * ist:.2f} ms, of the whole net {1e3 * sync:.2f} ms; "
                f"{ist / sync:.3f} of it, {share:.3f} by the formula: {ist / sync / share:.2f} times"
            )


if __name__ == "__main__":
    main()
