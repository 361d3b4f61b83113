// Opening arrays and bringing them into memory.
#include "cli/files/input_array.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/args/exit_codes.h"
#include "cli/args/values.h"
#include "cli/h5/plugin.h"

namespace quern::cli {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{4} << 20;

/// What the file's name says on its own must not differ from what the user said.
void refuse_contradiction(const InputArray& input, const DataArgs& data) {
  if (input.kind != io::FileKind::raw || input.path == "-" || (!data.dtype && !data.shape)) return;
  io::OpenOptions by_name;
  by_name.skip_bytes = data.skip_bytes;
  by_name.big_endian = data.big_endian;
  by_name.column_major = data.column_major;
  std::string detail;
  auto reader = io::open_reader(input.path, io::FileKind::raw, by_name, detail);
  if (!reader.ok()) return;  // the name says nothing, or nothing that fits the file
  const io::ArrayMeta& named = (*reader)->meta();
  if (named.dtype != input.meta.dtype)
    fail(Exit::usage, fmt::format("{}: the name says {}, the command line {}; leave -t out or rename the file",
                                  input.path, dtype_name(named.dtype), dtype_name(input.meta.dtype)));
  if (!(named.shape == input.meta.shape))
    fail(Exit::usage, fmt::format("{}: the name says {}, the command line {}; leave -s out or rename the file",
                                  input.path, named.shape.text(), input.meta.shape.text()));
}

}  // namespace

void fail_file(const Status& status, const std::string& detail) {
  Exit code = exit_for(status, Phase::encode);
  // A damaged .npy file is bad input, not a bad stream.
  if (code == Exit::stream) code = Exit::io;
  fail(code, detail.empty() ? status.text() : detail);
}

InputArray open_input(const std::string& path, const std::string& dataset, const DataArgs& data) {
  InputArray input;
  input.path = path;
  input.dataset = dataset;
  input.label = path == "-" ? "standard input" : dataset.empty() ? path : path + " " + dataset;
  std::string detail;
  // Bytes to be skipped say that the file is known to be something else.
  const auto kind = data.skip_bytes != 0 ? Result<io::FileKind>(io::file_kind(path)) : io::input_kind(path, detail);
  if (!kind.ok()) fail_file(kind.status(), detail);
  input.kind = *kind;
  io::OpenOptions options;
  options.dtype = data.dtype;
  options.shape = data.shape;
  options.dataset = dataset;
  options.skip_bytes = data.skip_bytes;
  options.big_endian = data.big_endian;
  options.column_major = data.column_major;
  if (input.kind == io::FileKind::hdf5 || input.kind == io::FileKind::netcdf) prepare_filter();
  auto reader = io::open_reader(path, input.kind, options, detail);
  if (!reader.ok()) fail_file(reader.status(), detail);
  input.reader = std::move(reader).value();
  input.meta = input.reader->meta();
  refuse_contradiction(input, data);
  for (const std::string& fill : data.fills) input.fill_bits.push_back(parse_fill(fill, input.meta.dtype));
  for (const std::uint64_t bits : input.meta.fill_bits)
    if (std::find(input.fill_bits.begin(), input.fill_bits.end(), bits) == input.fill_bits.end())
      input.fill_bits.push_back(bits);
  return input;
}

void read_exactly(InputArray& input, std::span<std::uint8_t> out) {
  while (!out.empty()) {
    auto count = input.reader->read(out);
    if (!count.ok()) fail_file(count.status(), input.label + ": " + count.status().text());
    if (*count == 0)
      fail(Exit::io, fmt::format("{}: ended {} bytes early; check -t and -s ({} of {} needs {} bytes)", input.label,
                                 out.size(), input.meta.shape.text(), dtype_name(input.meta.dtype), input.bytes()));
    out = out.subspan(*count);
  }
}

void expect_end(InputArray& input) {
  std::uint8_t element[8];
  auto count = input.reader->read({element, dtype_bytes(input.meta.dtype)});
  if (!count.ok()) fail_file(count.status(), input.label + ": " + count.status().text());
  if (*count != 0)
    fail(Exit::io, fmt::format("{}: holds more than {} of {}; check -t and -s", input.label, input.meta.shape.text(),
                               dtype_name(input.meta.dtype)));
}

bool WholeArray::fits(const InputArray& input, std::uint64_t memory) {
  return input.reader->mapped() != nullptr || input.bytes() <= memory;
}

WholeArray WholeArray::load(InputArray& input) {
  WholeArray out;
  out.dtype_ = input.meta.dtype;
  out.shape_ = input.meta.shape;
  out.data_ = input.reader->mapped();
  if (out.data_ == nullptr) {
    out.buffer_ = Buffer(input.bytes(), input.label);
    read_exactly(input, {out.buffer_.data(), out.buffer_.size()});
    expect_end(input);
    out.data_ = out.buffer_.data();
  }
  return out;
}

WholeArray WholeArray::spool(InputArray& input) {
  SpoolFile file;
  Buffer block(std::min<std::uint64_t>(kBlockBytes, input.bytes()), input.label);
  for (std::uint64_t left = input.bytes(); left != 0;) {
    const std::span<std::uint8_t> piece{block.data(), std::min<std::uint64_t>(left, block.size())};
    read_exactly(input, piece);
    file.write(piece);
    left -= piece.size();
  }
  expect_end(input);
  WholeArray out;
  out.dtype_ = input.meta.dtype;
  out.shape_ = input.meta.shape;
  out.mapping_ = file.map();
  out.data_ = out.mapping_.bytes().data();
  return out;
}

}  // namespace quern::cli
