"""The form that is chosen for a sparse input beside the other one: time of a round as a list, dense, and what the choice costs.

    python tests/peers/formats.py target/release/einc [product] [product-t] [row-max] [product-8] [product-64] [product-64-t] [sampled]

A round is timed by `--profile`, the median of several. Matrices are uniform, `--rows` by `--rows` (2,000), f32 and f64, with one element in
4, 8, 16, 32, 64 and 256; `--threads` (1). `loss` is the time of the chosen form over that of the faster one; 1.00 is the best choice.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import tempfile

import numpy as np
import scipy.sparse as sp

ROUNDS = 8
PARTS = (4, 8, 16, 32, 64, 256)
# Columns of the dense factor, and a statement.
PROGRAMS = {
    "product": (0, "y[i] = A[i,k] * x[k]"),
    "product-t": (0, "y[k] = A[i,k] * x[i]"),
    "row-max": (0, "y[i] = max[k] (A[i,k] * x[k])"),
    "product-8": (8, "y[i,h] = A[i,k] * x[k,h]"),
    "product-64": (64, "y[i,h] = A[i,k] * x[k,h]"),
    "product-64-t": (64, "y[i,h] = A[k,i] * x[k,h]"),
    "sampled": (32, "e = sum[i,k] where(A[i,k] != 0, (A[i,k] - x[i,h] * X[k,h])^2, 0)\n y[i,h] = e + x[i,h]"),
}


def program(name, dtype):
    columns, statement = PROGRAMS[name]
    at, shape = ("i,h", f"N, {columns}") if columns else ("i", "N")
    return (
        f"dim N\ninput A: {dtype}[N, N]\ninput X: {dtype}[{shape}]\nrepeat t < {ROUNDS} {{\n state x[{at}] = X[{at}]\n {statement}\n"
        f" next x[{at}] = 0.0001 * y[{at}] + X[{at}]\n}}\noutput x\n"
    )


def einc(arguments, more, folder):
    command = [arguments.einc, more[0], "p.ein", "--input", "A=a.npz", "--input", "X=x.npy", *more[1:]]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout


def milliseconds(arguments, form, folder):
    einc(arguments, ["run", "--threads", str(arguments.threads), "--profile", "t.json", "--formats", f"A={form}"], folder)
    with open(os.path.join(folder, "t.json")) as file:
        events = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]
    steps = {}
    for event in events:
        steps.setdefault(event["args"]["step"], []).append(event["dur"] / 1e3)
    rounds = zip(*(times for times in steps.values() if len(times) == ROUNDS))
    return statistics.median([sum(times) for times in rounds][1:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("einc", type=os.path.abspath)
    parser.add_argument("programs", nargs="*", choices=[*PROGRAMS, []])
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    losses = []
    with tempfile.TemporaryDirectory() as folder:
        for dtype in ("f32", "f64"):
            kind = np.dtype(dtype.replace("f", "float"))
            for part in PARTS:
                random = np.random.default_rng(part)
                matrix = sp.random(arguments.rows, arguments.rows, 1 / part, "csr", kind, random)
                sp.save_npz(os.path.join(folder, "a.npz"), matrix)
                for name in arguments.programs or PROGRAMS:
                    columns = PROGRAMS[name][0]
                    shape = (arguments.rows, columns) if columns else (arguments.rows,)
                    np.save(os.path.join(folder, "x.npy"), random.random(shape).astype(kind))
                    with open(os.path.join(folder, "p.ein"), "w") as file:
                        file.write(program(name, dtype))
                    times = {form: milliseconds(arguments, form, folder) for form in ("list", "dense")}
                    header = einc(arguments, ["plan"], folder).split("\n\n")[0]
                    chosen = "list" if "\nA: a list" in header else "dense"
                    losses.append(times[chosen] / min(times.values()))
                    print(
                        f"{dtype} 1 in {part:<3} {name:12} list {times['list']:7.2f} ms  dense {times['dense']:7.2f} ms"
                        f"  {chosen:5} loss {losses[-1]:.2f}",
                        flush=True,
                    )
    dear = sum(loss > 1.05 for loss in losses)
    mean = math.exp(statistics.fmean(map(math.log, losses)))
    print(f"{len(losses)} cases: {dear} lose more than 5 %, the worst {max(losses):.2f}; in the mean {mean:.3f}")


if __name__ == "__main__":
    main()
