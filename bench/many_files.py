#!/usr/bin/env python3
"""quern-mpi on many files, one rank of which is killed, beside `quern compress -T 2`: what each took, what was done twice,
whether every output is right. It measures; tests/integration_mpi/test_many_files.py is the test.

    python3 bench/many_files.py [--files 300] [--ranks 4] [--build build/release]"""
import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))


def make(folder, count):
    """Fields of three sizes, so that some files take ten times as long as others; the bytes they take."""
    total = 0
    for i in range(count):
        shape = ((16, 64, 96), (32, 96, 128), (64, 96, 128))[i % 7 // 3]
        values = np.cumsum(np.random.default_rng(i).normal(size=shape), axis=2).astype("f4")
        path = os.path.join(folder, f"step{i // 50:02d}", f"v{i:03d}_{'x'.join(map(str, shape))}.f32")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        values.tofile(path)
        total += values.nbytes
    return total


def outputs(folder):
    found = {}
    for where, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".qn"):
                with open(os.path.join(where, name), "rb") as file:
                    found[os.path.relpath(os.path.join(where, name), folder)] = file.read()
    return found


def journal_of(folder):
    """Names of files that were begun and that were done, in the journal's order."""
    with open(os.path.join(folder, "quern-mpi.journal"), encoding="utf-8") as file:
        lines = [line.rstrip("\n").split("\t") for line in file]
    return [line[-1] for line in lines if line[0] == "begun"], [line[-1] for line in lines if line[0] == "done"]


def timed(words, env):
    begun = time.perf_counter()
    done = subprocess.run(words, env=env, text=True, capture_output=True)
    return time.perf_counter() - begun, done


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=300)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--build", default=os.path.join(HERE, "..", "build", "release"))
    args = parser.parse_args()
    quern, mpi = (os.path.join(os.path.abspath(args.build), "bin", name) for name in ("quern", "quern-mpi"))
    env = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1",
           "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none"}
    bound = ["--rel", "1e-4", "--codec", "stencil"]
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        run, out = os.path.join(folder, "run"), {name: os.path.join(folder, name) for name in ("threads", "ranks2", "killed")}
        print(f"{args.files} files, {make(run, args.files) / 1e6:.0f} MB; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", flush=True)
        threads, done = timed([quern, "compress", *bound, "-r", run, "-o", out["threads"], "-T", "2"], env)
        print(f"quern compress -T 2: {threads:.1f} s; {done.stderr.strip().splitlines()[-1]}", flush=True)
        mpirun = ["mpirun", "--oversubscribe"]
        seconds, done = timed([*mpirun, "-n", "2", mpi, "compress", *bound, "-r", run, "-o", out["ranks2"]], env)
        print(f"quern-mpi, 2 ranks: {seconds:.1f} s, {seconds / threads:.2f} of -T 2; {done.stderr.strip().splitlines()[-1]}", flush=True)

        words = [*mpirun, "-n", str(args.ranks), mpi, "compress", *bound, "-r", run, "-o", out["killed"]]
        begun = time.perf_counter()
        job = subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        path = os.path.join(out["killed"], "quern-mpi.journal")
        while not os.path.exists(path) or len(journal_of(out["killed"])[1]) < args.files // 3:
            time.sleep(0.05)
        with open(f"/proc/{job.pid}/task/{job.pid}/children", encoding="ascii") as children:
            victim = int(children.read().split()[-1])
        os.kill(victim, signal.SIGKILL)
        job.communicate()
        first = time.perf_counter() - begun
        begins, dones = journal_of(out["killed"])
        print(f"quern-mpi, {args.ranks} ranks, one killed: exit status {job.returncode} after {first:.1f} s; {len(begins)} begun, {len(dones)} done", flush=True)
        seconds, done = timed(words, env)
        print(f"started again: exit status {done.returncode}, {seconds:.1f} s, both {(first + seconds) / threads:.2f} of -T 2; "
              f"{done.stderr.strip().splitlines()[-1]}", flush=True)
        again, all_done = journal_of(out["killed"])
        twice = sorted(name for name in set(again) if again.count(name) > 1)
        print(f"journal: {len(all_done)} done lines of {len(set(all_done))} files; begun twice: {len(twice)}, none of them done before: "
              f"{not set(twice) & set(dones)}")
        same = outputs(out["killed"]) == outputs(out["threads"]) == outputs(out["ranks2"])
        print(f"outputs of all three runs have the same bytes: {same}")
        seconds, done = timed([*mpirun, "-n", str(args.ranks), mpi, "verify", "-r", run, "-o", out["killed"], "--journal", os.path.join(folder, "v")], env)
        print(f"quern-mpi verify: exit status {done.returncode}, {seconds:.1f} s; {done.stderr.strip().splitlines()[-1]}")
        left = [name for _, _, names in os.walk(out["killed"]) for name in names if not name.endswith((".qn", ".journal"))]
        print(f"files left besides: {left}")
        return 0 if same and done.returncode == 0 and not left and len(all_done) == len(set(all_done)) == args.files else 1


if __name__ == "__main__":
    if shutil.which("mpirun") is None:
        sys.exit("no mpirun here")
    sys.exit(main())
