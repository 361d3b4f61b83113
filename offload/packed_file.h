// Files of subgroups that are entropy coded: the coded chunks (codecs/tensor/at_rest_packed.h), then how many bytes
// each takes, 32 bits a chunk. Coding takes place beside reading and writing, one chunk ahead, so that a folder does not
// wait for it where coding is the faster of the two.
#pragma once

#include <array>
#include <memory>

#include "codecs/tensor/at_rest_packed.h"
#include "offload/file_form.h"
#include "offload/subgroup_file.h"
#include "offload/worker.h"

namespace quern::offload {

/// Adds the seconds of its life to a number.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds);
  ~Stopwatch();
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& seconds_;
  const double begin_;
};

/// What one direction of a folder codes with: a thread, scratch and two chunks, in kCoderBytes.
class FileCoder : public Allocated {
 public:
  /// Without a thread of its own, or where the system has none, coding and files take turns.
  explicit FileCoder(bool own_thread);

 private:
  friend Status read_packed(storage::File&, const StoredSubgroup&, FileCoder&, SubgroupData&, Moved&);
  friend Status write_packed(storage::File&, const SubgroupData&, FileCoder&, Moved&);

  codec::tensor::AtRestPacker packer_;
  std::array<Vector<std::uint8_t>, 2> chunks_;
  std::unique_ptr<Worker> worker_;
};

/// Reads all of a file into `data`, which fits the subgroup. `corrupt` where its size is another, `checksum_mismatch`
/// where its bytes are no such file. The hash is the caller's to check.
Status read_packed(storage::File& file, const StoredSubgroup& stored, FileCoder& coder, SubgroupData& data,
                   Moved& moved);
Status write_packed(storage::File& file, const SubgroupData& data, FileCoder& coder, Moved& moved);

}  // namespace quern::offload
