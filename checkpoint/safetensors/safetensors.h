// safetensors files: a strict reader of headers, and headers written so that a file read before comes out byte for
// byte.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "checkpoint/safetensors/element_names.h"
#include "checkpoint/storage.h"

namespace quern::checkpoint {

inline constexpr std::uint64_t kMaxSafetensorsHeader = 100'000'000;

/// One tensor of a file; `begin` and `end` are bytes in its data section.
struct StoredTensor {
  String name;
  TensorDescription what;
  std::optional<DeclaredType> declared;  ///< what the header says, where that is not `what`
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

using Metadata = Vector<std::pair<String, String>>;

/// How the header's text was written.
enum class HeaderForm : std::uint8_t {
  compact = 0,   ///< no blanks
  spaced = 1,    ///< a blank behind every colon and comma
  verbatim = 2,  ///< neither: the text itself must be kept
};

struct SafetensorsHeader {
  Vector<StoredTensor> tensors;  ///< in the order of their data
  bool has_metadata = false;
  Metadata metadata;
  HeaderForm form = HeaderForm::compact;
  std::uint64_t padding = 0;  ///< blanks at the end; all others but HeaderForm::verbatim
  String text;                ///< what is in the file, padding included

  std::uint64_t data_bytes() const { return tensors.empty() ? 0 : tensors.back().end; }
};

/// The header's text of `tensors`, whose form is not verbatim, with `padding` blanks. Ignores header.text.
String make_header_text(const SafetensorsHeader& header);

/// Reads a header's text; `data_bytes` is what the file has behind it. Refuses keys given twice, unknown keys, shapes
/// that overflow, ranges that do not fit dtype and shape, leave gaps, overlap or do not tile the data section. Of an
/// unknown dtype the range alone tells the bytes. The sentence of a failure
/// names the tensor, not the file.
Result<SafetensorsHeader> parse_safetensors_header(std::string_view text, std::uint64_t data_bytes, Report& report);

/// An open file. Its data is read on demand.
class SafetensorsFile {
 public:
  /// Failures name the file.
  static Result<SafetensorsFile> open(FileSystem& files, std::string_view path, Report& report);

  const String& path() const { return path_; }
  const SafetensorsHeader& header() const { return header_; }
  /// Bytes [begin, begin + out.size()) of the data section.
  Status read(std::uint64_t begin, std::span<std::uint8_t> out, Report& report);

 private:
  SafetensorsFile() = default;
  String path_;
  SafetensorsHeader header_;
  std::unique_ptr<File> file_;
};

/// The eight bytes and the text that a file begins with.
Vector<std::uint8_t> header_bytes(std::string_view text);
/// Chooses the offsets of tensors in order, 0 padding to a multiple of eight, form compact; fills text.
void lay_out(SafetensorsHeader& header);

/// What a sharded model's index says.
struct ShardIndex {
  Vector<std::pair<String, String>> files;  ///< of each tensor, in the index's order: tensor, file name
};
/// Refuses file names that leave the index's folder. The sentence of a failure does not name the file.
Result<ShardIndex> parse_shard_index(std::string_view text, Report& report);
String make_shard_index(const ShardIndex& index, std::uint64_t total_bytes);

}  // namespace quern::checkpoint
