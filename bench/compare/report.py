# Tables and pictures of a comparison: one CSV file and one HTML page that needs nothing beside itself.
import csv
import html
import math

# Told apart also by readers who see few colours.
COLOURS = ["#0072b2", "#e69f00", "#56b4e9", "#9ca3af", "#009e73", "#d55e00", "#cc79a7", "#374151", "#7c3aed", "#84cc16"]
WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 460, 300, 58, 40, 14, 12
COLUMNS = ["field", "compressor", "rel", "bound", "ratio", "bits_per_value", "psnr_db", "max_error", "max_error_over_bound",
           "violations", "specials_lost", "compress_mb_per_s", "decompress_mb_per_s", "error"]

STYLE = """body{font:15px/1.45 system-ui,sans-serif;max-width:1010px;margin:2em auto;padding:0 1em;color:#1c1917}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:13px}td,th{padding:2px 9px;text-align:right;
border-bottom:1px solid #e7e5e4}td:first-child,th:first-child,td:nth-child(2),th:nth-child(2){text-align:left}
.bad{color:#b91c1c;font-weight:600}svg{margin:4px 8px 4px 0}.key span{margin-right:1.1em;white-space:nowrap}
.key i{display:inline-block;width:.8em;height:.8em;border-radius:50%;margin-right:.35em}"""


def write_csv(path, rows):
    with open(path, "w", newline="") as out:
        writer = csv.DictWriter(out, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)


def ticks(low, high, logarithmic):
    """At most about six round values in [low, high]."""
    if logarithmic:
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        stride = max(1, (last - first) // 6 + 1)
        powers = [10.0**e for e in range(first, last + 1, stride)]
        steps = [m * p for p in powers for m in ((1, 2, 5) if last - first <= 2 else (1,))]
        return [s for s in steps if low <= s <= high]
    step = 10 ** math.floor(math.log10((high - low) / 4 or 1))
    while (high - low) / step > 7:
        step *= 2 if str(step)[0] != "2" else 2.5
    first = math.ceil(low / step)
    return [i * step for i in range(first, int(high / step) + 1)]


def label(value):
    return f"{value:.0e}" if value and (abs(value) >= 1e5 or abs(value) < 1e-2) else f"{value:g}"


class Axis:
    def __init__(self, values, logarithmic, start, end):
        self.logarithmic = logarithmic
        low, high = min(values), max(values)
        if logarithmic:
            low, high = low / 1.15, high * 1.15
        else:
            margin = (high - low) * 0.06 or 1
            low, high = low - margin, high + margin
        self.low, self.high, self.start, self.end = low, high, start, end

    def place(self, value):
        scale = math.log10 if self.logarithmic else float
        part = (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low))
        return self.start + part * (self.end - self.start)


def chart(series, x_title, y_title, x_log=False, y_log=False):
    """`series`: (name, colour, [(x, y, valid)]). Points of a broken bound are hollow."""
    points = [(x, y) for _, _, line in series for x, y, _ in line]
    if not points:
        return ""
    x_axis = Axis([p[0] for p in points], x_log, LEFT, WIDTH - RIGHT)
    y_axis = Axis([p[1] for p in points], y_log, HEIGHT - BOTTOM, TOP)
    out = [f'<svg width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" font-size="11" font-family="sans-serif">']
    for tick in ticks(x_axis.low, x_axis.high, x_log):
        at = x_axis.place(tick)
        out.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#e7e5e4"/>'
                   f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 14}" text-anchor="middle">{label(tick)}</text>')
    for tick in ticks(y_axis.low, y_axis.high, y_log):
        at = y_axis.place(tick)
        out.append(f'<line y1="{at:.1f}" y2="{at:.1f}" x1="{LEFT}" x2="{WIDTH - RIGHT}" stroke="#e7e5e4"/>'
                   f'<text x="{LEFT - 5}" y="{at + 4:.1f}" text-anchor="end">{label(tick)}</text>')
    for name, colour, line in reversed(series):  # the first, which are quern's, lie on top
        line = sorted(line)
        path = " ".join(f"{x_axis.place(x):.1f},{y_axis.place(y):.1f}" for x, y, _ in line)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
        for x, y, valid in line:
            fill = colour if valid else "#fff"
            out.append(f'<circle cx="{x_axis.place(x):.1f}" cy="{y_axis.place(y):.1f}" r="3.6" fill="{fill}" '
                       f'stroke="{colour}" stroke-width="1.4"><title>{html.escape(name)}: {x:.4g}, {y:.4g}</title></circle>')
    out.append(f'<text x="{(LEFT + WIDTH) / 2}" y="{HEIGHT - 8}" text-anchor="middle">{html.escape(x_title)}</text>'
               f'<text transform="translate(13,{HEIGHT / 2}) rotate(-90)" text-anchor="middle">{html.escape(y_title)}</text></svg>')
    return "".join(out)


def series_of(rows, names, x_key, y_key):
    out = []
    for index, name in enumerate(names):
        line = [(r[x_key], r[y_key], not r["violations"] and not r["specials_lost"]) for r in rows
                if r["compressor"] == name and usable(r, x_key) and usable(r, y_key)]
        if line:
            out.append((name, COLOURS[index % len(COLOURS)], line))
    return out


def usable(row, key):
    value = row.get(key)
    return isinstance(value, (int, float)) and math.isfinite(value) and value > 0


def figure(value, form):
    return "" if value is None or value == "" else "∞" if value == math.inf else format(value, form)


def psnr(row):
    return "exact" if row["max_error"] == 0 else figure(row["psnr_db"], ".1f")


def table(rows):
    out = ["<table><tr><th>compressor<th>rel<th>ratio<th>PSNR dB<th>max error / bound<th>misses<th>specials lost<th>MB/s in"
           "<th>MB/s out</tr>"]
    for r in rows:
        if r["error"]:
            out.append(f'<tr><td>{html.escape(r["compressor"])}<td>{figure(r["rel"], "g")}'
                       f'<td colspan="7" style="text-align:left">{html.escape(r["error"])}</tr>')
            continue
        bad = ' class="bad"' if r["violations"] or r["specials_lost"] else ""
        out.append(f'<tr><td>{html.escape(r["compressor"])}<td>{figure(r["rel"], "g")}<td>{figure(r["ratio"], ".2f")}'
                   f'<td>{psnr(r)}<td{bad}>{figure(r["max_error_over_bound"], ".4f")}'
                   f'<td{bad}>{r["violations"]}<td{bad}>{r["specials_lost"]}<td>{figure(r["compress_mb_per_s"], ".0f")}'
                   f'<td>{figure(r["decompress_mb_per_s"], ".0f")}</tr>')
    return "".join(out) + "</table>"


def write_html(path, rows, names, facts):
    parts = [f"<!doctype html><meta charset=utf-8><title>quern beside other compressors</title><style>{STYLE}</style>",
             "<h1>quern beside other compressors</h1><ul>", *(f"<li>{html.escape(f)}" for f in facts), "</ul>",
             "<p>Hollow points and red figures: a value missed its bound, or NaN, Inf or a zero's sign was lost.</p>",
             '<p class="key">', *(f'<span><i style="background:{COLOURS[i % len(COLOURS)]}"></i>{html.escape(n)}</span>'
                                  for i, n in enumerate(names)), "</p>"]
    for field in dict.fromkeys(r["field"] for r in rows):
        mine = [r for r in rows if r["field"] == field]
        lossy = [r for r in mine if r["rel"] != ""]
        parts += [f"<h2>{html.escape(field)}</h2>",
                  chart(series_of(lossy, names, "bits_per_value", "psnr_db"), "bits per value", "PSNR (dB)", x_log=True),
                  chart(series_of(lossy, names, "max_error", "ratio"), "largest error", "ratio", x_log=True, y_log=True),
                  chart(series_of(mine, names, "ratio", "compress_mb_per_s"), "ratio", "compress MB/s", True, True),
                  chart(series_of(mine, names, "ratio", "decompress_mb_per_s"), "ratio", "decompress MB/s", True, True),
                  table(mine)]
    path.write_text("\n".join(parts) + "\n", encoding="utf-8")
