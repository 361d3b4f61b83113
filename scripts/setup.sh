#!/usr/bin/env bash
# Installs the Debian packages quern needs that are missing, and nothing when all are there.
# Never touches a CUDA toolkit: nvcc is used when it is found and never installed.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: scripts/setup.sh [--minimal] [--training] [--list] [--check]
  --minimal   only what building and running the command needs; without it also tests, sanitizers, fuzzers, formatting
  --training  also LibTorch (large), for quern train quality
  --list      print the packages and stop
  --check     exit 1 and print the missing packages instead of installing them
TEXT
}

minimal=0 training=0 list=0 check=0
for arg in "$@"; do
  case "$arg" in
    --minimal) minimal=1 ;;
    --training) training=1 ;;
    --list) list=1 ;;
    --check) check=1 ;;
    -h | --help) usage; exit 0 ;;
    *) echo "setup.sh: unknown option $arg" >&2; usage >&2; exit 1 ;;
  esac
done

packages=(
  build-essential cmake ninja-build                 # compiler and build
  libzstd-dev libxxhash-dev zlib1g-dev              # the library
  libcli11-dev libfmt-dev nlohmann-json3-dev        # the command
  libhdf5-dev libnetcdf-dev hdf5-tools              # .h5 and .nc files; h5repack
  liblz4-dev libsqlite3-dev                         # bags of ROS 2
  libisal-dev                                       # parity of checkpoints
  liburing-dev                                      # several writes at once to tiers of checkpoints
  python3                                           # scripts
)
if ((!minimal)); then
  packages+=(
    git                                             # which files changed
    gfortran pkg-config                             # the Fortran module and the installed package
    abigail-tools                                   # is the library still binary compatible
    libgtest-dev libbenchmark-dev                   # tests and micro-benchmarks
    libboost-context-dev                            # stacks for the threads of simulated CUDA kernels
    clang libclang-rt-14-dev                        # fuzzers
    clang-format clang-tidy                         # layout and static checks
    netcdf-bin python3-xarray                       # h5dump, h5repack, nccopy and xarray in the integration tests
    cdo nco python3-h5netcdf                        # other readers of the files that decompress writes
    python3-numpy python3-h5py python3-netcdf4      # independent checks of files and bounds
    libopenmpi-dev openmpi-bin libhdf5-openmpi-dev  # the in-situ example and collective writes through the filter
    python3-h5py-mpi python3-mpi4py                 # the same from Python
    python3-venv                                    # bench/compare
    libzfp-dev                                      # comparison
  )
fi
if ((training)); then
  packages+=(libtorch-dev)                          # quern-train
fi
if ((list)); then
  printf '%s\n' "${packages[@]}"
  exit 0
fi

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "setup.sh: this system has no apt. Install the counterparts of these Debian packages by hand:" >&2
  printf '  %s\n' "${packages[@]}" >&2
  exit 1
fi

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $state == installed ]] || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
  echo "setup: all ${#packages[@]} packages are installed"
  exit 0
fi
if ((check)); then
  printf 'missing: %s\n' "${missing[*]}"
  exit 1
fi

as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "setup.sh: these packages are missing and there is no sudo; ask an administrator to run" >&2
    echo "  apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  echo "setup: sudo is needed to install packages"
  as_root=(sudo)
fi
echo "setup: installing ${missing[*]}"
run_apt() { ${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 "$@" </dev/null; }
if ! run_apt update -q; then
  echo "setup: the package lists could not be renewed; trying with those that are there" >&2
fi
run_apt install -y -q --no-install-recommends "${missing[@]}"
echo "setup: done"
