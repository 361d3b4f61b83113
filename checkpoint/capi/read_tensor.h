// The caller's description of a tensor, checked.
#pragma once

#include <quern/checkpoint.h>

#include "checkpoint/convert/added_tensor.h"

namespace quern::checkpoint::capi {

/// Copies names and extents; the values stay where they are. Sentences name the tensor. `given.name` is not NULL.
Status read_tensor(const quern_checkpoint_tensor& given, AddedTensor& tensor, Report& report);

}  // namespace quern::checkpoint::capi
