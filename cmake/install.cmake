# What `cmake --install` puts where: the library in two forms, its two headers, the checkpoint library, the command with manual and completions,
# and the documents. The other C++ headers may change at any time and stay in the tree.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
if(NOT QUERN_HAVE_LIBRARY)
  return()  # instrumented builds are not for installing
endif()

set(docdir ${CMAKE_INSTALL_DATAROOTDIR}/doc/quern)
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${docdir} COMPONENT documents)
install(DIRECTORY docs/ DESTINATION ${docdir} COMPONENT documents
  FILES_MATCHING PATTERN "format*.md" PATTERN adr EXCLUDE PATTERN man EXCLUDE)

set(configdir ${CMAKE_INSTALL_LIBDIR}/cmake/quern)
install(TARGETS quern_shared EXPORT quern_shared_targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS quern_static EXPORT quern_static_targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT quern_shared_targets NAMESPACE quern:: FILE quernTargets.cmake
  DESTINATION ${configdir} COMPONENT development)
install(EXPORT quern_static_targets NAMESPACE quern:: FILE quernStaticTargets.cmake
  DESTINATION ${configdir} COMPONENT development)
install(FILES libcompress/include/quern/quern.h libcompress/include/quern/quern_estimate.h
  libcompress/include/quern/quern.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/quern COMPONENT development)

get_property(fortran_source GLOBAL PROPERTY QUERN_FORTRAN_SOURCE)
install(FILES ${fortran_source} DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/quern/fortran COMPONENT development)

# Until 1.0 a minor version may change what an earlier one promised.
set(package ${CMAKE_BINARY_DIR}/package)
configure_package_config_file(cmake/quernConfig.cmake.in ${package}/quernConfig.cmake
  INSTALL_DESTINATION ${configdir})
write_basic_package_version_file(${package}/quernConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${package}/quernConfig.cmake ${package}/quernConfigVersion.cmake
  DESTINATION ${configdir} COMPONENT development)

# The prefix is found from where quern.pc lies, so that an installed tree may be moved.
file(RELATIVE_PATH QUERN_PC_UP ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" QUERN_PC_UP "${QUERN_PC_UP}")
set(QUERN_PC_CUDA "")
if(QUERN_HAVE_CUDA)
  set(QUERN_PC_CUDA "-L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -ldl -lrt ")
endif()
configure_file(cmake/quern.pc.in ${package}/quern.pc @ONLY)
install(FILES ${package}/quern.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

# quern_install_library(NAME HEADERS...): libquern-NAME.so as find_package(quern COMPONENTS NAME) and quern-NAME.pc find it.
function(quern_install_library name)
  install(TARGETS quern_${name}_shared EXPORT quern_${name}_targets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${name} NAMELINK_COMPONENT development
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  string(SUBSTRING ${name} 0 1 first)
  string(SUBSTRING ${name} 1 -1 others)
  string(TOUPPER ${first} first)
  install(EXPORT quern_${name}_targets NAMESPACE quern:: FILE quern${first}${others}Targets.cmake
    DESTINATION ${configdir} COMPONENT development)
  install(FILES ${ARGN} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/quern COMPONENT development)
  configure_file(cmake/quern-${name}.pc.in ${package}/quern-${name}.pc @ONLY)
  install(FILES ${package}/quern-${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endfunction()
quern_install_library(lidar lidar/include/quern/lidar.h)
quern_install_library(offload offload/include/quern/offload.h)
if(TARGET quern_checkpoint_shared)
  quern_install_library(checkpoint checkpoint/include/quern/checkpoint.h checkpoint/include/quern/checkpoint_engine.h)
  install(DIRECTORY bindings/python/ DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/quern/python COMPONENT development
    FILES_MATCHING PATTERN "*.py" PATTERN "*.html" PATTERN py.typed PATTERN pyproject.toml PATTERN README.md PATTERN __pycache__ EXCLUDE)
endif()

if(QUERN_HAVE_CLI)
  install(TARGETS quern_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT command)
  if(TARGET quern_files)
    install(TARGETS quern_files LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/quern COMPONENT command)
  endif()
  find_program(QUERN_GZIP gzip)
  if(QUERN_GZIP)
    add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/package/quern.1.gz
      COMMAND sh -c "'${QUERN_GZIP}' -9nc '${PROJECT_SOURCE_DIR}/docs/man/quern.1' > quern.1.gz"
      WORKING_DIRECTORY ${CMAKE_BINARY_DIR}/package
      DEPENDS docs/man/quern.1 VERBATIM)
    add_custom_target(quern_manual ALL DEPENDS ${CMAKE_BINARY_DIR}/package/quern.1.gz)
    install(FILES ${CMAKE_BINARY_DIR}/package/quern.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT command)
  else()
    install(FILES docs/man/quern.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT command)
  endif()
  # The command writes its own completions; a cross compiler's output cannot be asked.
  if(NOT CMAKE_CROSSCOMPILING)
    set(completions ${CMAKE_BINARY_DIR}/package/completions)
    file(MAKE_DIRECTORY ${completions})
    add_custom_command(OUTPUT ${completions}/quern ${completions}/_quern ${completions}/quern.fish
      COMMAND sh -c "\"$0\" completion bash > quern" $<TARGET_FILE:quern_cli>
      COMMAND sh -c "\"$0\" completion zsh > _quern" $<TARGET_FILE:quern_cli>
      COMMAND sh -c "\"$0\" completion fish > quern.fish" $<TARGET_FILE:quern_cli>
      WORKING_DIRECTORY ${completions}
      DEPENDS quern_cli VERBATIM)
    add_custom_target(quern_completions ALL
      DEPENDS ${completions}/quern ${completions}/_quern ${completions}/quern.fish)
    set(share ${CMAKE_INSTALL_DATAROOTDIR})
    install(FILES ${completions}/quern DESTINATION ${share}/bash-completion/completions COMPONENT command)
    install(FILES ${completions}/_quern DESTINATION ${share}/zsh/site-functions COMPONENT command)
    install(FILES ${completions}/quern.fish DESTINATION ${share}/fish/vendor_completions.d COMPONENT command)
  endif()
endif()
if(TARGET quern-mpi)
  install(TARGETS quern-mpi RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT mpi)
endif()
