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

# quern_library_of(NAME LIBRARIES...): libquern-NAME.so, the C interface in NAME/capi, whole in itself. Archives, of
# which the linker takes the objects that are needed.
function(quern_library_of name)
  target_compile_options(quern_${name}_capi PRIVATE -g -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
  set(map ${PROJECT_SOURCE_DIR}/${name}/capi/libquern-${name}.map)
  add_library(quern_${name}_shared SHARED $<TARGET_OBJECTS:quern_${name}_capi>)
  set_target_properties(quern_${name}_shared PROPERTIES
    OUTPUT_NAME quern-${name} EXPORT_NAME ${name} LINKER_LANGUAGE CXX
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib
    LINK_DEPENDS ${map})
  target_link_options(quern_${name}_shared PRIVATE
    LINKER:--version-script=${map} LINKER:--no-undefined LINKER:--as-needed LINKER:--exclude-libs,ALL)
  target_link_libraries(quern_${name}_shared PRIVATE ${ARGN})
  target_include_directories(quern_${name}_shared INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/${name}/include> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/libcompress/include>)
endfunction()

# Drives behind <quern/lidar.h> (docs/adr/028-drives.md), optimizer state behind <quern/offload.h>.
quern_library_of(lidar quern_lidar quern_lidar_parity)
quern_library_of(offload quern_offload)
# The store behind <quern/checkpoint.h>: whether it is there hangs on the build, which what libquern.so exports must not
# (docs/adr/012-checkpoint-library.md).
if(TARGET quern_checkpoint_capi)
  quern_library_of(checkpoint quern_checkpoint quern_device_copies)
endif()
