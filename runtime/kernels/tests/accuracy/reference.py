"""Writes double.txt: for each function random arguments of all magnitudes and its values, by mpmath with 100 digits.

python3 reference.py > double.txt
"""
import random
import struct

from mpmath import cos, erf, erfc, exp, expm1, log, log1p, mp, mpf, sin, sqrt, tanh

mp.dps = 100
random.seed(1)


def bits(x):
    return struct.unpack("<q", struct.pack("<d", float(x)))[0] & (2**64 - 1)


def gelu(x):
    return x * erfc(-x / sqrt(mpf(2))) / 2


def sigmoid(x):
    return 1 / (1 + exp(-x))


# Name, function, range of arguments, whether magnitudes down to 1e-300 matter on both sides of zero.
FUNCTIONS = [
    ("exp", exp, -745, 709.7),
    ("expm1", expm1, -60, 709.7),
    ("log", log, 0, 1e300),
    ("log1p", log1p, -1, 1e300),
    ("tanh", tanh, -25, 25),
    ("sigmoid", sigmoid, -745, 40),
    ("erf", erf, -7, 7),
    ("gelu", gelu, -38.5, 40),
    ("sin", sin, -1e15, 1e15),
    ("cos", cos, -1e15, 1e15),
]

for name, function, low, high in FUNCTIONS:
    points = [random.uniform(low, high) if high < 1e10 else random.uniform(max(low, -3), 3) for _ in range(120)]
    for _ in range(120):
        x = 10 ** random.uniform(-300 if random.random() < 0.3 else -4, 0 if high < 1e10 else 15)
        points.append(x if low == 0 or random.random() < 0.5 else -x)
    # Close to the zeros of the functions.
    points += [1 + random.choice([-1, 1]) * 2.0**-k for k in range(1, 50, 3)]
    points += [float(k * mp.pi / 2) for k in range(-20, 20)] if name in ("sin", "cos") else []
    for x in points:
        if low < x < high:
            print(name, "%016x %016x" % (bits(x), bits(function(mpf(x)))))

# Where one part of a function ends and another begins, and where differences of nearly equal numbers are close.
for name, function, low, high in FUNCTIONS:
    if name in ("erf", "gelu", "tanh", "sigmoid", "expm1", "log1p"):
        points = [random.uniform(max(low, -3), 3) for _ in range(250)]
        points += [random.choice([-1, 1]) * 10 ** random.uniform(-3, 0) for _ in range(250)]
        for x in points:
            if low < x < high:
                print(name, "%016x %016x" % (bits(x), bits(function(mpf(x)))))
