#!/usr/bin/env python3
# The main job on some files: every codec under several bounds, each stream decoded and checked by `quern verify`, a table
# on the terminal, and a folder with the same table and one page of pictures a field. Standard library only.
"""usage: demo.py --quern PATH --out FOLDER FILE...   (scripts/demo.sh builds the command and calls this)"""
import argparse
import html
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import time

BOUNDS = (1e-2, 1e-3, 1e-4)
PICTURED = 1e-3  # the bound whose reconstruction is drawn
COLUMNS = ("field", "codec", "bound", "ratio", "PSNR dB", "max error / bound", "MB/s in", "MB/s out", "checked")

STYLE = """body{font:15px/1.45 system-ui,sans-serif;max-width:1000px;margin:2em auto;padding:0 1em;color:#1c1917}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-size:14px;font-variant-numeric:tabular-nums}
td,th{padding:3px 10px;text-align:right;white-space:nowrap}td:nth-child(-n+2),th:nth-child(-n+2){text-align:left}
th,tr.field th{border-bottom:1px solid #a8a29e}tr.field th{text-align:left;padding-top:1em}.bad{color:#b91c1c;font-weight:600}"""


class Failed(Exception):
    """A run of the command that did not succeed; the message is what it said."""


class Command:
    def __init__(self, path):
        self.path = path

    def run(self, *arguments, accept=(0,)):
        """The JSON objects it printed."""
        run = subprocess.run([self.path, *arguments], capture_output=True, text=True, errors="replace",
                             stdin=subprocess.DEVNULL)
        if run.returncode not in accept:
            raise Failed(run.stderr.strip() or f"exit status {run.returncode}")
        return [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]

    def codecs(self):
        return [entry["name"] for entry in self.run("list", "codecs", "--json")]


class Source:
    """One array of one file."""

    def __init__(self, text):
        path, _, self.dataset = text.partition("::")
        self.path = pathlib.Path(path)
        self.name = self.path.name + (f" {self.dataset}" if self.dataset else "")
        self.options = ["--dataset", self.dataset] if self.dataset else []

    def page(self, number):
        """A file name for its page: only characters that are safe in a link."""
        safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in self.name)
        return f"{number:02d}_{safe}.html"


def measure(command, source, request, codec, folder):
    """One row of the table; raises Failed."""
    stream, back = folder / "x.qn", folder / "back.raw"
    packed = command.run("compress", *source.options, *request, "--codec", codec, "-T", "0", "--json", "-f", "-o",
                         str(stream), str(source.path))[0]
    unpacked = command.run("decompress", "-T", "0", "--json", "-f", "-o", str(back), str(stream))[0]
    # Status 4 is an answer, too: the table shows what missed.
    checked = command.run("verify", *source.options, "-T", "0", "--json", str(source.path), str(stream), accept=(0, 4))[0]
    enforced = (packed.get("enforced") or {}).get("value")
    error = checked["max_error"]
    return {"field": source.name, "codec": codec, "bound": " ".join(request).replace("--", ""), "ratio": packed["ratio"],
            "psnr": checked["psnr_db"], "error": error,
            "error_over_bound": error / enforced if enforced and error is not None else None,
            "suspicions": [s["text"] for s in packed["suspicions"]], "in": packed["mb_per_s"], "out": unpacked["mb_per_s"], "violations": checked["violations"]}


def draw(command, source, codec, page, folder):
    """The page of pictures: original beside reconstruction at the pictured bound."""
    # A file of the same kind, so that units and fill values are known; its name is shown, and says type and shape.
    stream, back = folder / "x.qn", folder / f"{codec}_rel_{PICTURED:g}_{source.path.name}"
    command.run("compress", *source.options, "--rel", repr(PICTURED), "--codec", codec, "-T", "0", "-f", "-o", str(stream),
                str(source.path))
    command.run("decompress", "-T", "0", "-f", "-o", str(back), str(stream))
    command.run("compare", *source.options, "-T", "0", str(source.path), str(back), "--html", str(page), "-f")


def cells(row):
    """What the table shows, as texts."""
    if row.get("failed"):
        return [row["field"], row["codec"], row["bound"], row["failed"], "", "", "", "", ""]

    def number(value, form):
        return "-" if value is None or not math.isfinite(value) else format(value, form)

    psnr = "exact" if row["error"] == 0 else number(row["psnr"], ".1f")
    checked = "every value" if row["violations"] == 0 else f"{row['violations']} MISSED"
    return [row["field"], row["codec"], row["bound"], number(row["ratio"], ".2f"), psnr,
            number(row["error_over_bound"], ".4f"), number(row["in"], ".0f"), number(row["out"], ".0f"), checked]


def print_table(rows):
    table = [COLUMNS] + [cells(row) for row in rows]
    fitted = [line for line, row in zip(table[1:], rows) if not row.get("failed")]
    widths = [max(len(line[i]) for line in [COLUMNS, *fitted]) for i in range(len(COLUMNS))]
    for line in table:
        print("  ".join(c.ljust(w) if i < 3 else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths))).rstrip())


def warnings_of(rows):
    """What looks wrong about the fields, one text a field."""
    return {row["field"]: row["suspicions"] for row in rows if row.get("suspicions")}


def write_index(out, rows, pages, left_out, seconds, version):
    warnings = warnings_of(rows)
    parts = [f"<!doctype html><meta charset=utf-8><title>quern demo</title><style>{STYLE}</style><h1>quern {version}</h1>",
             "<p>Bounds are relative to each field's range. Every stream was decoded again and compared with the original, "
             "value by value, by code that shares nothing with the encoder. Speeds are codec time, all threads, "
             "10<sup>6</sup> raw bytes a second.</p>",
             '<div class="scroll"><table><tr>', *(f"<th>{html.escape(c)}" for c in COLUMNS[1:]), "</tr>"]
    field = None
    for row in rows:
        if row["field"] != field:
            field = row["field"]
            parts.append(f'<tr class="field"><th colspan="{len(COLUMNS) - 1}">{html.escape(field)}</tr>')
            parts += [f'<tr class="bad"><td colspan="{len(COLUMNS) - 1}">{html.escape(text)}</tr>'
                      for text in warnings.get(field, [])]
        bad = ' class="bad"' if row.get("failed") or row["violations"] else ""
        parts.append(f"<tr{bad}>" + "".join(f"<td>{html.escape(c)}" for c in cells(row)[1:]) + "</tr>")
    parts.append(f"</table></div><p>{seconds:.1f} s in all.</p>")
    if pages:
        parts += [f"<h2>Pictures and error statistics at {PICTURED:g}</h2><ul>",
                  *(f'<li><a href="{page}">{html.escape(name)}</a>' for name, page in pages), "</ul>"]
    if left_out:
        parts += ["<h2>Left out</h2><ul>", *(f"<li>{html.escape(name)}: {html.escape(why)}" for name, why in left_out), "</ul>"]
    (out / "index.html").write_text("\n".join(parts) + "\n", encoding="utf-8")


def run_source(command, source, codecs, folder):
    rows = []
    for codec in codecs:
        requests = [["--lossless"]] if codec == "lossless" else [["--rel", f"{bound:g}"] for bound in BOUNDS]
        for request in requests:
            try:
                rows.append(measure(command, source, request, codec, folder))
            except Failed as problem:
                rows.append({"field": source.name, "codec": codec, "bound": " ".join(request).replace("--", ""),
                             "failed": str(problem).splitlines()[0], "violations": 0})
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--quern", required=True)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    args = parser.parse_args()

    started = time.monotonic()
    command = Command(args.quern)
    codecs = command.codecs()
    version = subprocess.run([args.quern, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    args.out.mkdir(parents=True, exist_ok=True)
    rows, pages, left_out = [], [], []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for number, source in enumerate(map(Source, args.files), 1):
            try:
                command.run("compress", *source.options, "--lossless", "-f", "-o", str(folder / "x.qn"), str(source.path))
            except Failed as problem:
                left_out.append((source.name, str(problem)))
                print(f"left out: {problem}", file=sys.stderr)
                continue
            mine = run_source(command, source, codecs, folder)
            rows += mine
            lossy = [r for r in mine if not r.get("failed") and r["bound"] == f"rel {PICTURED:g}"]
            if lossy:
                best = max(lossy, key=lambda r: r["ratio"])
                page = source.page(number)
                try:
                    draw(command, source, best["codec"], args.out / page, folder)
                    pages.append((f"{source.name}, {best['codec']}", page))
                except Failed as problem:
                    print(f"no pictures of {source.name}: {problem}", file=sys.stderr)
    seconds = time.monotonic() - started
    if rows:
        print_table(rows)
    for field, texts in warnings_of(rows).items():
        for text in texts:
            print(f"{field}: {text}", file=sys.stderr)
    write_index(args.out, rows, pages, left_out, seconds, version)
    print(f"{len(rows)} runs in {seconds:.1f} s; report: {args.out / 'index.html'}")
    if not rows:
        return 1
    return 4 if any(row["violations"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
