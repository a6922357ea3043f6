"""Sparse matrices beside their peers: time of a round, as a ratio, contestants in turns.

    python tests/peers/sparse.py target/release/einc [spmv] [spmv-t] [spmm] [spmm-t] [sampled] [rank] [paths] [attention] [triangles]
        [embedding] [network] [centred] [shifted] [product]

Ours is run with few and with many rounds, and the difference counts, so that neither loading nor planning does. Both sides have two
threads; scipy has one. SuiteSparse:GraphBLAS (`pip install python-graphblas`) and MKL (`pip install sparse_dot_mkl mkl`) take part where they are
installed. Matrices of `--rows` rows (100,000) with 20 elements a row: `uniform`, `power` (a few rows and columns have most of the
elements) and `laplace` (a grid of two dimensions). `embedding` is a step of sgd on a table of `--rows` rows of 64, whatever the matrix; `network`
a layer of a graph network in both directions with its gradient. `product` is that of two sparse matrices, of 400 terms a row in `uniform`; of `power`
it has too many for any of the contestants. A ratio above 1 is ours being faster.
"""

import argparse
import os
import re
import statistics
import subprocess
import tempfile
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "2"

import numpy as np  # noqa: E402  (after the number of threads is set)
import scipy.sparse as sp  # noqa: E402
import torch  # noqa: E402

try:
    import graphblas as gb

    gb.ss.config["nthreads"] = 2
except ImportError:
    gb = None
try:
    from sparse_dot_mkl import dot_product_mkl
except ImportError:
    dot_product_mkl = None

torch.set_num_threads(2)
TURNS = int(os.environ.get("TURNS", "5"))
WIDTH = 64
BATCH = 2560

HEAD = 'dim N\ninput A: f32[N, N] = load("a.npz")\n'
# A round leaves its result in a state, so that no round is left out.
PROGRAMS = {
    "spmv": "state v[i<N] = f32(i % 7)\n y[i] = A[i,j] * v[j]\n next v[i] = min(y[i], 1.0) + 0.5",
    "spmv-t": "state v[i<N] = f32(i % 7)\n y[j] = A[i,j] * v[i]\n next v[i] = min(y[i], 1.0) + 0.5",
    "spmm": f"state v[i<N, h<{WIDTH}] = f32((i + h) % 7)\n y[i,h] = A[i,j] * v[j,h]\n next v[i,h] = min(y[i,h], 1.0) + 0.5",
    "spmm-t": f"state v[i<N, h<{WIDTH}] = f32((i + h) % 7)\n y[j,h] = A[i,j] * v[i,h]\n next v[i,h] = min(y[i,h], 1.0) + 0.5",
    "sampled": f"state v[i<N, h<{WIDTH}] = f32((i + h) % 7)\n S[i,j] = A[i,j] * v[i,h] * v[j,h]\n q[i] = sum[j] S[i,j]\n"
    " next v[i,h] = 0.5 * v[i,h] + 1e-9 * q[i]",
    "rank": "state v[i<N] = 1.0 / N\n lost = sum[i] where(degree[i] == 0, v[i], 0)\n share[i] = where(degree[i] == 0, 0, v[i] / degree[i])\n"
    " next v[j] = 0.15 / N + 0.85 * (lost / N + sum[i] A[i,j] * share[i])",
    "paths": "state v[i<N] = where(i == 0, 0.0, inf)\n next v[j] = min(v[j], min[i] where(A[i,j] > 0, v[i] + A[i,j], inf))",
    "triangles": "state v[i<N] = f32(i % 7)\n W[i,j] = A[i,j] * v[j]\n q[i] = sum[j] A[i,j] * (sum[k] W[i,k] * A[k,j])\n next v[i] = min(q[i], 1.0) + 0.5",
    "centred": "state v[i<N] = f32(i % 7)\n y[i] = sum[j] (A[i,j] - 0.5 * v[i] - 0.25) * v[j]\n next v[i] = min(y[i], 1.0) + 0.5",
    "shifted": "state v[i<N] = f32(i % 7)\n y[i] = (A[i+1,j] else 0) * v[j]\n next v[i] = min(y[i], 1.0) + 0.5",
    "product": "state v[i<N] = f32(i % 7)\n W[i,j] = A[i,j] * v[j]\n C[i,j] = W[i,k] * A[k,j]\n q[i] = sum[j] C[i,j]^2\n next v[i] = min(q[i], 1.0) + 0.5",
    "embedding": f"state v[i<N, h<{WIDTH}] = f32((i + h) % 7) / 7\n tok[n<{BATCH}] = i64(abs(sin(f32(13 * n + t))) * (N - 1))\n"
    " g = grad(mean[n] ((sum[h] v[tok[n],h] * u[h]) - 1)^2, v)\n next v[i,h] = v[i,h] - 0.1 * g[i,h]",
    "network": "state v[i<N, h<16] = sin(f32(i + 3 * h))\n S[i,j] = A[i,j] + A[j,i]\n y[i,h] = max(S[i,j] * v[j,h], 0)\n"
    " g = grad(sum[i,h] y[i,h]^2, v)\n next v[i,h] = tanh(v[i,h] - 0.0001 * g[i,h])",
    "attention": "state v[i<N, h<16] = sin(f32(i + 3 * h))\n s[i] = v[i,h] * a[h]\n e[i,j] = where(A[i,j] > 0, exp(s[i] - s[j]), 0)\n"
    " z[i] = sum[j] e[i,j]\n y[i,h] = e[i,j] / (z[i] + 1e-9) * v[j,h]\n g = grad(sum[i,h] y[i,h]^2, v)\n next v[i,h] = v[i,h] - 0.01 * g[i,h]",
}
BEFORE = {"rank": "degree[i] = sum[j] A[i,j]\n", "attention": "a[h<16] = cos(f32(h))\n", "embedding": f"u[h<{WIDTH}] = cos(f32(h))\n"}


def matrices(rows):
    random = np.random.default_rng(7)
    count = 20 * rows
    uniform = (random.integers(0, rows, count), random.integers(0, rows, count))
    power = tuple((rows * random.random(count) ** 3).astype(np.int64) for _ in range(2))
    for name, (i, j) in (("uniform", uniform), ("power", power)):
        matrix = sp.csr_matrix((np.ones(count, np.float32), (i, j)), shape=(rows, rows))
        matrix.data = (random.random(matrix.nnz) + 0.5).astype(np.float32)
        yield name, matrix
    side = int(rows**0.5)
    line = sp.diags([-1, 2, -1], [-1, 0, 1], shape=(side, side))
    grid = sp.kron(sp.eye(side), line) + sp.kron(line, sp.eye(side))
    yield "laplace", sp.csr_matrix(grid, dtype=np.float32)


def peers(name, matrix):
    """Names of peers, and what makes one round of theirs."""
    rows = matrix.shape[0]
    transposed = matrix.T.tocsr()

    def tensor(of):
        return torch.sparse_csr_tensor(torch.tensor(of.indptr), torch.tensor(of.indices), torch.tensor(of.data), of.shape)

    ours, theirs = tensor(matrix), tensor(transposed)
    x, wide = np.ones(rows, np.float32), np.ones((rows, WIDTH), np.float32)
    tx, twide = torch.tensor(x), torch.tensor(wide)
    coo = matrix.tocoo()
    i, j, values = torch.tensor(coo.row.astype(np.int64)), torch.tensor(coo.col.astype(np.int64)), torch.tensor(coo.data)
    if name in ("spmv", "rank"):
        return {"scipy": lambda: matrix @ x, "torch": lambda: ours @ tx}
    if name == "spmv-t":
        return {"scipy": lambda: transposed @ x, "torch": lambda: theirs @ tx}
    if name == "spmm":
        return {"scipy": lambda: matrix @ wide, "torch": lambda: ours @ twide}
    if name == "spmm-t":
        return {"scipy": lambda: transposed @ wide, "torch": lambda: theirs @ twide}
    if name == "sampled":
        right = twide.T.contiguous()
        return {"torch": lambda: torch.sparse.sampled_addmm(ours, twide, right, beta=0)}
    if name == "centred":
        return {"scipy": lambda: matrix @ x - (0.5 * x + 0.25) * x.sum()}
    if name == "shifted":
        return {"scipy": lambda: matrix[1:] @ x}
    if name == "product":
        return {"scipy": lambda: (matrix.multiply(x[None, :]).tocsr() @ matrix).power(2).sum(1)}
    if name == "paths":
        start = np.full(rows, np.inf, np.float32)
        start[0] = 0
        return {"numpy": lambda: np.minimum.at(start.copy(), coo.col, start[coo.row] + coo.data)}
    if name == "triangles":
        return {"scipy": lambda: matrix.multiply(matrix.multiply(x[None, :]).tocsr() @ matrix).sum(1)}
    if name == "embedding":
        table = torch.rand(rows, WIDTH, requires_grad=True)
        optimizer = torch.optim.SGD([table], lr=0.1)
        factors, rows_of = torch.cos(torch.arange(WIDTH * 1.0)), torch.randint(rows, (BATCH,))

        def step():
            optimizer.zero_grad()
            read = torch.nn.functional.embedding(rows_of, table, sparse=True)
            ((read @ factors - 1) ** 2).mean().backward()
            optimizer.step()

        return {"torch": step}
    part = torch.randn(rows, 16, requires_grad=True)
    if name == "network":
        both = tensor((matrix + transposed).tocsr())

        def network():
            part.grad = None
            (torch.relu(both @ part) ** 2).sum().backward()

        return {"torch": network}
    along = torch.cos(torch.arange(16.0))

    def attention():
        s = part @ along
        e = torch.where(values > 0, torch.exp(s[i] - s[j]), 0)
        z = torch.zeros(rows).index_add(0, i, e)
        y = torch.zeros(rows, 16).index_add(0, i, (e / (z[i] + 1e-9))[:, None] * part[j])
        part.grad = None
        (y**2).sum().backward()

    return {"torch": attention}


def graphblas_peer(name, matrix):
    """What makes one round of GraphBLAS, if it has these operations."""
    ours = gb.io.from_scipy_sparse(matrix)
    rows = matrix.shape[0]
    x = gb.Vector.from_dense(np.ones(rows, np.float32))
    wide = gb.Matrix.from_dense(np.ones((rows, WIDTH), np.float32))
    by_column = gb.io.from_scipy_sparse(matrix.T.tocsr())
    if name in ("spmv", "rank"):
        return lambda: ours.mxv(x).new()
    if name == "spmv-t":
        return lambda: by_column.mxv(x).new()
    if name == "spmm":
        return lambda: ours.mxm(wide).new()
    if name == "spmm-t":
        return lambda: by_column.mxm(wide).new()
    if name == "paths":
        return lambda: by_column.mxv(x, gb.semiring.min_plus).new()

    def scaled():
        return ours.mxm(x.diag()).new()

    def sampled():
        products = gb.Matrix(gb.dtypes.FP32, rows, rows)
        products(ours.S) << wide.mxm(wide.T)
        return ours.ewise_mult(products, gb.binary.times).new()

    def product():
        terms = scaled().mxm(ours).new()
        return terms.ewise_mult(terms, gb.binary.times).new().reduce_rowwise().new()

    def triangles():
        terms = gb.Matrix(gb.dtypes.FP32, rows, rows)
        terms(ours.S) << scaled().mxm(ours)
        return ours.ewise_mult(terms, gb.binary.times).new().reduce_rowwise().new()

    return {"sampled": sampled, "product": product, "triangles": triangles}.get(name)


def mkl_peer(name, matrix):
    """What makes one round of MKL, if it has these operations."""
    x, wide = np.ones(matrix.shape[0], np.float32), np.ones((matrix.shape[0], WIDTH), np.float32)
    transposed = matrix.T.tocsr()
    return {
        "spmv": lambda: dot_product_mkl(matrix, x),
        "rank": lambda: dot_product_mkl(matrix, x),
        "spmv-t": lambda: dot_product_mkl(transposed, x),
        "spmm": lambda: dot_product_mkl(matrix, wide),
        "spmm-t": lambda: dot_product_mkl(transposed, wide),
        "product": lambda: dot_product_mkl(matrix.multiply(x[None, :]).tocsr(), matrix),
    }.get(name)


def of_round(einc, folder, name):
    """Seconds of a round of ours."""
    seconds = []
    few, many = (2, 12) if name in ("spmm", "spmm-t", "sampled", "attention", "network", "triangles", "product") else (5, 105)
    for rounds in (few, many):
        text = f"{HEAD}{BEFORE.get(name, '')}repeat t < {rounds} {{\n {PROGRAMS[name]}\n}}\nlast = sum{'[i,h]' if ', h<' in PROGRAMS[name] else '[i]'} "
        text += "v[i,h]" if ", h<" in PROGRAMS[name] else "v[i]"
        path = os.path.join(folder, f"{name}.ein")
        with open(path, "w") as file:
            file.write(text + "\noutput last\n")
        said = subprocess.run([einc, "run", path, "--stats", "--sites", "1"], capture_output=True, text=True, env={**os.environ, "RAYON_NUM_THREADS": "2"})
        if said.returncode:
            raise SystemExit(said.stderr)
        seconds.append(sum(float(found) for found in re.findall(r"times, ([0-9.]+) ms", said.stderr)) / 1000)
    return (seconds[1] - seconds[0]) / (many - few)


def of_peer(run):
    run()
    began, count = time.perf_counter(), 0
    while time.perf_counter() - began < 0.2:
        run()
        count += 1
    return (time.perf_counter() - began) / count


def main():
    about = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    about.add_argument("einc")
    about.add_argument("--rows", type=int, default=100_000)
    about.add_argument("wanted", nargs="*")
    given = about.parse_args()
    einc = os.path.abspath(given.einc)
    print(f"{'program':10} {'matrix':8} {'einc':>10}   peers")
    with tempfile.TemporaryDirectory() as folder:
        for kind, matrix in matrices(given.rows):
            sp.save_npz(os.path.join(folder, "a.npz"), matrix, compressed=False)
            for name in given.wanted or PROGRAMS:
                if (name, kind) == ("product", "power"):
                    continue
                others = peers(name, matrix)
                if gb and (run := graphblas_peer(name, matrix)):
                    others["graphblas"] = run
                if dot_product_mkl and (run := mkl_peer(name, matrix)):
                    others["mkl"] = run
                took = {peer: [] for peer in ["einc", *others]}
                for _ in range(TURNS):
                    took["einc"].append(of_round(einc, folder, name))
                    for peer, run in others.items():
                        took[peer].append(of_peer(run))
                own = statistics.median(took["einc"])
                ratios = "  ".join(f"{peer} {statistics.median(took[peer]) / own:.2f}" for peer in others)
                print(f"{name:10} {kind:8} {own * 1000:8.2f} ms   {ratios}", flush=True)


if __name__ == "__main__":
    main()
