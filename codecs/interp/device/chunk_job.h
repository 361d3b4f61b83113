// A chunk taken apart for a device: everything that bytes can get wrong is found here, on the host.
#pragma once

#include <cstdint>
#include <span>

#include <quern/codec.h>
#include <quern/memory.h>

#include "codecs/interp/device/state.h"

namespace quern::codec::interp {

/// Appends the job (kernels/interp/interp_job.h) of the chunk `in` to `out`, from a multiple of kernels::kJobAlignment
/// bytes on. `box` says extents and strides; its memory is not touched. False, and nothing appended, when the host has
/// to decode the chunk: it is raw or constant, or damaged, or its tiles have more points than a device keeps. May throw
/// std::bad_alloc.
bool append_chunk_job(const DeviceState& state, std::span<const std::uint8_t> in, const MutableBox3& box,
                      Vector<std::uint8_t>& out);

}  // namespace quern::codec::interp
