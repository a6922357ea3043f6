"""Writes special.txt: for each function random arguments and its values, by mpmath with 60 digits.

python3 special.py > special.txt
"""
import random
import struct

import mpmath as m

m.mp.dps = 60
random.seed(2)


def bits(x):
    return "%016x" % struct.unpack("<Q", struct.pack("<d", float(x)))[0]


def uniform(low, high):
    return lambda: random.uniform(low, high)


def magnitude(low, high, both=True):
    return lambda: 10 ** random.uniform(low, high) * (random.choice([-1, 1]) if both else 1)


def not_whole(low, high):
    def draw():
        x = random.uniform(low, high)
        return x if abs(x - round(x)) > 1e-3 else draw()

    return draw


# Name, function, where its arguments come from.
ONE = [
    ("tan", m.tan, [uniform(-1.5, 1.5), uniform(-1e3, 1e3), magnitude(-300, -1)]),
    ("asin", m.asin, [uniform(-1, 1), magnitude(-300, -1)]),
    ("acos", m.acos, [uniform(-1, 1), magnitude(-20, -1)]),
    ("atan", m.atan, [uniform(-3, 3), magnitude(-300, 300)]),
    ("sinh", m.sinh, [uniform(-3, 3), uniform(-700, 700), magnitude(-300, -1)]),
    ("cosh", m.cosh, [uniform(-3, 3), uniform(-700, 700), magnitude(-20, -1)]),
    ("asinh", m.asinh, [uniform(-3, 3), magnitude(-300, 300)]),
    ("acosh", m.acosh, [uniform(1, 3), magnitude(1, 300, False)]),
    ("atanh", m.atanh, [uniform(-1, 1), magnitude(-300, -1)]),
    ("exp2", lambda x: m.mpf(2) ** x, [uniform(-3, 3), uniform(-1000, 1000)]),
    ("log2", lambda x: m.log(x) / m.log(2), [uniform(0, 3), magnitude(-300, 300, False)]),
    ("log10", m.log10, [uniform(0, 3), magnitude(-300, 300, False)]),
    ("cbrt", lambda x: m.sign(x) * m.cbrt(abs(x)), [uniform(-3, 3), magnitude(-300, 300)]),
    ("erfc", m.erfc, [uniform(-6, 6), uniform(6, 26), magnitude(-20, -1)]),
    ("erfinv", m.erfinv, [uniform(-1, 1), magnitude(-10, -1), lambda: 1 - 10 ** random.uniform(-15, -1)]),
    ("lgamma", lambda x: m.log(abs(m.gamma(x))), [uniform(0.01, 4), uniform(4, 1000), not_whole(-20, 0), magnitude(3, 300, False)]),
]
TWO = [
    ("atan2", m.atan2, [uniform(-3, 3), magnitude(-100, 100)]),
    ("hypot", m.hypot, [uniform(-3, 3), magnitude(-300, 300)]),
]

for name, function, draws in ONE:
    for draw in draws:
        for _ in range(60):
            x = draw()
            print(name, bits(x), bits(0), bits(function(m.mpf(x))))
for name, function, draws in TWO:
    for draw in draws:
        for _ in range(60):
            x, y = draw(), draw()
            print(name, bits(x), bits(y), bits(function(m.mpf(x), m.mpf(y))))
for order in range(4):
    for draw in [uniform(0.01, 4), uniform(4, 100), not_whole(-20, 0), magnitude(2, 15, False)]:
        for _ in range(30):
            x = draw()
            print("polygamma", bits(order), bits(x), bits(m.psi(order, m.mpf(x))))
