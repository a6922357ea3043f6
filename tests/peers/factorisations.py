"""Factorisations beside scipy's (OpenBLAS): time of the step, as a ratio, contestants in turns.

    python tests/peers/factorisations.py target/release/einc [cholesky] [solve] [inv] [eigh]      all without any

Both sides have two threads, and both look for numbers that are not finite and keep what they are given. Ours is what `--profile` says of the step. A ratio above 1
is ours being faster.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(name, None)
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "2"

import numpy as np  # noqa: E402  (after the number of threads is set)
import scipy.linalg  # noqa: E402

EINC = os.path.abspath(sys.argv[1])
TURNS = int(os.environ.get("TURNS", "5"))

# By subject: rows, the line that makes `y`, the same by scipy.
SUBJECTS = {
    "cholesky": (8192, "y = cholesky(S)", lambda s, a, b: scipy.linalg.cholesky(s, lower=True)),
    "solve": (4096, "y = solve(A, b)", lambda s, a, b: scipy.linalg.solve(a, b)),
    "inv": (4096, "y = inv(A)", lambda s, a, b: scipy.linalg.inv(a)),
    "eigh": (1500, "y, V = eigh(S)", lambda s, a, b: scipy.linalg.eigh(s)),
}
SUBJECTS = {name: SUBJECTS[name] for name in sys.argv[2:] or SUBJECTS}


def ours(folder, line):
    """Seconds of the one call of a library operation."""
    path, trace = os.path.join(folder, "program.ein"), os.path.join(folder, "trace.json")
    needed = [f"{name}: f64[N, N]" for name in "AS" if f"({name}" in line] + ["b: f64[N]"] * ("b)" in line)
    lines = ["dim N"] + [f"input {text}" for text in needed] + [line, "output y"]
    with open(path, "w") as file:
        file.write("\n".join(lines) + "\n")
    command = [EINC, "run", path, "--threads", "2", "--profile", trace, "--save", f"y={folder}/y.npy"]
    for text in needed:
        command += ["--input", f"{text[0]}={folder}/{text[0]}.npy"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    with open(trace) as file:
        slices = json.load(file)
    slices = slices["traceEvents"] if isinstance(slices, dict) else slices
    # The call is the longest of the local steps.
    return max(event["dur"] for event in slices if event.get("cat") == "local join") / 1e6


def main():
    generator = np.random.default_rng(0)
    for name, (n, line, peer) in SUBJECTS.items():
        a = generator.normal(size=(n, n))
        s = (a + a.T) / 2
        s[np.diag_indices(n)] += 2 * np.sqrt(n)
        b = generator.normal(size=n)
        with tempfile.TemporaryDirectory() as folder:
            for key, array in (("A", a), ("S", s), ("b", b)):
                np.save(os.path.join(folder, key + ".npy"), array)
            ratios = []
            for _ in range(TURNS):
                own = ours(folder, line)
                start = time.perf_counter()
                peer(s, a, b)
                theirs = time.perf_counter() - start
                ratios.append((theirs / own, own, theirs))
            ratio, own, theirs = (statistics.median(values) for values in zip(*ratios))
            print(f"{name} {n}: ours {own:.2f} s, scipy {theirs:.2f} s, ratio {ratio:.2f}", flush=True)


if __name__ == "__main__":
    main()
