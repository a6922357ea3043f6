"""Whole programs beside numpy, PyTorch, JAX and cotengra: attention, the nearest neighbour under a metric, a skewed chain of products. Ratios are a peer's time
over einc's: above 1, einc is faster.

    EINC=target/release/einc python tests/peers/programs.py [attention] [nearest] [chain]

einc's times are those of the steps in its own trace (`--profile`), round by round of a loop in which each round needs what the one before
made; a contestant's turn comes after the other's, and medians are compared. PyTorch's causal attention is its einsums, and its fused kernel.
"""

import statistics
import sys
from importlib.util import find_spec

import peers

peers.clean_environment()

import numpy as np  # noqa: E402
import torch  # noqa: E402

torch.set_num_threads(peers.THREADS)
torch.set_grad_enabled(False)
ROUNDS, TURNS = 6, 4
generator = np.random.default_rng(1)


def uniform(*shape):
    return generator.random(shape, np.float32) * 2 - 1


def compare(name, text, contestants):
    for body in contestants.values():
        body()
    own, times = [], {contestant: [] for contestant in contestants}
    for _ in range(TURNS):
        own += peers.seconds_of_rounds(text.replace("ROUNDS", str(ROUNDS)), ROUNDS)
        for contestant, body in contestants.items():
            times[contestant] += [peers.timed(body) for _ in range(3)]
    median = statistics.median(own)
    ratios = ", ".join(f"{contestant} {statistics.median(t) / median:.2f}" for contestant, t in times.items())
    print(f"{name:<28} {median * 1e3:8.1f} ms   {ratios}", flush=True)


def attention():
    b, h, t, d = 8, 8, 512, 64
    q, k, v = (torch.from_numpy(uniform(b, h, t, d)) for _ in range(3))
    mask = torch.tril(torch.ones(t, t, dtype=torch.bool))

    def written_out():
        score = torch.einsum("bhtd,bhsd->bhts", q, k) / d**0.5
        weight = torch.softmax(score.masked_fill(~mask, -torch.inf), -1)
        torch.einsum("bhts,bhsd->bhtd", weight, v)

    fused = torch.nn.functional.scaled_dot_product_attention
    text = f"""
dim B = {b}; dim T = {t}; dim H = {h}; dim D = {d}
input Q0: f32[B, H, T, D] = uniform(-1, 1)
input K: f32[B, H, T, D] = uniform(-1, 1)
input V: f32[B, H, T, D] = uniform(-1, 1)
repeat r < ROUNDS {{
  state Q[b,h,t,d] = Q0[b,h,t,d]
  score[b,h,t,s]  = where(s <= t, Q[b,h,t,d] * K[b,h,s,d] / sqrt(f32(D)), -inf)
  top[b,h,t]      = max[s] score[b,h,t,s]
  weight[b,h,t,s] = exp(score[b,h,t,s] - top[b,h,t])
  total[b,h,t]    = sum[s] weight[b,h,t,s]
  next Q[b,h,t,d] = weight[b,h,t,s] * V[b,h,s,d] / total[b,h,t]
}}
output Q
"""
    compare("causal attention 8x8x512x64", text, {"torch einsum": written_out, "torch fused": lambda: fused(q, k, v, is_causal=True)})


def nearest():
    for n, d in ((150_000, 600), (600, 10_000)):
        x, q, a = uniform(n, d), uniform(d), uniform(d, d)
        there = [torch.from_numpy(array) for array in (x, q, a)]

        def numpy():
            diff = x - q
            return np.argmin(np.einsum("ne,ne->n", diff @ a, diff))

        def pytorch():
            diff = there[0] - there[1]
            return torch.argmin(torch.einsum("ne,ne->n", diff @ there[2], diff))

        contestants = {"numpy": numpy, "torch": pytorch}
        if find_spec("jax"):
            import jax
            import jax.numpy as jnp

            compiled = jax.jit(lambda x, q, a: jnp.argmin(jnp.einsum("ne,ne->n", (x - q) @ a, x - q)))
            arrays = [jnp.asarray(array) for array in (x, q, a)]
            contestants["jax"] = lambda compiled=compiled, arrays=arrays: jax.block_until_ready(compiled(*arrays))
        text = f"""
dim N = {n}; dim D = {d}
input X: f32[N, D] = uniform(-1, 1)
input q0: f32[D] = uniform(-1, 1)
input A: f32[D, D] = uniform(-1, 1)
repeat r < ROUNDS {{
  state q[d] = q0[d]
  diff[n,d] = X[n,d] - q[d]
  proj[n,e] = diff[n,d] * A[d,e]
  dist[n]   = proj[n,e] * diff[n,e]
  best      = argmin[n] dist[n]
  next q[d] = 0.5 * X[best, d]
}}
output q
"""
        compare(f"nearest neighbour {n}x{d}", text, contestants)


def chain():
    i, j, k, m = 100, 10_000, 100, 1_000_000
    a, b, c = uniform(i, j), uniform(j, k), uniform(k, m)
    there = [torch.from_numpy(array) for array in (a, b, c)]
    contestants = {
        "numpy": lambda: np.einsum("ij,jk,kl->il", a, b, c, optimize=True),
        "torch": lambda: torch.linalg.multi_dot(there),
    }
    if find_spec("cotengra"):
        import cotengra

        contestants["cotengra"] = lambda: cotengra.einsum("ij,jk,kl->il", a, b, c)
    text = f"""
dim I = {i}; dim J = {j}; dim K = {k}; dim L = {m}
input A: f32[I, J] = uniform(-1, 1)
input B: f32[J, K] = uniform(-1, 1)
input C: f32[K, L] = uniform(-1, 1)
repeat r < ROUNDS {{
  state s = f32(1.0)
  S[i,j] = min(A[i,j], s)
  O[i,l] = S[i,j] * B[j,k] * C[k,l]
  next s = 1.0 + 1e-30 * O[0,0]
}}
output s
"""
    compare("chain ij,jk,kl->il", text, contestants)


for subject in (attention, nearest, chain):
    if not sys.argv[1:] or subject.__name__ in sys.argv[1:]:
        subject()
