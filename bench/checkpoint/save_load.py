"""What saving and loading take beside a copy, torch.save and zstd: the same states with one or several libraries.

    python save_load.py FOLDER LIBRARY [LIBRARY...] [--rounds 3]

LIBRARY: libquern-checkpoint.so of a build (with the package beside it in bindings/python: PACKAGE=LIBRARY). Each is run
in a process of its own, in turn, so that noise meets all of them. Prints seconds (medians) of

- a state of AdamW, made up: 96 tensors of 2 to 8 MB, exact and balanced, one thread and two;
- 10,000 tensors of 100 numbers;
- a tensor of 3 GiB: saved, loaded, ten rows of it, and the memory beside it (--large).
"""
import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time


def made_up_state(np):
    """Weights, first and second moments whose bits look like those of a run."""
    source = np.random.default_rng(1)
    state = {"model": {}, "optimizer": {"state": {}}}
    for i in range(32):
        count = (1 << 20) * (8 + i % 5 * 6) // 16 // 1024 * 1024
        scale = np.exp(source.normal(0, 1, (count // 1024, 1))).astype("f4")
        weight = (source.normal(0, 0.02, (count // 1024, 1024))).astype("f4")
        first = (1e-4 * scale * source.normal(0, 1, weight.shape)).astype("f4")
        second = (1e-8 * scale * scale * source.chisquare(3, weight.shape)).astype("f4")
        state["model"][f"layer{i}.weight"] = weight
        state["optimizer"]["state"][i] = {"exp_avg": first, "exp_avg_sq": second}
    return state


def timed(work, before=lambda: None, times=1):
    """Median seconds, wall and processor, of so many runs in this process; `before` is not counted."""
    walls, cpus = [], []
    for _ in range(times):
        before()
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return [statistics.median(walls), statistics.median(cpus)]


def peak_beside(before):
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024


def one_round(folder, large):
    import numpy as np

    import pyquern as quern

    def fresh():
        shutil.rmtree(folder, ignore_errors=True)
        return folder

    out = {}
    if large:
        # Rows of 4 KiB; an eighth of the bits is noise.
        values = np.frombuffer(np.random.default_rng(2).bytes(3 << 20), "u4")
        tensor = np.tile(0x3C000000 + (values & 0x000FFFFF), 1024).view("f4").reshape(-1, 1024)
        fresh()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        out["3 GiB: save"] = timed(lambda: quern.checkpoint.save(folder, {"w": tensor}, step=1, threads=1))
        out["3 GiB: MB beside it in the save"] = [peak_beside(before)] * 2
        del tensor
        with quern.checkpoint.open(folder, threads=1) as saved:
            out["3 GiB: ten rows"] = timed(lambda: saved["w"][400000:400010])
        out["3 GiB: load"] = timed(lambda: quern.checkpoint.load(folder, threads=1))
        shutil.rmtree(folder)
        return out
    state = made_up_state(np)
    for preset in ("exact", "balanced"):
        for threads in (1, 2):
            name = f"{preset}, {threads} thread{'s' if threads > 1 else ''}"
            out[f"{name}: save"] = timed(
                lambda: quern.checkpoint.save(folder, state, step=1, preset=preset, threads=threads), fresh, 3)
            out[f"{name}: load"] = timed(lambda: quern.checkpoint.load(folder, threads=threads))
            out[f"{name}: MB stored"] = [quern.checkpoint.info(folder).stored_bytes / 1e6] * 2
    tiny = {f"t{i}": np.full(100, i, "f4") for i in range(10000)}
    out["10,000 tiny tensors: save"] = timed(lambda: quern.checkpoint.save(folder, tiny, step=1, threads=1), fresh, 3)
    for step in range(2, 12):
        quern.checkpoint.save(folder, tiny, step=step, threads=1)
    out["10,000 tiny tensors: save, 11 there"] = timed(lambda: quern.checkpoint.save(folder, tiny, step=12, threads=1))
    shutil.rmtree(folder)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("builds", nargs="+", metavar="PACKAGE=LIBRARY")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--large", action="store_true", help="the tensor of 3 GiB, and nothing else")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        print(json.dumps(one_round(args.folder, args.large)))
        return
    found = {build: [] for build in args.builds}
    for _ in range(args.rounds):
        for build in args.builds:
            package, library = build.split("=", 1)
            environment = dict(os.environ, PYTHONPATH=package, QUERN_LIBRARY=library)
            command = [sys.executable, __file__, args.folder, build, "--inside"] + (["--large"] if args.large else [])
            found[build].append(json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout))
    print("| | " + " | ".join(f"{build.split('=')[0]}: wall, processor" for build in args.builds) + " |")
    print("|---|" + "---|" * len(args.builds))
    for name in found[args.builds[0]][0]:
        cells = []
        for build in args.builds:
            wall, cpu = (statistics.median(run[name][k] for run in found[build]) for k in (0, 1))
            cells.append(f"{wall:.1f}" if "MB" in name else f"{wall:.3g}, {cpu:.3g}")
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
