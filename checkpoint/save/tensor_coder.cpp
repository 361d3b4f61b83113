// Which way keeps its promise, and a chunk of it. A chunk is copied first: coded, checked and compared with what was
// hashed is that copy, whatever happens to the caller's memory meanwhile.
#include "checkpoint/save/tensor_coder.h"

#include <algorithm>
#include <cstring>

#include "checkpoint/policy/roles.h"
#include "checkpoint/save/bound_check.h"
#include "checkpoint/store/copy_values.h"

namespace quern::checkpoint {

using codec::tensor::TensorInputs;
using codec::tensor::TensorRequest;

namespace {

constexpr std::size_t kBlockBytes = codec::tensor::EncodedTensor::kRoom + 2 * kRecordHeaderBytes;
constexpr std::size_t kLeastBlock = std::size_t{1} << 19;  // smaller ones are not handed on
constexpr std::size_t kMostBlocks = 96;

/// What a lossy mode cannot take, or null.
const char* unfit(const TensorSource& source, const LossyRequest& request) {
  if (source.what.type != ElementType::f32) return "its values are not F32";
  if (source.what.elems() == 0) return "it has no values";
  if (request.mode == Mode::updq && (!source.companion || source.companion_type != ElementType::f32 ||
                                     source.companion_values.size() != source.values.size()))
    return "no second moment in F32 and of its shape belongs to it";
  return nullptr;
}

/// Whether a positive value is no longer one, or a zero no longer zero.
bool breaks_sign(std::span<const std::uint8_t> values, std::span<const std::uint8_t> decoded) {
  for (std::size_t i = 0; i + 4 <= values.size(); i += 4) {
    float was, is;
    std::memcpy(&was, values.data() + i, 4);
    std::memcpy(&is, decoded.data() + i, 4);
    if ((was > 0) != (is > 0) || (was == 0) != (is == 0)) return true;
  }
  return false;
}

bool has_bytes(Mode mode) { return mode != Mode::constant && mode != Mode::derived; }

bool may_fall_back(const Status& status) {
  return status.code() == StatusCode::unsupported || status.code() == StatusCode::invalid_argument ||
         status.code() == StatusCode::invalid_bound;
}

}  // namespace

ChunkRoom SavingRooms::take_room() {
  const std::lock_guard lock(mutex_);
  if (rooms_.empty()) return {};
  ChunkRoom room = std::move(rooms_.back());
  rooms_.pop_back();
  return room;
}

void SavingRooms::give_back(ChunkRoom room) {
  const std::lock_guard lock(mutex_);
  rooms_.push_back(std::move(room));
}

Status SavingRooms::take_block(std::size_t bytes, AlignedBuffer& out) {
  if (out.size() >= bytes) return {};
  if (bytes >= kLeastBlock) {
    const std::lock_guard lock(mutex_);
    if (!blocks_.empty()) {
      out = std::move(blocks_.back());
      blocks_.pop_back();
    }
  }
  return out.resize(bytes >= kLeastBlock ? std::max(bytes, kBlockBytes) : bytes);
}

void SavingRooms::give_back(AlignedBuffer block) {
  if (block.size() < kLeastBlock) return;
  const std::lock_guard lock(mutex_);
  if (blocks_.size() < kMostBlocks) blocks_.push_back(std::move(block));
}

TensorCoder::TensorCoder(const TensorSource& from, SavingRooms& rooms)
    : source(from), where(join({"tensor '", from.name, "'"})), rooms_(rooms) {
  const char* const why = from.lossy ? unfit(from, *from.lossy) : nullptr;
  if (from.lossy && why == nullptr) {
    way_ = Way::constant;
  } else {
    way_ = Way::exact;
    if (why != nullptr) saved.fallback = join({codec::tensor::mode_name(from.lossy->mode), ": ", why});
  }
}

TensorInputs TensorCoder::whole_inputs() const {
  TensorInputs all;
  all.values = source.values;
  if (source.companion) {
    all.companion = source.companion_values;
    all.companion_type = source.companion_type;
  }
  if (!with_base_) return all;
  all.base = {base_values.data(), base_values.size()};
  all.direction = {direction.data(), direction.size()};
  all.base_direction = {base_direction.data(), base_direction.size()};
  return all;
}

void TensorCoder::start_exact() {
  way_ = Way::exact;
  with_base_ = has_base;
}

void TensorCoder::fall_back(std::string_view why) {
  saved.fallback = join({codec::tensor::mode_name(source.lossy->mode), ": ", why});
  saved.worst = saved.worst_absolute = 0;
  start_exact();
}

Status TensorCoder::begin(TaskRunner& runner, Report& report) {
  if (!started_ && way_ == Way::exact) with_base_ = has_base;
  started_ = true;
  for (;;) {
    TensorRequest request;
    if (way_ == Way::exact) {
      request.zstd_level = std::max(zstd_level, 0);
      if (zstd_level == kStoreRaw) request.mode = Mode::raw;
    } else if (way_ == Way::constant) {
      request.mode = Mode::constant;  // takes no part of the bound, and nothing is smaller
    } else {
      request.mode = absolute.mode;
      request.bound = absolute.bound;
      request.bound_in_deviations = false;
    }
    auto plan = codec::tensor::plan_tensor(source.what, request, whole_inputs(), runner);
    if (plan.ok()) {
      plan_ = std::move(plan).value();
      break;
    }
    if (way_ == Way::constant) {
      way_ = Way::lossy;
      with_base_ = has_base;
      if (source.lossy->bound > 0 && !(absolute.bound > 0)) fall_back("its finite values are all the same");
    } else if (way_ == Way::lossy && may_fall_back(plan.status())) {
      fall_back(plan.status().text());
    } else {
      return fail_at(report, where, plan.status());
    }
  }
  QUERN_ASSIGN_OR_RETURN(needs_, codec::tensor::tensor_needs(source.what, plan_.mode, plan_.side));
  if (way_ == Way::constant) needs_ = {};
  head_.name = tensor.name;
  head_.what = tensor.what;
  head_.is_piece = tensor.is_piece;
  head_.whole = tensor.whole;
  head_.box = tensor.box;
  head_.side = plan_.side;
  coded_bytes_ = plan_.side.size();
  given_up_ = false;
  kept_ = true;
  worst_ = worst_absolute_ = 0;
  if (source.decoded != nullptr) QUERN_RETURN_IF_ERROR(source.decoded->resize(source.what.bytes()));
  return decoded_hash_.begin();
}

void TensorCoder::give_up() { given_up_.store(true, std::memory_order_relaxed); }

Status TensorCoder::changed(std::string_view name, Report& report) {
  const std::lock_guard lock(mutex_);
  changed_ = true;
  return fail_changed(name, report);
}

Status TensorCoder::take_values(std::uint32_t index, ChunkRoom& room, Report& report) {
  const auto values =
      source.values.subspan(static_cast<std::size_t>(source.what.chunk_begin(index)), source.what.chunk_bytes(index));
  QUERN_RETURN_IF_ERROR(copy_values(values, room.values));
  return has_marks(*source.hashes, index, room.values.span()) ? Status() : changed(source.name, report);
}

/// The chunk's part of the companion; compared with what the companion was, where its memory is not our own.
Status TensorCoder::take_companion(std::uint32_t index, ChunkRoom& room, TensorInputs& inputs, Report& report) {
  if (!needs_.companion) return {};
  const std::size_t width = codec::tensor::element_bytes(source.what.type);
  const std::size_t other = codec::tensor::element_bytes(source.companion_type);
  const auto begin = static_cast<std::size_t>(source.what.chunk_begin(index)) / width * other;
  const std::size_t bytes = source.what.chunk_bytes(index) / width * other;
  inputs.companion_type = source.companion_type;
  if (source.companion_hashes == nullptr) {
    inputs.companion = source.companion_values.subspan(begin, bytes);
    return {};
  }
  constexpr std::size_t kChunk = codec::tensor::kChunkBytes;
  const std::size_t from = begin / kChunk * kChunk;
  const std::size_t to = std::min((begin + bytes + kChunk - 1) / kChunk * kChunk, source.companion_values.size());
  QUERN_RETURN_IF_ERROR(copy_values(source.companion_values.subspan(from, to - from), room.companion));
  if (!has_marks(*source.companion_hashes, from / kChunk, room.companion.span()))
    return changed(source.companion_name.empty() ? source.name : source.companion_name, report);
  inputs.companion = room.companion.span().subspan(begin - from, bytes);
  return {};
}

/// Where what comes back of a chunk goes; nowhere for modes without loss, which need no check.
Result<std::span<std::uint8_t>> TensorCoder::take_decoded(std::uint32_t index, CodedChunk& out) {
  if (!is_lossy(plan_.mode)) return std::span<std::uint8_t>();
  const std::size_t bytes = source.what.chunk_bytes(index);
  if (source.decoded != nullptr)
    return source.decoded->span().subspan(static_cast<std::size_t>(source.what.chunk_begin(index)), bytes);
  QUERN_RETURN_IF_ERROR(rooms_.take_block(bytes, out.decoded));
  out.decoded_bytes = bytes;
  return out.decoded.span().first(bytes);
}

void TensorCoder::check_loss(std::span<const std::uint8_t> values, std::span<const std::uint8_t> decoded,
                             const TensorInputs& inputs) {
  const std::size_t bytes = values.size();
  SerialRunner serial;
  const BoundCheck check = check_bound(absolute.mode, absolute.bound, values, decoded, inputs.companion, serial);
  const bool kept = source.original
                        ? std::memcmp(decoded.data(), values.data(), bytes) == 0
                        : check.kept && !(is_non_negative_role(source.role) && breaks_sign(values, decoded));
  const std::lock_guard lock(mutex_);
  worst_ = std::max(worst_, check.worst);
  worst_absolute_ = std::max(worst_absolute_, check.worst_absolute);
  kept_ = kept_ && kept;
  if (!kept_) give_up();
}

Status TensorCoder::code_chunk(std::uint32_t index, ChunkRoom& room, CodedChunk& out, Report& report) {
  const bool has_chunk = index < source.what.chunks();
  const std::size_t raw = has_chunk ? source.what.chunk_bytes(index) : 0;
  const auto begin = static_cast<std::size_t>(index * codec::tensor::kChunkBytes);
  const Vector<std::uint8_t> head = index == 0 ? make_tensor_head(head_) : Vector<std::uint8_t>();
  const std::size_t front = kRecordHeaderBytes + head.size();
  const std::size_t room_bytes =
      has_bytes(plan_.mode) && has_chunk ? codec::tensor::chunk_bound(source.what, index) : 0;
  QUERN_RETURN_IF_ERROR(rooms_.take_block(front + room_bytes + kRecordAlignment, out.memory));
  const auto memory = out.memory.span();
  out.coded_bytes = 0;
  TensorInputs inputs;
  inputs.of_chunk = true;
  if (has_chunk) {
    QUERN_RETURN_IF_ERROR(take_companion(index, room, inputs, report));
    const auto cut = [&](const AlignedBuffer& whole, bool needed) {
      return needed ? std::span<const std::uint8_t>(whole.data() + begin, raw) : std::span<const std::uint8_t>();
    };
    inputs.base = cut(base_values, needs_.base);
    inputs.direction = cut(direction, needs_.direction);
    inputs.base_direction = cut(base_direction, needs_.base_direction);
    if (has_bytes(plan_.mode)) {
      QUERN_RETURN_IF_ERROR(take_values(index, room, report));
      inputs.values = room.values.span();
      QUERN_ASSIGN_OR_RETURN(const auto decoded, take_decoded(index, out));
      const auto coded =
          codec::tensor::encode_chunk(plan_, inputs, index, memory.subspan(front, room_bytes), room.scratch, decoded);
      if (!coded.ok()) return fail_at(report, where, coded.status());
      out.coded_bytes = *coded;
      if (!decoded.empty()) check_loss(inputs.values, decoded, inputs);
    } else {
      QUERN_RETURN_IF_ERROR(room.values.resize(raw));
      const Status decoded = codec::tensor::decode_chunk(source.what, plan_.mode, plan_.side, index, {}, inputs,
                                                         room.values.span(), room.scratch);
      if (!decoded.ok()) return fail_at(report, where, decoded);
      if (!has_marks(*source.hashes, index, room.values.span())) return changed(source.name, report);
    }
    if (source.decoded != nullptr && !is_lossy(plan_.mode))
      std::memcpy(source.decoded->data() + begin, room.values.data(), raw);
  }
  if (!head.empty()) std::memcpy(memory.data() + kRecordHeaderBytes, head.data(), head.size());
  Record& record = out.record;
  record.kind = index == 0 ? RecordKind::tensor : RecordKind::chunk;
  record.mode = static_cast<std::uint8_t>(plan_.mode);
  record.tensor = saved.number;
  record.chunk = index;
  record.raw_bytes = static_cast<std::uint32_t>(raw);
  record.body_bytes = static_cast<std::uint32_t>(head.size() + out.coded_bytes);
  const std::size_t end = front + out.coded_bytes;
  out.bytes = static_cast<std::size_t>(align_record(end));
  std::fill(memory.begin() + static_cast<std::ptrdiff_t>(end), memory.begin() + static_cast<std::ptrdiff_t>(out.bytes),
            std::uint8_t{0});
  write_record_header(record, memory.subspan(kRecordHeaderBytes, record.body_bytes),
                      memory.first<kRecordHeaderBytes>());
  return {};
}

void TensorCoder::code(std::uint32_t index, CodedChunk& out) {
  out.bytes = out.coded_bytes = out.decoded_bytes = 0;
  if (given_up()) return;
  ChunkRoom room = rooms_.take_room();
  Report own;
  Status status;
  try {
    status = code_chunk(index, room, out, own);
  } catch (const std::bad_alloc&) {
    status = Status(StatusCode::out_of_memory, "out of memory");
  }
  rooms_.give_back(std::move(room));
  if (status.ok()) return;
  give_up();
  out.bytes = 0;
  const std::lock_guard lock(mutex_);
  if (index >= failed_chunk_) return;
  failed_chunk_ = index;
  failure_ = status;
  failure_text_ = own.problem.empty() ? join({where, ": ", status.text()}) : own.problem;
}

void TensorCoder::absorb(CodedChunk& chunk) {
  coded_bytes_ += chunk.coded_bytes;
  if (chunk.decoded_bytes == 0) return;
  decoded_hash_.add({chunk.decoded.data(), chunk.decoded_bytes});
  chunk.decoded_bytes = 0;
  rooms_.give_back(std::move(chunk.decoded));
  chunk.decoded = AlignedBuffer();
}

/// Whether a restore would read more than the limits allow.
bool TensorCoder::read_too_much() const {
  return needs_.base && base_key_bytes + base_chain_bytes + coded_bytes_ > base_key_bytes * restore_percent / 100;
}

Status TensorCoder::accept_loss() {
  done_ = true;
  tensor.bound = absolute.bound;
  if (source.lossy->in_deviations) saved.worst *= source.lossy->bound / absolute.bound;
  const ContentHash hash = source.decoded != nullptr ? content_hash(source.decoded->span()) : decoded_hash_.finish();
  if (hash != tensor.content) tensor.decoded = hash;
  return {};
}

Status TensorCoder::settle(Report& report) {
  if (!failure_.ok()) {
    const bool lossy = way_ == Way::lossy || way_ == Way::lossy_again;
    if (lossy && !changed_ && may_fall_back(failure_)) {
      fall_back(failure_.text());
      failure_ = Status();
      failed_chunk_ = UINT32_MAX;
      return {};
    }
    report.problem = failure_text_;
    return failure_;
  }
  switch (way_) {
    case Way::constant: done_ = true; return {};
    case Way::lossy_again: return accept_loss();
    case Way::exact:
      if (with_base_ && read_too_much()) {
        with_base_ = false;
        return {};
      }
      if (after_lossy_ && coded_bytes_ > lossy_bytes_) {
        way_ = Way::lossy_again;
        with_base_ = lossy_with_base_;
        return {};
      }
      if (after_lossy_) {
        saved.fallback = join({codec::tensor::mode_name(source.lossy->mode), ": it would be no smaller"});
        saved.worst = saved.worst_absolute = 0;
      }
      done_ = true;
      return {};
    case Way::lossy: break;
  }
  if (kept_ && with_base_ && read_too_much()) {
    with_base_ = false;
    return {};
  }
  saved.worst = worst_;
  saved.worst_absolute = worst_absolute_;
  if (!kept_) {
    fall_back(source.original ? "its values, which lost something before, would change again"
                              : "not every value would keep the bound");
  } else if (coded_bytes_ > source.what.bytes() / 16 * 15) {
    after_lossy_ = true;
    lossy_with_base_ = with_base_;
    lossy_bytes_ = coded_bytes_;
    start_exact();
  } else {
    return accept_loss();
  }
  return {};
}

}  // namespace quern::checkpoint
