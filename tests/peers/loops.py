"""Loops beside their peers: time of a round, as a ratio, contestants in turns.

    python tests/peers/loops.py target/release/einc [kmeans] [cg] [smo] [rounds]

Ours is run with few and with many rounds, and the difference counts, so that neither loading nor planning does. Both sides
have two threads. A ratio above 1 is ours being faster (of memory bandwidth: the part of it that is reached).
"""

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

EINC = os.path.abspath(sys.argv[1])
WANTED = sys.argv[2:] or ["kmeans", "cg", "smo", "rounds"]
TURNS = int(os.environ.get("TURNS", "5"))

KMEANS = """
dim N; dim D; dim K = 64
input X: f32[N, D]
repeat t < ROUNDS {
  state c[k < K, d] = X[k,d]
  dist[n,k] = sum[d] (X[n,d] - c[k,d])^2
  near[n]   = argmin[k] dist[n,k]
  count[near[n]]: f32[K]       += 1
  total[near[n], d]: f32[K, D] += X[n,d]
  next c[k,d] = where(count[k] > 0, total[k,d] / count[k], c[k,d])
}
output c
"""

CG = """
dim N
input A: f64[N, N]; input b: f64[N]
repeat k < ROUNDS {
  state x[i] = zeros
  state r[i] = b[i]
  state p[i] = b[i]
  state rr   = b[i] * b[i]
  q[i]  = A[i,j] * p[j]
  alpha = rr / (sum[i] p[i] * q[i])
  next x[i] = x[i] + alpha * p[i]
  next r[i] = r[i] - alpha * q[i]
  next rr   = next r[i] * next r[i]
  next p[i] = next r[i] + next rr / rr * p[i]
}
output x
"""

SMO = """
dim M; dim D
input X: f64[M, D]; input y: f64[M]
const C = 1.0; const g = 0.01; const tol = TOLERANCE
fn row(X[i, d], r, g) -> k[i] { k[i] = exp(-g * sum[d] (X[i,d] - X[r,d])^2) }
fn snap(a, C) = where(a < 1e-9 * C, 0, where(a > C * (1 - 1e-9), C, a))
repeat t < 1_000_000 until gap <= tol {
  state a[i] = zeros
  state f[i] = -y[i]
  free[i] = 0 < a[i] < C
  hi = argmin[i] where(free[i] or (y[i] > 0 and a[i] == 0) or (y[i] < 0 and a[i] == C), f[i], inf)
  lo = argmax[i] where(free[i] or (y[i] > 0 and a[i] == C) or (y[i] < 0 and a[i] == 0), f[i], -inf)
  gap = f[lo] - f[hi]
  kh = row(X, hi, g)
  kl = row(X, lo, g)
  s  = y[lo] * y[hi]
  L  = max(0, where(s < 0, a[lo] - a[hi], a[lo] + a[hi] - C))
  H  = min(C, where(s < 0, a[lo] - a[hi] + C, a[lo] + a[hi]))
  al = snap(clip(a[lo] - y[lo] * gap / (2 - 2 * kh[lo]), L, H), C)
  ah = snap(a[hi] - s * (al - a[lo]), C)
  next a[i] = where(i == lo, al, where(i == hi, ah, a[i]))
  next f[i] = f[i] + (al - a[lo]) * y[lo] * kl[i] + (ah - a[hi]) * y[hi] * kh[i]
}
output a
output t
"""

EMPTY = """
repeat t < ROUNDS UNTIL {
  state x: f64 = 1.0
  next x = x * 0.5 + 1
}
output x
"""


def clock(body):
    start = time.perf_counter()
    body()
    return time.perf_counter() - start


def program(folder, text, inputs, **words):
    """A function that runs a program, with words of it replaced."""
    for word, value in words.items():
        text = text.replace(word, str(value))
    number = len(os.listdir(folder))
    path = os.path.join(folder, f"program{number}.ein")
    with open(path, "w") as file:
        file.write(text)
    command = [EINC, "run", path, "--threads", "2"]
    for name in inputs:
        command += ["--input", f"{name}={os.path.join(folder, name)}.npy"]

    def run(*arguments):
        done = subprocess.run(command + list(arguments), capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stderr)
        return done.stdout

    return run


def save(folder, **arrays):
    for name, array in arrays.items():
        np.save(os.path.join(folder, name + ".npy"), array)


def report(what, ours, peer, unit="ms"):
    ratio = statistics.median(p / o for o, p in zip(ours, peer))
    ours, peer = statistics.median(ours) * 1e3, statistics.median(peer) * 1e3
    print(f"{what}: ours {ours:.3f} {unit}, peer {peer:.3f} {unit}, ratio {ratio:.2f}", flush=True)


def per_round(few, many, rounds):
    return max(clock(many) - clock(few), 1e-9) / rounds


def kmeans(folder):
    from sklearn.cluster import KMeans

    generator = np.random.default_rng(0)
    centres = generator.normal(size=(64, 16)) * 4
    x = centres[generator.integers(64, size=1_000_000)] + generator.normal(size=(1_000_000, 16))
    x = x.astype(np.float32)
    save(folder, X=x)
    few, many = (program(folder, KMEANS, ["X"], ROUNDS=rounds) for rounds in (2, 12))

    def peer(rounds):
        KMeans(64, init=x[:64], n_init=1, max_iter=rounds, tol=0, algorithm="lloyd").fit(x)

    ours, theirs = [], []
    for _ in range(TURNS):
        ours.append(per_round(few, many, 10))
        theirs.append(per_round(lambda: peer(2), lambda: peer(12), 10))
    report("k-means 1M x 16, K = 64, one iteration", ours, theirs)


def cg(folder):
    n = 8192
    generator = np.random.default_rng(0)
    half = generator.normal(size=(n, n)) / np.sqrt(n)
    a = half + half.T
    a[np.diag_indices(n)] += 8
    save(folder, A=a, b=generator.normal(size=n))
    few, many = (program(folder, CG, ["A", "b"], ROUNDS=rounds) for rounds in (5, 45))
    import threading

    def read():
        # Two threads read the matrix once: what memory gives.
        threads = [threading.Thread(target=np.sum, args=(part,)) for part in (a[: n // 2], a[n // 2 :])]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    v = generator.normal(size=n)
    ours, reads, products = [], [], []
    for _ in range(TURNS):
        ours.append(per_round(few, many, 40))
        reads.append(min(clock(read) for _ in range(5)))
        products.append(min(clock(lambda: a @ v) for _ in range(5)))
    report("conjugate gradients n = 8192, one round, of memory bandwidth", ours, reads)
    report("conjugate gradients n = 8192, one round, beside numpy's product alone", ours, products)


def smo(folder):
    from sklearn.svm import SVC

    generator = np.random.default_rng(0)
    x = generator.normal(size=(20_000, 100))
    y = np.where(x[:, :10].sum(1) + 0.5 * (x[:, 10:20] ** 2).sum(1) > 5, 1.0, -1.0)
    save(folder, X=x, y=y)
    few, many = (program(folder, SMO, ["X", "y"], TOLERANCE=tol) for tol in (1e9, 2e-3))
    print("rounds", many().split("t =")[1].split()[0])

    def peer():
        SVC(C=1.0, gamma=0.01, tol=2e-3, cache_size=200).fit(x, y)

    ours, theirs = [], []
    for _ in range(TURNS):
        ours.append(per_round(few, many, 1))
        theirs.append(clock(peer))
    report("SMO 20,000 x 100, whole", ours, theirs)


def rounds(folder):
    for until in ("", "until x > 3"):
        few, many = (
            program(folder, EMPTY, [], ROUNDS=rounds, UNTIL=until) for rounds in (1, 200_001)
        )
        for sites in ("1", "2", "4"):
            times = [
                per_round(lambda: few("--sites", sites), lambda: many("--sites", sites), 200_000)
                for _ in range(3)
            ]
            print(f"a scalar round{' ' * bool(until)}{until}, {sites} sites: {statistics.median(times) * 1e6:.2f} us")


for what in WANTED:
    with tempfile.TemporaryDirectory() as folder:
        {"kmeans": kmeans, "cg": cg, "smo": smo, "rounds": rounds}[what](folder)
