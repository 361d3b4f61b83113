// What `quern train superres` runs.
#pragma once

namespace quern::codec::stencil::train {

/// `arguments` follow the program's name and the word superres. Prints a table of what the model gives on later steps,
/// writes the model, and returns the exit code.
int run(int count, char** arguments);

}  // namespace quern::codec::stencil::train
