#!/usr/bin/env python3
"""Codec autoencoder against its own classic predictors, stencil and other compressors, on later steps than it learnt.

usage: autoencoder.py QUERN --block SHAPE [--train WORDS...] --data FILE... [--peer NAME]...

FILEs are steps of one series in their order, raw f32 with shapes in their names; one file is taken as slices along its
first axis. The last quarter is for tests, as quern train autoencoder has it. Ratios are of all test files together:
`inside` counts the model in each of them, `shared` once, `outside` never. Peers are those of quern bench --sweep.
"""
import argparse
import csv
import json
import os
import re
import subprocess
import sys
import tempfile

BOUNDS = ("1e-2", "2e-2", "5e-2")


def run(*words):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit("%s: %s" % (" ".join(map(str, words)), done.stderr))
    return done.stdout


def test_files(files, folder):
    """The files that training leaves out; of one file its last quarter, as a file of its own."""
    if len(files) > 1:
        return files[-max(1, len(files) // 4):]
    name, shape = re.fullmatch(r"(.*)_([0-9x]+)\.f32", os.path.basename(files[0])).groups()
    extents = [int(n) for n in shape.split("x")]
    tested = extents[0] // 4
    size = os.path.getsize(files[0]) // extents[0]
    path = os.path.join(folder, "%s-later_%s.f32" % (name, "x".join(map(str, [tested] + extents[1:]))))
    with open(files[0], "rb") as source, open(path, "wb") as out:
        source.seek(size * (extents[0] - tested))
        out.write(source.read())
    return [path]


def stream_bytes(quern, file, bound, folder, *words):
    out = os.path.join(folder, "stream.qn")
    line = json.loads(run(quern, "compress", "--rel", bound, file, "-o", out, "-f", "--verify", "--json", *words))
    return line["output_bytes"]


def peer_bytes(quern, peers, files, folder):
    """(peer, bound) -> bytes of all files; a peer that fails or misses its bound is left out."""
    if not peers:
        return {}
    runs = os.path.join(folder, "runs.csv")
    words = [word for peer in peers for word in ("--peer", peer)]
    run(quern, "bench", "--sweep", "-q", "--csv", runs, "--rel", ",".join(BOUNDS), "--codec", ",".join(peers), *words, *files)
    totals, wrong = {}, set()
    with open(runs, newline="") as f:
        for row in csv.DictReader(f):
            key = row["codec"], float(row["bound_rel"])
            if not row["stream_bytes"] or row.get("status", "ok") not in ("", "ok"):
                wrong.add(key)
                continue
            totals[key] = totals.get(key, 0) + int(row["stream_bytes"])
    return {key: size for key, size in totals.items() if key not in wrong}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("quern")
    parser.add_argument("--block", required=True)
    parser.add_argument("--train", nargs="*", default=[])
    parser.add_argument("--data", nargs="+", required=True)
    parser.add_argument("--peer", action="append", default=[])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "model.qmodel")
        words = [w if w[0].isdigit() else "--" + w for w in args.train]
        told = run(args.quern, "train", "autoencoder", "--block", args.block, "-o", model, *words, "--data", *args.data)
        print(told.splitlines()[0] if "dB" in told.splitlines()[0] else "principal components alone")
        info = json.loads(run(args.quern, "model", "info", model, "--json"))
        names = ", ".join("%s (%d latents)" % (p["kind"], p["latents"]) for p in info["predictors"])
        own = info["decoding_bytes"]
        files = test_files(args.data, folder)
        raw = sum(os.path.getsize(f) for f in files)
        peers = peer_bytes(args.quern, args.peer, files, folder)
        print("model: %s, %d bytes in a stream; %d test files of %d bytes in all\n" % (names, own, len(files), raw))
        print("| bound | no model | inside | shared | outside | stencil | " + " | ".join(args.peer) + " |")
        print("|---" * (6 + len(args.peer)) + "|")
        for bound in BOUNDS:
            codec = ("--codec", "autoencoder")
            none = sum(stream_bytes(args.quern, f, bound, folder, *codec) for f in files)
            outside = sum(stream_bytes(args.quern, f, bound, folder, *codec, "--model", model, "--set", "embed=no")
                          for f in files)
            stencil = sum(stream_bytes(args.quern, f, bound, folder, "--codec", "stencil") for f in files)
            sizes = [none, outside + own * len(files), outside + own, outside, stencil]
            sizes += [peers.get((peer, float(bound))) for peer in args.peer]
            print("| %s | " % bound + " | ".join("%.2f" % (raw / s) if s else "-" for s in sizes) + " |")


if __name__ == "__main__":
    main()
