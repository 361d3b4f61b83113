# libquern.so, libquern.a, libquern-lidar.so, libquern-offload.so and libquern-checkpoint.so: what is installed. The first two are made of the very objects of the target `quern` and of the
# parts it links, so that nothing is compiled twice; the command and the tests go on linking `quern` itself.
set(QUERN_HAVE_LIBRARY OFF)
if(QUERN_SANITIZE OR QUERN_FUZZ)
  return()  # an instrumented library is for the tests of this tree alone
endif()
set(QUERN_HAVE_LIBRARY ON)

# quern_parts(<target> <parts> <externals>): the static libraries of this tree that <target> is made of, itself first,
# and what they link besides.
function(quern_parts target parts externals)
  set(queue ${target})
  set(found "")
  set(others "")
  while(queue)
    list(POP_FRONT queue item)
    if(TARGET ${item})
      get_target_property(imported ${item} IMPORTED)
      get_target_property(type ${item} TYPE)
    endif()
    if(TARGET ${item} AND NOT imported AND type STREQUAL "STATIC_LIBRARY")
      list(APPEND found ${item})
      get_target_property(linked ${item} LINK_LIBRARIES)
      foreach(next ${linked})
        if(NOT next IN_LIST found AND NOT next IN_LIST queue AND NOT next IN_LIST others)
          list(APPEND queue ${next})
        endif()
      endforeach()
    elseif(NOT item STREQUAL "quern_flags")
      list(APPEND others ${item})
    endif()
  endwhile()
  set(${parts} ${found} PARENT_SCOPE)
  set(${externals} ${others} PARENT_SCOPE)
endfunction()

quern_parts(quern parts externals)
foreach(external ${externals})
  if(NOT external MATCHES "^(quern_zstd|Threads::Threads|CUDA::cudart_static)$")
    message(FATAL_ERROR "libquern.a would need ${external}, and its users are not told so: add it to "
                        "cmake/library.cmake, cmake/quern.pc.in and cmake/quernConfig.cmake.in (or is it a target of a "
                        "folder that is added later, as examples/ are?)")
  endif()
endforeach()
list(TRANSFORM parts REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)

# The types of the interface, for the check of the ABI; --strip, and packages, take them out again.
target_compile_options(quern PRIVATE -g -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)

set(map ${PROJECT_SOURCE_DIR}/libcompress/capi/libquern.map)
add_library(quern_shared SHARED ${objects})
set_target_properties(quern_shared PROPERTIES
  OUTPUT_NAME quern EXPORT_NAME quern LINKER_LANGUAGE CXX
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib
  LINK_DEPENDS ${map})
target_link_options(quern_shared PRIVATE
  LINKER:--version-script=${map} LINKER:--no-undefined LINKER:--as-needed LINKER:--exclude-libs,ALL)
target_link_libraries(quern_shared PRIVATE ${externals})
target_include_directories(quern_shared INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/libcompress/include>)

# zstd, the threads and the CUDA runtime, if there is one, are left to whoever links the archive: two copies of them in
# one program would be one too many.
add_library(quern_static STATIC ${objects})
set_target_properties(quern_static PROPERTIES
  OUTPUT_NAME quern LINKER_LANGUAGE CXX ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
target_link_libraries(quern_static INTERFACE
  $<INSTALL_INTERFACE:quern::zstd> $<BUILD_INTERFACE:quern_zstd> Threads::Threads
  $<$<BOOL:${QUERN_HAVE_CUDA}>:CUDA::cudart_static>
  $<$<NOT:$<LINK_LANGUAGE:CXX>>:stdc++> m)
target_include_directories(quern_static INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/libcompress/include>)

# libquern-lidar.so: drives behind <quern/lidar.h>, whole in itself (docs/adr/028-drives.md).
target_compile_options(quern_lidar_capi PRIVATE -g -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
set(map ${PROJECT_SOURCE_DIR}/lidar/capi/libquern-lidar.map)
add_library(quern_lidar_shared SHARED $<TARGET_OBJECTS:quern_lidar_capi>)
set_target_properties(quern_lidar_shared PROPERTIES
  OUTPUT_NAME quern-lidar EXPORT_NAME lidar LINKER_LANGUAGE CXX
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib
  LINK_DEPENDS ${map})
target_link_options(quern_lidar_shared PRIVATE
  LINKER:--version-script=${map} LINKER:--no-undefined LINKER:--as-needed LINKER:--exclude-libs,ALL)
target_link_libraries(quern_lidar_shared PRIVATE quern_lidar)
target_include_directories(quern_lidar_shared INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/lidar/include> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/libcompress/include>)

# libquern-offload.so: optimizer state behind <quern/offload.h>, whole in itself.
target_compile_options(quern_offload_capi PRIVATE -g -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
set(map ${PROJECT_SOURCE_DIR}/offload/capi/libquern-offload.map)
add_library(quern_offload_shared SHARED $<TARGET_OBJECTS:quern_offload_capi>)
set_target_properties(quern_offload_shared PROPERTIES
  OUTPUT_NAME quern-offload EXPORT_NAME offload LINKER_LANGUAGE CXX
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib
  LINK_DEPENDS ${map})
target_link_options(quern_offload_shared PRIVATE
  LINKER:--version-script=${map} LINKER:--no-undefined LINKER:--as-needed LINKER:--exclude-libs,ALL)
target_link_libraries(quern_offload_shared PRIVATE quern_offload)
target_include_directories(quern_offload_shared INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/offload/include> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/libcompress/include>)

# libquern-checkpoint.so: the store behind <quern/checkpoint.h>, whole in itself; whether it is there hangs on the build,
# which what libquern.so exports must not (docs/adr/012-checkpoint-library.md).
if(NOT TARGET quern_checkpoint_capi)
  return()
endif()
target_compile_options(quern_checkpoint_capi PRIVATE -g -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
set(map ${PROJECT_SOURCE_DIR}/checkpoint/capi/libquern-checkpoint.map)
add_library(quern_checkpoint_shared SHARED $<TARGET_OBJECTS:quern_checkpoint_capi>)
set_target_properties(quern_checkpoint_shared PROPERTIES
  OUTPUT_NAME quern-checkpoint EXPORT_NAME checkpoint LINKER_LANGUAGE CXX
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib
  LINK_DEPENDS ${map})
target_link_options(quern_checkpoint_shared PRIVATE
  LINKER:--version-script=${map} LINKER:--no-undefined LINKER:--as-needed LINKER:--exclude-libs,ALL)
# Archives, of which the linker takes the objects that are needed: few of the array codecs' kernels are.
target_link_libraries(quern_checkpoint_shared PRIVATE quern_checkpoint quern_device_copies)
target_include_directories(quern_checkpoint_shared INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/checkpoint/include> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/libcompress/include>)
