# What the command does with HDF5 and netCDF: in a module that it loads when such a file is met
# (docs/adr/015-files-module.md), or in the command itself. The module takes the command's own functions, and the C interface under the filter, from the
# program that loads it.
include(GNUInstallDirs)
set(h5_sources h5/absent.cpp)
set(h5_objects "")
set(h5_libraries "")
set(h5_definitions "")
if(QUERN_HAVE_HDF5_PLUGIN)
  list(GET QUERN_HDF5_FLAVOURS 0 flavour)
  set(h5_sources
    h5/boxes.cpp
    h5/check.cpp
    h5/chunk_shape.cpp
    h5/chunks.cpp
    h5/copy/compare.cpp
    h5/copy/copy.cpp
    h5/copy/copy_attributes.cpp
    h5/copy/copy_dataset.cpp
    h5/copy/copy_types.cpp
    h5/copy/create.cpp
    h5/copy/elements.cpp
    h5/fields.cpp
    h5/file.cpp
    h5/missing.cpp
    h5/copy/output.cpp
    h5/pack.cpp
    h5/pack_plan.cpp
    h5/pack_write.cpp
    h5/plugin.cpp
    h5/quota.cpp
    h5/record.cpp
    h5/copy/tree.cpp
    h5/unpack.cpp
    h5/verb.cpp)
  set(h5_objects $<TARGET_OBJECTS:quern_hdf5_${flavour}>)
  set(h5_definitions QUERN_HDF5_FLAVOUR="${flavour}"
    QUERN_HDF5_INSTALL_FOLDER="${CMAKE_INSTALL_LIBDIR}/quern/hdf5/${flavour}")
endif()
target_sources(quern_cli PRIVATE h5/values.cpp)

set(QUERN_HAVE_FILES_MODULE OFF)
if(QUERN_FILES_MODULE AND QUERN_HAVE_LIBRARY AND CMAKE_SYSTEM_NAME STREQUAL "Linux" AND
   (TARGET quern_library_files OR QUERN_HAVE_HDF5_PLUGIN))
  set(QUERN_HAVE_FILES_MODULE ON)
endif()
set(QUERN_HAVE_FILES_MODULE ${QUERN_HAVE_FILES_MODULE} PARENT_SCOPE)

if(NOT QUERN_HAVE_FILES_MODULE)
  target_sources(quern_cli PRIVATE ${h5_sources})
  target_compile_definitions(quern_cli PRIVATE ${h5_definitions})
  if(TARGET quern_library_files)
    target_link_libraries(quern_cli PRIVATE quern_library_files)
  endif()
  if(QUERN_HAVE_HDF5_PLUGIN)
    target_link_libraries(quern_cli PRIVATE quern_hdf5)
  endif()
  return()
endif()

# One folder beside the program's, in the build tree as where it is installed.
file(RELATIVE_PATH to_libraries ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
set(module_folder "${to_libraries}/quern")
get_filename_component(build_folder ${CMAKE_BINARY_DIR}/bin/${module_folder} ABSOLUTE)
add_library(quern_files MODULE files/module_entry.cpp ${h5_sources} ${h5_objects})
target_compile_options(quern_files PRIVATE $<$<CONFIG:Release>:-O1>)
set_target_properties(quern_files PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${build_folder})
target_include_directories(quern_files PRIVATE ${PROJECT_SOURCE_DIR}/libcompress/include)
target_link_libraries(quern_files PRIVATE quern_flags fmt::fmt quern_core quern_io nlohmann_json::nlohmann_json
  ${CMAKE_DL_LIBS})
target_link_options(quern_files PRIVATE LINKER:--as-needed LINKER:--exclude-libs,ALL)
if(TARGET quern_library_files)
  target_compile_definitions(quern_files PRIVATE QUERN_HAVE_LIBRARY_FILES)
  target_link_libraries(quern_files PRIVATE quern_library_files)
endif()
if(QUERN_HAVE_HDF5_PLUGIN)
  # The objects alone: what is under them is the program's.
  target_compile_definitions(quern_files PRIVATE ${h5_definitions})
  target_link_libraries(quern_files PRIVATE quern_hdf5_${flavour}_interface)
endif()
get_target_property(version quern_cli_args COMPILE_DEFINITIONS)
target_compile_definitions(quern_files PRIVATE ${version})
if(NOT QUERN_PYTHON_WHEEL)
  add_dependencies(quern_cli quern_files)  # whoever builds the command has its module
endif()

target_sources(quern_cli PRIVATE files/module.cpp)
target_compile_definitions(quern_cli PRIVATE QUERN_FILES_MODULE_FOLDER="${module_folder}")
if(QUERN_PYTHON_WHEEL)
  target_sources(quern_cli PRIVATE files/fmt_inside.cpp)
endif()
set(exports ${CMAKE_CURRENT_SOURCE_DIR}/files/module.exports)
target_link_options(quern_cli PRIVATE LINKER:--dynamic-list=${exports})
set_target_properties(quern_cli PROPERTIES LINK_DEPENDS ${exports})
set_target_properties(quern_cli quern_cli_args quern_cli_files PROPERTIES CXX_VISIBILITY_PRESET default)
if(QUERN_HAVE_HDF5_PLUGIN)
  foreach(call array_init codec_count codec_get compress compress_bound context_create context_destroy decompress inspect
          last_error params_add_fill params_create params_destroy params_set params_set_bound params_set_metadata
          version_string)
    target_link_options(quern_cli PRIVATE LINKER:--require-defined=quern_${call})
  endforeach()
endif()
