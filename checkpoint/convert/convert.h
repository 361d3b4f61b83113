// One model as one safetensors file or as several with an index, and from one to the other.
#pragma once

#include "checkpoint/convert/checkpoint_files.h"

namespace quern::checkpoint {

/// The files of one model, opened, and the order of their tensors.
class ModelFiles {
 public:
  /// A safetensors file, or an index (*.json) and the files it names, which must hold just the tensors it says.
  static Result<ModelFiles> open(FileSystem& files, const String& path, Report& report);

  struct Tensor {
    std::size_t file = 0;
    const StoredTensor* stored = nullptr;
  };
  const Vector<Tensor>& tensors() const { return tensors_; }
  const SafetensorsHeader& first_header() const { return files_.front().header(); }
  std::uint64_t input_bytes() const;
  std::uint64_t tensor_bytes() const;
  Status read(const Tensor& tensor, AlignedBuffer& out, Report& report);

 private:
  Vector<SafetensorsFile> files_;
  Vector<Tensor> tensors_;
};

/// Tensors [begin, end) as one file, with the metadata of the model's first file.
Status write_model_file(ModelFiles& model, std::size_t begin, std::size_t end, FileSink& sink, Report& report);

/// Where to cut: each shard has at most `bytes` of tensors, or one tensor that is larger.
Vector<std::size_t> cut_shards(const ModelFiles& model, std::uint64_t bytes);
/// "model-00001-of-00003.safetensors".
String shard_name(std::size_t index, std::size_t count);

}  // namespace quern::checkpoint
