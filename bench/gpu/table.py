#!/usr/bin/env python3
"""Tables of what bench_gpu wrote: bench/gpu/table.py [--common | --medians] FILE... > results.md

One table for each size, element type and cut of the arrays; a line for each step, a column for each field: GB/s of the array's bytes,
and the share of what a single pass could do (percent_of_limit), medians of device time. With several files the rates stand side by side,
in the order of the files: before -> after. --common leaves out what one of the files lacks. --medians writes no tables but one
file's medians as lines of JSON, which is what bench/results keeps: bench/gpu/table.py --medians FILE > bench/results/gpu-h200.jsonl"""
import collections
import json
import sys


def records(path):
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def tables(path):
    """{(bytes, element, tile, cache, queueing): {(subject, step): {field: timing}}} and ratios {(bytes, element, tile, field, subject): ratio}"""
    found, ratios = {}, {}
    for record in records(path):
        if record["record"] == "timing":
            kind = tuple(record[k] for k in ("bytes", "element", "tile", "cache", "queueing"))
            steps = found.setdefault(kind, collections.OrderedDict())
            steps.setdefault((record["subject"], record["step"]), {})[record["field"]] = record
        elif record["record"] == "check" and "ratio" in record:
            ratios[tuple(record[k] for k in ("bytes", "element", "tile", "field", "subject"))] = record["ratio"]
    return found, ratios


def machine(path):
    first = records(path)[0]
    copies = [r for r in records(path) if r["record"] == "copy"]
    rates = ", ".join("%.0f GB/s at %.0f MB" % (c["gbs"], c["bytes"] / 1e6) for c in copies)
    return "%s, %d multiprocessors, driver %d; copy (read and written) %s" % (
        first["name"], first["multiprocessors"], first["driver"], rates)


def cell(timings):
    rates = " -> ".join("%.4g" % t["gbs"] if t else "none" for t in timings)
    last = timings[-1]
    return "%s (%.0f %%)" % (rates, last["percent_of_limit"]) if last else rates


KEPT = {"machine": ("name", "multiprocessors", "driver"),
        "copy": ("bytes", "gbs"),
        "check": ("bytes", "element", "tile", "field", "subject", "ratio"),
        "timing": ("bytes", "element", "tile", "field", "subject", "step", "cache", "queueing", "gbs", "percent_of_limit")}


def medians(path):
    """The records that tables need, as lines of JSON."""
    for record in records(path):
        keys = KEPT.get(record["record"], ())
        if keys and (record["record"] != "check" or "ratio" in record):
            print(json.dumps({"record": record["record"], **{k: record[k] for k in keys}}))


def in_all(every):
    """The tables of every file without kinds, steps and fields that one of the files lacks."""
    def shared(kind, step, field):
        return all(field in found.get(kind, {}).get(step, {}) for found, _ in every)

    kept = []
    for found, ratios in every:
        less = {}
        for kind, steps in found.items():
            for step, timings in steps.items():
                those = {field: timing for field, timing in timings.items() if shared(kind, step, field)}
                if those:
                    less.setdefault(kind, collections.OrderedDict())[step] = those
        kept.append((less, ratios))
    return kept


def main(paths, common):
    every = [tables(path) for path in paths]
    if common:
        every = in_all(every)
    for path in paths:
        print("%s: %s\n" % (path, machine(path)))
    found, ratios = every[-1]
    for kind, steps in found.items():
        size, element, tile, cache, queueing = kind
        fields = list(collections.OrderedDict.fromkeys(f for timings in steps.values() for f in timings))
        print("### %.4g MB of %s, %s, cache %s, %s\n" % (size / 1e6, element, tile, cache, queueing))
        heads = []
        for field in fields:
            ratio = ratios.get((size, element, tile, field, "lorenzo")) or ratios.get((size, element, tile, field, "arrays"))
            heads.append("%s (ratio %.3g)" % (field, ratio) if ratio else field)
        print("| step | %s |" % " | ".join(heads))
        print("|---|%s" % ("---|" * len(fields)))
        for step, timings in steps.items():
            cells = [cell([other[0].get(kind, {}).get(step, {}).get(field) for other in every]) for field in fields]
            print("| %s %s | %s |" % (step[0], step[1], " | ".join(cells)))
        print()


if __name__ == "__main__":
    options = [argument for argument in sys.argv[1:] if argument.startswith("-")]
    paths = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    if not paths or not set(options) <= {"--common", "--medians"} or ("--medians" in options and len(paths) != 1):
        sys.exit(__doc__)
    if "--medians" in options:
        medians(paths[0])
    else:
        main(paths, "--common" in options)
