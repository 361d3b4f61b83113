# One library. A subject has one source file for each instruction set (SUBJECT_baseline.cpp, SUBJECT_avx2.cpp,
# SUBJECT_avx512.cpp), the flags on that file alone. -Wno-psabi: vectors wider than the set's are passed between
# functions that are inlined.

# Loops of vectors want -O3; under sanitizers it would only treble the time that these files take to compile.
set(optimised -O3)
if(QUERN_SANITIZE)
  set(optimised -O1)
endif()
set(avx2 -mavx2)
set(avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512)
set(bits -mbmi -mbmi2 -mpopcnt -mlzcnt)

# Whole numbers and bits.
set(integer_subjects
  entropy/cpu/residual_
  interp/cpu/interp_
  lorenzo/cpu/lorenzo_
  lorenzo/cpu/lorenzo_decode_
  stencil/cpu/stencil_
  tensor/cpu/logs_
  tensor/cpu/planes_
  tensor/cpu/residuals_)
# Roots that set errno cannot be vectorized.
set(real_subjects
  tensor/cpu/adam_
  tensor/cpu/at_rest/at_rest_
  tensor/cpu/bound_check_
  tensor/cpu/bounds_)

add_library(quern_kernels_cpu STATIC
  dispatch.cpp
  entropy/cpu/decode_streams.cpp
  network/network.cpp
  network/cpu/evaluate.cpp
  network/cpu/products_baseline.cpp)
target_link_libraries(quern_kernels_cpu PUBLIC quern_flags)
set(instruction_sets baseline)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  foreach(set avx2 avx512)
    if(set IN_LIST QUERN_INSTRUCTION_SETS)
      list(APPEND instruction_sets ${set})
      string(TOUPPER "QUERN_HAVE_${set}" have)
      target_compile_definitions(quern_kernels_cpu PRIVATE ${have})
    endif()
  endforeach()
endif()
foreach(set IN LISTS instruction_sets)
  foreach(subject IN LISTS integer_subjects)
    target_sources(quern_kernels_cpu PRIVATE ${subject}${set}.cpp)
    set(flags ${optimised} -Wno-psabi)
    if(NOT set STREQUAL "baseline")
      list(APPEND flags ${${set}} ${bits})
    endif()
    set_source_files_properties(${subject}${set}.cpp PROPERTIES COMPILE_OPTIONS "${flags}")
  endforeach()
  foreach(subject IN LISTS real_subjects)
    target_sources(quern_kernels_cpu PRIVATE ${subject}${set}.cpp)
    set(flags ${optimised} -fno-math-errno)
    if(NOT set STREQUAL "baseline")
      list(APPEND flags ${${set}} -mfma)
    endif()
    set_source_files_properties(${subject}${set}.cpp PROPERTIES COMPILE_OPTIONS "${flags}")
  endforeach()
endforeach()
if("avx2" IN_LIST instruction_sets)
  target_sources(quern_kernels_cpu PRIVATE network/cpu/products_avx2.cpp)
  set_source_files_properties(network/cpu/products_avx2.cpp PROPERTIES COMPILE_OPTIONS "${optimised};${avx2};${bits}")
endif()
set_source_files_properties(network/cpu/products_baseline.cpp network/cpu/evaluate.cpp PROPERTIES
  COMPILE_OPTIONS "${optimised}")
if(avx512 IN_LIST instruction_sets)
  set_property(SOURCE tensor/cpu/planes_avx512.cpp APPEND PROPERTY COMPILE_OPTIONS -mavx512vbmi2)
endif()
if(QUERN_SANITIZE MATCHES "undefined")
  # The same templates as in the files of the baseline, where undefined behaviour is looked for; they take long enough
  # without.
  foreach(set IN LISTS instruction_sets)
    if(NOT set STREQUAL "baseline")
      set_property(SOURCE lorenzo/cpu/lorenzo_${set}.cpp lorenzo/cpu/lorenzo_decode_${set}.cpp
        APPEND PROPERTY COMPILE_OPTIONS -fno-sanitize=undefined)
    endif()
  endforeach()
endif()
