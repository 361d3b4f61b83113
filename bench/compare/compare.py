#!/usr/bin/env python3
# quern beside zstd, zfp, SZ3, SPERR and Blosc2: same run, same machine, same arrays, one thread, every value checked here.
"""usage: compare.py --out FOLDER [--quern PATH] [--rel 1e-1,1e-2,...] [--codecs auto,...] [--repeats N] FILE...

FILE is raw with its shape and type in the name (NAME_d0xd1xd2.f32) or .npy. Bounds are absolute: REL x (max - min) over
finite values. Writes FOLDER/results.csv and FOLDER/index.html. SZ3, SPERR and Blosc2 come from the PyPI package hdf5plugin,
which is installed into build/compare-venv (--no-install: use this interpreter and what it has).
Exit status: 0 quern kept every bound and every special value, 1 it did not or a run of quern failed.
"""
import argparse
import multiprocessing
import os
import pathlib
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PEER_SECONDS = 1800
TYPES = {"f16": "<f2", "f32": "<f4", "f64": "<f8", "i8": "<i1", "i16": "<i2", "i32": "<i4", "i64": "<i8", "u8": "<u1",
         "u16": "<u2", "u32": "<u4", "u64": "<u8"}


def enter_environment(arguments):
    """Starts again under an interpreter that has numpy, h5py and hdf5plugin."""
    folder = ROOT / "build" / "compare-venv"
    interpreter = folder / "bin" / "python"
    ready = folder / "ready"
    if not ready.exists():
        print(f"installing numpy, h5py and hdf5plugin into {os.path.relpath(folder)}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(interpreter), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "numpy", "h5py",
                        "hdf5plugin"], check=True)
        ready.touch()
    os.execv(str(interpreter), [str(interpreter), str(HERE / "compare.py"), "--no-install", *arguments])


def load(path):
    import numpy as np
    if path.suffix == ".npy":
        return np.ascontiguousarray(np.load(path, allow_pickle=False))
    match = re.fullmatch(r".*_(\d+(?:x\d+)*)\.(\w+)", path.name)
    if not match or match[2] not in TYPES:
        raise ValueError(f"{path.name}: the name must end in _d0xd1.TYPE, such as _64x128.f32")
    shape = tuple(int(n) for n in match[1].split("x"))
    array = np.fromfile(path, TYPES[match[2]])
    if array.size != np.prod(shape, dtype=object):
        raise ValueError(f"{path.name}: {array.size} values where the name says {match[1]}")
    return array.reshape(shape).astype(array.dtype.newbyteorder("="))


def check(array, back, bound):
    """Largest error, misses, special values lost, PSNR; in binary64, with code that shares nothing with any compressor."""
    import numpy as np
    if back.shape != array.shape or back.dtype != array.dtype:
        raise RuntimeError("the reconstruction has another shape or type")
    finite = np.isfinite(array)
    unsigned = np.dtype(f"u{array.dtype.itemsize}")
    changed = array.view(unsigned) != back.view(unsigned)
    special = ~finite
    if array.dtype.kind == "f":
        special = special | ((array == 0) & (np.signbit(array) != np.signbit(back)) & (back == 0))
    specials_lost = int(np.count_nonzero(special & changed))
    wide = np.float64 if array.dtype.kind == "f" else object
    original, reconstructed = array[finite].astype(wide), back[finite].astype(wide)
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(original - reconstructed).astype(np.float64)
    error[np.isnan(error)] = np.inf
    largest = float(error.max()) if error.size else 0.0
    span = float(array[finite].max()) - float(array[finite].min()) if error.size else 0.0
    mse = float(np.mean(error**2)) if error.size else 0.0
    psnr = float(20 * np.log10(span) - 10 * np.log10(mse)) if mse > 0 and span > 0 and np.isfinite(mse) else None
    return {"max_error": largest, "violations": int(np.count_nonzero(error > bound)), "specials_lost": specials_lost,
            "psnr_db": psnr, "max_error_over_bound": largest / bound if bound else None}


def how_it_ended(status):
    if status < 0:
        return f"crashed ({signal.strsignal(-status) or f'signal {-status}'})"
    return f"ended with status {status}"


def measure_apart(peer, array, bound, repeats):
    """`measure` in a process of its own: a peer that crashes or hangs is a row of the table, not the end of the run."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def work():
        try:
            sender.send(measure(peer, array, bound, repeats))
        except Exception as problem:
            sender.send({"error": (str(problem).splitlines() or [type(problem).__name__])[0]})

    process = context.Process(target=work)
    process.start()
    sender.close()
    failed = {"violations": 0, "specials_lost": 0}
    try:
        if not receiver.poll(PEER_SECONDS):
            process.terminate()
            return {**failed, "error": f"no result within {PEER_SECONDS} s"}
        return {**failed, **receiver.recv()}
    except EOFError:
        process.join()
        return {**failed, "error": f"the process {how_it_ended(process.exitcode)}"}
    finally:
        process.join()


def measure(peer, array, bound, repeats):
    """Median times over `repeats` runs; the check is made on the first."""
    runs = [peer.run(array, bound) for _ in range(repeats)]
    megabytes = array.nbytes / 1e6
    row = check(array, runs[0].back, bound)
    row.update(ratio=array.nbytes / runs[0].size, bits_per_value=8 * runs[0].size / array.size,
               compress_mb_per_s=megabytes / max(statistics.median(r.compress_seconds for r in runs), 1e-9),
               decompress_mb_per_s=megabytes / max(statistics.median(r.decompress_seconds for r in runs), 1e-9))
    return row


def compare(array, field, peers, rels, repeats):
    """One row for each compressor and bound; a lossless compressor has one."""
    import numpy as np
    finite = array[np.isfinite(array)]
    span = float(finite.max()) - float(finite.min()) if finite.size else 0.0
    for peer in peers:
        for rel in [None] if peer.lossless else rels:
            bound = 0.0 if rel is None else rel * span
            row = {"field": field, "compressor": peer.name, "rel": "" if rel is None else rel, "bound": bound, "error": ""}
            if rel is not None and span == 0:
                row.update(error="all values are equal", violations=0, specials_lost=0)
            else:
                row.update(measure_apart(peer, array, bound, repeats))
            report_row(row)
            yield row


def report_row(r):
    head = f"  {r['compressor']:16s} {r['rel']!s:>7s} "
    if r["error"]:
        print(head + r["error"], flush=True)
        return
    psnr = f"{r['psnr_db']:7.1f}" if r["psnr_db"] is not None else "  exact"
    kept = "" if not r["violations"] and not r["specials_lost"] else \
        f"  BROKEN: {r['violations']} misses, {r['specials_lost']} specials"
    print(f"{head}ratio {r['ratio']:9.2f}  {psnr} dB  {r['compress_mb_per_s']:7.0f} / {r['decompress_mb_per_s']:7.0f} MB/s{kept}",
          flush=True)


def processor():
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--quern", default=str(ROOT / "build" / "release" / "bin" / "quern"))
    parser.add_argument("--rel", default="1e-1,1e-2,1e-3,1e-4,1e-5")
    parser.add_argument("--codecs", default="auto,lorenzo,lossless")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--no-install", action="store_true")
    args = parser.parse_args()
    if not args.no_install:
        enter_environment(sys.argv[1:])

    import peers
    import report
    if shutil.which(args.quern) is None:
        parser.error(f"{args.quern} is not there; build it (cmake --preset release) or name it with --quern")
    own = [peers.Quern(args.quern, codec) for codec in args.codecs.split(",")]
    others, missing = peers.all_peers()
    rels = [float(r) for r in args.rel.split(",")]
    rows, unreadable = [], []
    for path in args.files:
        try:
            array = load(path)
        except (OSError, ValueError) as problem:
            unreadable.append(str(problem))
            print(problem, file=sys.stderr)
            continue
        print(path.name, flush=True)
        rows += compare(array, path.name, own + others, rels, args.repeats)
    if not rows:
        print("no file could be read", file=sys.stderr)
        return 1
    args.out.mkdir(parents=True, exist_ok=True)
    facts = [f"{processor()}, one thread, median of {args.repeats} runs; MB/s are 10^6 raw bytes",
             "; ".join(p.version() for p in own[:1] + others), *missing, *unreadable]
    report.write_csv(args.out / "results.csv", [{k: r.get(k, "") for k in report.COLUMNS} for r in rows])
    report.write_html(args.out / "index.html", rows, [p.name for p in own + others], facts)
    print(f"{args.out / 'results.csv'}\n{args.out / 'index.html'}")
    broken = [r for r in rows if r["compressor"].startswith("quern") and (r["error"] or r["violations"] or r["specials_lost"])]
    for r in broken:
        print(f"quern: {r['field']} {r['compressor']} {r['rel']}: {r['error'] or 'bound or special values not kept'}",
              file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
