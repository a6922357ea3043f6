"""A step of LAMB and of AdamW over 50.3 million numbers in three tensors: einc beside JAX, timm and PyTorch's fused Adam, in one run.

The program is tests/peers/update.ein. All contestants compute the same loss, the sum of params times given gradients, and update in place
where they can; they take turns of a few steps, and a ratio is a peer's median time over einc's of one turn. Losses must agree. Peers that are not
installed are left out.

    python tests/peers/update.py --einc target/release/einc
    python tests/peers/update.py --einc target/release/einc --size 1024 --rounds 3
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
RATE, DECAY = 0.001, 0.01
PEERS = {"lamb": {"jax": "jax", "timm": "timm"}, "adamw": {"jax": "jax", "fused": "torch"}}


def data(folder, size):
    """Writes gradients and params; the same for every contestant."""
    import numpy as np

    r = np.random.default_rng(0)
    np.save(folder / "g.npy", r.standard_normal((3, size, size), np.float32))
    for name in "uvw":
        np.save(folder / f"{name}.npy", r.standard_normal((size, size), np.float32) * np.float32(0.02))


def loaded(folder):
    import numpy as np

    g = np.load(folder / "g.npy")
    return [np.load(folder / f"{name}.npy") for name in "uvw"], [g[i].copy() for i in range(3)]


def jax_step(rule, folder):
    import jax
    import jax.numpy as jnp

    params, gradients = loaded(folder)
    gradients = [jnp.asarray(g) for g in gradients]
    eps = 1e-6 if rule == "lamb" else 1e-8

    def update(params, ms, vs, t):
        loss = sum(jnp.vdot(p, g) for p, g in zip(params, gradients))
        out = []
        for w, m, v, g in zip(params, ms, vs, gradients):
            m = 0.9 * m + 0.1 * g
            v = 0.999 * v + 0.001 * g * g
            u = m / (1 - 0.9**t) / (jnp.sqrt(v / (1 - 0.999**t)) + eps) + DECAY * w
            q = jnp.linalg.norm(w) / jnp.linalg.norm(u) if rule == "lamb" else 1.0
            out.append((w - RATE * q * u, m, v))
        return loss, *map(list, zip(*out))

    update = jax.jit(update, donate_argnums=(0, 1, 2))
    held = [[jnp.asarray(p) for p in params], *([jnp.zeros_like(g) for g in gradients] for _ in range(2))]
    made = [0]

    def step():
        made[0] += 1
        loss, *held[:] = update(*held, float(made[0]))
        jax.block_until_ready(held)
        return float(loss)

    return step


def torch_step(name, folder):
    import torch

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    params, gradients = loaded(folder)
    params = [torch.nn.Parameter(torch.from_numpy(p)) for p in params]
    for p, g in zip(params, gradients):
        p.grad = torch.from_numpy(g)
    if name == "timm":
        from timm.optim import Lamb

        # No clipping of all gradients together, which is this class's own; ratios for all.
        rule = Lamb(params, lr=RATE, eps=1e-6, weight_decay=DECAY, max_grad_norm=None, always_adapt=True)
    else:
        rule = torch.optim.AdamW(params, lr=RATE, weight_decay=DECAY, fused=True)

    def step():
        with torch.no_grad():
            loss = sum(torch.dot(p.flatten(), p.grad.flatten()) for p in params).item()
        rule.step()
        return loss

    return step


def work(rule, name, folder):
    step = jax_step(rule, folder) if name == "jax" else torch_step(name, folder)
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            began = time.perf_counter()
            loss = step()
            times.append(time.perf_counter() - began)
        print(json.dumps([statistics.median(times), loss]), flush=True)


class Einc:
    """A run of its own every turn, whose first two steps do not count."""

    def __init__(self, einc, rule, size, folder):
        text = (HERE / "update.ein").read_text()
        source = folder / f"{rule}.ein"
        source.write_text(text.replace("lamb(", f"{rule}("))
        self.program, self.lines = folder / rule, folder / "steps.jsonl"
        dims = ["--dim", f"A={size}"]
        subprocess.run([einc, "build", source, "-o", self.program, *dims], check=True)
        given = [part for name in "guvw" for part in ("--input", f"{name}={folder / name}.npy")]
        self.command = [self.program, *given, "--progress", "none", "--json-lines", self.lines]

    def turn(self, steps):
        self.lines.unlink(missing_ok=True)
        subprocess.run([*self.command, "--set", f"K={steps + 2}"], check=True, stdout=subprocess.DEVNULL)
        found = [json.loads(line) for line in self.lines.read_text().splitlines()]
        seconds = [line["seconds"] for line in found]
        return statistics.median(b - a for a, b in zip(seconds[1:], seconds[2:])), found[0]["loss"], found[1]["loss"]


def measured(rule, given, folder):
    ours = Einc(given.einc, rule, given.size, folder)
    clean = {k: v for k, v in os.environ.items() if k not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}
    peers = {}
    for name, module in PEERS[rule].items():
        if find_spec(module):
            command = [sys.executable, __file__, "--worker", f"{rule} {name} {folder}"]
            peers[name] = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=clean)

    def turn(name, steps):
        peers[name].stdin.write(f"{steps}\n")
        peers[name].stdin.flush()
        return json.loads(peers[name].stdout.readline())

    _, *losses = ours.turn(1)
    scale = abs(losses[1] - losses[0])
    for name in peers:
        for own in losses:
            _, loss = turn(name, 1)
            assert abs(loss - own) < 1e-2 * scale, f"{name} has the loss {loss}, einc {own}"
    times = {name: [] for name in ["einc", *peers]}
    for _ in range(given.rounds):
        times["einc"].append(ours.turn(given.steps)[0])
        for name in peers:
            times[name].append(turn(name, given.steps)[0])
    for peer in peers.values():
        peer.stdin.close()
        peer.wait()
    print(f"{rule:<6} einc  {statistics.median(times['einc']):.4f} s a step, {3 * given.size**2 / 1e6:.1f} million numbers")
    for name in peers:
        ratio = statistics.median(theirs / own for theirs, own in zip(times[name], times["einc"]))
        print(f"       {name:<5} {statistics.median(times[name]):.4f} s, {ratio:.2f} times as long", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--einc", default="target/release/einc")
    parser.add_argument("--size", type=int, default=4096, help="rows and columns of each tensor")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--worker")
    given = parser.parse_args()
    if given.worker:
        rule, name, folder = given.worker.split()
        return work(rule, name, Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        data(Path(folder), given.size)
        for rule in PEERS:
            measured(rule, given, Path(folder))


if __name__ == "__main__":
    main()
