# Debian packages with `cpack -G DEB`: libquern0, libquern-lidar0, libquern-offload0, libquern-checkpoint0, libquern-dev, quern, and hdf5-filter-quern-FLAVOUR. scripts/package.sh builds them with the
# folders of a Debian system; any other build tree packs what its own installation would hold, under /usr.
if(NOT QUERN_HAVE_LIBRARY)
  return()
endif()
set(QUERN_PACKAGE_CONTACT "quern maintainers <maintainers@quern.example>" CACHE STRING
  "Who made the Debian packages: name <address>")
find_program(QUERN_GZIP gzip)
if(NOT QUERN_GZIP)
  return()  # Debian's documents are compressed
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT ${QUERN_PACKAGE_CONTACT})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/debian/strip_archives.cmake)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_COMPONENTS_ALL runtime development)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SOURCE quern)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
string(CONCAT what "quern compresses arrays of numbers so that every value comes back\n"
  "within a bound that the user chooses. Streams describe and check\n"
  "themselves; missing values, NaN and infinities are kept exactly.\n.\n")

set(runtime libquern${PROJECT_VERSION_MAJOR})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME ${runtime})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/cmake/debian/triggers)
string(CONCAT CPACK_COMPONENT_RUNTIME_DESCRIPTION
  "error-bounded compression of scientific arrays - shared library\n" "${what}"
  "This package holds the library that programs load.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libquern-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
  "${runtime} (= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}), libc6-dev, libzstd-dev")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
string(CONCAT CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
  "error-bounded compression of scientific arrays - development files\n" "${what}"
  "This package holds headers for C and C++, the source of the Fortran\n"
  "module, the static library, and what pkg-config and CMake need.")

set(packages runtime ${runtime} development libquern-dev)

# quern_package_library(NAME): the package libquern-NAMEn of libquern-NAME.so, which libquern-dev needs.
macro(quern_package_library name)
  string(TOUPPER ${name} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME libquern-${name}${PROJECT_VERSION_MAJOR})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION libs)
  set(CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/cmake/debian/triggers)
  list(APPEND CPACK_COMPONENTS_ALL ${name})
  list(APPEND packages ${name} ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  string(APPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    ", ${CPACK_DEBIAN_${upper}_PACKAGE_NAME} (= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")
endmacro()
quern_package_library(lidar)
string(CONCAT CPACK_COMPONENT_LIDAR_DESCRIPTION
  "error-bounded compression of scientific arrays - LiDAR library\n" "${what}"
  "This package holds the library that stores LiDAR scans under a bound on\n" "distance that holds in both directions.")
quern_package_library(offload)
string(CONCAT CPACK_COMPONENT_OFFLOAD_DESCRIPTION
  "error-bounded compression of scientific arrays - optimizer library\n" "${what}"
  "This package holds the library that keeps the state of Adam in memory or\n" "files, as codes of 8 or 4 bits.")
if(TARGET quern_checkpoint_shared)
  quern_package_library(checkpoint)
  string(CONCAT CPACK_COMPONENT_CHECKPOINT_DESCRIPTION
    "error-bounded compression of scientific arrays - checkpoint library\n" "${what}"
    "This package holds the library that keeps training checkpoints in a\n"
    "folder that survives crashes, with equal tensors stored once, differences\n" "to earlier steps, and parity.")
endif()
if(QUERN_HAVE_CLI)
  list(APPEND CPACK_COMPONENTS_ALL command)
  list(APPEND packages command quern)
  set(CPACK_DEBIAN_COMMAND_PACKAGE_NAME quern)
  set(CPACK_DEBIAN_COMMAND_PACKAGE_SECTION science)
  string(CONCAT CPACK_COMPONENT_COMMAND_DESCRIPTION
    "error-bounded compression of scientific arrays - command\n" "${what}"
    "This package holds the command, which reads and writes raw, .npy, HDF5\n"
    "and netCDF files.")
endif()

# Where Debian's HDF5 looks for plugins there is a link to the one that is installed.
foreach(flavour ${QUERN_HDF5_FLAVOURS})
  string(TOUPPER hdf5_${flavour} component)
  list(APPEND CPACK_COMPONENTS_ALL hdf5_${flavour})
  list(APPEND packages hdf5_${flavour} hdf5-filter-quern-${flavour})
  set(CPACK_DEBIAN_${component}_PACKAGE_NAME hdf5-filter-quern-${flavour})
  set(CPACK_DEBIAN_${component}_PACKAGE_SECTION libs)
  string(CONCAT CPACK_COMPONENT_${component}_DESCRIPTION
    "error-bounded compression of scientific arrays - HDF5 filter\n" "${what}"
    "This package holds the filter plugin for the ${flavour} flavour of HDF5:\n"
    "h5py, h5repack, netCDF and all other programs read and write quern's\n" "chunks with it.")
  if(CMAKE_LIBRARY_ARCHITECTURE)
    install(CODE "
      set(folder \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lib/${CMAKE_LIBRARY_ARCHITECTURE}/hdf5/${flavour}/plugins\")
      file(MAKE_DIRECTORY \"\${folder}\")
      file(RELATIVE_PATH plugin \"\${folder}\" \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/quern/hdf5/${flavour}/libh5quern.so\")
      file(CREATE_LINK \"\${plugin}\" \"\${folder}/libh5quern.so\" SYMBOLIC)"
      COMPONENT hdf5_${flavour} EXCLUDE_FROM_ALL)
  endif()
endforeach()

# Every Debian package has its licence and changes in a folder of its own; a plain installation has them once.
configure_file(cmake/debian/changelog.in ${CMAKE_BINARY_DIR}/package/changelog.Debian @ONLY)
add_custom_command(
  OUTPUT ${CMAKE_BINARY_DIR}/package/changelog.gz ${CMAKE_BINARY_DIR}/package/changelog.Debian.gz
  COMMAND sh -c "'${QUERN_GZIP}' -9nc '${PROJECT_SOURCE_DIR}/CHANGELOG.md' > changelog.gz"
  COMMAND sh -c "'${QUERN_GZIP}' -9nc changelog.Debian > changelog.Debian.gz"
  WORKING_DIRECTORY ${CMAKE_BINARY_DIR}/package
  DEPENDS CHANGELOG.md ${CMAKE_BINARY_DIR}/package/changelog.Debian VERBATIM)
add_custom_target(quern_changelogs ALL
  DEPENDS ${CMAKE_BINARY_DIR}/package/changelog.gz ${CMAKE_BINARY_DIR}/package/changelog.Debian.gz)
while(packages)
  list(POP_FRONT packages component package)
  install(FILES ${CMAKE_BINARY_DIR}/package/changelog.gz ${CMAKE_BINARY_DIR}/package/changelog.Debian.gz
    cmake/debian/copyright
    DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${package} COMPONENT ${component} EXCLUDE_FROM_ALL)
endwhile()
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/libquern-dev
  COMPONENT development EXCLUDE_FROM_ALL)
include(CPack)
