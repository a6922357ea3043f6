#!/usr/bin/env python3
"""Prints, by numpy, the values that stand in the programs beside this file: `python3 reference.py arithmetic`.

A line `//= name: …` gives the elements of an output in row-major order; of a complex number its two parts.
"""
import sys
import numpy as np


def arithmetic():
    i, k, j = np.arange(7.0), np.arange(3.0), np.arange(5.0)
    z = 0.5 * i - 1 + 1j * (0.25 * i * i)
    w = np.cos(i) + 1j * np.sin(2 * i)
    x = i - 3
    A = (i[:, None] + k) + 1j * (i[:, None] - 2 * k)
    B = k[:, None] * j + 1j * (1 - j) + 0 * k[:, None]
    return dict(
        total=z + w,
        scaled=2 * z - x * w + 1j,
        product=z * w * z.conj(),
        quotient=z / w,
        inverse=1 / w,
        turned=w / 2j,
        cube=z**3,
        less=w**-2,
        size=abs(z),
        turn=np.angle(w),
        real=z.real - w.imag,
        same=z == z.conj(),
        C=A @ B,
        chain=np.einsum("ik,kj,lj,il->i", A, B, B.conj(), A),
        inner=np.vdot(z, w),
        average=z.mean(),
        length=np.linalg.norm(z),
        most=abs(w).max(),
        chosen=np.where(i > 3, z, -w),
        shifted=np.concatenate([[9 - 9j], z[:-1]]),
        beside=np.sqrt(1 - (i - 2 + 1j * (0 * i) + 0 * z)),
        decided=z - np.where(w.imag > 0, 1, 2.5),
    )


def functions():
    a = np.array([1.5, -0.5, -2.0, 0.25, -1.0, 0.0, 3.0])
    b = np.array([0.5, 2.0, -1.5, -3.0, 0.0, 2.0, 0.0])
    z = a + 1j * b
    return dict(
        e=np.exp(z),
        l=np.log(z),
        r=np.sqrt(z),
        s=np.sin(z),
        c=np.cos(z),
        sh=np.sinh(z),
        ch=np.cosh(z),
        p=z**0.5,
        q=z ** z.conj(),
        t=2**z,
        u=z**a,
        large=np.array([1e200 + 1e200j]) / (2e200 - 1e200j),
    )


def inverses():
    a = np.array([1.5, -0.5, -2, 0.25, -1.5, 0, 3, 2, -3, -3, 0, 0, 1, 40, -1000, 1e150, -0.999999])
    b = np.array([0.5, 2, -1.5, -3, 0, 2, 0, -0.0, 0, -0.0, -0.5, 0.75, 1e-9, 2, 1, -1e150, 1e-6])
    z = np.empty(17, complex)
    z.real, z.imag = a, b
    s = z[:13]
    return dict(
        t=np.tan(z),
        th=np.tanh(z),
        **{"as": np.arcsin(z)},
        ac=np.arccos(z),
        at=np.arctan(z),
        ash=np.arcsinh(z),
        ach=np.arccosh(z),
        ath=np.arctanh(z),
        l2=np.log2(z),
        l10=np.log10(z),
        l1p=np.log1p(z),
        e2=np.exp2(s),
        em1=np.expm1(s),
        sg=1 / (1 + np.exp(-s)),
        d=np.sign(z),
        r=1 / np.sqrt(z),
        small=8 * z[:4],
        none=0j,
    )


def products():
    k, i = np.arange(3.0)[:, None], np.arange(7.0)
    Z = k - 0.5 * i + 1j * (1 - i * k / 4)
    Z[1, 2] = 0
    z = Z[2]
    s = Z.prod(1)
    for _ in range(3):
        s = 0.125j * s + (Z / 2).prod(1)
    return dict(
        whole=Z.prod(1),
        run=np.cumprod(z),
        both=(Z[:2, :2] + 1).prod(),
        inner=np.array([sum(c * (row[:3] - e).prod() for c, e in zip(row, z)) for row in Z]),
        back=np.array([2, 2] + [z[n - 2 : n + 1].prod() for n in range(2, 7)]),
        none=1 + 0j,
        imaginary=(1j * z.real)[:3].prod(),
        size=abs(z.prod()),
        mixed=(z * (i + 1))[:4].prod(),
        s=s,
        wrong=0.0,
        apart=0.0,
    )


def real():
    p, i, k = np.arange(3.0)[:, None], np.arange(8.0), np.arange(5.0)
    x = np.cos(i * i) * (p + 1) + i
    w = k - 1 + 1j * np.cos(k * p)
    fft = np.fft
    return dict(
        F=fft.rfft(x),
        each=fft.rfft(x),
        G=fft.rfft(x[1, :7]),
        back=x,
        same=x[1, :7],
        I=fft.irfft(w),
        I7=fft.irfft(w, 7),
        I13=fft.irfft(w, 13),
        I4=fft.irfft(w, 4),
        one=fft.irfft(fft.rfft(x[1, :7]), 1),
        single=fft.rfft(i[:4]),
        e1=0.0,
        e2=0.0,
        e3=0.0,
    )


def rounds():
    c = np.array([0.25, 0.5, -0.75]) + 0.5j
    z, track = c, []
    for _ in range(5):
        z = z * z + c
        track.append(z)
    x = 0 * c
    for _ in range(4):
        x = 0.5j * x + c
    y = -1.0 + 0.75j
    while abs(y * y * y - 1) >= 1e-12:
        y = y - (y**3 - 1) / (3 * y**2)
    h, H = 1, []
    for t in range(4):
        h = 1j * h + t
        H.append(h)
    return dict(z=z, track=np.array(track), x=x, y=y, H=np.array(H))


def tensors():
    i = np.arange(6.0)
    z = i * i - 3 + 1j * (2 - i)
    at = np.array([3, 0, 5, 3])
    k = np.arange(4)
    g = z[at]
    h = np.zeros(6, complex)
    np.add.at(h, at, g * k)
    m = np.where(np.arange(6) == 2, z, 0)
    w = (1 + i[:, None]) + 1j * (i[:, None] - i)
    return dict(
        turned=z * np.exp(1j),
        q=z**2 * (2 + 1j),
        s=z.sum(),
        g=g,
        h=h,
        only=m,
        layer=z @ w + 1j * i,
        F=np.fft.fft(z),
        rows=np.fft.fft(np.outer(k + 1, z)),
        back=np.fft.ifft(z),
        real=np.fft.fft(i),
        one=np.fft.fft(h)[1],
        line=np.concatenate([z, g]),
    )


def gradients():
    i = np.arange(4.0)
    a, w = np.cos(i) + 1j * i, 1 + 0.5 * i - 1j * np.sin(i)
    m = w * w.conj() + a / w

    # The loss, and its gradient by complex steps in both parts: ∂/∂x − i ∂/∂y.
    def loss(w):
        m = w * w.conj() + a / w
        return (np.exp(m / 10).real + (np.log(w + 3) * a).imag + abs(np.sqrt(w))).sum()

    by = []
    for n in range(4):
        step = np.zeros(4, complex)
        step[n] = 1e-5
        x = (loss(w + step) - loss(w - step)) / 2e-5
        y = (loss(w + 1j * step) - loss(w - 1j * step)) / 2e-5
        by.append(x - 1j * y)
    return dict(
        cube=3 * w**2 * a,
        far=2 * (w - a).conj(),
        middle=np.exp(m / 10) / 10,
        loss=loss(w),
        by=np.array(by),
        second=2 * np.ones(4) * (1 + 0j),
    )


for name, value in globals()[sys.argv[1]]().items():
    parts = np.atleast_1d(value).ravel()
    if np.iscomplexobj(parts):
        parts = np.stack([parts.real, parts.imag], -1).ravel()
    print(f"//= {name}:", *(f"{float(part) + 0.0:.17g}" for part in parts))
