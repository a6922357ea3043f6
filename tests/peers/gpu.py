"""Programs on a GPU beside PyTorch on the same one. Ratios are PyTorch's time over einc's: above 1, einc is faster.

    EINC=target/release/einc python tests/peers/gpu.py [product] [gelu] [softmax] [layer_norm] [attention] [--size N] [--repeats K]

einc's times are those of the steps in its own trace (`--profile`, which waits for the GPU behind every step), round by round of a loop; PyTorch's are
between two waits for the GPU. A contestant's turn comes after the other's, and medians are compared. Without PyTorch einc's times stand alone.
"""

import argparse
import statistics
import time

import peers as peers_of

try:
    import torch
except ImportError:
    torch = None

ROUNDS = 8
TYPES = ("f32", "f64", "bf16")


def loop(state, body, more=""):
    """A loop whose state X is replaced in every round. `state`: its type, such as f32[N, N], and the indices."""
    dtype, indices = state
    return f"""use std.nn
{more}
input X0: {dtype} = uniform(-1, 1)
repeat step < {ROUNDS} {{
  state X[{indices}] = X0[{indices}]
{body}
}}
output X
"""


def seconds(call):
    torch.cuda.synchronize()
    began = time.perf_counter()
    call()
    torch.cuda.synchronize()
    return time.perf_counter() - began


def compare(name, text, peer, amount, unit, repeats):
    """`amount`: operations or bytes of a round. `peer`: what PyTorch calls, or nothing."""
    own, other = [], []
    if torch and peer:
        peer()
    for _ in range(repeats):
        own += peers_of.seconds_of_rounds(text, ROUNDS, ["--device", "gpu"])
        if torch and peer:
            other += [seconds(peer) for _ in range(ROUNDS)]
    median = statistics.median(own)
    ratio = f"{statistics.median(other) / median:6.2f} x PyTorch" if other else ""
    print(f"{name:<18} {median * 1e3:9.3f} ms  {amount / median / 1e12:8.3f} {unit}  {ratio}", flush=True)


def on_gpu(shape, dtype):
    types = {"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16}
    return torch.empty(shape, dtype=types[dtype], device="cuda").uniform_(-1, 1)


def product(n, repeats):
    for dtype in TYPES:
        more = f"dim N = {n}\ninput W: {dtype}[N, N] = uniform(-1, 1)"
        text = loop((f"{dtype}[N, N]", "i, j"), "  next X[i,j] = X[i,k] * W[k,j]", more)
        peer = None
        if torch:
            torch.backends.cuda.matmul.allow_tf32 = False
            x, w = on_gpu((n, n), dtype), on_gpu((n, n), dtype)
            peer = lambda: torch.matmul(x, w)
        compare(f"product {dtype}", text, peer, 2 * n**3, "Tflop/s", repeats)


def rows(name, n, repeats):
    body = {"gelu": "nn.gelu(X[i,j])", "softmax": "nn.softmax(X)[i,j]", "layer_norm": "nn.layer_norm(X, g, b)[i,j]"}[name]
    more = f"dim N = {n}"
    if name == "layer_norm":
        more += "\ninput g: f32[N] = uniform(0, 1)\ninput b: f32[N] = uniform(0, 1)"
    text = loop(("f32[N, N]", "i, j"), f"  next X[i,j] = {body}", more)
    peer = None
    if torch:
        x = on_gpu((n, n), "f32")
        call = torch.nn.functional
        peer = {
            "gelu": lambda: call.gelu(x),
            "softmax": lambda: call.softmax(x, dim=1),
            "layer_norm": lambda: call.layer_norm(x, (n,)),
        }[name]
    compare(name, text, peer, 2 * 4 * n * n, "TB/s", repeats)


def attention(n, repeats):
    """Causal attention as in examples/attention.ein, of 8 x 16 heads of n/2 rows."""
    batch, heads, length, depth = 8, 16, n // 2, 64
    shape = "bf16[B, H, T, D]"
    more = f"""dim B = {batch}, H = {heads}, T = {length}, D = {depth}
input K: {shape} = uniform(-1, 1)
input V: {shape} = uniform(-1, 1)"""
    body = """  score[b,h,t,s] = where(s <= t, X[b,h,t,d] * K[b,h,s,d] / 8, -inf)
  weight[b,h,t,s] = exp(score[b,h,t,s] - (max[r] score[b,h,t,r]))
  next X[b,h,t,d] = weight[b,h,t,s] * V[b,h,s,d] / (sum[r] weight[b,h,t,r])"""
    text = loop((shape, "b, h, t, d"), body, more)
    peer = None
    if torch:
        q, k, v = (on_gpu((batch, heads, length, depth), "bf16") for _ in range(3))
        peer = lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    compare("attention", text, peer, 2 * batch * heads * length * length * depth, "Tflop/s", repeats)


def main():
    subjects = ["product", "gelu", "softmax", "layer_norm", "attention"]
    arguments = argparse.ArgumentParser()
    arguments.add_argument("subjects", nargs="*", metavar="subject", help=", ".join(subjects))
    arguments.add_argument("--size", type=int, default=8192)
    arguments.add_argument("--repeats", type=int, default=3)
    asked = arguments.parse_args()
    for subject in asked.subjects or subjects:
        if subject == "product":
            product(asked.size, asked.repeats)
        elif subject == "attention":
            attention(asked.size, asked.repeats)
        else:
            rows(subject, asked.size, asked.repeats)


if __name__ == "__main__":
    main()
