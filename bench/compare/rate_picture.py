#!/usr/bin/env python3
"""Draws docs/pictures/rate-distortion.svg from runs in bench/results: quality against bits a value, by compressor.

usage: rate_picture.py [CURVES.csv] [PICTURE.svg]

A point is the geometric mean, over the fields that every compressor reaches at all of the PSNRs shown, of bits a value
at one PSNR, interpolated between runs. SPERR has the better of its two modes. Standard library only.
"""
import collections
import csv
import math
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CURVES = ROOT / "bench/results/2026-11-24-rate-distortion.csv"
PICTURE = ROOT / "docs/pictures/rate-distortion.svg"

TARGETS = range(55, 96, 5)
CODECS = {  # name in the picture: names in the file, colour
    "quern stencil": (("quern stencil",), "#c2185b"),
    "SPERR": (("SPERR psnr", "SPERR bound"), "#1565c0"),
    "QoZ": (("QoZ -q 4",), "#2e7d32"),
    "SZ3": (("SZ3",), "#ef6c00"),
    "quern lorenzo": (("quern lorenzo",), "#f48fb1"),
}
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 420, 64, 130, 46, 56
BITS = (0.5, 1, 2, 4, 8)


def read_curves(path):
    """(PSNR, bits a value) of all runs, by field and codec."""
    curves = collections.defaultdict(lambda: collections.defaultdict(list))
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["psnr_db"] and math.isfinite(float(row["psnr_db"])):
                curves[row["field"]][row["codec"]].append((float(row["psnr_db"]), float(row["bits_per_value"])))
    return curves


def interpolate(curve, psnr):
    """Bits a value at a PSNR, linear between runs, as rate_distortion.py has it; None outside them."""
    curve = sorted(curve)
    for (p0, b0), (p1, b1) in zip(curve, curve[1:]):
        if p0 <= psnr <= p1 and p1 > p0:
            return b0 + (b1 - b0) * (psnr - p0) / (p1 - p0)
    return None


def bits_at(by_codec, names, psnr):
    found = [bits for name in names if (bits := interpolate(by_codec[name], psnr)) is not None]
    return min(found, default=None)


def means(curves):
    """For each codec of the picture its points, and the number of fields that they are means of."""
    rates = {field: {name: [bits_at(by_codec, names, t) for t in TARGETS] for name, (names, _) in CODECS.items()}
             for field, by_codec in curves.items()}
    fields = [field for field, by_name in rates.items() if all(None not in bits for bits in by_name.values())]
    if not fields:
        raise SystemExit("rate_picture.py: no field that every compressor reaches")
    points = {name: [(math.exp(sum(math.log(rates[field][name][place]) for field in fields) / len(fields)), target)
                     for place, target in enumerate(TARGETS)] for name in CODECS}
    return points, len(fields)


def x_of(bits):
    low, high = math.log2(BITS[0]), math.log2(BITS[-1])
    return LEFT + (math.log2(bits) - low) / (high - low) * (WIDTH - LEFT - RIGHT)


def y_of(psnr):
    low, high = TARGETS[0], TARGETS[-1]
    return HEIGHT - BOTTOM - (psnr - low) / (high - low) * (HEIGHT - TOP - BOTTOM)


def text(x, y, words, anchor="middle", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{words}</text>'


def line(x1, y1, x2, y2, colour, width=1):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}"/>'


def axes(fields):
    out = [f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
           text(LEFT, 24, f"Quality against size: geometric mean of {fields} real fields. Further left is smaller.",
                "start", ' font-weight="bold"')]
    for bits in BITS:
        out.append(line(x_of(bits), TOP, x_of(bits), HEIGHT - BOTTOM, "#dddddd"))
        out.append(text(x_of(bits), HEIGHT - BOTTOM + 18, f"{bits:g}"))
    for psnr in range(TARGETS[0], TARGETS[-1] + 1, 10):
        out.append(line(LEFT, y_of(psnr), WIDTH - RIGHT, y_of(psnr), "#dddddd"))
        out.append(text(LEFT - 8, y_of(psnr) + 4, psnr, "end"))
    out.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, "bits a value (logarithmic)"))
    out.append(text(18, (TOP + HEIGHT - BOTTOM) / 2, "PSNR, dB", "middle",
                    f' transform="rotate(-90 18 {(TOP + HEIGHT - BOTTOM) / 2:.1f})"'))
    return out


def curve(name, points):
    _, colour = CODECS[name]
    places = [(x_of(bits), y_of(psnr)) for bits, psnr in points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    wide = 3 if name == "quern stencil" else 2
    return [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{wide}"/>',
            *(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{wide}" fill="{colour}"/>' for x, y in places)]


def legend(points):
    """In the order of the curves at the top of the picture, the smallest first."""
    out = []
    for place, name in enumerate(sorted(points, key=lambda name: points[name][0][0])):
        y = TOP + 14 + 22 * place
        out.append(line(WIDTH - RIGHT + 14, y - 4, WIDTH - RIGHT + 34, y - 4, CODECS[name][1], 3))
        out.append(text(WIDTH - RIGHT + 40, y, name, "start"))
    return out


def picture(curves):
    points, fields = means(curves)
    curves_drawn = [part for name in reversed(CODECS) for part in curve(name, points[name])]
    body = axes(fields) + curves_drawn + legend(points)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
            'font-family="sans-serif" font-size="13" fill="#222222">\n' + "\n".join(body) + "\n</svg>\n")


if __name__ == "__main__":
    source = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else CURVES
    target = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else PICTURE
    target.write_text(picture(read_curves(source)), encoding="utf-8")
