#!/usr/bin/env python3
"""How far estimates are from measured runs, beside what others would have predicted from the same arrays.

usage: bench/surrogate/table.py WORK FIELDS RUNS [--quern PATH]

FIELDS is the folder of arrays that RUNS is of (scripts/train_surrogate.sh), RUNS a CSV file of `quern bench --sweep`,
peers' runs included. Early steps of each name train, later ones test; then each application is left out of the
training, a fifth of them at a time, and tests. Ablations and that test train for 250 epochs. Made-up fields (made-*)
train alone. Writes WORK/rows.csv (each test run with all predictions) and WORK/table.md. What WORK has already is used
again.

Baselines, none of which learns:
  closed   quern's closed form, without the network
  tao      the compressor itself on a twentieth of the array in blocks of 128, 16^2 or 8^3 (Tao et al. 2019)
  jin      entropy of the codes of sampled points, at least a bit for each, runs of zeros corrected (Jin et al. 2022);
           for codecs that predict
  box      quern's codecs on one box of 2^16 values from the middle, as their own trials take it
Samples of tao and box carry the array's least and largest value, so that relative bounds mean the same.
"""
import argparse
import collections
import csv
import os
import re
import subprocess
import sys

import numpy as np

TYPES = {"f32": "<f4", "f64": "<f8", "f16": "<f2", "i16": "<i2", "i32": "<i4", "u8": "u1"}
PREDICTING = {"sz3", "stencil", "lorenzo", "interp"}
METHODS = ("surrogate", "closed", "tao", "jin", "box")
OWN = {"lorenzo", "stencil", "lossless", "interp"}
#: As scripts/train_surrogate.sh trains; and, with an eighth of its epochs, what parts are worth. Networks with deep
#: features are smaller than those without; beside them stand some of the same size.
FULL = ["--epochs", "2000", "--experts", "4"]
SHORT = ["--epochs", "250", "--experts", "4"]
ABLATIONS = {"all parts, 250 epochs": SHORT, "one expert": ["--epochs", "250"],
             "without inputs of levels": [*SHORT, "--without", "levels"],
             "without hidden layers": [*SHORT, "--without", "hidden"],
             "small: two experts, hidden layers of 48": ["--epochs", "250", "--experts", "2", "--hidden", "48"],
             "small, with deep features": ["--epochs", "250", "--experts", "2", "--hidden", "64", "--features", "deep"]}


def load(path):
    match = re.fullmatch(r".*_(\d+(?:x\d+)*)\.(\w+)", os.path.basename(path))
    return np.fromfile(path, TYPES[match[2]]).reshape([int(n) for n in match[1].split("x")]), match[2]


def slim(array):
    """Up to three axes, none of length 1: those that are left over are merged into the slowest."""
    extents = [n for n in array.shape if n > 1] or [1]
    return array.reshape([-1] + extents[-2:]) if len(extents) > 3 else array.reshape(extents)


def with_range(sample, array):
    valid = array[np.isfinite(array)] if array.dtype.kind == "f" else array.ravel()
    flat = sample.ravel()
    if valid.size and flat.size > 1:
        flat[0], flat[1] = valid.min(), valid.max()
    return flat.reshape(sample.shape)


def tao_sample(array):
    array = slim(array)
    side = {1: 128, 2: 16, 3: 8}[array.ndim]
    sides = [min(side, n) for n in array.shape]
    count = max(4, int(0.05 * array.size / np.prod(sides)))
    rng = np.random.default_rng(1)
    blocks = []
    for _ in range(count):
        begin = [int(rng.integers(0, n - s + 1)) for n, s in zip(array.shape, sides)]
        blocks.append(array[tuple(slice(b, b + s) for b, s in zip(begin, sides))])
    return np.concatenate(blocks, axis=0)


def box_sample(array):
    array = slim(array)
    goal = min(1 << 16, max(array.size // 4, 64))
    extents = list(array.shape)
    while np.prod(extents) > goal:
        axis = int(np.argmax(extents))
        extents[axis] = (extents[axis] + 1) // 2
    return array[tuple(slice((n - e) // 2, (n - e) // 2 + e) for n, e in zip(array.shape, extents))].copy()


def jin(array, relative):
    """Bits a value and PSNR of a predicting compressor; the better of Lorenzo and cubic interpolation counts."""
    array = slim(array).astype(np.float64)
    valid = array[np.isfinite(array)]
    span = valid.max() - valid.min() if valid.size else 0
    if not span > 0:
        return None
    rng = np.random.default_rng(2)
    take = min(array.size, max(4096, array.size // 20))
    places = [rng.integers(min(3, n - 1), max(n - 3, min(3, n - 1) + 1), take) for n in array.shape]
    here = array[tuple(places)]
    lorenzo = np.zeros(take)
    for corner in np.ndindex(*(2,) * array.ndim):
        if any(corner):
            lorenzo -= (-1) ** sum(corner) * array[tuple(p - c for p, c in zip(places, corner))]
    cubic, axes = np.zeros(take), 0
    for axis, extent in enumerate(array.shape):
        if extent >= 7:
            moved = lambda d: array[tuple(p + d if a == axis else p for a, p in enumerate(places))]
            cubic += 9 / 16 * (moved(-1) + moved(1)) - 1 / 16 * (moved(-3) + moved(3))
            axes += 1
    bound, best = relative * span, None
    for predicted in [lorenzo] + ([cubic / axes] if axes else []):
        residual = (here - predicted)[np.isfinite(here - predicted)]
        if residual.size == 0:
            continue
        codes = np.rint(residual / (2 * bound))
        shares = np.unique(codes, return_counts=True)[1] / codes.size
        zero = float(np.mean(codes == 0))
        bits = float(np.sum(shares * np.maximum(-np.log2(shares), 1)))
        zero_bits = zero * max(-np.log2(zero), 1) / bits if zero > 0 else 0
        bits *= (1 - zero) * zero_bits + (1 - zero_bits)
        error = np.where(codes == 0, residual**2, bound**2 / 3).mean()
        if best is None or bits < best[0]:
            best = (max(bits, 1e-4), 10 * np.log10(span**2 / max(error, 1e-300)))
    return best


def make_samples(args, inputs):
    for kind, sample in (("tao", tao_sample), ("box", box_sample)):
        folder = os.path.join(args.work, kind)
        os.makedirs(folder, exist_ok=True)
        for name in inputs:
            stem = name.rsplit("_", 1)[0]
            if any(f.startswith(stem + "_") for f in os.listdir(folder)):
                continue
            array, dtype = load(os.path.join(args.fields, name))
            part = np.ascontiguousarray(with_range(sample(array), array))
            part.tofile(os.path.join(folder, f"{stem}_{'x'.join(map(str, part.shape))}.{dtype}"))


def sweep_samples(args, wanted):
    """`wanted`: of each array its codecs and, of each, its bounds."""
    for kind in ("tao", "box"):
        folder, runs = os.path.join(args.work, kind), os.path.join(args.work, kind + ".csv")
        for file in sorted(os.listdir(folder)):
            stem = file.rsplit("_", 1)[0]
            for codecs, bounds in wanted.get(stem, {}).items():
                codecs = [c for c in codecs if kind == "tao" or c in OWN]
                if not codecs:
                    continue
                peers = [word for c in codecs if c not in OWN for word in ("--peer", c)]
                bound = ["--rel", ",".join(f"{b:g}" for b in bounds)] if bounds != (0.0,) else []
                subprocess.run([args.quern, "bench", "--sweep", "-q", "--csv", runs, "--codec", ",".join(codecs), *bound,
                                *peers, os.path.join(folder, file)], check=True)


def sample_results(args, kind):
    with open(os.path.join(args.work, kind + ".csv"), newline="") as file:
        out = {}
        for row in csv.DictReader(file):
            if row["status"] == "ok":
                key = (row["input"].rsplit("_", 1)[0], row["codec"], float(row["bound_rel"]))
                ratio = float(row["raw_bytes"]) / float(row["stream_bytes"])
                out[key] = (ratio, float(row["psnr_db"]) if row["psnr_db"] else None)
        return out


def train(args, name, words):
    """Rows of the later steps under one variant of the training; of each left-out application for `unseen`."""
    rows = os.path.join(args.work, name.replace(" ", "_") + ".csv")
    if not os.path.exists(rows):
        model = [] if "--families" in words else ["-f", "-o", os.path.join(args.work, name.replace(" ", "_") + ".qmodel")]
        if "deep" in words:
            model += ["--data", *(os.path.join(args.fields, file) for file in sorted(os.listdir(args.fields)))]
        subprocess.run([args.quern, "train", "quality", "--runs", args.runs, "--rows", rows + ".part", *model, *words],
                       check=True, stdout=subprocess.DEVNULL)
        os.rename(rows + ".part", rows)
    with open(rows, newline="") as file:
        return [row for row in csv.DictReader(file) if row["family"] != "made"]


def number(text):
    return float(text) if text not in ("", None) else None


def errors(rows, method):
    """Errors of ratios in per cent, of PSNR in dB."""
    ratio, psnr = [], []
    for row in rows:
        true, guess = number(row["ratio"]), number(row.get("ratio_" + method))
        if guess:
            ratio.append(100 * abs(guess / true - 1))
        true, guess = number(row["psnr_db"]), number(row.get("psnr_" + method))
        if true is not None and guess is not None and true < 250:
            psnr.append(abs(guess - true))
    return ratio, psnr


def median_p90(values, digits):
    if not values:
        return "-", "-"
    ordered = sorted(values)
    at = lambda q: ordered[min(len(ordered) - 1, int(q * len(ordered)))]
    return f"{at(0.5):.{digits}f}", f"{at(0.9):.{digits}f}"


def table(rows, title):
    lines = [f"### {title}", "", "| codec | runs | method | ratio median % | p90 % | PSNR median dB | p90 dB |",
             "|---|---|---|---|---|---|---|"]
    for codec in sorted({row["codec"] for row in rows}):
        own = [row for row in rows if row["codec"] == codec]
        for method in METHODS:
            ratio, psnr = errors(own, method)
            if ratio:
                lines.append(f"| {codec} | {len(ratio)} | {method} | " +
                             " | ".join(median_p90(ratio, 1) + median_p90(psnr, 2)) + " |")
    lines += ["", "| codec | SSIM median | p90 | autocorrelation median | intervals that hold: ratio | PSNR |",
              "|---|---|---|---|---|---|"]
    for codec in sorted({row["codec"] for row in rows}):
        own = [row for row in rows if row["codec"] == codec]
        gap = lambda key: [abs(number(r[key]) - number(r[key + "_predicted"])) for r in own if number(r[key]) is not None]
        held = lambda key, value: [number(r[key + "_low"]) <= number(r[value]) <= number(r[key + "_high"])
                                   for r in own if number(r[value]) is not None and number(r[key + "_low"]) is not None]
        share = lambda hits: f"{100 * sum(hits) / len(hits):.0f} %" if hits else "-"
        lines.append(f"| {codec} | " + " | ".join(median_p90(gap("ssim"), 4)) + " | " +
                     median_p90(gap("autocorrelation"), 3)[0] +
                     f" | {share(held('ratio', 'ratio'))} | {share(held('psnr', 'psnr_db'))} |")
    return lines + [""]


def ablation_table(by_variant):
    lines = ["### Ablations, later steps", "", "| variant | codec | ratio median % | p90 % | PSNR median dB | p90 dB |",
             "|---|---|---|---|---|---|"]
    for variant, rows in by_variant.items():
        for codec in sorted({row["codec"] for row in rows}):
            ratio, psnr = errors([row for row in rows if row["codec"] == codec], "surrogate")
            lines.append(f"| {variant} | {codec} | " + " | ".join(median_p90(ratio, 1) + median_p90(psnr, 2)) + " |")
    return lines + [""]


def complete(args, rows, samples, arrays):
    """Puts all methods' predictions into each row."""
    for row in rows:
        stem, bound = row["input"].rsplit("_", 1)[0], float(row["bound_rel"])
        row["ratio_surrogate"], row["psnr_surrogate"] = row["ratio_predicted"], row["psnr_predicted"]
        for kind, found in samples.items():
            ratio, psnr = found.get((stem, row["codec"], bound), (None, None))
            row["ratio_" + kind] = "" if ratio is None else f"{ratio:.6g}"
            row["psnr_" + kind] = "" if psnr is None else f"{psnr:.6g}"
        row["ratio_jin"] = row["psnr_jin"] = ""
        if row["codec"] in PREDICTING and bound > 0:
            key = (row["input"], bound)
            if key not in arrays:
                array, _ = load(os.path.join(args.fields, row["input"]))
                found = jin(array, bound)
                arrays[key] = found and (8 * array.itemsize / found[0], found[1])
            if arrays[key]:
                row["ratio_jin"], row["psnr_jin"] = f"{arrays[key][0]:.6g}", f"{arrays[key][1]:.6g}"


COLUMNS = ["test", "input", "family", "codec", "bound_rel", "ratio", "ratio_surrogate", "ratio_low", "ratio_high",
           "ratio_closed", "ratio_tao", "ratio_jin", "ratio_box", "psnr_db", "psnr_surrogate", "psnr_low", "psnr_high",
           "psnr_closed", "psnr_tao", "psnr_jin", "psnr_box", "ssim", "ssim_predicted", "autocorrelation",
           "autocorrelation_predicted"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work")
    parser.add_argument("fields")
    parser.add_argument("runs")
    parser.add_argument("--quern", default=os.path.join(os.path.dirname(__file__), "../../build/release/bin/quern"))
    args = parser.parse_args()
    os.makedirs(args.work, exist_ok=True)
    later = train(args, "surrogate", FULL)
    by_variant = {name: train(args, name, words) for name, words in ABLATIONS.items()}
    unseen = train(args, "unseen", ["--families", *SHORT])
    with open(args.runs, newline="") as file:
        steps = collections.defaultdict(set)
        for row in csv.DictReader(file):
            steps[re.sub(r"_t\d+_.*", "", row["input"])].add(row["input"])
    tested = {row["input"] for row in later}
    # Of an application that is left out: its fields without steps, and the later steps of the others.
    unseen = [row for row in unseen
              if row["input"] in tested or len(steps[re.sub(r"_t\d+_.*", "", row["input"])]) == 1]
    # Samples are taken of later steps: in the second table, baselines stand for fewer runs.
    wanted = collections.defaultdict(lambda: collections.defaultdict(set))
    for row in later:
        wanted[row["input"].rsplit("_", 1)[0]][row["codec"]].add(float(row["bound_rel"]))
    grouped = {}
    for stem, codecs in wanted.items():
        grouped[stem] = collections.defaultdict(list)
        for codec, bounds in codecs.items():
            grouped[stem][tuple(sorted(bounds))].append(codec)
        grouped[stem] = {tuple(codecs): bounds for bounds, codecs in grouped[stem].items()}
    make_samples(args, sorted({row["input"] for row in later}))
    sweep_samples(args, grouped)
    samples = {kind: sample_results(args, kind) for kind in ("tao", "box")}
    arrays = {}
    complete(args, later, samples, arrays)
    complete(args, unseen, samples, arrays)
    for row in [r for rows in by_variant.values() for r in rows]:
        row["ratio_surrogate"], row["psnr_surrogate"] = row["ratio_predicted"], row["psnr_predicted"]
    lines = table(later, "Same application, later steps") + table(unseen, "Application left out of the training")
    lines += ablation_table(by_variant)
    with open(os.path.join(args.work, "table.md"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    with open(os.path.join(args.work, "rows.csv"), "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        for test, rows in (("later", later), ("unseen", unseen)):
            for row in sorted(rows, key=lambda r: (r["codec"], r["input"], float(r["bound_rel"]))):
                writer.writerow({"test": test, **row})
    print("\n".join(lines))


if __name__ == "__main__":
    sys.exit(main())
