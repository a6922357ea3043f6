"""Programs that are no dense product beside numpy, scipy and JAX: sorting, scatters, running sums, stencils, powers, reductions over the first index, loops over cells. Ratios are a
peer's time over einc's: above 1, einc is faster.

    EINC=target/release/einc python tests/peers/cliffs.py [sort] [scatter] [scan] [stencil] [columns] [places] [powers] [triangular] [groups] [lags] [experts] [factors] [bags] [segments] [transforms] [other] [cells]     all subjects without any
    EIN_THREADS=1 EIN_PEER_CLOCK=processor python ...      processor time of one thread: the steadier measure on a busy machine

A program is a loop, each round of which does the same on numbers that depend on the round, and what it takes is the difference between a run of many rounds
and one of a single round, divided by their number. A peer does the work of one round.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import peers

os.environ["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen={'true' if peers.THREADS > 1 else 'false'} intra_op_parallelism_threads={peers.THREADS}"
peers.clean_environment()

import numpy as np  # noqa: E402

EINC = os.environ.get("EINC", peers.ROOT / "target/release/einc")
ROUNDS, TURNS = int(os.environ.get("EIN_PEER_ROUNDS", "5")), 3
generator = np.random.default_rng(1)


def seconds_of(command):
    """Seconds of a process, or of its processor time."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    elapsed, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if not peers.PROCESSOR:
        return elapsed
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compare(subject, text, arrays, contestants):
    """`text`: a program with the constant ROUNDS, that reads `arrays`. `contestants` do the work of a round."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "p.ein")
        inputs = []
        for name, array in arrays.items():
            np.save(Path(folder, f"{name}.npy"), array)
            inputs += ["--input", f"{name}={folder}/{name}.npy"]

        def rounds(count):
            source.write_text(text.replace("ROUNDS", str(count)))
            return seconds_of([EINC, "run", source, "--threads", str(peers.THREADS), *inputs])

        for body in contestants.values():
            body()
        times = {name: [] for name in ("einc", *contestants)}
        for _ in range(TURNS):
            times["einc"].append((rounds(1 + ROUNDS) - rounds(1)) / ROUNDS)
            for name, body in contestants.items():
                times[name].append(min(peers.timed(body) for _ in range(3)))
    peers.row(subject, {name: max(1e-9, statistics.median(of)) for name, of in times.items()})


def jax():
    """JAX with 64-bit types, or nothing."""
    if find_spec("jax") is None:
        return None
    import jax

    jax.config.update("jax_enable_x64", True)
    return jax


def compiled(function, *arrays):
    """A call of a function that JAX compiles, on arrays that it has."""
    module = jax()
    there = [module.numpy.asarray(array) for array in arrays]
    call = module.jit(function)
    return lambda: module.block_until_ready(call(*there))


def with_jax(function, *arrays):
    return {"JAX": compiled(function, *arrays)} if jax() else {}


def sort():
    n = 5_000_000
    x = generator.random(n)
    head = f"dim N = {n}\ninput x: f64[N]\n"
    # The values of a round are the numbers and a little more.
    fresh = "  y[n] = x[n] + 0.001 * r\n"
    compare(
        "sort of 5 M f64",
        f"{head}repeat r < ROUNDS {{\n{fresh}  s = sort(y)\n  c[r]: f64[ROUNDS] = s[N / 2]\n}}\noutput c\n",
        {"x": x},
        {"numpy": lambda: np.sort(x + 0.001)},
    )
    compare(
        "argsort of 5 M f64",
        f"{head}repeat r < ROUNDS {{\n{fresh}  s = argsort(y)\n  c[r]: i64[ROUNDS] = s[N / 2]\n}}\noutput c\n",
        {"x": x},
        {"numpy": lambda: np.argsort(x + 0.001)},
    )
    compare(
        "topk 100 of 5 M f64",
        f"{head}repeat r < ROUNDS {{\n{fresh}  v, at = topk(y, 100)\n  c[r]: f64[ROUNDS] = v[50]\n}}\noutput c\n",
        {"x": x},
        {"numpy": lambda: np.partition(x + 0.001, n - 100)[-100:]},
    )


def scatter():
    from scipy.sparse import csr_matrix

    e, v, h = 1_000_000, 100_000, 64
    src, dst = (generator.integers(0, v, e) for _ in range(2))
    w, x = generator.random(e, np.float32), generator.random((v, h), np.float32)
    compare(
        f"y[dst[e],h] += w[e] * x[src[e],h], {e} edges x {h}",
        f"""dim E = {e}; dim V = {v}; dim H = {h}
input src: i64[E]
input dst: i64[E]
input w: f32[E]
input x: f32[V, H]
repeat r < ROUNDS {{
  state c = 0.0
  u[e] = w[e] + c
  y[dst[e],h]: f32[V,H] += u[e] * x[src[e],h]
  next c = 0.001 * y[0,0]
}}
output c
""",
        {"src": src, "dst": dst, "w": w, "x": x},
        {"scipy": lambda: csr_matrix((w, (dst, src)), shape=(v, v)) @ x},
    )
    t, v = 100_000, 1_000_000
    tok, g = generator.integers(0, v, t), generator.random((t, h), np.float32)
    compare(
        f"gradient of an embedding, {t} tokens x {h} into {v} rows",
        f"""dim T = {t}; dim V = {v}; dim H = {h}
input tok: i64[T]
input g: f32[T, H]
repeat r < ROUNDS {{
  state c = 0.0
  z[t,h] = g[t,h] + c
  y[tok[t],h]: f32[V,H] += z[t,h]
  next c = 0.001 * y[0,0]
}}
output c
""",
        {"tok": tok, "g": g},
        with_jax(lambda tok, g: jax().numpy.zeros((v, h), "float32").at[tok].add(g + 0.1), tok, g),
    )


def scan():
    n = 10_000_000
    x = generator.random(n) + 0.5
    # Factors so near 1 that no product is infinite, or too small for a normal number: those take any processor ten times as long.
    near = 1 + 1e-6 * (x - 1)
    for name, reduction, body, x in (("sum", "sum", np.cumsum, x), ("product", "prod", np.cumprod, near), ("maximum", "max", np.maximum.accumulate, x)):
        compare(
            f"running {name} of 10 M f64",
            f"""dim N = {n}
input x: f64[N]
repeat r < ROUNDS {{
  state c = f64(0.0)
  y[n] = x[n] + c
  s[n] = {reduction}[m <= n] y[m]
  next c = 1e-20 * s[0]
}}
output c
""",
            {"x": x},
            {"numpy": lambda body=body, x=x: body(x + 1e-20)},
        )
    for name, statement, peer in (
        ("sum from the end", "s[n < N] = sum[m] where(m >= n, y[m], 0)", lambda y: np.cumsum(y[::-1])[::-1]),
        ("sum of squares, and its gradient", "s = grad(sum[k] (sum[m <= k] y[m])^2, y)", lambda y: np.cumsum(np.cumsum(y)[::-1] * 2)[::-1]),
    ):
        compare(
            f"running {name}, 10 M f64",
            f"""dim N = {n}
input x: f64[N]
repeat r < ROUNDS {{
  state c = f64(0.0)
  y[n] = x[n] + c
  {statement}
  next c = 1e-20 * s[0]
}}
output c
""",
            {"x": x},
            {"numpy": lambda peer=peer: peer(x + 0.1)},
        )


def stencil():
    m = 4096
    a = generator.random((m, m), np.float32)
    inner = {
        "neighbours around the edges, %": (
            "A[(i+1) % M, j] + A[(i+M-1) % M, j] + A[i, (j+1) % M] + A[i, (j+M-1) % M] - 4 * A[i,j]",
            lambda np, a: np.roll(a, -1, 0) + np.roll(a, 1, 0) + np.roll(a, -1, 1) + np.roll(a, 1, 1) - 4 * a,
        ),
        "neighbours where there are some, where": (
            "where(i > 0, A[i-1,j], 0) + where(i < M-1, A[i+1,j], 0) + where(j > 0, A[i,j-1], 0) + where(j < M-1, A[i,j+1], 0) - 4 * A[i,j]",
            lambda np, a: (lambda p: p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * a)(np.pad(a, 1)),
        ),
        "neighbours, else": (
            "(A[i-1,j] else 0) + (A[i+1,j] else 0) + (A[i,j-1] else 0) + (A[i,j+1] else 0) - 4 * A[i,j]",
            lambda np, a: (lambda p: p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * a)(np.pad(a, 1)),
        ),
    }
    for name, (body, peer) in inner.items():
        contestants = {"numpy": lambda peer=peer: peer(np, a)}
        if jax():
            contestants |= with_jax(lambda a, peer=peer: peer(jax().numpy, a), a)
        compare(
            f"{name}, {m} x {m}",
            f"dim M = {m}\ninput A0: f32[M, M]\nrepeat r < ROUNDS {{\n  state A[i,j] = A0[i,j]\n  next A[i,j] = {body}\n}}\nc = A[0,0]\noutput c\n",
            {"A0": a},
            contestants,
        )


def columns():
    # The selection changes no number. It keeps the reduction in the loop, which a sum would leave.
    m = 4096
    a = generator.random((m, m), np.float32)
    for reduction, numpy in (
        ("logsumexp", lambda x, axis: np.log(np.exp(x - x.max(axis, keepdims=True)).sum(axis))),
        ("sum", lambda x, axis: x.sum(axis)),
        ("max", lambda x, axis: x.max(axis)),
        ("norm", lambda x, axis: np.linalg.norm(x, axis=axis)),
    ):
        for axis, (index, left) in enumerate((("i", "j"), ("j", "i"))):
            contestants = {"numpy": lambda numpy=numpy, axis=axis: numpy(a, axis)}
            if reduction == "logsumexp" and jax():
                contestants |= with_jax(lambda a, axis=axis: jax().nn.logsumexp(a + 0.1, axis), a)
            compare(
                f"{reduction} over the {'first' if axis == 0 else 'second'} index, {m} x {m}",
                f"""dim M = {m}
input A: f32[M, M]
repeat r < ROUNDS {{
  state c = 0.0
  d = c + 0.0
  l[{left}] = {reduction}[{index}] where(A[i,j] > d, A[i,j], d)
  next c = 0.001 * l[0]
}}
output c
""",
                {"A": a},
                contestants,
            )
    lying()


def lying():
    """Columns of elements as they lie, which change from round to round, and rows of which some elements count or that are read backwards."""
    for n, m, dtype in ((2048, 1024, "f32"), (4096, 4096, "f32"), (4096, 4096, "f64")):
        a = generator.random((n, m)).astype({"f32": np.float32, "f64": np.float64}[dtype])
        for name, left, statement, peer in (
            ("sums of columns", "j", "sum[i] B[i,j]", lambda b: b.sum(0)),
            ("largest of columns", "j", "max[i] B[i,j]", lambda b: b.max(0)),
            ("sums of products that count, in rows", "i", "sum[j] where(B[i,j] > 0.5, B[i,j] * A[i,j], 0.0)", lambda b, a=a: np.where(b > 0.5, b * a, 0).sum(1)),
            ("places of the least in rows backwards", "i", "argmin[j] B[i,M-1-j]", lambda b: b[:, ::-1].argmin(1)),
        ):
            compare(
                f"{name}, {n} x {m}, {dtype}",
                f"""dim N = {n}; dim M = {m}
input A: {dtype}[N, M]
repeat r < ROUNDS {{
  state B[i,j] = A[i,j]
  l[{left}] = {statement}
  next B[i,j] = B[i,j] + {dtype}(1e-6) * {dtype}(l[0])
}}
c = B[0,0]
output c
""",
                {"A": a},
                {"numpy": lambda peer=peer, a=a: peer(a + 1e-6)},
            )


def places():
    """Results whose neighbours are far apart in what is read, or anywhere in it, and sums at places that data say."""
    from scipy.sparse import csr_matrix

    n, m = 2048, 1024
    a, b, t = generator.random((n, m), np.float32), generator.random((n, m), np.float32), generator.integers(0, m, m)
    for name, statement, peer in (
        ("2 * A[i,j] at [j,i]", "y[j,i] = (A[i,j] + c) * 2", lambda: np.ascontiguousarray(((a + 0.1) * 2).T)),
        ("A[i,j] + B[i,j] at [j,i]", "y[j,i] = A[i,j] + B[i,j] + c", lambda: np.ascontiguousarray((a + b + 0.1).T)),
        ("A[i,t[j]] + B[i,j]", "y[i,j] = A[i,t[j]] + B[i,j] + c", lambda: np.take(a, t, 1) + b + 0.1),
    ):
        arrays = {x: y for x, y in (("A", a), ("B", b), ("t", t)) if f"{x}[" in statement}
        inputs = "\n".join(f"input {x}: {'i64[M]' if x == 't' else 'f32[N, M]'}" for x in arrays)
        text = f"dim N = {n}; dim M = {m}\n{inputs}\nrepeat r < ROUNDS {{\n  state c = 0.0\n  {statement}\n  next c = 0.001 * y[0,0]\n}}\noutput c\n"
        compare(f"{name}, {n} x {m}", text, arrays, {"numpy": peer})
    k = 16
    kind = generator.integers(0, k, m)
    at = (np.arange(n)[:, None] * k + kind).ravel()
    compare(
        f"y[i, kind[j]] += A[i,j], {n} x {m} into {k}",
        f"""dim N = {n}; dim M = {m}; dim K = {k}
input A: f32[N, M]
input kind: i64[M]
repeat r < ROUNDS {{
  state c = 0.0
  B[i,j] = A[i,j] + c
  y[i, kind[j]]: f32[N, K] += B[i,j]
  next c = 0.001 * y[0,0]
}}
output c
""",
        {"A": a, "kind": kind},
        {"bincount": lambda: np.bincount(at, (a + 0.1).ravel(), n * k)},
    )
    e, v = 5_000_000, 500_000
    row, col = np.sort(generator.integers(0, v, e)), generator.integers(0, v, e)
    w, x = generator.random(e), generator.random(v)
    matrix = csr_matrix((w, (row, col)), shape=(v, v))
    compare(
        f"y[row[e]] += w[e] * x[col[e]], {e} entries in order",
        f"""dim E = {e}; dim V = {v}
input row: i64[E]
input col: i64[E]
input w: f64[E]
input x: f64[V]
repeat r < ROUNDS {{
  state c = f64(0.0)
  u[i] = x[i] + c
  y[row[e]]: f64[V] += w[e] * u[col[e]]
  next c = 0.001 * y[0]
}}
output c
""",
        {"row": row, "col": col, "w": w, "x": x},
        {"scipy, of rows": lambda: matrix @ x, "bincount": lambda: np.bincount(row, w * x[col], v)},
    )


def powers():
    n = 4096
    for dtype in ("f32", "f64"):
        x = (generator.random((n, n)) + 0.5).astype({"f32": np.float32, "f64": np.float64}[dtype])
        for power in ("0.5", "(-2)", "2", "1.5", "(-0.5)", "3", "2.3"):
            p = float(power.strip("()"))
            contestants = {"numpy": lambda p=p, x=x: x**p}
            if jax():
                contestants |= with_jax(lambda x, p=p: x**p, x)
            compare(
                f"x^{power}, {dtype}, {n} x {n}",
                f"""dim M = {n}
input A: {dtype}[M, M]
repeat r < ROUNDS {{
  state c = {dtype}(0.0)
  p[i,j] = (A[i,j] + c)^{power}
  next c = 0.001 * p[0,0]
}}
output c
""",
                {"A": x},
                contestants,
            )


def other():
    torch = peers_torch()
    # A transposed convolution with stride 2.
    n, c, f, m, k = 4, 32, 32, 64, 4
    image, kernel = generator.random((n, c, m, m), np.float32), generator.random((c, f, k, k), np.float32)
    contestants = {}
    if torch:
        images, kernels = torch.from_numpy(image), torch.from_numpy(kernel)
        contestants["torch"] = lambda: torch.nn.functional.conv_transpose2d(torch.relu(images + 0.1), kernels, stride=2)
    compare(
        f"conv_transpose of {n} x {c} x {m} x {m} by {c} x {f} x {k} x {k}, stride 2",
        f"""dim N = {n}; dim C = {c}; dim F = {f}; dim M = {m}; dim K = {k}; dim Y = {2 * m + k - 2}
input I0: f32[N, C, M, M]
input W: f32[C, F, K, K]
repeat t < ROUNDS {{
  state q = 0.0
  I[n,c,y,x] = max(I0[n,c,y,x] + q, 0)
  O[n,f,2*y+r,2*x+s]: f32[N, F, Y, Y] += I[n,c,y,x] * W[c,f,r,s]
  next q = 0.001 * O[0,0,0,0]
}}
output q
""",
        {"I0": image, "W": kernel},
        contestants,
    )
    windows(torch)
    layers(torch)
    # One-hot sums as a new user writes them.
    n, k = 1_000_000, 1000
    x, label = generator.random(n), generator.integers(0, k, n)
    compare(
        f"sum where(label[n] == k, x[n], 0), {n} into {k}",
        f"""dim N = {n}; dim K = {k}
input x: f64[N]
input label: i64[N]
repeat t < ROUNDS {{
  state q = f64(0.0)
  y[n] = x[n] + q
  s[k]: f64[K] = sum[n] where(label[n] == k, y[n], 0)
  next q = 0.001 * s[0]
}}
output q
""",
        {"x": x, "label": label},
        {"numpy": lambda: np.bincount(label, x + 0.1, k)},
    )


def triangular():
    """Products of which a guard leaves terms, or elements of the result, out."""
    n = 1500
    a, b = (generator.standard_normal((n, n)).astype(np.float32) for _ in range(2))
    for name, statement, peer in (
        ("sum[k <= i] A[i,k] * B[k,j]", "Y[i,j] = sum[k <= i] A[i,k] * Z[k,j]", lambda z: np.tril(a) @ z),
        ("sum[k] where(k <= j, A[i,k] * B[j,k], 0)", "Y[i,j] = sum[k] where(k <= j, A[i,k] * Z[j,k], 0)", lambda z: a @ np.tril(z).T),
        ("sum[k] where(A[i,k] > 0, A[i,k] * B[k,j], 0)", "Y[i,j] = sum[k] where(A[i,k] > 0, A[i,k] * Z[k,j], 0)", lambda z: np.where(a > 0, a, 0) @ z),
    ):
        compare(
            f"{name}, {n} x {n} f32",
            f"""dim N = {n}
input A: f32[N, N]
input B: f32[N, N]
repeat t < ROUNDS {{
  state q = 0.0
  Z[i,j] = B[i,j] + q
  {statement}
  next q = 0.001 * Y[0,0]
}}
output q
""",
            {"A": a, "B": b},
            {"numpy": lambda peer=peer: peer(b + np.float32(0.1))},
        )


def groups():
    """What groups that data name come to, where points read something of their group."""
    n, k = 1_000_000, 1000
    x, label = generator.random(n), generator.integers(0, k, n)
    counts = np.bincount(label, minlength=k)

    def variances():
        means = np.bincount(label, x, k) / counts
        return np.bincount(label, (x - means[label]) ** 2, k) / counts

    def tops():
        found = np.full(k, 0.0)
        np.maximum.at(found, label, x)
        return found

    for what, statement, peer in (
        ("variances", "(sum[n] where(label[n] == k, (y[n] - m[k])^2, 0)) / c[k]", variances),
        ("max where(label[n] == k, x[n], 0)", "max[n] where(label[n] == k, y[n], 0)", tops),
        ("any x[n] > m[k]", "where(any[n] (label[n] == k and y[n] > m[k]), 1.0, 0)", lambda: np.bincount(label, x > 0.5, k) > 0),
    ):
        compare(
            f"{what} of {n} in {k} groups",
            f"""dim N = {n}; dim K = {k}
input x: f64[N]
input label: i64[N]
c[k < K] = f64(count[n] (label[n] == k))
repeat t < ROUNDS {{
  state q = f64(0.0)
  y[n] = x[n] + q
  m[k < K] = (sum[n] where(label[n] == k, y[n], 0)) / c[k]
  s[k]: f64[K] = {statement}
  next q = 0.001 * s[0]
}}
output q
""",
            {"x": x, "label": label},
            {"numpy": peer},
        )


def lags():
    """Series beside their shifted selves, and filters that begin at the first element."""
    n, k = 1_000_000, 64
    x, h = generator.random(n, np.float32), generator.random(k, np.float32)
    for what, statement, peer in (
        ("autocorrelation", "y[l < K] = sum[i < N - l] z[i] * z[i + l]", lambda: [np.dot(x[: n - l], x[l:]) for l in range(k)]),
        ("filter", "y[i < N] = sum[l <= i] h[l] * z[i - l]", lambda: np.convolve(x, h)),
    ):
        compare(
            f"{what} of {n} by {k}, f32",
            f"""dim N = {n}; dim K = {k}
input x: f32[N]
input h: f32[K]
repeat t < ROUNDS {{
  state q = 0.0
  z[i] = x[i] + q
  {statement}
  next q = 1e-9 * y[1]
}}
output q
""",
            {"x": x, "h": h},
            {"numpy": peer},
        )


def experts():
    """A mixture of experts, two for each row, with its gradients; covariances by group."""
    torch = peers_torch()
    n, d, f, e = 2048, 256, 512, 8
    x = generator.random((n, d), np.float32) - 0.5
    u, v = (0.1 * (generator.random(shape, np.float32) - 0.5) for shape in ((e, d, f), (e, f, d)))
    to = np.stack([generator.integers(0, e, n), generator.integers(0, e, n)], 1)
    step = None
    if torch:
        x_, u_, v_ = (torch.from_numpy(array).requires_grad_() for array in (x, u, v))
        to_ = torch.from_numpy(to)

        def step():
            x_.grad = u_.grad = v_.grad = None
            with torch.enable_grad():
                y = torch.zeros(n, d)
                for expert in range(e):
                    rows, _ = torch.where(to_ == expert)
                    y = y.index_add(0, rows, torch.relu(x_[rows] @ u_[expert]) @ v_[expert])
                (y * y).sum().backward()

    compare(
        f"mixture of {e} experts, 2 a row, {n} x {d} x {f}, with its gradients",
        f"""input x: f32[{n}, {d}]
input u: f32[{e}, {d}, {f}]
input v: f32[{e}, {f}, {d}]
input to: i64[{n}, 2]
repeat r < ROUNDS {{
  state q = 0.0
  z[n,d] = x[n,d] + q
  a[e,d,f] = u[e,d,f] + q
  b[e,f,d] = v[e,f,d] + q
  h[n,k,f] = relu(sum[d] z[n,d] * a[to[n,k],d,f])
  y[n,d] = sum[k,f] h[n,k,f] * b[to[n,k],f,d]
  loss = sum[n,d] y[n,d]^2
  gz = grad(loss, z)
  gu = grad(loss, a)
  gv = grad(loss, b)
  next q = 1e-9 * (gz[0,0] + gu[0,0,0] + gv[0,0,0])
}}
output q
""",
        {"x": x, "u": u, "v": v, "to": to},
        {"torch": step} if torch else {},
    )
    n, d, e = 200_000, 16, 10
    x, label = generator.random((n, d), np.float32), generator.integers(0, e, n)
    compare(
        f"covariances of {n} x {d} in {e} groups",
        f"""input x: f32[{n}, {d}]
input label: i64[{n}]
repeat r < ROUNDS {{
  state q = 0.0
  z[n,i] = x[n,i] + q
  s[label[n],i,j]: f32[{e}, {d}, {d}] += z[n,i] * z[n,j]
  next q = 1e-9 * s[0,0,0]
}}
output q
""",
        {"x": x, "label": label},
        {"numpy": lambda: [x[label == group].T @ x[label == group] for group in range(e)]},
    )


def factors():
    """Products of matrices with a factor that is computed, and of narrow whole numbers."""
    torch = peers_torch()
    n, m = 4096, 8
    a, v, w = generator.random((n, n), np.float32), generator.random(n, np.float32), generator.random((n, m), np.float32)
    a_, v_, w_ = (torch.from_numpy(array) for array in (a, v, w)) if torch else (None, None, None)
    for name, statement, step in (
        ("exponentials times a vector", "y[i] = sum[j] exp(a[i,j] - q) * v[j]", lambda: torch.exp(a_ - 0.5) @ v_),
        ("positive parts times 8 vectors", "y[i,k] = sum[j] relu(a[i,j] - q) * w[j,k]", lambda: torch.relu(a_ - 0.5) @ w_),
        ("positive parts, by columns, times 8 vectors", "y[j,k] = sum[i] relu(a[i,j] - q) * w[i,k]", lambda: torch.relu(a_ - 0.5).T @ w_),
    ):
        dims = "i" if name.endswith("a vector") else statement[2:5]
        compare(
            f"{name}, {n} x {n}",
            f"""input a: f32[{n}, {n}]
input v: f32[{n}]
input w: f32[{n}, {m}]
repeat r < ROUNDS {{
  state q = 0.0
  {statement}
  next q = 1e-9 * max[{dims}] y[{dims}]
}}
s = q + v[0] + w[0,0]
output s
""",
            {"a": a, "v": v, "w": w},
            {"torch": step} if torch else {},
        )
    n = 1024
    a, b = (generator.integers(-100, 100, (n, n)).astype(np.int8) for _ in range(2))
    contestants = {"numpy, in i32": lambda: a.astype(np.int32) @ b.astype(np.int32)}
    if torch:
        a_, b_ = (torch.from_numpy(array).to(torch.int32) for array in (a, b))
        contestants["torch, in i32"] = lambda: a_ @ b_
    compare(
        f"i8 products, {n} x {n} x {n}",
        f"""input a: i8[{n}, {n}]
input b: i8[{n}, {n}]
repeat r < ROUNDS {{
  state q: i32 = 0
  z[i,k]: i8 = max(a[i,k], i8(q & 1))
  y[i,j] = sum[k] z[i,k] * b[k,j]
  next q = max[i,j] y[i,j]
}}
output q
""",
        {"a": a, "b": b},
        contestants,
    )


def bags():
    """Means and weighted sums of rows that lists name."""
    torch = peers_torch()
    v, n, l, d = 50_000, 8192, 32, 64
    table, weight = generator.random((v, d), np.float32), generator.random((n, l), np.float32)
    token = generator.integers(0, v, (n, l))
    for name, term, mode in (
        ("means", "mean[l] t[at[n,l],d]", "mean"),
        ("weighted sums", "sum[l] weight[n,l] * t[at[n,l],d]", "sum"),
    ):
        contestants = {}
        if torch:
            table_, weight_, token_ = (torch.from_numpy(array) for array in (table, weight, token))
            weights = {"per_sample_weights": weight_} if mode == "sum" else {}
            contestants["torch"] = lambda: torch.nn.functional.embedding_bag(token_, table_, mode=mode, **weights)
        compare(
            f"{name} of {l} of {v} rows of {d}, {n} times",
            f"""input t: f32[{v}, {d}]
input token: i64[{n}, {l}]
input weight: f32[{n}, {l}]
repeat r < ROUNDS {{
  state q: f32[{n}, {d}] = 0.0
  at[n,l] = (token[n,l] + r) % {v}
  y[n,d] = {term}
  next q[n,d] = q[n,d] + y[n,d]
}}
s = sum[n,d] q[n,d] + sum[n,l] weight[n,l]
output s
""",
            {"t": table, "token": token, "weight": weight},
            contestants,
        )


def segments():
    """Rows of a matrix in compressed form, whose starts and columns a program reads itself."""
    from scipy import sparse

    n, each, k = 100_000, 20, 16
    matrix = sparse.random(n, n, each / n, "csr", np.float32, generator)
    starts, col, v = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data
    x, wide = generator.random(n, np.float32), generator.random((n, k), np.float32)
    filled = np.flatnonzero(np.diff(starts))
    for name, type_of_x, y, total, contestants in (
        (
            "times a vector",
            f"f32[{n}]",
            "y[i<N] = sum[e] where(starts[i] <= e and e < starts[i+1], v[e] * z[col[e]], 0.0)",
            "q[i] = q[i] + y[i]",
            {"scipy": lambda: matrix @ x},
        ),
        (
            f"times {k} columns",
            f"f32[{n}, {k}]",
            f"y[i<N,c<{k}] = sum[e] where(starts[i] <= e and e < starts[i+1], v[e] * z[col[e],c], 0.0)",
            "q[i,c] = q[i,c] + y[i,c]",
            {"scipy": lambda: matrix @ wide},
        ),
        (
            "largest terms",
            f"f32[{n}]",
            "y[i<N] = max[e] where(starts[i] <= e and e < starts[i+1], v[e] * z[col[e]], -inf)",
            "q[i] = q[i] + y[i]",
            {"numpy": lambda: np.maximum.reduceat(v * x[col], starts[filled])},
        ),
    ):
        own = "i,c" if "c" in y.split("=")[0] else "i"
        compare(
            f"compressed rows of {len(v)} elements, {name}",
            f"""const N = {n}
input starts: i64[{n + 1}]
input col: i64[{len(v)}]
input v: f32[{len(v)}]
input x: {type_of_x}
repeat r < ROUNDS {{
  state q: {type_of_x} = 0.0
  z[{own}] = x[{own}] + f32(r)
  {y}
  next {total}
}}
s = sum[{own}] q[{own}]
output s
""",
            {"starts": starts, "col": col, "v": v, "x": wide if own == "i,c" else x},
            contestants,
        )


def transforms():
    """Fourier transforms of rows."""
    from scipy import fft

    torch = peers_torch()
    m, n = 256, 4096
    x, y = generator.random((m, n)), generator.random((m, n))
    z = x + 1j * y
    for name, step, numpy, other in (
        ("complex numbers", "a, b = fft(u, v)", lambda: fft.fft(z + 0.5, workers=peers.THREADS), "fft"),
        ("real numbers", "a, b = fft.rfft(u)", lambda: fft.rfft(x + 0.5, workers=peers.THREADS), "rfft"),
    ):
        contestants = {"scipy": numpy}
        if torch:
            tensor = torch.from_numpy(z if other == "fft" else x)
            contestants["torch"] = lambda tensor=tensor, other=other: getattr(torch.fft, other)(tensor + 0.5)
        compare(
            f"transforms of {m} rows of {n} {name}",
            f"""use std.fft
input x: f64[{m}, {n}]
input y: f64[{m}, {n}]
repeat r < ROUNDS {{
  state q = 0.0
  u[m,n] = x[m,n] + q
  v[m,n] = y[m,n] + q
  {step}
  next q = 1e-9 * (a[0,0] + b[1,1])
}}
s = q + y[0,0]
output s
""",
            {"x": x, "y": y},
            contestants,
        )


def windows(torch):
    """Windows that move by two places, with their gradients."""
    n, c, m = 8, 64, 32
    image, kernel = generator.random((n, c, 2 * m + 1, 2 * m + 1), np.float32), generator.random((c, c, 3, 3), np.float32)
    programs = {
        "conv": "sum[c<C, r<3, s<3] z[n,c,2*i+r,2*j+s] * w[f,c,r,s]",
        "conv channel by channel": "sum[r<3, s<3] z[n,f,2*i+r,2*j+s] * w[f,0,r,s]",
        "max": "max[r<3, s<3] z[n,f,2*i+r,2*j+s]",
    }

    def step(name):
        with_gradient = [torch.from_numpy(array).requires_grad_() for array in (image, kernel)]

        def run():
            images, kernels = with_gradient
            images.grad = kernels.grad = None
            with torch.enable_grad():
                z = torch.relu(images + 0.1)
                layers = {
                    "conv": lambda: torch.nn.functional.conv2d(z, kernels, stride=2),
                    "conv channel by channel": lambda: torch.nn.functional.conv2d(z, kernels[:, :1], stride=2, groups=c),
                    "max": lambda: torch.nn.functional.max_pool2d(z, 3, stride=2),
                }
                y = layers[name]()
                (y**3).sum().backward()

        return run

    for name, value in programs.items():
        compare(
            f"{name} of 3 x 3 windows, stride 2, over {n} x {c} x {2 * m + 1} x {2 * m + 1}, with gradients",
            f"""dim N = {n}; dim C = {c}; dim M = {m}
input x: f32[N, C, 2*M + 1, 2*M + 1]
input W: f32[C, C, 3, 3]
repeat t < ROUNDS {{
  state q = 0.0
  z[n,c,i,j] = max(x[n,c,i,j] + q, 0)
  w[f,c,r,s] = W[f,c,r,s] + q
  y[n,f<C,i<M,j<M] = {value}
  loss = sum[n,f,i,j] y[n,f,i,j]^3
  gz[n,c,i,j] = grad(loss, z)[n,c,i,j]
  {"gw[f,c,r,s] = grad(loss, w)[f,c,r,s]" if name != "max" else ""}
  next q = 1e-9 * gz[0,0,3,3] {"+ 1e-9 * gw[0,0,0,0]" if name != "max" else ""}
}}
output q
""",
            {"x": image, "W": kernel},
            {"torch": step(name)} if torch else {},
        )


def layers(torch):
    """Layers that read an index in parts, with their gradients."""
    rows = {
        "maximum of 2 x 2 windows beside each other": (
            (16, 64, 56, 56),
            "y[n,c,i<28,j<28] = max[r<2, s<2] z[n,c,2*i+r,2*j+s]",
            "n,c,i,j",
            lambda z: torch.nn.functional.max_pool2d(z, 2),
        ),
        "pixel shuffle by 2": (
            (8, 64, 56, 56),
            "y[n,c<16,i<112,j<112] = z[n, 4*c + 2*(i % 2) + j % 2, i/2, j/2]",
            "n,c,i,j",
            lambda z: torch.nn.functional.pixel_shuffle(z, 2),
        ),
        "nearest upsampling by 2": (
            (8, 64, 56, 56),
            "y[n,c,i<112,j<112] = z[n,c,i/2,j/2]",
            "n,c,i,j",
            lambda z: torch.nn.functional.interpolate(z, scale_factor=2),
        ),
        "rotary embedding": (
            (8, 8, 512, 64),
            "a[t<512,e<32] = f32(t) * exp(-0.2*e)\n"
            "  y[n,h,t,e<32,p<2] = where(p == 0, z[n,h,t,2*e] * cos(a[t,e]) - z[n,h,t,2*e+1] * sin(a[t,e]), z[n,h,t,2*e] * sin(a[t,e]) + z[n,h,t,2*e+1] * cos(a[t,e]))",
            "n,h,t,e,p",
            rotary(torch) if torch else None,
        ),
    }
    for name, (shape, statement, indices, layer) in rows.items():
        x = generator.random(shape, np.float32)
        with_gradient = torch.from_numpy(x).requires_grad_() if torch else None

        def step(layer=layer, x=with_gradient):
            x.grad = None
            with torch.enable_grad():
                (layer(torch.relu(x + 0.1)) ** 3).sum().backward()

        compare(
            f"{name}, {' x '.join(map(str, shape))}, with its gradient",
            f"""input x: f32[{", ".join(map(str, shape))}]
repeat r0 < ROUNDS {{
  state q = 0.0
  z[k,l,m,o] = max(x[k,l,m,o] + q, 0)
  {statement}
  loss = sum[{indices}] y[{indices}]^3
  gz[k,l,m,o] = grad(loss, z)[k,l,m,o]
  next q = 1e-9 * gz[0,0,3,3]
}}
output q
""",
            {"x": x},
            {"torch": step} if torch else {},
        )


def rotary(torch):
    angles = torch.arange(512.0)[:, None] * torch.exp(-0.2 * torch.arange(32.0))
    cos, sin = torch.cos(angles), torch.sin(angles)

    def layer(z):
        even, odd = z[..., ::2], z[..., 1::2]
        return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1)

    return layer


def cells():
    # Dynamic time warping: a table that is filled cell by cell, and two numbers that change in turn.
    n = 200
    x, y = generator.random(n), generator.random(n)

    def warped():
        table = [[float("inf")] * (n + 1) for _ in range(n + 1)]
        table[0][0] = 0.0
        for i in range(n):
            above, row, xi = table[i], table[i + 1], x[i]
            for j in range(n):
                row[j + 1] = abs(xi - y[j]) + min(above[j + 1], row[j], above[j])

    compare(
        f"dynamic time warping of {n} and {n}",
        f"""dim N = {n}
input x: f64[N]
input y: f64[N]
repeat p < ROUNDS * N * N {{
  state D[i<N, j<N] = 0.0
  i0 = div(p % (N * N), N)
  j0 = p % N
  up   = where(i0 > 0, (D[i0-1, j0] else inf), inf)
  left = where(j0 > 0, (D[i0, j0-1] else inf), inf)
  diagonal = where(i0 > 0 and j0 > 0, (D[i0-1, j0-1] else inf), inf)
  best = where(i0 + j0 == 0, 0.0, min(up, min(left, diagonal)))
  next D[i,j] = where(i == i0 and j == j0, abs(x[i0] - y[j0]) + best, D[i,j])
}}
d = D[N-1, N-1]
output d
""",
        {"x": x, "y": y},
        {"Python": warped},
    )

    def swung():
        a, b = 0.0, 1.0
        for _ in range(1_000_000):
            a, b = a + 0.001 * b, b - 0.001 * a

    compare(
        "a million rounds of two numbers",
        """input z: f64[1]
repeat t < ROUNDS * 1000000 {
  state a = z[0]
  state b = z[0] + 1
  next a = a + 0.001 * b
  next b = b - 0.001 * a
}
output a
""",
        {"z": np.zeros(1)},
        {"Python": swung},
    )


def peers_torch():
    """PyTorch with as many threads as the others, or nothing."""
    if find_spec("torch") is None:
        return None
    import torch

    torch.set_num_threads(peers.THREADS)
    torch.set_grad_enabled(False)
    return torch


for subject in (sort, scatter, scan, stencil, columns, places, powers, triangular, groups, lags, experts, factors, bags, segments, transforms, other, cells):
    if not sys.argv[1:] or subject.__name__ in sys.argv[1:]:
        print(subject.__name__)
        subject()
