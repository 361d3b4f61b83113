#!/usr/bin/env bash
# Builds one instrumented preset (asan or tsan) and runs the test programs of the library, those that are named as their
# targets: not the command and the flow solver, which drive whole programs under resource limits, nor what is too slow for it.
set -euo pipefail
preset=${1:?usage: instrumented.sh PRESET}
jobs=${QUERN_JOBS:-$(nproc)}
left_out='^(cli_|test_flow)'
# Kernels know no threads, and take a thread sanitizer ten minutes.
if [[ $preset == tsan ]]; then left_out="$left_out|^unit_kernels\$"; fi
# Address sanitizers watch what reads bytes from outside, the HDF5 filter, and codecs by golden streams and round trips of
# the fuzzers. All types under all bounds, kernels one by one, simulated devices, and what is about numbers take four times
# as long: those are for --thorough. So are the arguments of the command, which take two minutes to compile.
wanted='.' options=()
if [[ $preset == asan && ${QUERN_TEST_THOROUGH:-0} != 1 ]]; then
  left_out="$left_out|^fuzz_arguments\$"
  # Kernels for AVX-512 take as long as those for AVX2, and few machines that test run them.
  options=(-DQUERN_INSTRUCTION_SETS=avx2)
  wanted='^(golden|malformed|fuzz_.*|integration_hdf5|unit_(capi|capi_c|checkpoint|checkpoint_engine|core|format|io|tensor))$'
fi

cmake --preset "$preset" ${options[@]+"${options[@]}"}
mapfile -t programs < <(comm -12 \
  <(ctest --preset "$preset" -N -LE 'slow|suite|gpu' -E "$left_out" 2>/dev/null | sed -n 's/^ *Test *#[0-9]*: //p' | grep -E "$wanted" | sort) \
  <(cmake --build --preset "$preset" --target help | sed -n 's/: phony$//p' | sort))
((${#programs[@]} > 20)) || { echo "instrumented.sh: of the tests only ${#programs[@]} are programs" >&2; exit 1; }
cmake --build --preset "$preset" -j "$jobs" --target "${programs[@]}"
ctest --preset "$preset" -j "$jobs" -R "^($(IFS='|'; echo "${programs[*]}"))\$"
