# Fortran, when there is a compiler for it: the module is then compiled and tested. Its source is installed in any case.
set(QUERN_HAVE_FORTRAN OFF)
if(NOT QUERN_FORTRAN STREQUAL "OFF")
  include(CheckLanguage)
  check_language(Fortran)
  if(CMAKE_Fortran_COMPILER)
    enable_language(Fortran)
    set(QUERN_HAVE_FORTRAN ON)
  elseif(QUERN_FORTRAN STREQUAL "ON")
    message(FATAL_ERROR "QUERN_FORTRAN=ON, but no Fortran compiler was found. Install gfortran or set "
                        "CMAKE_Fortran_COMPILER.")
  endif()
endif()
