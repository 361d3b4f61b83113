// Networks as they are stored in model files (docs/format-model.md, chapter 2).
#pragma once

#include <quern/status.h>

#include "kernels/network/network.h"
#include "libcompress/format/reader.h"
#include "libcompress/format/writer.h"

namespace quern::models {

/// Writes a checked network. May throw std::bad_alloc.
void write_network(const kernels::Network& network, Writer& out);
/// Reads a network from bytes that may be anything, and checks it. Fails with truncated or corrupt. Allocates no more
/// than the bytes hold. May throw std::bad_alloc.
Result<kernels::Network> read_network(Reader& in);

}  // namespace quern::models
