"""Prints the expected lines of the programs beside it: plain loops over the formulas, in double precision.

Only needed to add or change a program: `python3 reference.py softmax` prints the lines that softmax.ein ends with.
"""
import itertools
import math
import sys

import numpy as np


def fill(shape, first, *steps, scale=1.0):
    """scale * sin(first + Σ steps·index), the data of every program."""
    at = np.indices(shape)
    return scale * np.sin(first + sum(step * axis for step, axis in zip(steps, at)))


def big(x):
    """Numbers whose e^x no f32 holds, the same in f32 and here."""
    away = 16 * x
    assert (abs(away - np.floor(away) - 0.5) > 1e-3).all(), "rounded alike in f32"
    return 4096 + np.round(away) / 16


def rows(f, x):
    """f on every last-dimension row."""
    out = np.zeros(x.shape)
    for at in np.ndindex(x.shape[:-1]):
        out[at] = f(x[at])
    return out


def softmax_row(row):
    top = max(row)
    parts = [math.exp(v - top) for v in row]
    return np.array([p / math.fsum(parts) for p in parts])


def log_softmax_row(row):
    top = max(row)
    total = math.fsum(math.exp(v - top) for v in row)
    return np.array([v - top - math.log(total) for v in row])


def layer_norm_row(row, g, b, eps):
    m = math.fsum(row) / len(row)
    v = math.fsum((x - m) ** 2 for x in row) / len(row)
    return np.array([g[d] * (row[d] - m) / math.sqrt(v + eps) + b[d] for d in range(len(row))])


def rms_norm_row(row, g, eps):
    v = math.fsum(x * x for x in row) / len(row)
    return np.array([g[d] * row[d] / math.sqrt(v + eps) for d in range(len(row))])


def attention(q, k, v, causal):
    out = np.zeros(q.shape[:-1] + v.shape[-1:])
    for t in range(q.shape[0]):
        seen = [s for s in range(k.shape[0]) if s <= t or not causal]
        z = np.array([math.fsum(q[t] * k[s]) / math.sqrt(q.shape[1]) for s in seen])
        for weight, s in zip(softmax_row(z), seen):
            out[t] += weight * v[s]
    return out


def conv2d(x, w, stride, pad):
    n, c, height, width = x.shape
    f, _, r, s = w.shape
    padded = np.zeros((n, c, height + 2 * pad, width + 2 * pad))
    padded[:, :, pad : pad + height, pad : pad + width] = x
    out = np.zeros((n, f, (height + 2 * pad - r) // stride + 1, (width + 2 * pad - s) // stride + 1))
    for at in np.ndindex(out.shape):
        window = padded[at[0], :, stride * at[2] : stride * at[2] + r, stride * at[3] : stride * at[3] + s]
        out[at] = math.fsum((window * w[at[1]]).ravel())
    return out


def pool(x, k, stride, what):
    height, width = x.shape[-2:]
    out = np.zeros(x.shape[:-2] + ((height - k) // stride + 1, (width - k) // stride + 1))
    for at in np.ndindex(out.shape):
        i, j = at[-2:]
        out[at] = what(x[at[:-2]][stride * i : stride * i + k, stride * j : stride * j + k])
    return out


def relu():
    x = 0.75 * np.arange(7) - 2
    return {"y": [max(v, 0) for v in x]}


def gelu():
    x = 1.5 * np.arange(9) - 6
    return {"y": [v * (1 + math.erf(v / math.sqrt(2))) / 2 for v in x]}


def silu():
    x = 15.0 * np.arange(13) - 90
    return {"y": [v / (1 + math.exp(-v)) for v in x]}


def softmax():
    x = fill((2, 3), 1, 3, 1, scale=3)
    return {
        "y": rows(softmax_row, x),
        "big": rows(softmax_row, big(x)),
        "one": softmax_row(fill((5,), 0, 1)),
        "masked": softmax_row([0, 1, -math.inf, 3]),
        "deep": rows(softmax_row, fill((2, 2, 2), 0, 4, 2, 1)),
        "double": rows(softmax_row, fill((2, 2), 0, 2, 1)),
    }


def log_softmax():
    x = fill((2, 3), 1, 3, 1, scale=3)
    return {
        "y": rows(log_softmax_row, x),
        "big": rows(log_softmax_row, big(x)),
        "one": log_softmax_row(fill((5,), 0, 1)),
    }


def layer_norm():
    x = fill((2, 4), 1, 4, 1, scale=2)
    g = 1 + 0.5 * np.arange(4)
    b = 0.25 * np.arange(4) - 1
    return {
        "y": rows(lambda row: layer_norm_row(row, g, b, 1e-5), x),
        "soft": rows(lambda row: layer_norm_row(row, g, b, 0.5), x),
        "far": rows(lambda row: layer_norm_row(row, g, b, 1e-5), big(x)),
    }


def rms_norm():
    x = fill((2, 2, 3), 1, 6, 3, 1, scale=2)
    g = 1 + 0.5 * np.arange(3)
    return {
        "y": rows(lambda row: rms_norm_row(row, g, 1e-6), x),
        "soft": rows(lambda row: rms_norm_row(row, g, 0.5), x),
    }


def dense():
    x = fill((2, 2, 3), 1, 6, 3, 1)
    w = fill((3, 4), 2, 4, 1)
    b = 0.5 * np.arange(4)
    y = np.zeros((2, 2, 4))
    for m, n, h in np.ndindex(y.shape):
        y[m, n, h] = math.fsum(x[m, n, d] * w[d, h] for d in range(3)) + b[h]
    return {"y": y, "row": y[1, 0]}


def attention_test():
    q = fill((2, 3, 4), 1, 12, 4, 1)
    k = fill((2, 5, 4), 2, 20, 4, 1, scale=2)
    v = fill((2, 5, 2), 3, 10, 2, 1)
    return {
        "y": [attention(q[n], k[n], v[n], False) for n in range(2)],
        "causal": [attention(q[n], k[n], v[n], True) for n in range(2)],
        "one": attention(q[0], k[0], v[0], True),
    }


def conv2d_test():
    x = fill((1, 2, 4, 5), 1, 40, 20, 5, 1)
    w = fill((2, 2, 3, 3), 2, 18, 9, 3, 1)
    p = fill((3, 2, 1, 1), 1, 2, 1, 1, 1)
    return {
        "same": conv2d(x, w, 1, 1),
        "strided": conv2d(x, w, 2, 1),
        "inside": conv2d(x, w, 1, 0),
        "wide": conv2d(x, w, 3, 2),
        "point": conv2d(x, p, 2, 0),
    }


def max_pool2d():
    x = fill((1, 2, 5, 6), 1, 60, 30, 6, 1)
    return {"y": pool(x, 2, 2, np.max), "overlapping": pool(x, 3, 2, np.max), "one": pool(x[0, 0], 3, 3, np.max)}


def avg_pool2d():
    x = fill((1, 2, 5, 6), 1, 60, 30, 6, 1)
    return {"y": pool(x, 2, 2, np.mean), "overlapping": pool(x, 3, 2, np.mean), "one": pool(x[0, 0], 3, 3, np.mean)}


def mse():
    x, y = fill((3, 4), 1, 4, 1), fill((3, 4), 2, 4, 1)
    return {
        "loss": math.fsum(((x - y) ** 2).ravel()) / 12,
        "line": math.fsum((x[0] - y[0]) ** 2) / 4,
    }


def cross_entropy():
    z = fill((4, 3), 1, 3, 1, scale=3)
    y = [0, 2, 1, 1]
    sure = np.array([30.0, 0, -30])
    return {
        "l": [-log_softmax_row(z[n])[y[n]] for n in range(4)],
        "big": [-log_softmax_row(big(z)[n])[y[n]] for n in range(4)],
        "loss": math.fsum(-log_softmax_row(z[n])[y[n]] for n in range(4)) / 4,
        "deep": [[-log_softmax_row(z[2 * m + n])[y[2 * m + n]] for n in range(2)] for m in range(2)],
        "sure": -log_softmax_row(sure)[1],
    }


def bce():
    z = 25.0 * np.arange(9) - 100
    y = 0.125 * np.arange(9)
    exact = []
    for a, t in zip(z, y):
        # -y log σ(z) - (1 - y) log(1 - σ(z)), with log σ(z) = -log(1 + e^-z) taken apart by the sign of z.
        log_one = -math.log1p(math.exp(-a)) if a > 0 else a - math.log1p(math.exp(a))
        log_zero = -a - math.log1p(math.exp(-a)) if a > 0 else -math.log1p(math.exp(a))
        exact.append(-t * log_one - (1 - t) * log_zero)
    return {"l": exact}


def square_matrices():
    """Three 4 by 4 matrices, the last one singular. (A sine of a sum alone makes matrices of rank 2.)"""
    p, i, j = np.indices((3, 4, 4))
    a = 2 * np.sin(1 + 17 * p + 5 * i * i + (3 + p) * i * j + j)
    a[1, 0] *= -1
    a[2, 3] = a[2, 0] + a[2, 1]
    return a


def trace():
    a = square_matrices()
    return {"t": [sum(m[i, i] for i in range(4)) for m in a], "one": sum(a[0, i, i] for i in range(4))}


def leibniz(a):
    """The determinant, as the sum over all permutations."""
    total = 0.0
    for order in itertools.permutations(range(len(a))):
        swaps = sum(x > y for x, y in itertools.combinations(order, 2))
        total += (-1) ** swaps * math.prod(a[i, j] for i, j in enumerate(order))
    return total


def slogdet():
    d = [leibniz(m) for m in square_matrices()[:2]]
    return {"s": np.sign(d), "l": np.log(np.abs(d)), "zero": [0], "none": [-np.inf], "flat": [0], "least": [-np.inf]}


def det():
    d = [leibniz(m) for m in square_matrices()]
    inverse = np.linalg.inv(square_matrices()[0])
    return {"d": d[:2], "singular": 0, "g": d[0] * inverse.T}


def pinv():
    a = fill((2, 3, 5), 1, 17, 5, 3)
    b = fill((4, 3), 2, 3, 1)
    flat = np.array([[1.0, 2], [2, 4], [3, 6]])
    return {
        "p": np.linalg.pinv(a),
        "tall": np.linalg.pinv(b),
        "rank_one": flat.T / (flat**2).sum(),
        "cut": np.linalg.pinv(b, rcond=0.5),
    }


def lstsq():
    i, j = np.indices((5, 3))
    a, b, c = np.sin(1 + 5 * i * i + i * j + 2 * j), fill((5,), 2, 3), fill((5, 2), 0, 3, 1)
    normal = np.linalg.inv(a.T @ a) @ a.T
    wide = a.T
    return {"x": normal @ b, "y": normal @ c, "least": wide.T @ np.linalg.inv(wide @ wide.T) @ b[:3]}


def matrix_power():
    a = fill((2, 3, 3), 1, 9, 3, 1)
    def power(k):
        out = []
        for m in a:
            product = np.eye(3)
            for _ in range(k):
                product = product @ m
            out.append(product)
        return out
    return {"none": power(0), "first": power(1), "fifth": power(5), "eighth": power(8)}


def expm():
    def series(a):
        """e^a = (e^(a / 2^20))^(2^20), the inner one by its series."""
        small, term, total = a / 2**10, np.eye(len(a)), np.eye(len(a))
        for k in range(1, 30):
            term = term @ small / k
            total = total + term
        for _ in range(10):
            total = total @ total
        return total
    a = fill((2, 3, 3), 1, 9, 3, 1)
    turn = np.array([[0, -1.0], [1, 0]])
    return {"e": [series(a[0]), series(3 * a[1])], "turned": [[math.cos(1), -math.sin(1)], [math.sin(1), math.cos(1)]], "zero": np.eye(2)}


def kron():
    a, b = fill((2, 3), 1, 3, 1), fill((3, 2), 2, 2, 1)
    return {"c": [[a[i // 3, j // 2] * b[i % 3, j % 2] for j in range(6)] for i in range(6)]}


def table():
    """Three rows of seven numbers."""
    return fill((3, 7), 1, 8, 3, scale=2)


def moments(row, ddof):
    mean = math.fsum(row) / len(row)
    return mean, math.fsum((x - mean) ** 2 for x in row) / (len(row) - ddof)


def var():
    return {
        "v": [moments(row, 0)[1] for row in table()],
        "sample": [moments(row, 1)[1] for row in table()],
        "one": moments(table()[0], 0)[1],
    }


def std():
    row = table()[0]
    mean, v = moments(row, 0)
    return {
        "s": [math.sqrt(moments(row, 0)[1]) for row in table()],
        "sample": [math.sqrt(moments(row, 1)[1]) for row in table()],
        "g": [(x - mean) / (len(row) * math.sqrt(v)) for x in row],
    }


def zscore():
    return {"z": [[(x - moments(row, 0)[0]) / math.sqrt(moments(row, 0)[1]) for x in row] for row in table()]}


def quantile_of(row, q):
    row, place = sorted(row), q * (len(row) - 1)
    low = math.floor(place)
    return row[low] + (row[min(low + 1, len(row) - 1)] - row[low]) * (place - low)


def quantile():
    return {
        "lower": [quantile_of(row, 0.3) for row in table()],
        "ends": [min(table()[0]), max(table()[0])],
        "one": quantile_of(table()[0], 0.9),
        "infinite": -math.inf,
    }


def median():
    return {"m": [sorted(row)[3] for row in table()], "even": (lambda r: (r[1] + r[2]) / 2)(sorted(table()[0, :4]))}


def covariance(x, ddof):
    m = [math.fsum(column) / len(x) for column in x.T]
    return np.array([[math.fsum((r[i] - m[i]) * (r[j] - m[j]) for r in x) / (len(x) - ddof) for j in range(x.shape[1])] for i in range(x.shape[1])])


def cov():
    return {"c": covariance(table().T, 1), "all": covariance(table().T, 0)}


def corr():
    c = covariance(table().T, 1)
    return {"r": [[c[i, j] / math.sqrt(c[i, i] * c[j, j]) for j in range(3)] for i in range(3)]}


def histogram():
    x = [-3, -2, -1.5, -1, 0, 0.5, 0.9, 1, 2, 2.5]
    h = [sum(-2 + k <= v < -1 + k or (k == 3 and v == 2) for v in x) for k in range(4)]
    d = [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]
    t = [sum(k * 0.1 <= v < (k + 1) * 0.1 or (k == 9 and v == 1) for v in d) for k in range(10)]
    f = np.float32
    t32 = [sum(f(k * 0.1) <= f(v) < f((k + 1) * 0.1) or (k == 9 and v == 1) for v in d) for k in range(10)]
    return {"h": h, "t": t, "t32": t32}


def concat():
    a, b = fill((2, 3), 1, 3, 1), fill((3, 3), 2, 3, 1)
    return {"c": list(a) + list(b), "line": list(a[0]) + list(b[0]), "whole": [1, 1, 2, 2, 2], "g": 2 * b}


def concat_last():
    a, b = fill((2, 3), 1, 3, 1), fill((2, 2), 2, 2, 1)
    return {"c": [list(p) + list(q) for p, q in zip(a, b)]}


def stack():
    a, b = fill((2, 3), 1, 3, 1), fill((2, 3), 2, 3, 1)
    return {"c": [a, b]}


def flatten():
    x = fill((2, 2, 3), 1, 6, 3, 1)
    return {"y": [[x[n, i, j] for i in range(2) for j in range(3)] for n in range(2)], "one": list(x[0, 0]) + list(x[0, 1])}


def unflatten():
    x = fill((2, 6), 1, 6, 1)
    return {"y": [[[x[n, 2 * i + j] for j in range(2)] for i in range(3)] for n in range(2)]}


def flip():
    return {"y": [list(reversed(list(row))) for row in table()]}


def roll():
    return {
        "y": [[row[(i - 2) % 7] for i in range(7)] for row in table()],
        "back": [[row[(i + 9) % 7] for i in range(7)] for row in table()],
    }


def diff():
    return {"y": [[row[i + 1] - row[i] for i in range(6)] for row in table()]}


def pad():
    return {
        "y": [[0, *row, 0, 0] for row in table()],
        "ones": [[1, 1, *row] for row in table()],
    }


def running(row, combine):
    out = [row[0]]
    for x in row[1:]:
        out.append(combine(out[-1], x))
    return out


def cumsum():
    return {"y": [running(row, lambda a, b: a + b) for row in table()]}


def cumprod():
    return {"y": [running(row, lambda a, b: a * b) for row in table()]}


def cummax():
    return {"y": [running(row, max) for row in table()]}


def cummin():
    return {"y": [running(row, min) for row in table()]}


def triangular(solve):
    """Solutions, and gradients of Σ x², for matrices of which `solve` takes a triangle."""
    at = np.indices((3, 4, 4))
    a = np.where(at[1] == at[2], 2, 0) + np.sin(1.0 + 17 * at[0] + 5 * at[1] + 3 * at[2])
    c = fill((3, 4), 2, 4, 1)
    x = [np.linalg.inv(solve(m)) @ r for m, r in zip(a, c)]
    h = np.linalg.inv(solve(a[0])).T @ (2 * x[0])
    return {"x": x[0], "y": x, "g": solve(-np.outer(h, x[0])), "h": h}


def solve_lower():
    return triangular(np.tril)


def solve_upper():
    return triangular(np.triu)


def lu():
    a = square_matrices()
    found = {"p": [], "L": [], "U": []}
    for m in a:
        left, order = m.copy(), list(range(4))
        for k in range(4):
            q = max(range(k, 4), key=lambda i: abs(left[i, k]))
            left[[k, q]], order[k], order[q] = left[[q, k]], order[q], order[k]
            for i in range(k + 1, 4):
                left[i, k] /= left[k, k]
                left[i, k + 1 :] -= left[i, k] * left[k, k + 1 :]
        found["p"].append(order)
        found["L"].append(np.tril(left, -1) + np.eye(4))
        found["U"].append(np.triu(left))
        assert np.allclose(found["L"][-1] @ found["U"][-1], m[order])
    return found | {"g": np.linalg.inv(a[0]).T}


def padded(values, room):
    return list(values) + [0] * (room - len(values))


def nonzero():
    x = fill((11,), 1, 3)
    some = [n for n in range(11) if x[n] > 0.2]
    return {"some": padded(some, 8), "s": len(some), "none": [0] * 3, "o": 0, "every": range(11), "e": 11}


def rows_test():
    x = fill((7, 2), 1, 2, 1)
    kept = [row for row in x if row[0] < row[1]]
    g = [2 * row * (row[0] < row[1]) for row in x]
    y = kept + [[0, 0]] * (5 - len(kept))
    return {"Y": y, "count": len(kept), "z": padded([row[1] for row in kept], 7), "same": len(kept), "g": g}


def repeated():
    return [math.floor(3 * math.sin(1 + 2 * n)) for n in range(13)]


def unique():
    def of(x, room):
        values = sorted(set(x))
        return padded(values, room), padded([x.count(v) for v in values], room), len(values)
    names = ["values", "times", "count", "b", "often", "different"]
    return dict(zip(names, of(repeated(), 8) + of([v * v for v in repeated()], 4)))


def rank():
    values = sorted(set(repeated()))
    return {"r": [values.index(v) for v in repeated()]}


def one_hot():
    return {"y": [[label == k for k in range(4)] for label in [0, 3, 1, 7]], "square": [[[1, 0], [0, 1]], [[0, 0], [0, 0]]]}


def interp():
    xs, ys = [0, 1, 3, 4.5], [1, -1, 2, 0]
    def at(x):
        if x <= xs[0] or x >= xs[-1]:
            return ys[0] if x <= xs[0] else ys[-1]
        k = max(i for i in range(4) if xs[i] <= x)
        return ys[k] + (ys[k + 1] - ys[k]) * (x - xs[k]) / (xs[k + 1] - xs[k])
    x = [-1, 0, 0.5, 1, 2.5, 4.5, 9]
    return {
        "y": [at(x) for x in x],
        "ends": np.interp(x, [0, 1], [1e8, 1]),
        "over": np.interp([0, 0.5, 1, 1.5, 2], [0, 1, 2], [1, np.inf, 5]),
    }


def half_of(x):
    return np.fft.rfft(x, axis=-1)


def waves(first, columns, count=2):
    return np.sin(first + 8 * np.arange(count)[:, None] + 3 * np.arange(columns))


def rfft():
    x, odd = waves(1, 6), waves(2, 5, 1)[0]
    n = np.arange(6)
    turn = 2 * np.pi * np.outer(np.arange(4), n) / 6
    re = half_of(x).real
    # d/dx_j of the sum of re_k^2 + im_k: 2 re_k cos - sin.
    g = 2 * re @ np.cos(turn) - np.sin(turn).sum(0)
    return {"re": re, "im": half_of(x).imag, "a": half_of(odd).real, "b": half_of(odd).imag, "g": g}


def ifft():
    a, b = waves(1, 6), waves(2, 6)
    x = np.fft.ifft(a + 1j * b, axis=-1)
    return {"x": x.real, "y": x.imag, "re": a, "im": b}


def irfft():
    z = waves(1, 4) + 1j * waves(2, 4)
    return {"even": np.fft.irfft(z, 6, axis=-1), "odd": np.fft.irfft(z, 7, axis=-1)}


def gamma_cdf(a, x):
    """The regularised lower incomplete gamma function, by its series."""
    total, term, n = 0.0, math.exp(a * math.log(x) - x - math.lgamma(a + 1)), 0
    while term > 1e-18 * total:
        total += term
        n += 1
        term *= x / (a + n)
    return total


def drawn(*rows):
    """Shares of draws below some places: those that are exact, and whether the ones that are drawn come near."""
    rows = np.array(rows)
    return {"cdf": rows, "near": np.ones(rows.shape)}


def exponential():
    return drawn([1 - math.exp(-r * x) for r in [2] for x in [0.01, 0.1, 0.5, 1, 3]], [1 - math.exp(-0.25 * x) for x in [0.01, 0.1, 0.5, 1, 3]])


def categorical():
    p = np.exp([0, 1, -1, 0.5, -3])
    return {"share": p / p.sum(), "near": np.ones(5), "sure": [0, 1, 2, 3, 4]}


def loggamma():
    return drawn(*[[gamma_cdf(a, math.exp(y)) for y in [-60, -9, -2, 0.1, 1]] for a in [0.05, 1]])


def gamma():
    return drawn(*[[gamma_cdf(a, x / 2) for x in [0.5, 2, 5, 50, 70]] for a in [0.5, 2.5, 30]])


def beta():
    at = [0.01, 0.2, 0.5, 0.8, 0.99]
    return drawn([2 / math.pi * math.asin(math.sqrt(x)) for x in at], [6 * x**2 - 8 * x**3 + 3 * x**4 for x in at])


def dirichlet():
    alpha = np.array([0.5, 2, 1.5])
    mean = alpha / alpha.sum()
    return {"expected": mean, "spread": mean * (1 - mean) / (alpha.sum() + 1), "near": np.ones((2, 3)), "sum_is_one": 1}


def poisson():
    def cdf(m, k):
        return math.fsum(math.exp(j * math.log(m) - m - math.lgamma(j + 1)) for j in range(k + 1))
    found = drawn(*[[cdf(m, k) for k in [0, 2, 5, 38, 45]] for m in [0.3, 4, 40]])
    return {**found, "none": 0, "many": 1}


if __name__ == "__main__":
    name = sys.argv[1]
    for output, values in globals().get(f"{name}_test", globals()[name])().items():
        print(f"//= {output}:", " ".join(f"{v:.9g}" for v in np.asarray(values, dtype="f8").ravel()))
