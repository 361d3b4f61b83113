// Chunks through the C interface.
#include "bindings/hdf5/chunk_stream.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "bindings/hdf5/element_type.h"
#include "bindings/hdf5/problem.h"

namespace quern::hdf5 {
namespace {

constexpr std::uint32_t kGoalMask = 0xF;
constexpr std::uint32_t kNoMaskSearch = 0x10;
constexpr std::uint32_t kEffortMask = 0xF00;
constexpr unsigned kEffortShift = 8;
constexpr std::array<const char*, 3> kGoals{"ratio", "psnr", "speed"};
/// Notes in the streams of big-endian datasets. Their length alone tells on reading, where settings may be lost.
constexpr char kBigEndianNote[] = R"({"byte_order":"big"})";
constexpr std::size_t kBigEndianNoteBytes = sizeof(kBigEndianNote) - 1;

Trouble trouble_of(quern_status status, Trouble otherwise) {
  return status == QUERN_ERROR_OUT_OF_MEMORY || status == QUERN_ERROR_MEMORY_LIMIT || status == QUERN_ERROR_INTERNAL
             ? Trouble::resource
             : otherwise;
}

/// `context` NULL: a call that has none.
void check_status(quern_status status, const quern_context* context, Trouble trouble, const std::string& what) {
  if (status != QUERN_OK) throw Problem(trouble_of(status, trouble), what + ": " + quern_last_error(context));
}

std::string codec_name(std::uint32_t id) {
  if (id == 0) return "auto";
  std::string known;
  for (std::size_t i = 0; i < quern_codec_count(); ++i) {
    quern_codec_info info = QUERN_CODEC_INFO_INIT;
    check_status(quern_codec_get(i, &info), nullptr, Trouble::resource, "the codecs cannot be listed");
    if (info.id == id) return info.name;
    known += ", " + std::to_string(info.id) + " " + info.name;
  }
  throw Problem(Trouble::request, "this quern, " + std::string(quern_version_string()) + ", has no codec " +
                                      std::to_string(id) + " (cd_values[1]); it has 0 auto" + known);
}

void add_fill(quern_params* params, quern_dtype dtype, std::uint64_t bits) {
  std::array<std::uint8_t, 8> element{};
  const std::size_t width = dtype_bytes(static_cast<std::uint32_t>(dtype));
  for (std::size_t b = 0; b < width; ++b)
    element[needs_swap(false) ? width - 1 - b : b] = static_cast<std::uint8_t>(bits >> (8 * b));
  if (width < 8 && bits >> (8 * width) != 0)
    throw Problem(Trouble::request, std::string("a missing value (cd_values[16] and on) is no ") +
                                        dtype_name(static_cast<std::uint32_t>(dtype)) + " number");
  check_status(quern_params_add_fill(params, dtype, element.data()), nullptr, Trouble::request,
               "the filter's settings (cd_values)");
}

/// Numbers that archives mark missing data with. nccopy and netCDF in no-fill mode do not tell HDF5 of a _FillValue:
/// these are kept exactly without a word, which no ordinary element that equals one minds.
constexpr std::array<double, 8> kMarkers{-999, -9999, -99999, -32767, -32768, -1e34, 1e20, 9.969209968386869e36};

/// Markers that the bound would let move: others are exceptions by themselves.
void add_markers(quern_params* params, const Request& request, const ChunkLayout& layout) {
  if (request.kind == QUERN_BOUND_LOSSLESS || (layout.dtype != QUERN_F32 && layout.dtype != QUERN_F64)) return;
  std::size_t declared = request.missing.size() + (layout.fill ? 1 : 0);
  for (const double marker : kMarkers) {
    if (declared == kMostMissing) return;
    if (request.kind == QUERN_BOUND_ABS && !(std::fabs(marker) < request.value * 0x1p24)) continue;
    const std::uint64_t bits = layout.dtype == QUERN_F64 ? std::bit_cast<std::uint64_t>(marker)
                                                         : std::bit_cast<std::uint32_t>(static_cast<float>(marker));
    const auto& missing = request.missing;
    if (bits == layout.fill || std::find(missing.begin(), missing.end(), bits) != missing.end()) continue;
    add_fill(params, layout.dtype, bits);
    ++declared;
  }
}

void set_idempotent(quern_params& params) {
  check_status(quern_params_set(&params, "idempotent", "1"), nullptr, Trouble::resource, "parameters cannot be set");
}

Params make_params(const Request& request, const ChunkLayout& layout) {
  quern_params* raw = nullptr;
  check_status(quern_params_create(&raw), nullptr, Trouble::resource, "parameters cannot be made");
  Params params(raw);
  const auto set = [&](quern_status status) {
    check_status(status, nullptr, Trouble::request, "the filter's settings (cd_values)");
  };
  set(quern_params_set_bound(raw, request.kind, request.value));
  set(quern_params_set(raw, "codec", codec_name(request.codec_id).c_str()));
  const std::uint32_t goal = request.options & kGoalMask;
  const std::uint32_t effort = (request.options & kEffortMask) >> kEffortShift;
  if (goal >= kGoals.size() || effort > 9 || (request.options & ~(kGoalMask | kNoMaskSearch | kEffortMask)) != 0)
    throw Problem(Trouble::request, "the option word (cd_values[5]) is " + std::to_string(request.options) +
                                        "; it is 0 for best ratio, 1 for PSNR, 2 for speed, plus 16 to leave repeated "
                                        "values alone, plus 32 when chunks are written once, plus 256 times an effort "
                                        "from 1 to 9");
  set(quern_params_set(raw, "goal", kGoals[goal]));
  if (effort != 0) set(quern_params_set(raw, "effort", std::to_string(effort).c_str()));
  set(quern_params_set(raw, "mask_search", (request.options & kNoMaskSearch) != 0 ? "0" : "1"));
  if (layout.fill) add_fill(raw, layout.dtype, *layout.fill);
  if (layout.known())
    for (const std::uint64_t bits : request.missing) add_fill(raw, layout.dtype, bits);
  add_markers(raw, request, layout);
  if (layout.big_endian) set(quern_params_set_metadata(raw, kBigEndianNote, kBigEndianNoteBytes));
  return params;
}

quern_array make_array(const ChunkLayout& layout, void* elements) {
  quern_array array;
  check_status(quern_array_init(&array, layout.dtype, layout.rank, layout.extents.data(), elements), nullptr,
               Trouble::request, "the chunk's shape");
  return array;
}

}  // namespace

Context make_context(const quern_context_desc& desc, std::uint64_t memory_limit, EncodingModels* models) {
  quern_context_desc limited = desc;
  limited.memory_limit = memory_limit;
  quern_context* context = nullptr;
  check_status(quern_context_create(&limited, &context), nullptr, Trouble::resource, "a context cannot be made");
  Context made(context);
  const EncodingModels first = add_models(*context);
  if (models != nullptr) *models = first;
  return made;
}

Context make_context(std::uint32_t threads, std::uint64_t memory_limit) {
  quern_context_desc desc = QUERN_CONTEXT_DESC_INIT;
  desc.threads = threads;
  return make_context(desc, memory_limit);
}

void check_request(const Request& request) { make_params(request, {}); }

ChunkEncoder::ChunkEncoder(const Request& request, const ChunkLayout& layout, const quern_context_desc& desc, Use use)
    : layout_(layout),
      exact_(use == Use::again && request.rewriting == Rewriting::exact && request.kind != QUERN_BOUND_LOSSLESS),
      context_(make_context(desc, 0, &models_)),
      params_(make_params(request, layout)) {
  if (const std::string& model = models_.of_codec(codec_name(request.codec_id)); !model.empty()) {
    // Outside of the chunks, which share it.
    for (const auto& [key, value] : {std::pair("model", model.c_str()), std::pair("embed", "no")})
      check_status(quern_params_set(params_.get(), key, value), nullptr, Trouble::request, "the model of QUERN_MODELS");
  }
  if (request.rewriting == Rewriting::idempotent) set_idempotent(*params_);
  if (!exact_) return;
  idempotent_ = make_params(request, layout);
  set_idempotent(*idempotent_);
  Request lossless = request;
  lossless.kind = QUERN_BOUND_LOSSLESS;
  lossless.codec_id = 0;
  lossless_ = make_params(lossless, layout);
}

void ChunkEncoder::check() {
  if (max_stream_bytes() > kMaxChunkBytes)
    throw Problem(Trouble::dataset, "a chunk of " + layout_.text() + " has " + std::to_string(layout_.bytes()) +
                                        " bytes; HDF5 takes less than 4 GiB: choose smaller chunks");
  // One element through the library itself: it knows best which codec and bound go with which type and how many axes.
  std::array<std::uint64_t, QUERN_MAX_RANK> ones;
  ones.fill(1);
  std::array<std::uint8_t, 8> element{};
  std::array<std::uint8_t, 1024> stream{};
  quern_array array;
  check_status(quern_array_init(&array, layout_.dtype, layout_.rank, ones.data(), element.data()), nullptr,
               Trouble::request, "the type");
  std::uint64_t size = 0;
  const quern_status status =
      quern_compress(context_.get(), params_.get(), &array, stream.data(), stream.size(), &size, nullptr);
  check_status(status, context_.get(), Trouble::dataset,
               std::string("these settings do not serve ") + dtype_name(static_cast<std::uint32_t>(layout_.dtype)) +
                   " elements");
}

std::uint64_t ChunkEncoder::max_stream_bytes() const {
  const quern_array array = make_array(layout_, nullptr);
  std::uint64_t bytes = 0;
  check_status(quern_compress_bound(&array, params_.get(), &bytes), nullptr, Trouble::request, "the chunk's shape");
  return bytes;
}

std::uint64_t ChunkEncoder::compress(const quern_params& params, const void* elements, void* stream,
                                     std::uint64_t capacity) {
  const quern_array array = make_array(layout_, const_cast<void*>(elements));
  std::uint64_t size = 0;
  check_status(quern_compress(context_.get(), &params, &array, stream, capacity, &size, nullptr), context_.get(),
               Trouble::dataset, "a chunk of " + layout_.text() + " cannot be compressed");
  return size;
}

bool ChunkEncoder::reproduces(const void* stream, std::uint64_t size, const void* elements) {
  decoded_.resize(layout_.bytes());
  decode_chunk(*context_, stream, size, layout_, decoded_.data());
  return std::memcmp(decoded_.data(), elements, decoded_.size()) == 0;
}

std::uint64_t ChunkEncoder::encode(const void* elements, void* stream, std::uint64_t capacity) {
  const std::uint64_t size = compress(*params_, elements, stream, capacity);
  if (!exact_ || reproduces(stream, size, elements)) return size;
  // Values that the filter may have decoded itself: those of a prequantized chunk, or any.
  const std::uint64_t lossless = compress(*lossless_, elements, stream, capacity);
  other_.resize(capacity);
  const std::uint64_t other = compress(*idempotent_, elements, other_.data(), capacity);
  if (other >= lossless || !reproduces(other_.data(), other, elements)) return lossless;
  std::memcpy(stream, other_.data(), other);
  return other;
}

ChunkLayout inspect_chunk(const void* stream, std::uint64_t bytes) {
  quern_stream_info info = QUERN_STREAM_INFO_INIT;
  check_status(quern_inspect(stream, bytes, &info), nullptr, Trouble::chunk,
               "the chunk's " + std::to_string(bytes) + " bytes are no stream this quern can read");
  ChunkLayout out;
  out.dtype = info.dtype;
  out.rank = info.rank;
  std::uint64_t size = dtype_bytes(static_cast<std::uint32_t>(info.dtype));
  for (std::uint32_t a = 0; a < info.rank; ++a) {
    const std::uint64_t extent = info.extents[a];
    if (extent == 0 || size == 0 || extent > kMaxChunkBytes / size)
      throw Problem(Trouble::chunk, "the chunk's stream claims an array that fits no chunk");
    out.extents[a] = extent;
    size *= extent;
  }
  if (info.rank == 0) throw Problem(Trouble::chunk, "the chunk's stream holds a single number, which is no chunk");
  out.big_endian = info.metadata_bytes == kBigEndianNoteBytes;
  return out;
}

void check_agreement(const ChunkLayout& stream, const ChunkLayout& settings) {
  if (!settings.known()) return;
  if (stream.dtype == settings.dtype && stream.rank == settings.rank && stream.extents == settings.extents &&
      stream.big_endian == settings.big_endian)
    return;
  throw Problem(Trouble::chunk, "the chunk holds " + stream.text() + ", but the dataset's filter settings say " +
                                    settings.text() +
                                    ": the chunk comes from another dataset, or the settings were changed");
}

void decode_chunk(quern_context& context, const void* stream, std::uint64_t bytes, const ChunkLayout& layout,
                  void* elements) {
  quern_array array = make_array(layout, elements);
  check_status(quern_decompress(&context, stream, bytes, &array), &context, Trouble::chunk,
               "the chunk of " + layout.text() + " is damaged");
}

std::uint64_t decoder_memory(const ChunkLayout& layout) {
  constexpr std::uint64_t kLeast = UINT64_C(64) << 20;
  return kLeast + 4 * layout.bytes();
}

}  // namespace quern::hdf5
