"""Compresses the .npy files of a folder on a Dask cluster; what is there already is left alone, so that a job that was
stopped goes on. `quern compress -r` and `quern-mpi` do the same without Python: docs/many-files.md.

    pip install pyquern distributed
    python dask_files.py FOLDER [SCHEDULER]            # without a scheduler: all cores of this machine"""
import pathlib
import sys

import numpy as np
import pyquern as quern
from distributed import Client, as_completed


def compressed(path):
    return path, quern.save(f"{path}.qn", np.load(path, mmap_mode="r"), rel=1e-3)


def main():
    files = [str(path) for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.npy")) if not pathlib.Path(f"{path}.qn").exists()]
    with Client(*sys.argv[2:3]) as client:
        for _, (path, report) in as_completed(client.map(compressed, files, pure=False), with_results=True):
            print(f"{path}: {report.input_bytes} -> {report.output_bytes} bytes, {report.ratio:.1f}x")


if __name__ == "__main__":
    main()
