// What `quern train autoencoder` runs.
#pragma once

namespace quern::codec::autoencoder::train {

/// `arguments` follow the program's name and the word autoencoder. Prints a table of what the model gives on later
/// steps, writes the model, and returns the exit code.
int run(int count, char** arguments);

}  // namespace quern::codec::autoencoder::train
