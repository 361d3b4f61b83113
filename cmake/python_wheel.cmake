# What a wheel of pyquern holds beside its Python files: pyproject.toml builds the target python_wheel and installs the
# component python. A wheel has no symbolic links, so the libraries are files of their SONAME.

# hypot is the only function of a wheel that glibc 2.35 has anew. In every build, so that objects are the same in all.
foreach(source IN ITEMS quern_checkpoint:checkpoint/save/difference.cpp quern_report:cli/report/spectrum.cpp)
  string(REPLACE ":" ";" source ${source})
  list(POP_FRONT source owner)
  if(TARGET ${owner})
    set_source_files_properties(${PROJECT_SOURCE_DIR}/${source} TARGET_DIRECTORY ${owner} PROPERTIES
      COMPILE_OPTIONS "-include;${PROJECT_SOURCE_DIR}/cmake/older_glibc.h")
  endif()
endforeach()

if(NOT QUERN_PYTHON_WHEEL)
  return()
endif()
if(NOT TARGET quern_shared)
  message(FATAL_ERROR "QUERN_PYTHON_WHEEL=ON needs the shared library: no sanitizers, no fuzzing")
endif()

set(libraries quern_shared quern_offload_shared)
if(TARGET quern_checkpoint_shared)
  list(APPEND libraries quern_checkpoint_shared)
endif()
# Beside what the folder has built otherwise, which stays (scripts/wheel.sh --build).
set(folder ${CMAKE_BINARY_DIR}/wheel)
set_target_properties(${libraries} PROPERTIES VERSION ${PROJECT_VERSION_MAJOR} INSTALL_RPATH ""
  LIBRARY_OUTPUT_DIRECTORY ${folder}/lib)
install(TARGETS ${libraries} LIBRARY DESTINATION pyquern/lib NAMELINK_SKIP COMPONENT python)

set(programs "")
if(QUERN_HAVE_ANY_HDF5_PLUGIN)
  list(APPEND programs h5quern_any)
  set_target_properties(h5quern_any PROPERTIES INSTALL_RPATH "$ORIGIN/../lib" LIBRARY_OUTPUT_DIRECTORY ${folder}/plugins)
  install(TARGETS h5quern_any LIBRARY DESTINATION pyquern/plugins COMPONENT python)
endif()
if(QUERN_HAVE_CLI)
  list(APPEND programs quern_cli)
  set_target_properties(quern_cli PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${folder}/bin)
  install(TARGETS quern_cli RUNTIME DESTINATION pyquern/bin COMPONENT python)
endif()
add_custom_target(python_wheel DEPENDS ${libraries} ${programs})

foreach(part IN ITEMS quern_checkpoint_shared h5quern_any quern_cli)
  if(NOT TARGET ${part})
    message(WARNING "this wheel will be without ${part}: what it needs was not found (scripts/setup.sh installs it)")
  endif()
endforeach()
