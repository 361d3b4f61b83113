// Parameters: block u8 (a power of two), then for each section its stride as a varint.
#include "examples/codec/record_codec.h"

#include "examples/codec/packed_values.h"
#include "libcompress/format/reader.h"
#include "libcompress/format/writer.h"

namespace quern::codec::packing {
namespace {

constexpr std::uint16_t kVersion = 1;
/// Elements of an item that are each compared with the same element of the item before; items of more are long rows,
/// whose elements are compared with their neighbours.
constexpr std::uint64_t kMostStride = 64;

constexpr CodecInfo kInfo{
    kRecordCodecId,        kVersion, "packing", "differences in blocks of equal width (an example)",
    CodecTier::throughput, false};

/// Strings of bytes are values of one byte that must come back.
ValueRun run_of(const RecordSection& section, const Packing& packing) {
  if (section.form == SectionForm::bytes) return {DType::u8, {}, packing};
  return {section.dtype, section.enforced, packing};
}

/// What parameters say, for both directions.
class Sections {
 public:
  static Sections plan(const RecordLayout& layout) {
    Sections out;
    for (const RecordSection& section : layout.sections) {
      const bool is_short = section.form == SectionForm::values && section.item_elems <= kMostStride;
      out.packing_.push_back({Packing{}.block_log2, is_short ? section.item_elems : 1});
    }
    return out;
  }

  static Result<Sections> read(std::span<const std::uint8_t> params, const RecordLayout& layout) {
    Reader in(params);
    QUERN_ASSIGN_OR_RETURN(const std::uint8_t block_log2, in.u8());
    if (block_log2 < kLeastBlockLog2 || block_log2 > kMostBlockLog2)
      return Status(StatusCode::corrupt, "the parameters name blocks of 2^{0} words", block_log2);
    Sections out;
    for (std::size_t i = 0; i < layout.sections.size(); ++i) {
      QUERN_ASSIGN_OR_RETURN(const std::uint64_t stride, in.varint(kMostStride));
      if (stride == 0) return Status(StatusCode::corrupt, "the parameters name a stride of 0");
      out.packing_.push_back({block_log2, stride});
    }
    QUERN_RETURN_IF_ERROR(in.expect_end());
    return out;
  }

  void write(Vector<std::uint8_t>& params) const {
    Writer out(params);
    out.u8(static_cast<std::uint8_t>(packing_.front().block_log2));
    for (const Packing& packing : packing_) out.varint(packing.stride);
  }

  ValueRun run(const SectionPart& part) const { return run_of(*part.section, packing_[part.index]); }

 private:
  Vector<Packing> packing_;
};

class Encoder final : public RecordEncoder {
 public:
  explicit Encoder(Sections sections) : sections_(std::move(sections)) { sections_.write(params_); }

  std::span<const std::uint8_t> params() const override { return params_; }
  Result<std::size_t> encode(const SectionPart& part, std::span<const std::uint8_t> in,
                             std::span<std::uint8_t> out) const override {
    return encode_values(sections_.run(part), in, out);
  }
  std::uint64_t working_bytes(std::uint64_t part_bytes) const override { return working_bytes_of_values(part_bytes); }

 private:
  Sections sections_;
  Vector<std::uint8_t> params_;
};

class Decoder final : public RecordDecoder {
 public:
  explicit Decoder(Sections sections) : sections_(std::move(sections)) {}

  Status decode(const SectionPart& part, std::span<const std::uint8_t> in, std::span<std::uint8_t> out) const override {
    return decode_values(sections_.run(part), in, out);
  }
  std::uint64_t working_bytes(std::uint64_t part_bytes) const override { return working_bytes_of_values(part_bytes); }

 private:
  Sections sections_;
};

class Codec final : public RecordCodec {
 public:
  const CodecInfo& info() const override { return kInfo; }
  /// Whatever is not quantized is exact, which keeps every bound.
  bool supports(const RecordSection&) const override { return true; }

  Result<std::unique_ptr<RecordEncoder>> plan(const RecordPlanRequest& request) const override {
    if (!request.settings.empty()) return Status(StatusCode::unknown_setting, "the codec packing takes no settings");
    return std::unique_ptr<RecordEncoder>(std::make_unique<Encoder>(Sections::plan(*request.layout)));
  }

  Result<std::unique_ptr<RecordDecoder>> open(const RecordOpenRequest& request) const override {
    if (request.version != kVersion)
      return Status(StatusCode::unsupported_version, "the codec packing has version {0}, not {1}", kVersion,
                    request.version);
    auto sections = Sections::read(request.params, *request.layout);
    // Parameters that end too early were never valid.
    if (!sections.ok())
      return Status(StatusCode::corrupt, "the parameters of the codec packing are not as they should be");
    return std::unique_ptr<RecordDecoder>(std::make_unique<Decoder>(std::move(sections).value()));
  }
};

}  // namespace

const RecordCodec& record_codec() {
  static const Codec codec;
  return codec;
}

}  // namespace quern::codec::packing
