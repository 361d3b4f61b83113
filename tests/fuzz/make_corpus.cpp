// Writes the seed corpus: small inputs that reach deep into each target, made from fixed arrays by the library itself.
// usage: make_fuzz_corpus FOLDER. Run again after a change of the format, and commit what it writes.
#include <quern/codec.h>
#include <quern/compress.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <string>
#include <vector>

#include "coding/distributions.h"
#include "libcompress/pipeline/mask/mask.h"
#include "tests/fuzz/tensor_input.h"
#include "tests/golden/groups.h"
#include "tests/golden/record_cases.h"
#include "tests/support/memory_models.h"

namespace {

using namespace quern;
using Bytes = Vector<std::uint8_t>;

constexpr DType kChunkTypes[] = {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8,  DType::i16,
                                 DType::i32, DType::i64,  DType::u8,  DType::u16, DType::u32, DType::u64};

class Corpus {
 public:
  explicit Corpus(std::filesystem::path root) : root_(std::move(root)) {}

  void add(const std::string& target, const std::string& name, const Bytes& bytes) {
    const auto folder = root_ / target;
    std::filesystem::create_directories(folder);
    std::ofstream out(folder / name, std::ios::binary | std::ios::trunc);
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (!out.flush()) failed_ = true;
  }
  void add(const std::string& target, const std::string& name, const std::string& text) {
    add(target, name, Bytes(text.begin(), text.end()));
  }
  bool failed() const { return failed_; }

 private:
  std::filesystem::path root_;
  bool failed_ = false;
};

void append(Bytes& out, const void* data, std::size_t count) {
  const auto* bytes = static_cast<const std::uint8_t*>(data);
  out.insert(out.end(), bytes, bytes + count);
}

/// A smooth field with one value out of line and, when asked for, gaps; all multiples of `spacing` unless that is 0.
Bytes smooth_values(DType dtype, std::uint64_t elems, bool gaps, double spacing = 0) {
  Bytes out;
  for (std::uint64_t i = 0; i < elems; ++i) {
    const double x = static_cast<double>(i);
    double value = std::floor(40 * (std::sin(x / 9) + 1)) + (i == elems / 3 ? 45.0 : 0.0);
    if (is_float(dtype)) value = value / 8 + 0.001 * static_cast<double>(i % 7);
    if (spacing > 0) value = std::floor(value / spacing) * spacing;
    if (gaps && i % 11 < 3 && is_float(dtype)) value = std::numeric_limits<double>::quiet_NaN();
    const auto real = static_cast<float>(value);
    const auto whole = std::isnan(value) ? 0 : static_cast<std::int64_t>(value);
    if (dtype == DType::f64) {
      append(out, &value, 8);
    } else if (dtype == DType::f32) {
      append(out, &real, 4);
    } else if (dtype == DType::bf16) {
      append(out, reinterpret_cast<const std::uint8_t*>(&real) + 2, 2);
    } else if (dtype == DType::f16) {
      const std::uint16_t bits = static_cast<std::uint16_t>(0x3C00 + whole);  // from 1 up, in steps of one ulp
      append(out, &bits, 2);
    } else {
      append(out, &whole, dtype_bytes(dtype));
    }
  }
  return out;
}

struct StreamCase {
  const char* name;
  DType dtype;
  const char* shape;
  ErrorBound bound;
  const char* codec;
  bool gaps;
  const char* layout = nullptr;  ///< setting of the codec
  double spacing = 0;            ///< values are rounded to multiples of it
  bool idempotent = false;
};

constexpr std::uint64_t kLargeElems = 10000;  // such streams are for the target region alone

constexpr StreamCase kStreams[] = {
    {"f32_3d_abs", DType::f32, "7x13x29", {BoundKind::abs, 0.01}, "auto", false},
    {"f32_2d_gaps", DType::f32, "23x41", {BoundKind::rel, 1e-3}, "auto", true},
    {"f32_1d_segments", DType::f32, "9000", {BoundKind::abs, 0.5}, "lorenzo", true},
    {"f64_2d_pwrel", DType::f64, "17x19", {BoundKind::pwrel, 1e-3}, "auto", false},
    {"f64_1d_lossless", DType::f64, "100", {BoundKind::lossless, 0}, "lossless", true},
    {"f16_2d_abs", DType::f16, "12x12", {BoundKind::abs, 0.01}, "auto", false},
    {"bf16_1d_abs", DType::bf16, "200", {BoundKind::abs, 0.1}, "auto", true},
    {"i32_4d_abs", DType::i32, "2x3x5x7", {BoundKind::abs, 2}, "auto", false},
    {"u8_2d_lossless", DType::u8, "32x32", {BoundKind::lossless, 0}, "auto", false},
    {"i64_1d_abs", DType::i64, "64", {BoundKind::abs, 1}, "auto", false},
    {"u16_2d_abs", DType::u16, "9x31", {BoundKind::abs, 3}, "lorenzo", false},
    {"f32_3d_stencil", DType::f32, "9x10x23", {BoundKind::abs, 0.01}, "stencil", true},
    {"f64_1d_stencil", DType::f64, "700", {BoundKind::abs, 1e-6}, "stencil", false},
    {"i16_2d_stencil", DType::i16, "30x31", {BoundKind::abs, 1}, "stencil", false},
    {"f32_3d_levels", DType::f32, "9x10x23", {BoundKind::abs, 0.01}, "stencil", true, "levels"},
    {"f64_3d_planes", DType::f64, "5x14x15", {BoundKind::abs, 1e-4}, "stencil", false, "planes"},
    {"i16_4d_levels", DType::i16, "3x8x9x10", {BoundKind::abs, 1}, "stencil", false, "levels"},
    {"u8_2d_level_table", DType::u8, "256x257", {BoundKind::abs, 0.5}, "stencil", false, "levels"},
    {"f32_3d_wavelet", DType::f32, "9x10x23", {BoundKind::abs, 0.3}, "stencil", true, "wavelet"},
    {"f64_4d_wavelet", DType::f64, "5x8x6x16", {BoundKind::abs, 0.3}, "stencil", false, "wavelet:3d:1,2"},
    {"i16_2d_wavelet", DType::i16, "40x31", {BoundKind::abs, 9}, "stencil", false, "wavelet"},
    {"f32_3d_lattice", DType::f32, "9x10x23", {BoundKind::abs, 0.001}, "stencil", true, "raster", 0.01},
    {"f64_3d_lattice_levels", DType::f64, "9x10x23", {BoundKind::abs, 0.001}, "stencil", false, "levels", 0.01},
    {"f32_3d_prequantized", DType::f32, "9x10x23", {BoundKind::abs, 0.01}, "stencil", true, "raster", 0, true},
    {"i16_2d_prequantized", DType::i16, "30x31", {BoundKind::abs, 3}, "stencil", false, "levels", 0, true},
    {"f32_3d_autoencoder", DType::f32, "9x10x23", {BoundKind::abs, 0.3}, "autoencoder", true},
    {"i16_2d_autoencoder", DType::i16, "30x31", {BoundKind::abs, 3}, "autoencoder", false},
    {"f32_3d_interp", DType::f32, "9x10x23", {BoundKind::abs, 0.01}, "interp", true},
    {"f64_2d_interp_wide", DType::f64, "20x33", {BoundKind::abs, 1e-9}, "interp", false, "2d:1"},
    {"i16_1d_interp", DType::i16, "700", {BoundKind::abs, 1}, "interp", false, "1d"},
    {"f32_scalar", DType::f32, "1", {BoundKind::abs, 0.1}, "auto", false},
    {"f32_empty", DType::f32, "4x0x3", {BoundKind::abs, 0.1}, "auto", false},
};

Status add_stream(Corpus& corpus, const StreamCase& c, const Registry& codecs = builtin_codecs(),
                  const Settings& settings = {}) {
  QUERN_ASSIGN_OR_RETURN(const Shape shape, Shape::parse(c.shape));
  const Bytes values = smooth_values(c.dtype, shape.elems(), c.gaps, c.spacing);
  CompressOptions options;
  options.bound = c.bound;
  options.codec = c.codec;
  options.idempotent = c.idempotent;
  options.settings = settings;
  if (c.layout != nullptr) options.settings.push_back({"layout", c.layout});
  const std::string note = R"({"seed":1})";
  if (c.gaps) options.metadata.assign(note.begin(), note.end());
  Bytes stream;
  VectorSink sink(stream);
  QUERN_ASSIGN_OR_RETURN(const auto report, compress({values.data(), c.dtype, shape}, options, codecs, {}, sink));
  (void)report;
  MemorySource source(stream);
  QUERN_ASSIGN_OR_RETURN(const StreamInfo info, inspect(source, builtin_codecs()));
  const bool is_large = shape.elems() > kLargeElems;
  if (!is_large) corpus.add("decode", c.name, stream);
  Bytes region{1, 0, 9, 2, 30, 1, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0};
  region.insert(region.end(), stream.begin(), stream.end());
  corpus.add("region", c.name, region);
  if (is_large) return {};
  const auto begin = stream.begin();
  corpus.add("header", c.name, Bytes(begin + 12, begin + static_cast<std::ptrdiff_t>(info.header_bytes) - 8));
  return {};
}

/// One chunk as the codec writes it, behind the choices that fuzz_chunk reads; `bound` 0: that of the type.
Status add_chunk(Corpus& corpus, std::size_t codec_index, std::size_t type_index, std::uint8_t kind_index,
                 const char* layout = nullptr, std::uint8_t special_every = 0,
                 const Registry& codecs = builtin_codecs(), const Settings& settings = {}, double bound = 0) {
  const ArrayCodec& codec = *codecs.all()[codec_index];
  const BoundKind kinds[] = {BoundKind::lossless, BoundKind::abs, BoundKind::pwrel};
  const DType dtype = kChunkTypes[type_index];
  const double values_of_bound[] = {0, is_float(dtype) ? 0.01 : 2.0, 1e-3};
  PlanRequest request;
  request.dtype = dtype;
  request.bound = {kinds[kind_index], bound > 0 ? bound : values_of_bound[kind_index]};
  if (!codec.supports(dtype, request.bound.kind)) return {};
  const std::uint64_t extents[] = {3, 14, 33};
  QUERN_ASSIGN_OR_RETURN(request.shape, Shape::make(extents));
  const Bytes values = smooth_values(dtype, request.shape.elems(), false);
  const PlainSample sample(values.data(), dtype, request.shape.elems());
  SerialRunner serial;
  request.sample = &sample;
  request.runner = &serial;
  request.settings = settings;
  if (layout != nullptr) request.settings.push_back({"layout", layout});
  auto planned = codec.plan(request);
  if (!planned.ok()) return planned.status();
  const auto encoder = std::move(planned).value();
  const CodecPlan& plan = encoder->plan();
  if (plan.params.size() > 255) return Status(StatusCode::internal, "the parameters do not fit the seed's length byte");

  // The chunk at the upper end of every axis, as the target decodes it.
  const ChunkGrid& grid = plan.grid;
  const auto counts = grid.counts();
  ConstBox3 box;
  box.strides = {grid.extents[1] * grid.extents[2], grid.extents[2]};
  std::uint64_t first = 0;
  for (std::size_t a = 0; a < 3; ++a) {
    const std::uint64_t begin = (counts[a] - 1) * grid.chunk[a];
    box.extents[a] = grid.extents[a] - begin;
    first = first * grid.extents[a] + begin;
  }
  box.data = values.data() + first * dtype_bytes(dtype);
  Bytes special;
  if (special_every > 0) {
    special.resize(box.extents[0] * box.extents[1] * box.extents[2]);
    for (std::size_t i = 0; i < special.size(); i += special_every) special[i] = 1;
    box.special = special.data();
    box.special_strides = {box.extents[1] * box.extents[2], box.extents[2]};
  }
  Bytes chunk(encoder->max_chunk_bytes());
  Bytes scratch(encoder->scratch_bytes() + 64);
  const auto misalignment = reinterpret_cast<std::uintptr_t>(scratch.data()) % 64;
  const auto aligned = std::span(scratch).subspan(misalignment == 0 ? 0 : 64 - misalignment, encoder->scratch_bytes());
  QUERN_ASSIGN_OR_RETURN(const std::size_t size, encoder->encode(box, chunk, aligned));

  Bytes seed{static_cast<std::uint8_t>(codec_index),
             static_cast<std::uint8_t>(type_index),
             static_cast<std::uint8_t>(kind_index + 3 * special_every),
             3,
             14,
             33};
  append(seed, &request.bound.value, 8);
  seed.push_back(static_cast<std::uint8_t>(plan.params.size()));
  append(seed, plan.params.data(), plan.params.size());
  append(seed, chunk.data(), size);
  std::string name = std::string(codec.info().name) + "_" + dtype_name(dtype) + "_" + std::to_string(kind_index);
  if (layout != nullptr) name += std::string("_") + layout;
  if (!settings.empty()) name += "_" + std::string(settings[0].first.begin(), settings[0].first.end());
  if (special_every > 0) name += "_masked";
  for (char& c : name) c = c == ':' || c == ',' ? '_' : c;
  corpus.add("chunk", name, seed);
  return {};
}

/// A model of one latent for lines of 8 values, which stand for a slope: small enough for the seed of a chunk.
models::BlockModel slope_model() {
  models::BlockModel model;
  model.block = {1, 1, 8};
  model.unit_bits = 12;
  models::BlockPredictor predictor;
  for (const bool encodes : {true, false}) {
    kernels::Network& network = encodes ? predictor.encoder : predictor.decoder;
    network.in.channels = encodes ? 8 : 1;
    network.in_bits = 15;
    kernels::NetworkLayer layer;
    layer.bits = 15;
    layer.shift = 10;
    layer.out.channels = encodes ? 1 : 8;
    const std::size_t rows = layer.rows();
    layer.bias.assign(rows, 0);
    layer.multipliers.assign(rows, encodes ? 2 : 127);
    for (int i = -7; i < 8; i += 2) layer.weights.push_back(static_cast<std::int8_t>(encodes ? 3 * i : i));
    network.layers = {layer};
    kernels::check_network(network);
  }
  model.predictors.push_back(predictor);
  return model;
}

/// Streams and chunks of codec autoencoder that hold a model, and streams of stencil with networks. The golden stream has blocks that networks predict.
Status add_with_model(Corpus& corpus) {
  std::vector<golden::GoldenFile> files;
  golden::add_autoencoder_files(files);
  golden::add_network_files(files);
  for (const golden::GoldenFile& file : files)
    if (!file.written.empty()) corpus.add("decode", file.name, file.written);
  testing::MemoryModels source;
  const Settings settings{{"model", source.add(slope_model())}, {"embed", "yes"}};
  const CodecsWithModels codecs(source);
  for (const StreamCase& c :
       {StreamCase{"f32_2d_model", DType::f32, "20x45", {BoundKind::abs, 0.3}, "autoencoder", false},
        StreamCase{"i16_3d_model", DType::i16, "4x9x33", {BoundKind::abs, 3}, "autoencoder", false}})
    QUERN_RETURN_IF_ERROR(add_stream(corpus, c, codecs.registry(), settings));
  const auto all = codecs.registry().all();
  for (std::size_t index = 0; index < all.size(); ++index)
    for (const std::size_t type : {2, 3, 6})
      for (const std::uint8_t special_every : {std::uint8_t{0}, std::uint8_t{5}})
        if (std::string(all[index]->info().name) == "autoencoder")
          QUERN_RETURN_IF_ERROR(add_chunk(corpus, index, type, 1, nullptr, special_every, codecs.registry(), settings));
  return {};
}

/// Masks of gaps, of repeated values and of single cells, behind the choices that fuzz_mask and fuzz_mask_levels read.
Status add_masks(Corpus& corpus) {
  const DType types[] = {DType::f32, DType::f64, DType::u8, DType::i16};
  for (std::uint8_t type = 0; type < 4; ++type) {
    ConstBox3 box;
    box.extents = {6, 20, 30};
    box.strides = {600, 30};
    Bytes values = smooth_values(types[type], box.elems(), true);
    // A block of one repeated value, as land in an ocean field.
    const std::size_t width = dtype_bytes(types[type]);
    for (std::size_t i = 600; i < 2400; ++i)
      if (i % 30 > 17) std::memset(values.data() + i * width, 0, width);
    box.data = values.data();
    QUERN_ASSIGN_OR_RETURN(const auto found, mask::find_specials(box, types[type], {}, {true, {BoundKind::abs, 0.01}}));
    Bytes seed{type, 5, 19, 29};
    auto by_levels = seed;
    QUERN_RETURN_IF_ERROR(mask::encode_mask(found, box.extents, types[type], seed));
    corpus.add("mask", std::string("gaps_") + dtype_name(types[type]), seed);
    QUERN_RETURN_IF_ERROR(mask::encode_mask(found, box.extents, types[type], by_levels, {}, mask::MaskForm::levels));
    corpus.add("mask_levels", std::string("gaps_") + dtype_name(types[type]), by_levels);
  }
  return {};
}

/// Values near the base of fuzz_tensor, of two scales in turn, as values and as side and chunk.
Status add_tensors(Corpus& corpus, std::uint16_t elems, const std::string& suffix) {
  namespace tensor = codec::tensor;
  const auto low = static_cast<std::uint8_t>(elems & 0xff);
  const auto high = static_cast<std::uint8_t>(elems >> 8);
  for (std::uint8_t t = 0; t < std::size(fuzz::kTensorTypes); ++t)
    for (std::uint8_t m = 0; m < 2; ++m)
      for (std::uint8_t level = 0; level < (suffix.empty() ? 2 : 1); ++level) {
        // Of long ones those of types of one and two bytes: seeds stay small.
        if (!suffix.empty() && tensor::element_bytes(fuzz::kTensorTypes[t]) > 2) continue;
        const std::uint64_t extents[] = {elems};
        tensor::TensorDescription description;
        description.type = fuzz::kTensorTypes[t];
        QUERN_ASSIGN_OR_RETURN(description.shape, tensor::TensorShape::make(extents));
        const auto base = fuzz::tensor_base(description.bytes());
        Bytes values(base.begin(), base.end());
        for (std::size_t i = 0; i < values.size(); i += 4) {
          values[i] = static_cast<std::uint8_t>(values[i] + i % 5);
          if (i / 256 % 2 == 0) values[i] = 7;
        }
        tensor::TensorInputs inputs;
        inputs.values = values;
        inputs.base = base;
        tensor::TensorRequest request;
        request.mode = fuzz::kTensorModes[m];
        request.zstd_level = level;
        SerialRunner serial;
        QUERN_ASSIGN_OR_RETURN(const auto coded, tensor::encode_tensor(description, request, inputs, serial));
        Bytes seed{0, t, m, low, high, level, static_cast<std::uint8_t>(coded.side.size())};
        append(seed, coded.side.data(), coded.side.size());
        append(seed, coded.chunk(0).data(), coded.chunk(0).size());
        const std::string name =
            std::to_string(t) + "_" + tensor::mode_name(*request.mode) + (level > 0 ? "_zstd" : "") + suffix;
        corpus.add("tensor", "chunk_" + name, seed);
        if (level > 0) continue;
        seed.assign({1, t, m, low, high, 0});
        append(seed, values.data(), 300);
        corpus.add("tensor", "values_" + name, seed);
      }
  return {};
}

void append_word(Bytes& out, std::uint64_t word) {
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<std::uint8_t>(word >> shift));
}

/// One chunk of 6x7x9 in both directions, behind the direction and the words that fuzz_hdf5 reads.
Status add_hdf5_filter(Corpus& corpus, std::size_t type_index, std::uint8_t kind_index, bool big_endian) {
  const BoundKind kinds[] = {BoundKind::lossless, BoundKind::abs, BoundKind::pwrel};
  const DType dtype = kChunkTypes[type_index];
  if (kinds[kind_index] == BoundKind::pwrel && !is_float(dtype)) return {};
  const std::uint64_t extents[] = {6, 7, 9};
  QUERN_ASSIGN_OR_RETURN(const Shape shape, Shape::make(extents));
  const Bytes values = smooth_values(dtype, shape.elems(), true);
  CompressOptions options;
  options.bound = {kinds[kind_index], kind_index == 0 ? 0 : is_float(dtype) ? 0.01 : 2.0};
  const std::string note = R"({"byte_order":"big"})";
  if (big_endian) options.metadata.assign(note.begin(), note.end());
  Bytes stream;
  VectorSink sink(stream);
  QUERN_ASSIGN_OR_RETURN(const auto report,
                         compress({values.data(), dtype, shape}, options, builtin_codecs(), {}, sink));
  (void)report;
  std::uint64_t bound_bits = 0;
  std::memcpy(&bound_bits, &options.bound.value, 8);
  Bytes words;
  for (const std::uint64_t word :
       {big_endian ? 0x201ULL : 1ULL, 0ULL, static_cast<unsigned long long>(kinds[kind_index]),
        static_cast<unsigned long long>(bound_bits >> 32), static_cast<unsigned long long>(bound_bits & 0xFFFFFFFF),
        0ULL, static_cast<unsigned long long>(dtype), 3ULL, 6ULL, 7ULL, 9ULL})
    append_word(words, word);
  words.resize(72);
  const std::string name =
      std::string(dtype_name(dtype)) + "_" + std::to_string(kind_index) + (big_endian ? "_big" : "");
  for (const bool reverse : {false, true}) {
    Bytes seed{static_cast<std::uint8_t>(reverse ? 1 : 0), 18};
    seed.insert(seed.end(), words.begin(), words.end());
    const Bytes& chunk = reverse ? stream : values;
    seed.insert(seed.end(), chunk.begin(), chunk.end());
    corpus.add("hdf5", (reverse ? "decode_" : "encode_") + name, seed);
  }
  return {};
}

void add_texts(Corpus& corpus) {
  const char* texts[] = {
      "50x100x100", "1",    "0x3", "2x3x4x5x6x7x8x9", "18446744073709551615x2", "0:10,5:9,:", "3,:4,2:", "9:3,:,:",
      "f32",        "bf16", "u64"};
  int number = 0;
  for (const char* text : texts) corpus.add("text", "text_" + std::to_string(number++), std::string(text));
  const char* lines[] = {
      "compress\n--rel\n1e-3\n-t\nf32\n-s\n50x100x100\nin.f32\n-o\nout.qn\n",
      "compress\n--abs\n0.5\n--fill\n-999\n--fill\nnan\n--range\n-1:2.5\n--set\na=b\n-T\n0\n--memory\n2GiB\nx.npy\n",
      "compress\n--lossless\n--append\n--dataset\n/a/b\n--skip\n128\n--big-endian\n--order\nF\n-c\n-\n",
      "decompress\n--region\n0:10,5:9,:\n--keep-going\nx.qn\n-f\n-o\ny.nc\n",
      "verify\na.f32\na.qn\n--json\n-q\n",
      "compare\na\nb\n-t\nf64\n-s\n8x8\n--html\nr.html\n",
      "bench\na.f32\n-t\nu16\n-s\n4x4\n--codec\nlorenzo\n--progress\nnever\n",
      "list\ncodecs\n",
      "doctor\n--json\n",
      "--version\n",
      "h5\nargs\n--pwrel\n1e-3\n--optional\n",
      "h5\npack\n--rel\n1e-4\n--dataset\n/a\na.nc\n-o\nb.nc\n",
  };
  number = 0;
  for (const char* text : lines) corpus.add("arguments", "line_" + std::to_string(number++), std::string(text));
}

void add_readers(Corpus& corpus) {
  Bytes operations;
  for (int i = 0; i < 64; ++i) operations.push_back(static_cast<std::uint8_t>(i * 37));
  Bytes data;
  for (int i = 0; i < 192; ++i) data.push_back(static_cast<std::uint8_t>(i < 96 ? 0x80 | i : i));
  Bytes both = operations;
  both.insert(both.end(), data.begin(), data.end());
  corpus.add("reader", "mixed", both);
  Bytes varints(16, 6);
  varints.insert(varints.end(), {0x00, 0x7F, 0x80, 0x01, 0xFF, 0xFF, 0x03, 0x80, 0x00});
  varints.insert(varints.end(), {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01});
  varints.insert(varints.end(), 29, 0xFF);
  corpus.add("reader", "varints", varints);
}

/// Distributions of every shape over some context bins, then a stream of nothing but zeros, several streams, or
/// residuals.
void add_residuals(Corpus& corpus) {
  for (std::uint8_t shape = 0; shape < 8; ++shape) {
    coding::Distributions distributions{};
    for (std::size_t level = 2; level < 40; level += 1 + shape) {
      kernels::TokenDistribution& distribution = distributions[level];
      distribution.tokens = static_cast<std::uint8_t>(1 + (level * 5 + shape * 17) % 120);
      distribution.shape = shape;
      distribution.scale = static_cast<std::uint8_t>(20 + level * 4);
      distribution.zero = static_cast<std::uint16_t>(30000 / level);
    }
    Bytes stored;
    BitWriter writer(stored);
    coding::write_distributions(distributions, writer);
    for (std::uint8_t use = 0; use < 4; ++use) {
      Bytes seed{use};
      append(seed, stored.data(), stored.size());
      Bytes rest{0, 0, 0, 1, 0};
      if (use == 2) rest = {2, 3, 4, 5};
      if (use % 2 == 1) rest.clear();
      for (int i = 0; i < 90; ++i) rest.push_back(static_cast<std::uint8_t>(i * (37 + 2 * use) + shape + 1));
      append(seed, rest.data(), rest.size() / 2 * 2);
      corpus.add("residuals", "shape_" + std::to_string(shape) + "_" + std::to_string(use), seed);
    }
  }
}

/// Stencil in every layout: see add_roundtrips.
void add_layout_roundtrips(Corpus& corpus) {
  for (std::uint8_t layout = 1; layout < 5; ++layout) {
    for (const unsigned type : {0u, 1u, 2u, 5u}) {
      Bytes seed{static_cast<std::uint8_t>(type), 1, static_cast<std::uint8_t>(type < 3 ? 5 : 7)};
      seed.push_back(static_cast<std::uint8_t>(2 + 4 * layout));
      seed.push_back(static_cast<std::uint8_t>(1 + (type + layout) % 4));
      for (std::uint8_t i = 0; i < 6; ++i) seed.push_back(static_cast<std::uint8_t>(9 + 5 * i));
      seed.push_back(static_cast<std::uint8_t>(0x80 | 8 | (layout % 2)));
      for (int i = 0; i < 64; ++i) seed.push_back(static_cast<std::uint8_t>((i * i + type) % 9 - 4));
      corpus.add("roundtrip", std::string("layout_") + std::to_string(layout) + "_" + std::to_string(type), seed);
    }
  }
}

/// The choices fuzz_roundtrip reads: type, kind, value, codec, rank, extents, flags, then bytes for the values.
void add_roundtrips(Corpus& corpus) {
  for (std::uint8_t type = 0; type < 12; ++type) {
    for (std::uint8_t kind = 0; kind < 6; ++kind) {
      Bytes seed{type, kind};
      seed.push_back(static_cast<std::uint8_t>(40 + type));              // of the usual values, or a PSNR
      seed.push_back(static_cast<std::uint8_t>((type + kind) % 3));      // codec
      seed.push_back(static_cast<std::uint8_t>(1 + (type + kind) % 4));  // rank
      for (std::uint8_t i = 0; i < 6; ++i) seed.push_back(static_cast<std::uint8_t>(5 + 7 * i + type));
      seed.push_back(static_cast<std::uint8_t>(0x80 | (type % 2 == 0 ? 8 : 0) | (kind == 1 ? 1 : 0)));
      for (int i = 0; i < 64; ++i) seed.push_back(static_cast<std::uint8_t>((i * i + type) % 9 - 4));
      corpus.add("roundtrip", std::string("case_") + std::to_string(type) + "_" + std::to_string(kind), seed);
    }
  }
}

/// The golden sets of records, as streams.
Status add_records(Corpus& corpus) {
  for (const golden::RecordCase& c : golden::record_cases()) {
    QUERN_ASSIGN_OR_RETURN(const Bytes stream, golden::encode(c));
    corpus.add("records", c.name, stream);
  }
  return {};
}

int complain(const char* what, const Status& status) {
  std::cerr << "make_fuzz_corpus: " << what << ": " << status.text() << "\n";
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: make_fuzz_corpus FOLDER\n";
    return 1;
  }
  Corpus corpus(argv[1]);
  for (const StreamCase& c : kStreams)
    if (const Status status = add_stream(corpus, c); !status.ok()) return complain(c.name, status);
  for (const StreamCase& c :
       {StreamCase{"f32_3d_parts", DType::f32, "9x10x23", {BoundKind::abs, 0.01}, "stencil", true, "levels"},
        StreamCase{"i16_4d_parts", DType::i16, "9x4x6x10", {BoundKind::abs, 1}, "stencil", false, "raster"}})
    if (const Status status = add_stream(corpus, c, builtin_codecs(), {{"parts", "1,2,3,3"}}); !status.ok())
      return complain(c.name, status);
  for (std::size_t codec = 0; codec < builtin_codecs().all().size(); ++codec)
    for (std::size_t type = 0; type < std::size(kChunkTypes); ++type)
      for (std::uint8_t kind = 0; kind < 3; ++kind)
        if (const Status status = add_chunk(corpus, codec, type, kind); !status.ok())
          return complain(builtin_codecs().all()[codec]->info().name, status);
  for (std::size_t codec = 0; codec < builtin_codecs().all().size(); ++codec)
    for (const char* layout : {"raster", "levels", "planes", "wavelet"})
      for (std::size_t type = 0; type < std::size(kChunkTypes); ++type)
        for (const std::uint8_t special_every : {std::uint8_t{0}, std::uint8_t{5}})
          if (std::string(builtin_codecs().all()[codec]->info().name) == "stencil")
            if (const Status status = add_chunk(corpus, codec, type, 1, layout, special_every); !status.ok())
              return complain(layout, status);
  for (std::size_t codec = 0; codec < builtin_codecs().all().size(); ++codec)
    for (const char* layout : {"raster", "levels", "planes", "wavelet"})
      for (const std::size_t type : {2, 6})
        for (const std::uint8_t special_every : {std::uint8_t{0}, std::uint8_t{5}})
          if (std::string(builtin_codecs().all()[codec]->info().name) == "stencil")
            if (const Status status =
                    add_chunk(corpus, codec, type, 1, layout, special_every, builtin_codecs(), {{"parts", "1,2"}});
                !status.ok())
              return complain("parts", status);
  if (const Status status = add_with_model(corpus); !status.ok()) return complain("model", status);
  for (std::size_t codec = 0; codec < builtin_codecs().all().size(); ++codec)
    for (const auto& [layout, bound] : {std::pair{"1d", 0.0}, {"3d:1,2:2,3,4", 0.0}, {"2d:2", 1e-9}})
      for (std::size_t type = 0; type < std::size(kChunkTypes); ++type)
        for (const std::uint8_t special_every : {std::uint8_t{0}, std::uint8_t{5}})
          if (std::string(builtin_codecs().all()[codec]->info().name) == "interp")
            if (const Status status =
                    add_chunk(corpus, codec, type, 1, layout, special_every, builtin_codecs(), {}, bound);
                !status.ok())
              return complain(layout, status);
  for (const std::size_t type : {1, 2, 3, 6, 8})
    for (std::uint8_t kind = 0; kind < 3; ++kind)
      if (const Status status = add_hdf5_filter(corpus, type, kind, type == 3); !status.ok())
        return complain("hdf5", status);
  if (const Status status = add_masks(corpus); !status.ok()) return complain("mask", status);
  // Planes of more than 2^13 symbols have 32 states.
  for (const auto& [elems, suffix] : {std::pair{700, ""}, std::pair{8200, "_long"}})
    if (const Status status = add_tensors(corpus, static_cast<std::uint16_t>(elems), suffix); !status.ok())
      return complain("tensor", status);
  if (const Status status = add_records(corpus); !status.ok()) return complain("records", status);
  add_texts(corpus);
  add_readers(corpus);
  add_roundtrips(corpus);
  add_layout_roundtrips(corpus);
  add_residuals(corpus);
  if (corpus.failed()) {
    std::cerr << "make_fuzz_corpus: a file could not be written\n";
    return 1;
  }
  return 0;
}
