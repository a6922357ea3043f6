"""One training step of a two-layer network: einc beside hand-written numpy, JAX and PyTorch, in one run.

The program is tests/peers/ffnn.ein: gradients by `grad`, the rule by `optimizer: sgd`. Contestants take turns, a few steps each, and
every figure is a median of ratios of one turn, so that what else the machine does falls on all of them. Peers that are not installed
are left out.

    python tests/peers/ffnn_step.py --einc target/release/einc
    python tests/peers/ffnn_step.py --einc target/release/einc --ranks 2
    python tests/peers/ffnn_step.py --einc target/release/einc --ranks 2 --wide
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TALL = dict(N=1000, D=1600, H=10000, L=10)
WIDE = dict(N=100, D=59754, H=500, L=1458)
HERE = Path(__file__).resolve().parent
RATE = 0.01


def data(sizes, columns=slice(None), rows=slice(None)):
    """X, Y, W1, W2 in f32, the same for every contestant; of the hidden layer `columns`, of X's columns `rows`."""
    import numpy as np

    r = np.random.default_rng(0)
    n, d, h, l = sizes["N"], sizes["D"], sizes["H"], sizes["L"]
    x = r.random((n, d), np.float32) * 2 - 1
    y = r.random((n, l), np.float32)
    w1 = r.standard_normal((d, h), np.float32) * np.float32((2 / d) ** 0.5)
    w2 = r.standard_normal((h, l), np.float32) * np.float32((2 / h) ** 0.5)
    return x, y, w1, w2


def output_layer(np, z, y, n, l):
    """The loss and its gradient by z, given the logits."""
    a = 1 / (1 + np.exp(-z))
    loss = -np.mean(y * np.log(a + 1e-7) + (1 - y) * np.log(1 - a + 1e-7))
    return float(loss), (a - y) * np.float32(1 / (n * l))


def by_hand(x, y, w1, w2, l, join=lambda z: None):
    """A step with a hidden layer of w1's columns; `join` adds up the logits of those who have others."""
    import numpy as np

    n = len(x)
    a1 = np.empty((n, w1.shape[1]), np.float32)
    d1, g1 = np.empty_like(a1), np.empty_like(w1)

    def step():
        np.matmul(x, w1, out=a1)
        np.maximum(a1, 0, out=a1)
        z = a1 @ w2
        join(z)
        loss, d2 = output_layer(np, z, y, n, l)
        np.matmul(d2, w2.T, out=d1)
        np.multiply(d1, a1 > 0, out=d1)
        g2 = a1.T @ d2
        np.matmul(x.T, d1, out=g1)
        np.multiply(g1, np.float32(RATE), out=g1)
        np.subtract(w1, g1, out=w1)
        w2[...] -= np.float32(RATE) * g2
        return loss

    return step


def numpy_step(sizes):
    return by_hand(*data(sizes), sizes["L"])


def mpi_step(sizes):
    """Model-parallel by hand: the hidden layer is cut where it is wide, the columns of X where they are."""
    import numpy as np
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    me, all_ = comm.Get_rank(), comm.Get_size()
    x, y, w1, w2 = data(sizes)
    n, d, h, l = sizes["N"], sizes["D"], sizes["H"], sizes["L"]
    if h > d:
        mine = slice(me * h // all_, (me + 1) * h // all_)
        join = lambda z: comm.Allreduce(MPI.IN_PLACE, z)
        return by_hand(x, y, w1[:, mine].copy(), w2[mine].copy(), l, join)
    mine, out = slice(me * d // all_, (me + 1) * d // all_), slice(me * l // all_, (me + 1) * l // all_)
    x, w1, w2, y = x[:, mine].copy(), w1[mine].copy(), w2[:, out].copy(), y[:, out].copy()
    g1 = np.empty_like(w1)

    def step():
        a1 = x @ w1
        comm.Allreduce(MPI.IN_PLACE, a1)
        np.maximum(a1, 0, out=a1)
        loss, d2 = output_layer(np, a1 @ w2, y, n, l)
        d1 = d2 @ w2.T
        comm.Allreduce(MPI.IN_PLACE, d1)
        d1 *= a1 > 0
        g2 = a1.T @ d2
        np.matmul(x.T, d1, out=g1)
        np.multiply(g1, np.float32(RATE), out=g1)
        np.subtract(w1, g1, out=w1)
        w2[...] -= np.float32(RATE) * g2
        return comm.allreduce(loss) / all_

    return step


def jax_step(sizes):
    import jax
    import jax.numpy as jnp

    x, y, w1, w2 = map(jnp.asarray, data(sizes))

    def loss_of(w1, w2):
        a = jax.nn.sigmoid(jax.nn.relu(x @ w1) @ w2)
        return -jnp.mean(y * jnp.log(a + 1e-7) + (1 - y) * jnp.log(1 - a + 1e-7))

    def update(w1, w2):
        loss, (g1, g2) = jax.value_and_grad(loss_of, (0, 1))(w1, w2)
        return loss, w1 - RATE * g1, w2 - RATE * g2

    update = jax.jit(update, donate_argnums=(0, 1))
    held = [w1, w2]

    def step():
        loss, held[0], held[1] = update(*held)
        held[0].block_until_ready()
        return float(loss)

    return step


def torch_step(sizes, parallel=False):
    import torch

    x, y, w1, w2 = map(torch.from_numpy, data(sizes))
    module = torch.nn.Module()
    module.w1, module.w2 = torch.nn.Parameter(w1), torch.nn.Parameter(w2)

    def forward(x):
        return torch.sigmoid(torch.relu(x @ module.w1) @ module.w2)

    module.forward = forward
    model = module
    if parallel:
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel

        me, all_ = dist.get_rank(), dist.get_world_size()
        rows = slice(me * len(x) // all_, (me + 1) * len(x) // all_)
        x, y = x[rows], y[rows]
        model = DistributedDataParallel(module)
    optimizer = torch.optim.SGD(module.parameters(), lr=RATE)

    def step():
        optimizer.zero_grad()
        a = model(x)
        loss = -(y * torch.log(a + 1e-7) + (1 - y) * torch.log(1 - a + 1e-7)).mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def work(name, sizes):
    """Answers every line of standard input, a number of steps, with the median time of one and the last loss."""
    lead = True
    share = lambda count: count
    if name == "numpy":
        step = numpy_step(sizes)
    elif name == "jax":
        step = jax_step(sizes)
    elif name == "torch":
        step = torch_step(sizes)
    elif name == "mpi4py":
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        lead, step = comm.Get_rank() == 0, mpi_step(sizes)

        def share(count):
            """A broadcast that sleeps: one of MPI's would keep a core busy while it is another contestant's turn."""
            if lead:
                for rank in range(1, comm.Get_size()):
                    comm.send(count, rank)
                return count
            while not comm.iprobe(source=0):
                time.sleep(0.001)
            return comm.recv(source=0)

    elif name == "ddp":
        import torch
        import torch.distributed as dist

        torch.set_num_threads(1)
        dist.init_process_group("gloo")
        lead, step = dist.get_rank() == 0, torch_step(sizes, parallel=True)

        def share(count):
            held = torch.tensor([count])
            dist.broadcast(held, 0)
            return int(held)

    while True:
        count = share(int(sys.stdin.readline() or 0) if lead else 0)
        if count == 0:
            return
        times = []
        for _ in range(count):
            began = time.perf_counter()
            loss = step()
            times.append(time.perf_counter() - began)
        if lead:
            print(json.dumps([statistics.median(times), loss]), flush=True)


class Peer:
    """A contestant that stays in memory between its turns."""

    def __init__(self, name, sizes, ranks):
        arguments = [sys.executable, __file__, "--worker", name, "--sizes", json.dumps(sizes)]
        one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        extra = {}
        if name == "mpi4py":
            arguments = launcher(ranks) + arguments
            extra = one
        if name == "ddp":
            extra = dict(one, MASTER_ADDR="127.0.0.1", MASTER_PORT="29517", WORLD_SIZE=str(ranks))
        clean = {k: v for k, v in os.environ.items() if k not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}
        self.all = []
        for rank in range(ranks if name == "ddp" else 1):
            self.all.append(
                subprocess.Popen(
                    arguments,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL,
                    text=True,
                    env=dict(clean, RANK=str(rank), **extra),
                )
            )

    def turn(self, steps):
        self.all[0].stdin.write(f"{steps}\n")
        self.all[0].stdin.flush()
        return json.loads(self.all[0].stdout.readline())

    def end(self):
        for process in self.all:
            process.stdin.close()
        for process in self.all:
            process.wait()


def launcher(ranks):
    return ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "core", "-n", str(ranks)]


class Einc:
    """The built program: every turn is a run of its own, whose first four steps do not count: peers are warm in their turns."""

    def __init__(self, einc, sizes, ranks, folder):
        dims = [part for name, size in sizes.items() for part in ("--dim", f"{name}={size}")]
        self.program, self.lines = folder / "ffnn", folder / "steps.jsonl"
        subprocess.run([einc, "build", HERE / "ffnn.ein", "-o", self.program, *dims], check=True)
        plan = [einc, "plan", HERE / "ffnn.ein", "--sites", str(ranks), *dims]
        self.plan = subprocess.run(plan, check=True, text=True, stdout=subprocess.PIPE).stdout
        begin = launcher(ranks) if ranks > 1 else []
        self.command = [*begin, self.program, "--progress", "none", "--json-lines", self.lines]

    def turn(self, steps):
        self.lines.unlink(missing_ok=True)
        subprocess.run([*self.command, "--set", f"K={steps + 4}"], check=True, stdout=subprocess.DEVNULL)
        found = [json.loads(line) for line in self.lines.read_text().splitlines()]
        seconds = [line["seconds"] for line in found]
        return statistics.median(b - a for a, b in zip(seconds[3:], seconds[4:])), found[-1]["loss"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--einc", default="target/release/einc")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--wide", action="store_true", help="D=59,754, H=500, L=1,458, batch 100")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--worker")
    parser.add_argument("--sizes")
    given = parser.parse_args()
    if given.worker:
        return work(given.worker, json.loads(given.sizes))
    sizes = WIDE if given.wide else TALL
    modules = {"numpy": "numpy", "jax": "jax", "torch": "torch", "mpi4py": "mpi4py", "ddp": "torch"}
    names = ["numpy", "jax", "torch"] if given.ranks == 1 else ["mpi4py", "ddp"]
    from importlib.util import find_spec

    names = [name for name in names if find_spec(modules[name])]
    if given.ranks > 1 and not shutil.which("mpirun"):
        sys.exit("there is no mpirun")
    with tempfile.TemporaryDirectory() as folder:
        ours = Einc(given.einc, sizes, given.ranks, Path(folder))
        print("\n".join(ours.plan.splitlines()[:2]))
        peers = {name: Peer(name, sizes, given.ranks) for name in names}
        for peer in peers.values():
            peer.turn(2)
        ratios, times = {name: [] for name in names}, {name: [] for name in ["einc", *names]}
        for turn in range(given.rounds):
            mine, loss = ours.turn(given.steps)
            times["einc"].append(mine)
            for name, peer in peers.items():
                theirs, other = peer.turn(given.steps)
                times[name].append(theirs)
                ratios[name].append(theirs / mine)
                print(f"  turn {turn}: {name} {theirs:.3f} s, einc {mine:.3f} s", file=sys.stderr, flush=True)
                assert abs(other - loss) < 0.1, f"{name} has the loss {other}, einc {loss}"
        for peer in peers.values():
            peer.end()
        print(f"einc    {statistics.median(times['einc']):.4f} s a step")
        for name in names:
            median = statistics.median(ratios[name])
            print(f"{name:<7} {statistics.median(times[name]):.4f} s, {median:.2f} times as long")


if __name__ == "__main__":
    main()
