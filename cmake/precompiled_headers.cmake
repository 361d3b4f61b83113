# What nearly every source reads first is parsed once for each set of flags: half of the time of a cold build otherwise.
# Not under a compiler cache, which keeps no such objects; there each source still shows whether it includes what it needs.
if(CMAKE_CXX_COMPILER_LAUNCHER OR QUERN_FUZZ)
  return()
endif()

set(standard_headers
  <algorithm>
  <array>
  <bit>
  <cmath>
  <cstdint>
  <cstring>
  <functional>
  <limits>
  <memory>
  <memory_resource>
  <mutex>
  <optional>
  <span>
  <string>
  <string_view>
  <unordered_map>
  <utility>
  <vector>)

# quern_precompile(name KIND LIBRARIES ... HEADERS ... USERS ...): HEADERS parsed once, for the targets USERS that exist.
# KIND is STATIC for position-independent code, EXECUTABLE for programs.
function(quern_precompile name kind)
  cmake_parse_arguments(ARG "" "VISIBILITY" "LIBRARIES;HEADERS;USERS" ${ARGN})
  set(users)
  foreach(user IN LISTS ARG_USERS)
    if(TARGET ${user})
      list(APPEND users ${user})
    endif()
  endforeach()
  if(NOT users)
    return()
  endif()
  set(source ${CMAKE_BINARY_DIR}/${name}.cpp)
  file(GENERATE OUTPUT ${source} CONTENT "int main() { return 0; }\n")
  if(kind STREQUAL "EXECUTABLE")
    add_executable(${name} EXCLUDE_FROM_ALL ${source})
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/CMakeFiles)
  else()
    add_library(${name} STATIC EXCLUDE_FROM_ALL ${source})
  endif()
  target_link_libraries(${name} PRIVATE quern_flags ${ARG_LIBRARIES})
  if(ARG_VISIBILITY)
    set_target_properties(${name} PROPERTIES CXX_VISIBILITY_PRESET ${ARG_VISIBILITY})
  endif()
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
  foreach(user IN LISTS users)
    target_precompile_headers(${user} REUSE_FROM ${name})
  endforeach()
endfunction()

# Not `quern` and `quern_checkpoint_capi`, which have debug information for the check of the binary interface.
quern_precompile(quern_library_headers STATIC
  HEADERS ${standard_headers}
  USERS
    quern_checkpoint
    quern_codec_lidar
    quern_codec_lorenzo
    quern_codec_lossless
    quern_codec_stencil
    quern_codec_tensor
    quern_coding
    quern_core
    quern_device
    quern_device_simt_host
    quern_format
    quern_io
    quern_library_files
    quern_mask
    quern_metrics
    quern_pipeline
    quern_report
    quern_storage
    quern_survey)

if(TARGET quern_cli)
  set(command_headers ${standard_headers} <fmt/format.h> <nlohmann/json.hpp>)
  set(command_libraries fmt::fmt nlohmann_json::nlohmann_json)
  quern_precompile(quern_command_headers EXECUTABLE VISIBILITY default
    LIBRARIES ${command_libraries}
    HEADERS ${command_headers}
    USERS quern_cli)
  quern_precompile(quern_command_library_headers STATIC VISIBILITY default
    LIBRARIES ${command_libraries}
    HEADERS ${command_headers}
    USERS quern_cli_args quern_cli_files)
  quern_precompile(quern_files_headers STATIC
    LIBRARIES ${command_libraries}
    HEADERS ${command_headers}
    USERS quern_files)
endif()
