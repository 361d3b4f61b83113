# quern_device_codec(codec HOST a.cpp ... [KERNELS b.cu ...]): a codec's half for a device, the target quern_codec_CODEC_device
# beside quern_codec_CODEC. libcompress/device is what it implements, libcompress/builtin_device_codecs.cpp names it.
# Without CUDA there is no such target; tests/simt compiles all sources once more with another CUDA runtime.
function(quern_device_codec codec)
  cmake_parse_arguments(ARG "" "" "HOST;KERNELS" ${ARGN})
  list(TRANSFORM ARG_HOST PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  list(TRANSFORM ARG_KERNELS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  set_property(GLOBAL APPEND PROPERTY QUERN_DEVICE_HOST_SOURCES ${ARG_HOST})
  set_property(GLOBAL APPEND PROPERTY QUERN_DEVICE_KERNEL_SOURCES ${ARG_KERNELS})
  set_property(GLOBAL APPEND PROPERTY QUERN_DEVICE_CODECS quern_codec_${codec})
  if(NOT QUERN_HAVE_CUDA)
    return()
  endif()

  set(name quern_codec_${codec}_device)
  add_library(${name} STATIC ${ARG_HOST})
  target_include_directories(${name} SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  target_link_libraries(${name}
    PUBLIC quern_core PRIVATE quern_flags quern_codec_${codec} quern_format quern_mask quern_kernels_cuda)
  if(ARG_KERNELS)
    # See kernels/cuda.cmake: nvcc gets its standard from QUERN_CUDA_FLAGS.
    unset(CMAKE_CXX_STANDARD)
    unset(CMAKE_CXX_STANDARD_REQUIRED)
    unset(CMAKE_CXX_EXTENSIONS)
    add_library(${name}_kernels STATIC ${ARG_KERNELS})
    target_compile_options(${name}_kernels PRIVATE ${QUERN_CUDA_FLAGS})
    target_include_directories(${name}_kernels
      PUBLIC ${PROJECT_SOURCE_DIR} PRIVATE ${PROJECT_SOURCE_DIR}/libcompress/include)
    target_link_libraries(${name}_kernels PUBLIC CUDA::cudart_static)
    target_link_libraries(${name} PRIVATE ${name}_kernels)
  endif()
endfunction()
