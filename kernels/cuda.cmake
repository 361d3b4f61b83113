# Launches and placement; what a warp does is in the folders named warp. CMake takes the CUDA standard and extensions from
# the C++ ones where they are not set, and 3.25 has no flag for C++20: all stay unset here, QUERN_CUDA_FLAGS brings the
# flag.
unset(CMAKE_CXX_STANDARD)
unset(CMAKE_CXX_STANDARD_REQUIRED)
unset(CMAKE_CXX_EXTENSIONS)
add_library(quern_kernels_cuda STATIC
  interp/cuda/decode.cu
  interp/cuda/encode.cu
  lidar/cuda/both_ways.cu
  lidar/cuda/project.cu
  lorenzo/cuda/bits8.cu
  lorenzo/cuda/bits16.cu
  lorenzo/cuda/bits32.cu
  lorenzo/cuda/bits64.cu
  lorenzo/cuda/chunks.cu
  lorenzo/cuda/join.cu
  lorenzo/cuda/staged.cu
  lorenzo/cuda/staged_elements.cu
  lorenzo/cuda/decode8.cu
  lorenzo/cuda/decode16.cu
  lorenzo/cuda/decode32.cu
  lorenzo/cuda/decode64.cu
  mask/cuda/bits8.cu
  mask/cuda/bits16.cu
  mask/cuda/bits32.cu
  mask/cuda/bits64.cu
  mask/cuda/levels.cu
  mask/cuda/place.cu
  metrics/cuda/bound_check.cu
  metrics/cuda/error_pass.cu
  metrics/cuda/quality.cu
  common/cuda/range.cu
  metrics/cuda/similarity.cu
  stencil/cuda/levels.cu
  stencil/cuda/levels_encode.cu
  stencil/cuda/raster.cu
  stencil/cuda/raster_encode.cu
  stencil/cuda/wavelet.cu
  stencil/cuda/wavelet_encode.cu
  tensor/cuda/at_rest.cu)
target_compile_options(quern_kernels_cuda PRIVATE ${QUERN_CUDA_FLAGS})
target_include_directories(quern_kernels_cuda PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(quern_kernels_cuda PUBLIC CUDA::cudart_static)
