// How files hold subgroups. What a state holds does not depend on it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::offload {

/// The numbers are those of <quern/offload.h>.
enum class FileForm : std::uint8_t {
  measured = 0,  ///< entropy coded in folders that are so slow that coding pays (schedule/choose_form.h)
  plain = 1,     ///< as they lie in memory
  packed = 2,    ///< entropy coded
};

/// Memory that coding takes of one direction of a folder, about; more where many blocks do not fit their codes.
inline constexpr std::uint64_t kCoderBytes = UINT64_C(2) << 20;

/// Memory that coding takes in all folders of a state.
constexpr std::uint64_t coder_bytes(std::size_t folders) { return folders * 2 * kCoderBytes; }

}  // namespace quern::offload
