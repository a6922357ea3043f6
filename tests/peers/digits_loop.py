"""digits.ein end to end: the built program beside the same loop in PyTorch.

The same network, batch, number of epochs, warm-up and decay, and LAMB written by hand over whole tensors. PyTorch's time begins when it is
imported, einc's when its process starts. They take turns; a ratio is PyTorch's time over einc's of one turn,
and medians are printed, of elapsed and of processor time (the steadier measure on a busy machine).

    python tests/peers/digits_loop.py --einc target/release/einc
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BATCH, EPOCHS, WARM, RATE, DECAY = 64, 30, 2, 0.01, 0.01


def torch_loop(seed):
    """Trains once; returns the share of test images that are read right."""
    import numpy as np
    import torch

    load = lambda name: torch.from_numpy(np.load(ROOT / f"examples/data/digits_{name}.npy"))
    x, y, xt, yt = load("train_x"), load("train_y"), load("test_x"), load("test_y")
    torch.manual_seed(seed)
    he = lambda a, b: (torch.randn(a, b) * (2 / a) ** 0.5).requires_grad_()
    w1, b1, w2, b2 = he(64, 256), torch.zeros(256, requires_grad=True), he(256, 10), torch.zeros(10, requires_grad=True)
    params = [(w1, DECAY, True), (b1, 0.0, False), (w2, DECAY, True), (b2, 0.0, False)]
    moments = [(torch.zeros_like(p), torch.zeros_like(p)) for p, _, _ in params]
    model = lambda x: torch.relu(x @ w1 + b1) @ w2 + b2
    score = lambda: (model(xt).argmax(1) == yt).float().mean().item()
    per_epoch = -(-len(x) // BATCH)
    warm, step = WARM * per_epoch, 0
    for epoch in range(EPOCHS):
        for rows in torch.randperm(len(x)).split(BATCH):
            loss = torch.nn.functional.cross_entropy(model(x[rows]), y[rows])
            for p, _, _ in params:
                p.grad = None
            loss.backward()
            loss.item()
            factor = (step + 1) / warm if step < warm else 1 - (step - warm) / (EPOCHS * per_epoch - warm)
            step += 1
            with torch.no_grad():
                for (p, decay, adapt), (m, v) in zip(params, moments):
                    m.mul_(0.9).add_(p.grad, alpha=0.1)
                    v.mul_(0.999).addcmul_(p.grad, p.grad, value=0.001)
                    u = (m / (1 - 0.9**step)) / ((v / (1 - 0.999**step)).sqrt() + 1e-6) + decay * p
                    wn, un = (p.norm().item(), u.norm().item()) if adapt else (0, 0)
                    p.sub_(u, alpha=RATE * factor * (wn / un if wn > 0 and un > 0 else 1))
        if (epoch + 1) % 5 == 0:
            with torch.no_grad():
                score()
    with torch.no_grad():
        return score()


def worker():
    import torch

    torch.set_num_threads(1)
    for line in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        accuracy = torch_loop(int(line))
        print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu, accuracy]), flush=True)


def ours(program, seed):
    with tempfile.TemporaryFile("w+") as out:
        wall = time.perf_counter()
        process = subprocess.Popen([program, "--progress", "none", "--seed", str(seed)], stdout=out)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - wall
        assert status == 0
        out.seek(0)
        found = dict(line.split(" = ") for line in out.read().splitlines())
    return wall, used.ru_utime + used.ru_stime, float(found["test"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--einc", default="target/release/einc")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--worker", action="store_true")
    given = parser.parse_args()
    if given.worker:
        return worker()
    clean = {k: v for k, v in os.environ.items() if k not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}
    peer = subprocess.Popen(
        [sys.executable, __file__, "--worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=clean
    )

    def theirs(seed):
        peer.stdin.write(f"{seed}\n")
        peer.stdin.flush()
        return json.loads(peer.stdout.readline())

    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "digits"
        subprocess.run([given.einc, "build", ROOT / "examples/digits.ein", "-o", program], check=True)
        ours(program, 0), theirs(0)
        turns = [(ours(program, seed), theirs(seed)) for seed in range(given.rounds)]
    peer.stdin.close()
    for clock, what in enumerate(("elapsed", "processor")):
        mine, torch_time = (statistics.median(turn[side][clock] for turn in turns) for side in (0, 1))
        ratio = statistics.median(turn[1][clock] / turn[0][clock] for turn in turns)
        print(f"{what:<10} einc {mine:.3f} s   torch {torch_time:.3f} s, {ratio:.2f} times as long")
    accuracy = [statistics.fmean(turn[side][2] for turn in turns) for side in (0, 1)]
    print(f"accuracy   einc {accuracy[0]:.4f}   torch {accuracy[1]:.4f}")


if __name__ == "__main__":
    main()
