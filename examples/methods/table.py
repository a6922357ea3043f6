"""The tables of README.md: what every method reaches, how long its command takes and what it moves, on 1, 4 and 8 sites.

    python3 examples/methods/table.py [path of einc] [method …]

Each program runs once on each number of sites, one after another; a run beyond LIMIT seconds is stopped. Prints rows of Markdown.
"""

import pathlib
import re
import subprocess
import sys
import time

FOLDER = pathlib.Path(__file__).parent
SITES = (1, 4, 8)
LIMIT = 200
KRR = ["dkrr", "dc_krr", "kkrr", "kkrr2", "kkrr3", "bkrr", "bkrr2", "bkrr3"]
SVM = ["smo", "cascade", "dc_svm", "dc_filter", "cp_svm", "bkm_svm", "fcfs_svm", "kbalance_svm", "ca_svm", "asy_gcd"]
NAMES = {"kbalance_svm": "K-balance", "asy_gcd": "Asy-GCD", "dc_filter": "DC-Filter", "cascade": "Cascade"}


def size(count):
    """1234567 -> 1.2 MB"""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return "0" if count == 0 else f"{count} B"


def value(text, name):
    found = re.search(rf"^{name} = (\S+)$", text, re.MULTILINE)
    return found[1] if found else None


def run(einc, program, sites):
    """What the program printed, and a cell with its seconds and the bytes that it moved."""
    begin = time.time()
    command = [einc, "run", str(program), "--stats", "--sites", str(sites)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=True)
    except subprocess.TimeoutExpired:
        return "", f"more than {LIMIT} s"
    seconds = time.time() - begin
    moved = re.search(r"moved in all = \d+ floats, (\d+) bytes", done.stderr)
    return done.stdout, f"{seconds:.1f} s, {size(int(moved[1]) if moved else 0)}"


def row(einc, method):
    program = FOLDER.parent / "smo.ein" if method == "smo" else FOLDER / f"{method}.ein"
    link = "../smo.ein" if method == "smo" else f"{method}.ein"
    texts, cells = zip(*(run(einc, program, sites) for sites in SITES))
    text = next(filter(None, texts), "")
    name = NAMES.get(method, method.upper().replace("_", "-"))
    reached = [f"{float(value(text, 'error') or value(text, 'accuracy')):.4f}"]
    if method in SVM:
        rounds = [value(text, f"rounds{layer}") for layer in (1, 2, 3, 4)]
        rounds = [value(text, "rounds"), value(text, "k"), *rounds]
        reached.append(" / ".join(filter(None, rounds)) or "≤ 8000")
    print("|", " | ".join([name, f"[`{program.name}`]({link})", *reached, *cells]), "|", flush=True)


def main():
    einc = sys.argv[1] if len(sys.argv) > 1 else "einc"
    for method in sys.argv[2:] or KRR + SVM:
        row(einc, method)


if __name__ == "__main__":
    main()
