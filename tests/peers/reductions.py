"""Distances, shortest ways, rounds of K-means, row reductions and powers beside numpy, scipy, scikit-learn and PyTorch. Ratios are a peer's time over einc's: above 1, einc is faster.

    python tests/peers/reductions.py [pairs] [lloyd] [rows] [powers]      all subjects without any
    EIN_THREADS=1 EIN_PEER_CLOCK=processor python ...             processor time of one thread: the steadier measure on a busy machine
"""

import sys

import peers

peers.clean_environment()

import numpy as np  # noqa: E402
import torch  # noqa: E402

torch.set_num_threads(peers.THREADS)
torch.set_grad_enabled(False)
einc = peers.Einc()
generator = np.random.default_rng(1)
TYPES = {"f32": np.float32, "f64": np.float64}


def compare(subject, tensors, steps, contestants):
    """`tensors`: name -> (type, shape). `steps`: (name, kernel, operands). `contestants` take the arrays (numpy) or tensors (torch)."""
    einc.load(tensors, steps)
    arrays = [(generator.random(shape) * 2 - 1).astype(TYPES[dtype]) for dtype, shape in tensors.values()]
    turns = {"einc": einc.run}
    for name, call in contestants.items():
        own = [torch.from_numpy(a) for a in arrays] if name == "torch" else arrays
        turns[name] = lambda call=call, own=own: peers.timed(lambda: call(*own))
    peers.row(subject, peers.turns(turns))


def text(operands, indices, dtype, body):
    return f"({', '.join(operands)}) [{indices}] {dtype} = {body}"


def pairs():
    from scipy.spatial.distance import cdist

    print("Functions of two elements")
    n, k, d = 200_000, 64, 16
    shapes = {"X": ("f32", (n, d)), "C": ("f32", (k, d))}
    square = "sum pow(a0[n, d] - a1[k, d], 2.0)"
    distances = ("D", text([f"f32[{n}, {d}]", f"f32[{k}, {d}]"], f"n: {n}, k: {k} | d: {d}", "f32", square), "XC")
    nearest = ("N", text([f"f32[{n}, {k}]"], f"n: {n} | k: {k}", "i64", "argmin a0[n, k]"), "D")
    compare(
        f"squared distances {n} x {d}, {k}",
        shapes,
        [distances],
        {"scipy": lambda x, c: cdist(x, c, "sqeuclidean"), "torch": lambda x, c: torch.cdist(x, c)},
    )
    compare(
        "the nearest of them",
        shapes,
        [distances, nearest],
        {"scipy": lambda x, c: cdist(x, c, "sqeuclidean").argmin(1), "torch": lambda x, c: torch.cdist(x, c).argmin(1)},
    )
    m, d = 20_000, 100
    compare(
        f"from {m} x {d} to one, f64",
        {"X": ("f64", (m, d)), "r": ("f64", (d,))},
        [("D", text([f"f64[{m}, {d}]", f"f64[{d}]"], f"i: {m} | d: {d}", "f64", "sum pow(a0[i, d] - a1[d], 2.0_f64)"), "Xr")],
        {"numpy": lambda x, r: ((x - r) ** 2).sum(1), "torch": lambda x, r: (x - r).square().sum(1)},
    )
    n = 400
    compare(
        f"shortest ways {n} x {n} x {n}",
        {"A": ("f32", (n, n)), "B": ("f32", (n, n))},
        [("C", text([f"f32[{n}, {n}]"] * 2, f"i: {n}, j: {n} | k: {n}", "f32", "min a0[i, k] + a1[k, j]"), "AB")],
        {"numpy": lambda a, b: np.stack([(row[:, None] + b).min(0) for row in a])},
    )


def lloyd():
    """What a round of Lloyd's algorithm computes: distances and the nearest centre in one sweep, then counts and totals."""
    from sklearn.cluster import KMeans

    print("A round of Lloyd's algorithm")
    n, k, d = 1_000_000, 64, 16
    x = (generator.random((n, d)) * 2 - 1).astype(np.float32)
    square = "sum pow(a0[n, d] - a1[k, d], 2.0)"
    guard = " if a0[a1[n]] == k"
    steps = [
        ("D", text([f"f32[{n}, {d}]", f"f32[{k}, {d}]"], f"n: {n}, k: {k} | d: {d}", "f32", square), "XC"),
        ("N", text([f"f32[{n}, {k}]"], f"n: {n} | k: {k}", "i64", "argmin a0[n, k]"), "D"),
        ("Q", text([f"i64[{k}]", f"i64[{n}]"], f"k: {k} | n: {n}", "f32", "sum 1.0" + guard), "KN"),
        ("T", text([f"i64[{k}]", f"i64[{n}]", f"f32[{n}, {d}]"], f"k: {k}, d: {d} | n: {n}", "f32", "sum a2[n, d]" + guard), "KNX"),
    ]
    einc.load({"X": ("f32", (n, d)), "C": ("f32", (k, d)), "K": ("i64", (k,))}, steps, 2)

    def fit(rounds):
        return KMeans(k, init=x[:k], n_init=1, max_iter=rounds, tol=0, algorithm="lloyd").fit(x)

    def peer():
        return (peers.timed(lambda: fit(12)) - peers.timed(lambda: fit(2))) / 10

    peers.row(f"{n} x {d}, {k} centres", peers.turns({"einc": einc.run, "scikit-learn": peer}))


def rows():
    print("Row reductions, 8192 x 8192")
    n = 8192
    shapes = {"X": ("f32", (n, n))}
    for reduction, numpy, pytorch in [
        ("sum", lambda x: x.sum(1), lambda x: x.sum(1)),
        ("max", lambda x: x.max(1), lambda x: x.amax(1)),
        ("argmin", lambda x: x.argmin(1), lambda x: x.argmin(1)),
        ("norm", lambda x: np.linalg.norm(x, axis=1), lambda x: x.norm(dim=1)),
        ("logsumexp", None, lambda x: x.logsumexp(1)),
    ]:
        dtype = "i64" if reduction == "argmin" else "f32"
        kernel = text([f"f32[{n}, {n}]"], f"n: {n} | k: {n}", dtype, f"{reduction} a0[n, k]")
        contestants = {"numpy": numpy, "torch": pytorch}
        compare(reduction, shapes, [("R", kernel, "X")], {name: call for name, call in contestants.items() if call})


def powers():
    print("Powers of 4096 x 4096")
    n = 4096
    for dtype, suffix in (("f32", ""), ("f64", "_f64")):
        for power in (3, -2, 0.5, 2.3):
            kernel = text([f"{dtype}[{n}, {n}]"], f"i: {n}, j: {n}", dtype, f"pow(a0[i, j], {float(power)}{suffix})")
            with np.errstate(invalid="ignore"):
                contestants = {"numpy": lambda x, p=power: x**p, "torch": lambda x, p=power: x**p}
                compare(f"x^{power}, {dtype}", {"X": (dtype, (n, n))}, [("P", kernel, "X")], contestants)
        kernel = text([f"{dtype}[{n}, {n}]"] * 2, f"i: {n}, j: {n}", dtype, "pow(a0[i, j], a1[i, j])")
        shapes = {"X": (dtype, (n, n)), "Y": (dtype, (n, n))}
        with np.errstate(invalid="ignore"):
            compare(f"x^y, {dtype}", shapes, [("P", kernel, "XY")], {"numpy": lambda x, y: x**y, "torch": lambda x, y: x**y})


for subject in (pairs, lloyd, rows, powers):
    if not sys.argv[1:] or subject.__name__ in sys.argv[1:]:
        subject()
