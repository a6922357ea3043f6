"""Products of matrices on ranks: `mpirun -n 2` of a built program beside numpy by hand over mpi4py, and ScaLAPACK.

    python tests/peers/ranks.py target/release/einc [square] [long] [wide]

Seconds of one product, in f32, with one thread a rank. Each contestant is run with few and with many rounds, and the difference counts, so that
neither loading nor planning nor starting does; the factors are constants, which are made in no time. Contestants take turns. A ratio above 1 is ours being faster: of the medians, and of the fastest runs, which other
work on the machine disturbs least. Every round takes the largest
element of the product and puts it into the next factor's bound, so that nobody may leave a round out; all contestants do. mpi4py must have been built for
the MPI whose launcher is used (`MPIRUN`, by default mpirun.openmpi). ScaLAPACK takes part where `mpicc` links `-lscalapack-openmpi`
(Debian: libscalapack-openmpi-dev).

numpy is run twice: `cut` gathers the second factor, or adds up the partial products, in every round; `held` has the second factor whole at every rank from the start, as
einc's plan of this program has it, and moves nothing but the bound. `einc, 4 ranks` is einc on twice the ranks, on the same cores.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RANKS = int(os.environ.get("RANKS", "2"))
TURNS = int(os.environ.get("TURNS", "3"))
SCALE = int(os.environ.get("SCALE", "1"))  # divides every size, for a try
MPIRUN = os.environ.get("MPIRUN", "mpirun.openmpi")
SIZES = {"square": (4096, 4096, 4096), "long": (1024, 65536, 1024), "wide": (8192, 1024, 8192)}
FEW, MANY = 3, 15

EIN = """
dim M; dim K; dim N
input A: f32[M, K] = 0.5
input B: f32[K, N] = 0.25
repeat t < ROUNDS {
  state bound = f32(1.0)
  S[m,k] = min(A[m,k], bound)
  C[m,n] = S[m,k] * B[k,n]
  next bound = 1.0 + 1e-30 * max[m,n] C[m,n]
}
output bound
"""

SCALAPACK = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
void Cblacs_pinfo(int *, int *); void Cblacs_get(int, int, int *); void Cblacs_gridinit(int *, const char *, int, int);
void Cblacs_gridinfo(int, int *, int *, int *, int *); void Cblacs_gridexit(int);
int numroc_(int *, int *, int *, int *, int *); void descinit_(int *, int *, int *, int *, int *, int *, int *, int *, int *, int *);
void psgemm_(char *, char *, int *, int *, int *, float *, float *, int *, int *, int *, float *, int *, int *, int *, float *, float *, int *, int *, int *);
static float *filled(long n) { float *x = malloc(n * 4); for (long i = 0; i < n; i++) x[i] = (i * 2654435761u % 1000) / 500.0f - 1; return x; }
int main(int argc, char **argv) {
  int m = atoi(argv[1]), k = atoi(argv[2]), n = atoi(argv[3]), rounds = atoi(argv[4]);
  int rank, ranks, ctx, rows, cols, row, col, zero = 0, one = 1, nb = 256, info;
  Cblacs_pinfo(&rank, &ranks);
  rows = 1; while ((rows * 2) * (rows * 2) <= ranks) rows *= 2;
  cols = ranks / rows;
  Cblacs_get(-1, 0, &ctx); Cblacs_gridinit(&ctx, "Row", rows, cols); Cblacs_gridinfo(ctx, &rows, &cols, &row, &col);
  int am = numroc_(&m, &nb, &row, &zero, &rows), ak = numroc_(&k, &nb, &col, &zero, &cols);
  int bk = numroc_(&k, &nb, &row, &zero, &rows), bn = numroc_(&n, &nb, &col, &zero, &cols);
  int lda = am > 1 ? am : 1, ldb = bk > 1 ? bk : 1, da[9], db[9], dc[9];
  descinit_(da, &m, &k, &nb, &nb, &zero, &zero, &ctx, &lda, &info);
  descinit_(db, &k, &n, &nb, &nb, &zero, &zero, &ctx, &ldb, &info);
  descinit_(dc, &m, &n, &nb, &nb, &zero, &zero, &ctx, &lda, &info);
  float *a = filled((long)am * ak), *s = filled((long)am * ak), *b = filled((long)bk * bn), *c = filled((long)am * bn);
  float bound = 1, alpha = 1, beta = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int t = 0; t < rounds; t++) {
    for (long i = 0; i < (long)am * ak; i++) s[i] = a[i] < bound ? a[i] : bound;
    psgemm_("N", "N", &m, &n, &k, &alpha, s, &one, &one, da, b, &one, &one, db, &beta, c, &one, &one, dc);
    float most = -1e30f;
    for (long i = 0; i < (long)am * bn; i++) if (c[i] > most) most = c[i];
    MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_FLOAT, MPI_MAX, MPI_COMM_WORLD);
    bound = 1 + 1e-30f * most;
  }
  if (rank == 0) printf("%g\n", bound);
  Cblacs_gridexit(ctx); MPI_Finalize(); return 0;
}
"""


def by_hand(how, m, k, n, rounds):
    """One rank of numpy over mpi4py: rows of both factors are cut, or, where the contraction is long, that; or the second factor is held whole."""
    import numpy as np
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    me, ranks = comm.Get_rank(), comm.Get_size()
    held = how == "held"
    long = k > 4 * max(m, n) and not held
    part = lambda size: size // ranks
    bound = np.float32(1)
    if long:
        a = np.full((m, part(k)), 0.25, np.float32)
        b = np.full((part(k), n), 0.25, np.float32)
        c, mine = np.empty((m, n), np.float32), np.empty((part(m), n), np.float32)
    else:
        a = np.full((part(m), k), 0.25, np.float32)
        b = None if held else np.full((part(k), n), 0.25, np.float32)
        whole = np.full((k, n), 0.25, np.float32) if held else np.empty((k, n), np.float32)
        mine = np.empty((part(m), n), np.float32)
    s = np.empty_like(a)
    comm.Barrier()
    for _ in range(rounds):
        np.minimum(a, bound, out=s)
        if long:
            np.matmul(s, b, out=c)
            comm.Reduce_scatter_block(c, mine)
        else:
            if not held:
                comm.Allgather(b, whole)
            np.matmul(s, whole, out=mine)
        most = comm.allreduce(float(mine.max()), op=MPI.MAX)
        bound = np.float32(1) + np.float32(1e-30) * np.float32(most)


def environment():
    cleaned = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS_")}
    one = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "EIN_THREADS")}
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    return {**cleaned, **one, **root}


def seconds(command, ranks):
    began = time.perf_counter()
    done = subprocess.run([MPIRUN, "-n", str(ranks), *command], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise SystemExit(f"{command} ends with {done.returncode}\n{done.stderr.decode()}")
    return time.perf_counter() - began


def scalapack(folder):
    source, program = folder / "product.c", folder / "product"
    source.write_text(SCALAPACK)
    built = subprocess.run(["mpicc.openmpi", "-O3", "-march=native", str(source), "-o", str(program), "-lscalapack-openmpi", "-lm"], stderr=subprocess.PIPE)
    return str(program) if built.returncode == 0 else None


def main():
    einc = str(Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "product.ein").write_text(EIN.replace("ROUNDS", "R").replace("dim M;", "const R = 1\ndim M;"))
        peer = scalapack(folder)
        if peer is None:
            print("ScaLAPACK does not link here, and is left out")
        for which in sys.argv[2:] or SIZES:
            m, k, n = (size // SCALE for size in SIZES[which])
            ours = {}
            for ranks in (RANKS, 2 * RANKS):
                for rounds in (FEW, MANY):
                    ours[ranks, rounds] = str(folder / f"{which}{ranks}-{rounds}")
                    sizes = [f"--dim=M={m}", f"--dim=K={k}", f"--dim=N={n}", f"--set=R={rounds}", f"--sites={ranks}"]
                    subprocess.run([einc, "build", str(folder / "product.ein"), *sizes, "-o", ours[ranks, rounds]], check=True)
            numbers = [str(number) for number in (m, k, n)]
            contestants = {"einc": (RANKS, lambda rounds: [ours[RANKS, rounds]])}
            contestants[f"einc, {2 * RANKS} ranks"] = (2 * RANKS, lambda rounds: [ours[2 * RANKS, rounds]])
            for how in ("cut", "held"):
                contestants[f"numpy {how}"] = (RANKS, lambda rounds, how=how: [sys.executable, __file__, "rank", how, *numbers, str(rounds)])
            if peer is not None:
                contestants["ScaLAPACK"] = (RANKS, lambda rounds: [peer, *numbers, str(rounds)])
            times = {contestant: ([], []) for contestant in contestants}
            for _ in range(TURNS):
                for contestant, (ranks, command) in contestants.items():
                    # Memory that the one before had less of is new to the system's kernel: that is nobody's time.
                    seconds(command(FEW), ranks)
                    for of, rounds in zip(times[contestant], (FEW, MANY)):
                        of.append(seconds(command(rounds), ranks))
            each = lambda pick: {name: (pick(many) - pick(few)) / (MANY - FEW) for name, (few, many) in times.items()}
            median, best = each(statistics.median), each(min)
            rate = 2 * m * k * n / best["einc"] / 1e9
            said = [f"{which} {m}x{k}x{n} on {RANKS} ranks: {median['einc']:.3f} s, {rate:.0f} Gflop/s at best"]
            said += [f"{name} {median[name] / median['einc']:.2f} x (best {best[name] / best['einc']:.2f} x)" for name in times if name != "einc"]
            print("; ".join(said), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "rank":
        by_hand(sys.argv[2], *(int(number) for number in sys.argv[3:]))
    else:
        main()
