# How long each test takes, as a label: quick (all of them below a minute together), medium, long. Times of a whole run are
# in docs/testing.md. A test that is in neither list is quick.
set(QUERN_LONG_TESTS
  cli_device
  conformance
  conformance_emulator
  install_debs
  integration_hdf5_histories
  malformed
  quality
  second_decoder_golden
  simulated_bench
  simulated_equality
  suite_fuzz
  suite_kernel_budgets
  suite_sanitizers
  suite_threads
  unit_checkpoint
  unit_cuda
  unit_cuda_races
  unit_device
  unit_goals
  unit_kernels
  unit_levels
  unit_mask
  unit_pipeline
  unit_stencil)
set(QUERN_MEDIUM_TESTS
  adversarial
  cli_args_test
  cli_checkpoint
  cli_crash_safety
  cli_files
  cli_levels
  cli_messages
  cli_models
  cli_newcomer
  cli_readers
  cli_refusals
  cli_round_trips
  cli_streams
  docs_code
  docs_commands
  faults_checkpoint
  golden
  install_abi_changes
  install_checkpoint
  install_find_package
  integration_hdf5
  integration_hdf5_command
  integration_hdf5_copy
  integration_hdf5_pack
  integration_hdf5_tools
  integration_mpi_collective_ompio
  integration_mpi_collective_romio321
  integration_mpi_h5py
  integration_mpi_insitu_ompio
  integration_mpi_insitu_romio321
  python_array_strategies
  python_calls
  python_dask
  python_hdf5
  python_hdf5_system
  python_memory
  python_notebook
  python_xarray
  python_zarr2
  second_decoder_drives
  second_decoder_scans
  simulated_round_trips
  suite_format
  test_flow_solver
  unit_capi
  unit_capi_memory
  unit_checkpoint_capi_memory
  unit_cuda_metrics
  unit_device_races
  unit_io
  unit_lorenzo
  unit_lidar
  unit_lossless
  unit_metrics
  unit_moments
  unit_autoencoder
  unit_surrogate
  unit_survey
  unit_tensor)

# Labels the tests of the folder it is called in, when that folder has been read to its end.
function(quern_label_tests)
  cmake_language(DEFER DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} CALL quern_label_tests_now)
endfunction()

function(quern_label_tests_now)
  get_property(names DIRECTORY PROPERTY TESTS)
  foreach(name IN LISTS names)
    if(name IN_LIST QUERN_LONG_TESTS)
      set(length long)
    elseif(name IN_LIST QUERN_MEDIUM_TESTS OR name MATCHES "^python_.*(torch|manager|lightning|transformers|accelerate)")
      set(length medium)
    else()
      set(length quick)
    endif()
    set_property(TEST ${name} APPEND PROPERTY LABELS ${length})
    set_property(GLOBAL APPEND PROPERTY QUERN_LABELLED_TESTS ${name})
  endforeach()
endfunction()
