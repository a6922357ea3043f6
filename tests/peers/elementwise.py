"""Element-wise programs and row reductions beside memcpy, numpy, PyTorch and JAX, outputs reused. Ratios are a peer's time over einc's: above 1, einc is faster.

    EINC=target/release/einc python tests/peers/elementwise.py [gelu] [softmax] [layer_norm] [chain] [adamw] [lamb] [--rows N] [--repeats K]

einc's times are those of the steps in its own trace (`--profile`), round by round of a loop; a contestant's turn comes after the other's, and medians are compared.
"""

import argparse
import os
import statistics
import time

for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(name, None)
THREADS = len(os.sched_getaffinity(0))
os.environ["OMP_NUM_THREADS"] = str(THREADS)

import numpy as np  # noqa: E402
import peers as peers_of  # noqa: E402
import torch  # noqa: E402

torch.set_num_threads(THREADS)
torch.set_grad_enabled(False)
ROUNDS = 6


def program(n, d, body, more=""):
    """A loop whose state X is replaced by `body` in every round."""
    return f"""use std.nn
dim N = {n}
dim D = {d}
input X0: f32[N, D] = normal(0, 1)
{more}
repeat t < {ROUNDS} {{
  state X[n,d] = X0[n,d]
{body}
}}
output X
"""


def timed(body):
    start = time.perf_counter()
    body()
    return time.perf_counter() - start


def compare(name, text, peers, moved, repeats):
    """`moved`: bytes that have to move. `peers`: what to call, by name."""
    copied = np.empty(moved // 8, np.float32), np.ones(moved // 8, np.float32)
    peers = {"memcpy": lambda: np.copyto(*copied), **peers}
    for peer in peers.values():
        peer()
    own, times = [], {peer: [] for peer in peers}
    for _ in range(repeats):
        own += peers_of.seconds_of_rounds(text, ROUNDS)
        for peer, body in peers.items():
            times[peer] += [timed(body) for _ in range(3)]
    median = statistics.median(own)
    ratios = ", ".join(f"{peer} {statistics.median(t) / median:.2f}" for peer, t in times.items())
    print(f"{name:<12} {median * 1e3:8.1f} ms  {moved / median / 1e9:6.1f} GB/s   {ratios}", flush=True)


def jax_of(function, *arrays):
    import jax

    compiled = jax.jit(function, donate_argnums=())
    arrays = [jax.numpy.asarray(a) for a in arrays]
    return lambda: jax.block_until_ready(compiled(*arrays))


def rows(names, n, repeats):
    d = 8192
    x = torch.randn(n, d)
    y = torch.empty_like(x)
    z = torch.empty_like(x)
    moved = 2 * 4 * n * d
    if "gelu" in names:
        peers = {"torch": lambda: torch.ops.aten.gelu.out(x, out=y)}
        compare("gelu", program(n, d, "  next X[n,d] = nn.gelu(X[n,d])"), peers, moved, repeats)
    if "softmax" in names:
        peers = {"torch": lambda: torch.softmax(x, 1, out=y)}
        compare("softmax", program(n, d, "  Y = nn.softmax(X)\n  next X[n,d] = Y[n,d]"), peers, moved, repeats)
    if "layer_norm" in names:
        g, b, m, s = torch.randn(d), torch.randn(d), torch.empty(n, 1), torch.empty(n, 1)
        peers = {"torch": lambda: torch.ops.aten.native_layer_norm.out(x, [d], g, b, 1e-5, out0=y, out1=m, out2=s)}
        more = "input G: f32[D] = normal(0, 1)\ninput B: f32[D] = normal(0, 1)"
        body = "  Y = nn.layer_norm(X, G, B)\n  next X[n,d] = Y[n,d]"
        compare("layer norm", program(n, d, body, more), peers, moved, repeats)
    if "chain" in names:

        def chain():
            torch.mul(x, 0.5, out=y)
            torch.add(y, x, out=y)
            torch.clamp(y, max=3, out=y)
            torch.div(y, 1.5, out=y)
            torch.neg(x, out=z)
            torch.maximum(y, z, out=y)
            torch.mul(y, y, out=z)
            torch.sub(y, z, alpha=0.25, out=y)
            torch.abs(y, out=y)
            torch.sub(y, 0.125, out=y)

        body = "  y[n,d] = max(min(X[n,d] * 0.5 + X[n,d], 3) / 1.5, -X[n,d])\n  next X[n,d] = abs(y[n,d] - 0.25 * (y[n,d] * y[n,d])) - 0.125"
        compare("chain of 10", program(n, d, body), {"torch": chain}, moved, repeats)


UPDATE = """
repeat t < {rounds} {{
  state W[i,j] = W0[i,j]
  state m[i,j] = W0[i,j] * 0
  state v[i,j] = W0[i,j] * 0
  next m[i,j] = 0.9 * m[i,j] + 0.1 * G[i,j]
  next v[i,j] = 0.999 * v[i,j] + 0.001 * G[i,j]^2
{body}
}}
output W
"""


def optimizers(names, repeats):
    n, d = 6144, 8192
    head = f"dim N = {n}\ndim D = {d}\ninput W0: f32[N, D] = normal(0, 1)\ninput G: f32[N, D] = normal(0, 1)\n"
    moved = 7 * 4 * n * d
    if "adamw" in names:
        w = torch.randn(n, d)
        w.grad = torch.randn(n, d)
        adamw = torch.optim.AdamW([w], lr=1e-3, fused=True)
        body = "  next W[i,j] = W[i,j] - 0.001 * (next m[i,j] / 0.1 / (sqrt(next v[i,j] / 0.001) + 1e-8) + 0.01 * W[i,j])"
        compare("adamw", head + UPDATE.format(rounds=ROUNDS, body=body), {"torch fused": adamw.step}, moved, repeats)
    if "lamb" in names:
        import jax
        import jax.numpy as jnp

        @jax.jit
        def lamb(w, m, v, g):
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
            u = m / 0.1 / (jnp.sqrt(v / 0.001) + 1e-6) + 0.01 * w
            return w - 0.001 * jnp.linalg.norm(w) / jnp.linalg.norm(u) * u, m, v

        key = jax.random.PRNGKey(0)
        w, m, v, g = (jax.random.normal(key, (n, d)) for _ in range(4))
        v = v * v
        body = """  u[i,j] = next m[i,j] / 0.1 / (sqrt(next v[i,j] / 0.001) + 1e-6) + 0.01 * W[i,j]
  r = sqrt(sum[i,j] W[i,j]^2) / sqrt(sum[i,j] u[i,j]^2)
  next W[i,j] = W[i,j] - 0.001 * r * u[i,j]"""
        peers = {"jax": lambda: jax.block_until_ready(lamb(w, m, v, g))}
        compare("lamb", head + UPDATE.format(rounds=ROUNDS, body=body), peers, moved, repeats)


parser = argparse.ArgumentParser()
parser.add_argument("names", nargs="*")
parser.add_argument("--rows", type=int, default=8192)
parser.add_argument("--repeats", type=int, default=5)
options = parser.parse_args()
names = options.names or ["gelu", "softmax", "layer_norm", "chain", "adamw", "lamb"]
rows(names, options.rows, options.repeats)
optimizers(names, options.repeats)
