#!/usr/bin/env python3
"""Headline figures over time: bench/results/history.csv, one line for each measurement.

usage: history.py add --figure NAME --value NUMBER --source FILE [--date YYYY-MM-DD] [--commit HASH]
                      [--machine TEXT] [--note TEXT]
       history.py score JSONL...     adds the lines of a scoreboard run (geometric mean of the ratio's quotient to the
                                     best peer of each field, for each bound)
       history.py draw [--out FILE]  writes the picture (docs/pictures/history.svg)
       history.py check              fails when a line is malformed or names a figure or source that is not there

Figures and what they are measured in stand in FIGURES. A line is never changed: a figure that was measured again gets a
new line. Ratios to something measured in the same run are preferred: machines differ.
"""
import argparse
import csv
import datetime
import html
import json
import math
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "bench/results/history.csv"
COLUMNS = ["date", "commit", "figure", "value", "machine", "source", "note"]
# figure -> (unit, what it is, True where more is better)
FIGURES = {
    "ratio_1e-2": ("of best peer", "stencil, scoreboard, bound 1e-2 of the range", True),
    "ratio_1e-3": ("of best peer", "stencil, scoreboard, bound 1e-3 of the range", True),
    "ratio_1e-4": ("of best peer", "stencil, scoreboard, bound 1e-4 of the range", True),
    "ratio_1e-5": ("of best peer", "stencil, scoreboard, bound 1e-5 of the range", True),
    "lorenzo_encode_h200": ("GB/s", "lorenzo encoding, 512 MiB of smooth f32, H200", True),
    "lorenzo_decode_h200": ("GB/s", "lorenzo decoding, 512 MiB of smooth f32, H200", True),
    "checkpoint_save_exact": ("s", "480 MB AdamW checkpoint saved exactly, one thread", False),
    "checkpoint_save_balanced": ("s", "480 MB AdamW checkpoint saved with `balanced`, one thread", False),
    "demo_first_table": ("s", "scripts/demo.sh in a fresh clone, to the first table", False),
    "demo_whole": ("s", "scripts/demo.sh in a fresh clone", False),
    "test_whole": ("s", "scripts/test.sh in a fresh clone", False),
}


def read():
    with open(TABLE, newline="") as file:
        return list(csv.DictReader(file))


def problems(rows):
    for number, row in enumerate(rows, 2):
        where = f"{TABLE.relative_to(ROOT)}:{number}"
        if list(row) != COLUMNS or None in row.values():
            yield f"{where}: not the columns {', '.join(COLUMNS)}"
            continue
        if row["figure"] not in FIGURES:
            yield f"{where}: no figure is called {row['figure']!r}"
        try:
            datetime.date.fromisoformat(row["date"])
            if not math.isfinite(float(row["value"])):
                raise ValueError
        except ValueError:
            yield f"{where}: {row['date']!r} or {row['value']!r} is no date or number"
        if not (ROOT / row["source"]).exists():
            yield f"{where}: there is no {row['source']}"


def append(lines):
    new = not TABLE.exists()
    with open(TABLE, "a", newline="") as file:
        out = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if new:
            out.writeheader()
        out.writerows(lines)
    for line in lines:
        print(",".join(str(line[c]) for c in COLUMNS))


def head():
    return subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True,
                          check=True).stdout.strip()


def line(figure, value, args):
    return {"date": args.date or datetime.date.today().isoformat(), "commit": args.commit or head(), "figure": figure,
            "value": f"{value:.6g}", "machine": args.machine, "source": args.source, "note": args.note}


def scores(paths):
    """Bound -> geometric mean of ratio over best peer, from the scoreboard's JSON lines."""
    quotients = {}
    for path in paths:
        for text in open(path):
            row = json.loads(text)
            if row.get("quotient"):
                quotients.setdefault(row["rel"], []).append(row["quotient"])
    return {rel: math.exp(sum(map(math.log, q)) / len(q)) for rel, q in sorted(quotients.items())}


def draw(rows):
    """One panel a figure: its values over time, the last one written beside it."""
    width, panel, left, plot = 760, 56, 330, 330
    figures = [f for f in FIGURES if any(r["figure"] == f for r in rows)]
    days = [datetime.date.fromisoformat(r["date"]).toordinal() for r in rows]
    first, last = min(days), max(max(days), min(days) + 1)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{panel * len(figures) + 40}" '
           'font-family="sans-serif" font-size="12">', '<rect width="100%" height="100%" fill="white"/>']
    for i, figure in enumerate(figures):
        unit, what, up = FIGURES[figure]
        top = 10 + i * panel
        points = sorted((datetime.date.fromisoformat(r["date"]).toordinal(), n, float(r["value"]))
                        for n, r in enumerate(rows) if r["figure"] == figure)
        low, high = min(p[2] for p in points), max(p[2] for p in points)
        span = (high - low) or abs(high) or 1.0

        def at(point):
            x = left + plot * (point[0] - first) / (last - first)
            y = top + 40 - 30 * ((point[2] - low) / span if high > low else 0.5)
            return f"{x:.1f},{y:.1f}"

        out.append(f'<text x="10" y="{top + 20}">{html.escape(what)}</text>')
        out.append(f'<text x="10" y="{top + 36}" fill="#666">{html.escape(unit)}, {"more" if up else "less"} is '
                   'better</text>')
        out.append(f'<polyline fill="none" stroke="#1f5fa8" stroke-width="1.5" points="{" ".join(map(at, points))}"/>')
        for point in points:
            x, y = at(point).split(",")
            out.append(f'<circle cx="{x}" cy="{y}" r="2.5" fill="#1f5fa8"/>')
        out.append(f'<text x="{left + plot + 12}" y="{top + 30}" font-weight="bold">{points[-1][2]:.4g}</text>')
    begin, end = (datetime.date.fromordinal(d).isoformat() for d in (first, last))
    bottom = panel * len(figures) + 30
    out.append(f'<text x="{left}" y="{bottom}" fill="#666">{begin}</text>')
    out.append(f'<text x="{left + plot}" y="{bottom}" fill="#666" text-anchor="end">{end}</text></svg>')
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for name in ("add", "score"):
        verb = verbs.add_parser(name)
        if name == "add":
            verb.add_argument("--figure", required=True, choices=FIGURES)
            verb.add_argument("--value", required=True, type=float)
        else:
            verb.add_argument("runs", nargs="+")
        verb.add_argument("--source", required=True, help="file under bench/results with machine, command and spread")
        verb.add_argument("--date")
        verb.add_argument("--commit")
        verb.add_argument("--machine", default="")
        verb.add_argument("--note", default="")
    verbs.add_parser("draw").add_argument("--out", default=str(ROOT / "docs/pictures/history.svg"))
    verbs.add_parser("check")
    args = parser.parse_args()
    if args.verb == "add":
        append([line(args.figure, args.value, args)])
    elif args.verb == "score":
        names = {1e-2: "ratio_1e-2", 1e-3: "ratio_1e-3", 1e-4: "ratio_1e-4", 1e-5: "ratio_1e-5"}
        append([line(names[float(rel)], value, args) for rel, value in scores(args.runs).items()
                if float(rel) in names])
    elif args.verb == "draw":
        out = pathlib.Path(args.out)
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(draw(read()))
        print(f"wrote {out}")
    else:
        found = list(problems(read()))
        for problem in found:
            print(problem, file=sys.stderr)
        return 1 if found else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
