// How files hold subgroups. What a state holds does not depend on it.
#pragma once

#include <cstdint>

namespace quern::offload {

/// The numbers are those of <quern/offload.h>.
enum class FileForm : std::uint8_t {
  measured = 0,  ///< entropy coded in folders that are so slow that coding pays (schedule/choose_form.h)
  plain = 1,     ///< as they lie in memory
  packed = 2,    ///< entropy coded
};

}  // namespace quern::offload
