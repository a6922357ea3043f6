"""Contractions beside numpy (OpenBLAS), PyTorch and the gemm crate. Ratios are a peer's time over einc's: above 1, einc is faster.

    python tests/peers/contractions.py [gemm] [shapes] [tccg] [conv]      all subjects without any
    python tests/peers/contractions.py tccg:abcde                        those of a subject with this text in their line
"""

import math
import sys

import peers

peers.clean_environment()

import numpy as np  # noqa: E402
import torch  # noqa: E402

torch.set_num_threads(peers.THREADS)
torch.set_grad_enabled(False)
F32 = np.float32
einc = peers.Einc()
generator = np.random.default_rng(1)


def uniform(*shape):
    return (generator.random(shape, F32) * 2 - 1).astype(F32)


def contestants(spec, sizes, numpy=None, pytorch=None):
    """einc, numpy.einsum and torch.einsum of two operands (or what is given instead)."""
    inputs = spec.split("->")[0].split(",")
    shapes = [[sizes[i] for i in side] for side in inputs]
    einc.load(
        {name: ("f32", shape) for name, shape in zip("AB", shapes)},
        [("C", peers.einsum_kernel(spec, sizes), "AB")],
    )
    a, b = (uniform(*shape) for shape in shapes)
    x, y = torch.from_numpy(a), torch.from_numpy(b)
    # Into arrays as einc's results are: einsum may return a view of a result in another order.
    c = np.empty([sizes[i] for i in spec.split("->")[1]], F32)
    numpy = numpy or (lambda a, b: np.einsum(spec, a, b, out=c, optimize=True))
    pytorch = pytorch or (lambda x, y: torch.einsum(spec, x, y).contiguous())
    return {
        "einc": einc.run,
        "numpy": lambda: peers.timed(lambda: numpy(a, b)),
        "torch": lambda: peers.timed(lambda: pytorch(x, y)),
    }


def flops(spec, sizes):
    return 2 * math.prod(sizes[i] for i in set(spec) if i.isalpha())


only = ""


def gemm():
    print("Matrix products, outputs of numpy and torch reused")
    for m, k, n in [(512,) * 3, (1024,) * 3, (2048,) * 3, (4096,) * 3, (1024, 65536, 1024), (8192, 1024, 8192), (8192, 64, 8192)]:
        if only not in f"{m} x {k} x {n}":
            continue
        sizes = dict(i=m, k=k, j=n)
        c, z = np.empty((m, n), F32), torch.empty(m, n)
        three = contestants("ik,kj->ij", sizes, lambda a, b: np.matmul(a, b, out=c), lambda x, y: torch.mm(x, y, out=z))
        three["crate"] = lambda: einc.timed(f"crate {m} {n} {k}")
        peers.row(f"{m} x {k} x {n}", peers.turns(three), flops("ik,kj->ij", sizes))


def shapes():
    print("Other shapes")
    for name, spec, sizes in [
        ("A^T B", "ki,kj->ij", dict(i=2048, k=2048, j=2048)),
        ("A B^T", "ik,jk->ij", dict(i=2048, k=2048, j=2048)),
        ("A^T B^T", "ki,jk->ij", dict(i=2048, k=2048, j=2048)),
        ("(A B)^T", "ik,kj->ji", dict(i=2048, k=2048, j=2048)),
        ("attention scores", "bhqd,bhkd->bhqk", dict(b=2, h=16, q=2048, k=2048, d=64)),
        ("attention values", "bhqk,bhkd->bhqd", dict(b=2, h=16, q=2048, k=2048, d=64)),
        ("heads", "bqhd,bkhd->bhqk", dict(b=8, h=8, q=512, k=512, d=64)),
        ("abcd,dfeb->acfe, all 64", "abcd,dfeb->acfe", dict.fromkeys("abcdef", 64)),
        ("matrix-vector", "ij,j->i", dict(i=8192, j=8192)),
        ("vector-matrix", "i,ij->j", dict(i=8192, j=8192)),
        ("batch of 4096 of 64^3", "bik,bkj->bij", dict(b=4096, i=64, j=64, k=64)),
        ("batch of 65536 of 16^3", "bik,bkj->bij", dict(b=65536, i=16, j=16, k=16)),
        ("batch last", "ikb,kjb->ijb", dict(b=256, i=64, j=64, k=64)),
        ("batch of matrix-vector", "bij,bj->bi", dict(b=256, i=512, j=512)),
        ("outer", "i,j->ij", dict(i=8192, j=4096)),
        ("thin", "ik,kj->ij", dict(i=100_000, k=16, j=8)),
        ("thin inner", "ki,kj->ij", dict(k=1_000_000, i=16, j=16)),
        ("dot", "i,i->", dict(i=1 << 24)),
        ("all of two", "ij,ij->", dict(i=4096, j=4096)),
        ("row dots", "ij,ij->i", dict(i=4096, j=4096)),
        ("product and sum of one", "ik,kj->i", dict(i=1024, k=1024, j=1024)),
    ]:
        if only not in f"{name}  {spec}":
            continue
        peers.row(f"{name}  {spec}", peers.turns(contestants(spec, sizes)), flops(spec, sizes))


# The 48 contractions of the TCCG benchmark (Springer and Bientinesi 2018): result, left, right, first index fastest.
TCCG = {
    "TTM": """abc-bda-dc abc-dca-bd abcd-dbea-ec abcd-deca-be abcd-ebad-ce abcde-efbad-cf abcde-ecbfa-fd abcde-efcad-bf""",
    "AO-MO": """abcd-ea-ebcd abcd-eb-aecd abcd-ec-abed""",
    "CCSD": """ab-ac-cb ab-acd-dbc ab-cad-dcb abc-acd-db abc-ad-bdc abc-adc-bd abc-adc-db abc-adec-ebd
        abcd-aebf-dfce abcd-aebf-fdec abcd-aecf-bfde abcd-aecf-fbed abcd-aedf-bfce abcd-aedf-fbec
        abcd-aefb-fdce abcd-aefc-fbed abcd-eafb-fdec abcd-eafc-bfde abcd-eafd-fbec""",
    "CCSD(T)": """abcdef-dega-gfbc abcdef-degb-gfac abcdef-degc-gfab abcdef-dfga-gebc abcdef-dfgb-geac abcdef-dfgc-geab
        abcdef-efga-gdbc abcdef-efgb-gdac abcdef-efgc-gdab abcdef-gdab-efgc abcdef-gdac-efgb abcdef-gdbc-efga
        abcdef-geab-dfgc abcdef-geac-dfgb abcdef-gebc-dfga abcdef-gfab-degc abcdef-gfac-degb abcdef-gfbc-dega""",
}
# Sizes of the indices a, b, c, ... by their number: 1e8 to 1e9 operations a contraction.
SIZES = {
    3: [768, 640, 704],
    4: [160, 144, 152, 128],
    5: [52, 48, 56, 44, 48],
    6: [32, 24, 28, 24, 32, 28],
    7: [20, 12, 12, 20, 12, 12, 20],
}


def tccg():
    print("The 48 contractions of the TCCG benchmark")
    beside = {"numpy": [], "torch": []}
    for kind, patterns in TCCG.items():
        for pattern in patterns.split():
            if only not in f"{kind:8} {pattern}":
                continue
            result, left, right = (side[::-1] for side in pattern.split("-"))
            letters = sorted(set(result + left + right))
            sizes = dict(zip(letters, SIZES[len(letters)]))
            spec = f"{left},{right}->{result}"
            ratios = peers.row(f"{kind:8} {pattern}", peers.turns(contestants(spec, sizes)), flops(spec, sizes))
            for name, ratio in ratios.items():
                beside[name].append(ratio)
    for name, ratios in beside.items():
        print(f"{name}: geometric mean x {peers.geometric_mean(ratios):.2f}, least x {min(ratios):.2f}")


def conv():
    print("3x3 convolution, N=64 C=64 56x56 O=128, padded by 1")
    n, c, h, o = 64, 64, 56, 128
    for stride in (1, 2):
        out = h // stride
        at = lambda i, j: f"{i} + {j} - 1" if stride == 1 else f"{stride} * {i} + {j} - 1"
        text = (
            f"(f32[{n}, {c}, {h}, {h}], f32[{o}, {c}, 3, 3]) [n: {n}, f: {o}, y: {out}, x: {out} | c: {c}, r: 3, s: 3] f32 = "
            f"sum (a0[n, c, {at('y', 'r')}, {at('x', 's')}] else 0.0) * a1[f, c, r, s]"
        )
        einc.load({"I": ("f32", (n, c, h, h)), "K": ("f32", (o, c, 3, 3))}, [("O", text, "IK")])
        image, weights = torch.from_numpy(uniform(n, c, h, h)), torch.from_numpy(uniform(o, c, 3, 3))
        run = lambda: torch.nn.functional.conv2d(image, weights, stride=stride, padding=1)
        both = {"einc": einc.run, "torch": lambda: peers.timed(run)}
        peers.row(f"stride {stride}", peers.turns(both), 2 * n * o * out * out * c * 9)


def main():
    global only
    subjects = [gemm, shapes, tccg, conv]
    wanted = dict(word.partition(":")[::2] for word in sys.argv[1:])
    for subject in subjects:
        if not wanted or subject.__name__ in wanted:
            only = wanted.get(subject.__name__, "")
            subject()


main()
