# MPI and a parallel HDF5 of the same MPI: what the in-situ example and its tests need. Sets QUERN_HAVE_MPI.
set(QUERN_HAVE_MPI OFF)
if(NOT QUERN_MPI STREQUAL "OFF")
  find_package(MPI QUIET COMPONENTS C)
  if(MPI_C_FOUND AND TARGET quern_hdf5_openmpi)
    set(QUERN_HAVE_MPI ON)
  elseif(QUERN_MPI STREQUAL "ON")
    message(FATAL_ERROR "QUERN_MPI=ON needs MPI, an HDF5 built for it and the HDF5 plugin (QUERN_HDF5_PLUGIN). "
                        "Install libopenmpi-dev, openmpi-bin and libhdf5-openmpi-dev.")
  endif()
endif()
if(QUERN_HAVE_MPI)
  # The library is called through its C interface; the old C++ one is another library and is full of warnings.
  add_library(quern_mpi INTERFACE)
  target_link_libraries(quern_mpi INTERFACE MPI::MPI_C)
  target_compile_definitions(quern_mpi INTERFACE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
endif()
