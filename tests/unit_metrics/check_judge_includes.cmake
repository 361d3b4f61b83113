# The judge shares no code with any encoder: looks at who includes what. cmake -DROOT=<top of the tree> -P this.
cmake_minimum_required(VERSION 3.25)
set(complaints "")

# includes_only(<pattern of includes that are allowed> <files>...): of this tree's own headers.
function(includes_only allowed)
  foreach(file ${ARGN})
    file(STRINGS ${file} lines REGEX "^#include \"")
    foreach(line ${lines})
      if(NOT line MATCHES "^#include \"(${allowed})")
        string(APPEND complaints "${file} includes ${line}\n")
      endif()
    endforeach()
  endforeach()
  set(complaints "${complaints}" PARENT_SCOPE)
endfunction()

function(includes_none forbidden)
  foreach(file ${ARGN})
    file(STRINGS ${file} lines REGEX "^#include \"(${forbidden})")
    if(lines)
      string(APPEND complaints "${file}: ${lines}\n")
    endif()
  endforeach()
  set(complaints "${complaints}" PARENT_SCOPE)
endfunction()

file(GLOB judge ${ROOT}/kernels/metrics/*.h)
file(GLOB metrics ${ROOT}/libcompress/metrics/*.h ${ROOT}/libcompress/metrics/*.cpp)
file(GLOB_RECURSE encoders ${ROOT}/codecs/*.h
  ${ROOT}/codecs/*.cpp
  ${ROOT}/kernels/*.h
  ${ROOT}/kernels/*.cpp
  ${ROOT}/kernels/*.cuh
  ${ROOT}/kernels/*.cu
  ${ROOT}/libcompress/format/*.h
  ${ROOT}/libcompress/format/*.cpp
  ${ROOT}/libcompress/pipeline/*.h
  ${ROOT}/libcompress/pipeline/*.cpp)
list(FILTER encoders EXCLUDE REGEX "/kernels/metrics/")
if(NOT judge OR NOT metrics OR NOT encoders)
  message(FATAL_ERROR "the tree does not lie at ${ROOT}")
endif()
includes_only("kernels/metrics/|kernels/common/element_type.h" ${judge})
includes_only("kernels/metrics/|libcompress/core/|libcompress/metrics/" ${metrics})
includes_none("kernels/metrics/|libcompress/metrics/" ${encoders})
# What the judge's kernels are made of besides: launches, walks over arrays, sums over threads.
file(GLOB kernels ${ROOT}/kernels/metrics/cuda/*)
set(machinery array_blocks fill_values launch reduce shared_memory)
list(JOIN machinery "|" machinery)
includes_only("kernels/metrics/|kernels/common/element_type.h|kernels/common/cuda/(${machinery})" ${kernels})
if(complaints)
  message(FATAL_ERROR "${complaints}")
endif()
