#!/usr/bin/env bash
# The wheel that scripts/wheel.sh made, in a fresh virtual environment and an empty folder: arrays, the command, HDF5 where
# h5py can be had. Exit status 77: there is no wheel, or PyPI cannot be reached.
# usage: wheel.sh TREE [PYTHON]
set -euo pipefail
tree=${1:?the tree} python=${2:-python3}
shopt -s nullglob
wheels=("$tree"/dist/pyquern-*.whl)
if ((${#wheels[@]} != 1)); then
  echo "SKIP: no wheel in dist/; scripts/wheel.sh makes one"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -m venv "$work/venv" || { echo "SKIP: $python makes no virtual environments"; exit 77; }
if ! "$work/venv/bin/pip" install -q "${wheels[0]}" >"$work/log" 2>&1; then
  grep -qiE "no matching distribution|connection|retries" "$work/log" && { echo "SKIP: NumPy cannot be had from PyPI"; exit 77; }
  cat "$work/log"
  exit 1
fi
"$work/venv/bin/pip" install -q h5py >/dev/null 2>&1 || echo "note: no h5py from PyPI; its part is left out"
mkdir "$work/empty"
cd "$work/empty"
run() { env -i HOME="$work" PATH=/nowhere "$@"; }

run "$work/venv/bin/python" - <<'TEXT'
import numpy as np
import pyquern as q

x = np.cumsum(np.random.default_rng(0).normal(size=(64, 64, 64)), axis=2).astype("f4")
s = q.compress(x, abs=1e-3)
assert abs(q.decompress(s).astype("f8") - x).max() <= 1e-3
assert q.verify(x, s).ok
np.save("x.npy", x)
info = q.build_info()
assert "site-packages/pyquern/lib" in info["library_path"], info
assert info["cuda"]["available"] or info["cuda"]["why"], info
print(q.info(s), info["cuda"])
import importlib.metadata

for group in ("numcodecs.codecs", "zarr.codecs"):
    assert [each for each in importlib.metadata.entry_points(group=group) if each.name == "quern"], group
import pyquern.checkpoint

pyquern.checkpoint.save("store", {"w": x}, step=1)
assert (pyquern.checkpoint.load("store")["w"] == x).all()
import pyquern._offload.library as offload

# Without PyTorch the library alone: it is there and refuses what it should.
try:
    offload.State(offload.Desc(bits=3, subgroup_values=16384))
except q.InvalidArgument:
    pass
else:
    raise AssertionError("an optimizer with codes of 3 bits")
try:
    import h5py
except ImportError:
    print("no h5py here")
else:
    import pyquern.hdf5

    with h5py.File("x.h5", "w") as file:
        file.create_dataset("x", data=x, chunks=True, compression=pyquern.hdf5.filter(abs=1e-3))
        assert abs(file["x"][...] - x).max() <= 1e-3
    print("HDF5", h5py.version.hdf5_version, "has the filter:", q.build_info()["hdf5"])
TEXT
# The command writes the bytes that Python gives, but for its note on where the array comes from.
run "$work/venv/bin/quern" compress --abs 1e-3 x.npy
run "$work/venv/bin/quern" verify x.npy x.npy.qn
run "$work/venv/bin/python" -c '
import numpy as np, pyquern as q
stream = open("x.npy.qn", "rb").read()
assert q.compress(np.load("x.npy"), abs=1e-3, metadata=q.info(stream).metadata) == stream'
run "$work/venv/bin/quern" explore x.npy --bounds 1e-2,1e-3 -o page.html
grep -q "quern compress x.npy --rel 0.001" page.html
if run "$work/venv/bin/quern" h5 check x.h5 2>error; then exit 1; fi
grep -q "pyquern.hdf5" error
test -f "$(run "$work/venv/bin/python" -m pyquern plugin-path)/libh5quern.so"

"$work/venv/bin/pip" uninstall -qy pyquern
left=$(find "$work/venv" ! -path '*__pycache__*' \( -ipath '*pyquern*' -o -name quern \))
if [[ -n $left ]]; then
  echo "pip uninstall leaves: $left" >&2
  exit 1
fi
echo "the wheel works, and goes"
