# One interface target with the flags every part shares. Floating-point contraction is off everywhere: the stream's
# bytes are decided by separately rounded IEEE operations.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 99)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

find_package(Threads REQUIRED)

if(QUERN_PYTHON_WHEEL)
  # A C++ library as old as a user's machine may be has not the symbols of this one: each library brings what it uses.
  add_link_options(-static-libstdc++ LINKER:--gc-sections LINKER:--exclude-libs,ALL LINKER:--as-needed)
endif()

add_library(quern_flags INTERFACE)
target_compile_options(quern_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion;-Wno-sign-conversion;-ffp-contract=off>)
target_include_directories(quern_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/libcompress/include)
if(QUERN_WERROR)
  target_compile_options(quern_flags INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-Werror>)
endif()
if(QUERN_SANITIZE)
  target_compile_options(quern_flags INTERFACE
    $<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${QUERN_SANITIZE};-fno-sanitize-recover=all;-fno-omit-frame-pointer>)
  target_link_options(quern_flags INTERFACE -fsanitize=${QUERN_SANITIZE})
  if(QUERN_SANITIZE MATCHES "undefined" AND QUERN_SANITIZE MATCHES "address")
    # AddressSanitizer stops at what these two would find, and they take a third of the time that kernels take to compile.
    target_compile_options(quern_flags INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-fno-sanitize=null,object-size>)
  endif()
  # GCC before 13.3 aligns the stack frames that detect_stack_use_after_return moves to the heap to 32 bytes, too little
  # for the 64-byte vectors of the kernels (GCC bug 110027).
  if(QUERN_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13.3)
    target_compile_options(quern_flags INTERFACE
      "$<$<COMPILE_LANGUAGE:C,CXX>:SHELL:--param asan-use-after-return=0>")
  endif()
endif()
if(QUERN_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "QUERN_FUZZ=ON needs clang: configure with the preset fuzz, or CMAKE_CXX_COMPILER=clang++")
  endif()
  # Coverage for the whole library; the targets in tests/fuzz link the fuzzing engine themselves.
  target_compile_options(quern_flags INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=fuzzer-no-link>)
  target_link_options(quern_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
