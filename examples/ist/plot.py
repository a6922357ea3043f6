"""Accuracy against time as SVG: a few panels beside each other, a line a strategy, time on a logarithmic axis."""

import math
from xml.sax.saxutils import escape

COLOURS = ["#4269d0", "#9c9c9c", "#efb118", "#ff5f6b", "#3ca951"]
WIDTH, HEIGHT, GAP, LEFT, TOP = 300, 260, 28, 44, 64


def panels(title, shown):
    """`shown`: (title of a panel, lines), a line being (its name, its points)."""
    count = len(shown)
    total = (LEFT + count * WIDTH + (count - 1) * GAP + 12, TOP + HEIGHT + 52)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{total[0]}" height="{total[1]}" font-family="sans-serif" font-size="12">',
        f'<rect width="{total[0]}" height="{total[1]}" fill="white"/>',
        f'<text x="{LEFT}" y="20" font-size="14">{escape(title)}</text>',
    ]
    for number, (name, _) in enumerate(shown[0][1]):
        x = LEFT + number * 120
        out.append(f'<line x1="{x}" y1="36" x2="{x + 18}" y2="36" stroke="{COLOURS[number]}" stroke-width="2.5"/>')
        out.append(f'<text x="{x + 24}" y="40">{escape(name)}</text>')
    times = [seconds for _, lines in shown for _, points in lines for seconds, _ in points]
    span = (math.floor(math.log10(min(times)) * 2) / 2, math.ceil(math.log10(max(times)) * 2) / 2)
    for number, (name, lines) in enumerate(shown):
        out += panel(LEFT + number * (WIDTH + GAP), name, lines, span, number == 0)
    return "\n".join([*out, "</svg>"]) + "\n"


def panel(left, title, lines, span, labelled):
    low, high = span

    def x(seconds):
        return left + WIDTH * (math.log10(seconds) - low) / (high - low)

    def y(accuracy):
        return TOP + HEIGHT * (1 - accuracy)

    out = [
        f'<text x="{left + WIDTH / 2}" y="{TOP - 6}" text-anchor="middle">{escape(title)}</text>',
        f'<rect x="{left}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#888"/>',
        f'<text x="{left + WIDTH / 2}" y="{TOP + HEIGHT + 34}" text-anchor="middle">seconds</text>',
    ]
    for tenth in range(0, 11, 2):
        at = y(tenth / 10)
        out.append(f'<line x1="{left}" y1="{at:.1f}" x2="{left + WIDTH}" y2="{at:.1f}" stroke="#ddd"/>')
        if labelled:
            out.append(f'<text x="{left - 6}" y="{at + 4:.1f}" text-anchor="end">{tenth / 10:.1f}</text>')
    for power in range(math.ceil(low), math.floor(high) + 1):
        at = x(10.0**power)
        out.append(f'<line x1="{at:.1f}" y1="{TOP}" x2="{at:.1f}" y2="{TOP + HEIGHT}" stroke="#ddd"/>')
        out.append(f'<text x="{at:.1f}" y="{TOP + HEIGHT + 16}" text-anchor="middle">{10.0**power:g}</text>')
    for colour, (_, points) in zip(COLOURS, lines):
        path = " ".join(f"{x(seconds):.1f},{y(accuracy):.1f}" for seconds, accuracy in points)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
    return out
