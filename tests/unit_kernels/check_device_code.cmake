# Fails when code that also runs on a device calls what nvcc has nothing for there. In constexpr functions it takes such
# calls (--expt-relaxed-constexpr) and leaves them out without a word: std::countr_zero gives a constant, std::copy copies
# nothing. So it does with constants of namespace scope whose address is taken, as std::min does. HEADERS: files and folders below ROOT, separated by |.
set(forbidden_std popcount countl_zero countl_one countr_zero countr_one bit_width bit_ceil bit_floor has_single_bit rotl rotr
  copy copy_n copy_backward move_backward equal lexicographical_compare memcmp memmove midpoint
  nextafter ldexp frexp fma isinf isnan isfinite signbit)
set(forbidden_builtin ctz ctzl ctzll clzl popcountl ffsl parity parityl parityll bswap16 bswap32 bswap64 memmove memcmp
  add_overflow sub_overflow mul_overflow)
list(JOIN forbidden_std "|" forbidden_std)
list(JOIN forbidden_builtin "|" forbidden_builtin)

set(constant "([a-z_0-9]*::)*k[A-Z][A-Za-z0-9]*")
set(by_reference "std::(min|max|clamp)(<[^>]*>)?\\((${constant}[,)]|[^;]*, ${constant}[,)])")

string(REPLACE "|" ";" headers "${HEADERS}")
set(files)
foreach(entry ${headers})
  if(IS_DIRECTORY ${ROOT}/${entry})
    file(GLOB_RECURSE found ${ROOT}/${entry}/*.h ${ROOT}/${entry}/*.cuh ${ROOT}/${entry}/*.cu)
    list(APPEND files ${found})
  elseif(EXISTS ${ROOT}/${entry})
    list(APPEND files ${ROOT}/${entry})
  else()
    message(FATAL_ERROR "there is no ${entry}")
  endif()
endforeach()
# Loops of processors; and the walks of one thread over a mask: warps have their own.
list(FILTER files EXCLUDE REGEX "/kernels/[a-z]+/cpu/|/kernels/mask/walk\\.h$")
list(LENGTH files count)
if(count LESS 20)
  message(FATAL_ERROR "only ${count} files were found")
endif()
foreach(file ${files})
  file(STRINGS ${file} lines REGEX
    "std::(${forbidden_std})[^a-z_0-9]|__builtin_(${forbidden_builtin})[^a-z_0-9]|${by_reference}")
  foreach(line ${lines})
    message(SEND_ERROR "${file}: nothing on a device: ${line}")
  endforeach()
endforeach()
