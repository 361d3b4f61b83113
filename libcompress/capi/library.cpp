// What the library is: versions, status names, build, codecs.
#include <exception>
#include <string>

#include <quern/compress.h>
#include <quern/library.h>
#include <quern/quern.h>

#include "libcompress/capi/barrier.h"
#include "libcompress/capi/versioned.h"

static_assert(QUERN_OK == static_cast<int>(quern::StatusCode::ok));
static_assert(QUERN_ERROR_INVALID_ARGUMENT == static_cast<int>(quern::StatusCode::invalid_argument));
static_assert(QUERN_ERROR_INVALID_SHAPE == static_cast<int>(quern::StatusCode::invalid_shape));
static_assert(QUERN_ERROR_INVALID_BOUND == static_cast<int>(quern::StatusCode::invalid_bound));
static_assert(QUERN_ERROR_UNKNOWN_SETTING == static_cast<int>(quern::StatusCode::unknown_setting));
static_assert(QUERN_ERROR_BOUND_NOT_MET == static_cast<int>(quern::StatusCode::bound_not_met));
static_assert(QUERN_ERROR_BAD_MAGIC == static_cast<int>(quern::StatusCode::bad_magic));
static_assert(QUERN_ERROR_TRUNCATED == static_cast<int>(quern::StatusCode::truncated));
static_assert(QUERN_ERROR_CORRUPT == static_cast<int>(quern::StatusCode::corrupt));
static_assert(QUERN_ERROR_CHECKSUM_MISMATCH == static_cast<int>(quern::StatusCode::checksum_mismatch));
static_assert(QUERN_ERROR_UNSUPPORTED_VERSION == static_cast<int>(quern::StatusCode::unsupported_version));
static_assert(QUERN_ERROR_TRAILING_DATA == static_cast<int>(quern::StatusCode::trailing_data));
static_assert(QUERN_ERROR_REFERENCE_MISSING == static_cast<int>(quern::StatusCode::reference_missing));
static_assert(QUERN_ERROR_UNSUPPORTED == static_cast<int>(quern::StatusCode::unsupported));
static_assert(QUERN_ERROR_UNKNOWN_CODEC == static_cast<int>(quern::StatusCode::unknown_codec));
static_assert(QUERN_ERROR_MISSING_MODEL == static_cast<int>(quern::StatusCode::missing_model));
static_assert(QUERN_ERROR_OUT_OF_MEMORY == static_cast<int>(quern::StatusCode::out_of_memory));
static_assert(QUERN_ERROR_MEMORY_LIMIT == static_cast<int>(quern::StatusCode::memory_limit));
static_assert(QUERN_ERROR_IO == static_cast<int>(quern::StatusCode::io_error));
static_assert(QUERN_ERROR_CANCELLED == static_cast<int>(quern::StatusCode::cancelled));
static_assert(QUERN_ERROR_DESTINATION_TOO_SMALL == static_cast<int>(quern::StatusCode::destination_too_small));
static_assert(QUERN_ERROR_HARDWARE_FAULT == static_cast<int>(quern::StatusCode::hardware_fault));
static_assert(QUERN_ERROR_DEVICE_UNAVAILABLE == static_cast<int>(quern::StatusCode::device_unavailable));
static_assert(QUERN_ERROR_DEVICE == static_cast<int>(quern::StatusCode::device_error));
static_assert(QUERN_ERROR_INTERNAL == static_cast<int>(quern::StatusCode::internal));

uint32_t quern_version(void) { return QUERN_VERSION_MAJOR * 10000 + QUERN_VERSION_MINOR * 100 + QUERN_VERSION_PATCH; }

#define QUERN_TEXT_INNER(x) #x
#define QUERN_TEXT(x) QUERN_TEXT_INNER(x)
const char* quern_version_string(void) {
  return QUERN_TEXT(QUERN_VERSION_MAJOR) "." QUERN_TEXT(QUERN_VERSION_MINOR) "." QUERN_TEXT(QUERN_VERSION_PATCH);
}

uint32_t quern_abi_version(void) { return QUERN_ABI_VERSION; }

const char* quern_status_name(quern_status status) {
  return quern::status_name(static_cast<quern::StatusCode>(status));
}

const char* quern_build_info(void) {
  using namespace quern;
  try {
    static const std::string text = [] {
      std::string built = "quern ";
      built.append(quern_version_string()).append("; CPU kernels:");
      for (const InstructionSet& set : instruction_sets())
        if (set.available) built.append(" ").append(set.name);
      for (const LinkedLibrary& library : linked_libraries())
        built.append("; ").append(library.name).append(" ").append(library.version);
      return built;
    }();
    return text.c_str();
  } catch (const std::exception&) {
    return quern_version_string();
  }
}

size_t quern_codec_count(void) { return quern::builtin_codecs().all().size(); }

namespace quern::capi {
namespace {

Result<const ArrayCodec*> codec_at(std::size_t index) {
  const auto codecs = builtin_codecs().all();
  if (index >= codecs.size())
    return Status(StatusCode::invalid_argument, "codec {0} of {1}", static_cast<std::int64_t>(index),
                  static_cast<std::int64_t>(codecs.size()));
  return codecs[index];
}

}  // namespace
}  // namespace quern::capi

quern_status quern_codec_get(size_t index, quern_codec_info* info) {
  using namespace quern;
  return capi::guarded(capi::thread_error(), [&]() -> Status {
    QUERN_RETURN_IF_ERROR(capi::check_struct(info));
    QUERN_ASSIGN_OR_RETURN(const ArrayCodec* const found, capi::codec_at(index));
    const CodecInfo& codec = found->info();
    quern_codec_info out = QUERN_CODEC_INFO_INIT;
    out.id = codec.id;
    out.version = codec.version;
    out.name = codec.name;
    out.summary = codec.summary;
    out.idempotent = codec.idempotent ? 1 : 0;
    capi::write_struct(out, info);
    return {};
  });
}

quern_status quern_codec_supports(size_t index, quern_dtype dtype, quern_bound_kind kind, int* yes) {
  using namespace quern;
  return capi::guarded(capi::thread_error(), [&]() -> Status {
    if (yes == nullptr) return capi::null_argument("quern_codec_supports: the place for the answer is NULL");
    QUERN_ASSIGN_OR_RETURN(const ArrayCodec* const codec, capi::codec_at(index));
    if (dtype < 0 || dtype > 255 || !is_known_dtype(static_cast<std::uint8_t>(dtype)))
      return Status(StatusCode::invalid_argument, "{0} is no element type", dtype);
    if (kind != QUERN_BOUND_LOSSLESS && kind != QUERN_BOUND_ABS && kind != QUERN_BOUND_PWREL)
      return Status(StatusCode::invalid_bound, "codecs are asked about lossless, abs and pwrel, not kind {0}", kind);
    *yes = codec->supports(static_cast<DType>(dtype), static_cast<BoundKind>(kind)) ? 1 : 0;
    return {};
  });
}
