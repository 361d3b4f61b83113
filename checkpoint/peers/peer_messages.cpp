#include "checkpoint/peers/peer_messages.h"

#include <algorithm>

#include "checkpoint/store/manifest.h"
#include "libcompress/format/frame/checksum.h"
#include "libcompress/format/reader.h"
#include "libcompress/format/writer.h"

namespace quern::checkpoint {
namespace {

constexpr std::uint32_t kMagic = 0x31505151;
constexpr std::uint64_t kMaxImage = UINT64_C(1) << 56;
constexpr std::uint64_t kColumnAlignment = 64;

Status damaged() { return Status(StatusCode::corrupt, "what a peer said cannot be understood"); }

void write_hash(Writer& out, const ContentHash& hash) {
  out.u64(hash.high);
  out.u64(hash.low);
}

void write_offer(Writer& out, const PeerOffer& offer) {
  out.u64(offer.step);
  out.u64(offer.generation);
  out.u64(offer.bytes);
  write_hash(out, offer.hash);
  out.u8(static_cast<std::uint8_t>(offer.id.size()));
  out.bytes({reinterpret_cast<const std::uint8_t*>(offer.id.data()), offer.id.size()});
}

Result<String> read_id(Reader& in) {
  QUERN_ASSIGN_OR_RETURN(const std::uint8_t size, in.u8());
  QUERN_ASSIGN_OR_RETURN(const auto bytes, in.bytes(size));
  String id(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!is_plain_id(id)) return damaged();
  return id;
}

Result<PeerOffer> read_offer(Reader& in) {
  PeerOffer out;
  QUERN_ASSIGN_OR_RETURN(out.step, in.u64());
  QUERN_ASSIGN_OR_RETURN(out.generation, in.u64());
  QUERN_ASSIGN_OR_RETURN(out.bytes, in.u64());
  QUERN_ASSIGN_OR_RETURN(out.hash.high, in.u64());
  QUERN_ASSIGN_OR_RETURN(out.hash.low, in.u64());
  QUERN_ASSIGN_OR_RETURN(out.id, read_id(in));
  if (out.bytes == 0 || out.bytes > kMaxImage) return damaged();
  return out;
}

void write_layout(Writer& out, const PeerLayout& layout) {
  out.u8(static_cast<std::uint8_t>(layout.members));
  out.u8(static_cast<std::uint8_t>(layout.parity));
}

Result<PeerLayout> read_layout(Reader& in) {
  PeerLayout out;
  QUERN_ASSIGN_OR_RETURN(out.members, in.u8());
  QUERN_ASSIGN_OR_RETURN(out.parity, in.u8());
  if (out.members < 2 || out.members > kMostMembers || out.parity == 0 || out.parity >= out.members) return damaged();
  return out;
}

void write_set(Writer& out, const ParitySet& set) {
  write_layout(out, set.layout);
  for (const PeerOffer& member : set.members) write_offer(out, member);
}

Result<ParitySet> read_set(Reader& in) {
  ParitySet out;
  QUERN_ASSIGN_OR_RETURN(out.layout, read_layout(in));
  for (std::uint32_t i = 0; i < out.layout.members; ++i) {
    QUERN_ASSIGN_OR_RETURN(PeerOffer member, read_offer(in));
    if (i != 0 && member.step != out.members.front().step) return damaged();
    out.members.push_back(std::move(member));
  }
  out.column_bytes = ParitySet::column_bytes_for(out.layout, out.members);
  return out;
}

}  // namespace

std::uint64_t ParitySet::column_bytes_for(const PeerLayout& layout, const Vector<PeerOffer>& members) {
  std::uint64_t longest = 0;
  for (const PeerOffer& member : members) longest = std::max(longest, member.bytes);
  const std::uint64_t piece = (longest + layout.data() - 1) / layout.data();
  return (piece + kColumnAlignment - 1) / kColumnAlignment * kColumnAlignment;
}

ContentHash ParitySet::hash() const { return content_hash(write_parity_set(*this)); }

Vector<std::uint8_t> write_parity_set(const ParitySet& set) {
  Vector<std::uint8_t> bytes;
  Writer out(bytes);
  write_set(out, set);
  return bytes;
}

Result<ParitySet> read_parity_set(std::span<const std::uint8_t> bytes) {
  Reader in(bytes);
  QUERN_ASSIGN_OR_RETURN(ParitySet out, read_set(in));
  QUERN_RETURN_IF_ERROR(in.expect_end());
  return out;
}

Vector<std::uint8_t> write_peer_request(const PeerRequest& request) {
  Vector<std::uint8_t> bytes;
  Writer out(bytes);
  out.u32(kMagic);
  out.u8(static_cast<std::uint8_t>(request.kind));
  write_layout(out, request.layout);
  out.u8(static_cast<std::uint8_t>(request.to));
  if (request.kind == PeerRequest::Kind::image) {
    out.u8(static_cast<std::uint8_t>(request.id.size()));
    out.bytes({reinterpret_cast<const std::uint8_t*>(request.id.data()), request.id.size()});
  } else if (request.kind == PeerRequest::Kind::parity) {
    write_hash(out, request.set);
    out.u8(static_cast<std::uint8_t>(request.nth));
  }
  out.u64(request.offset);
  out.u32(request.bytes);
  return bytes;
}

Result<PeerRequest> read_peer_request(std::span<const std::uint8_t> bytes) {
  Reader in(bytes);
  PeerRequest out;
  QUERN_ASSIGN_OR_RETURN(const std::uint32_t magic, in.u32());
  QUERN_ASSIGN_OR_RETURN(const std::uint8_t kind, in.u8());
  if (magic != kMagic || kind < 1 || kind > 3) return damaged();
  out.kind = static_cast<PeerRequest::Kind>(kind);
  QUERN_ASSIGN_OR_RETURN(out.layout, read_layout(in));
  QUERN_ASSIGN_OR_RETURN(out.to, in.u8());
  if (out.kind == PeerRequest::Kind::image) {
    QUERN_ASSIGN_OR_RETURN(out.id, read_id(in));
  } else if (out.kind == PeerRequest::Kind::parity) {
    QUERN_ASSIGN_OR_RETURN(out.set.high, in.u64());
    QUERN_ASSIGN_OR_RETURN(out.set.low, in.u64());
    QUERN_ASSIGN_OR_RETURN(out.nth, in.u8());
  }
  QUERN_ASSIGN_OR_RETURN(out.offset, in.u64());
  QUERN_ASSIGN_OR_RETURN(out.bytes, in.u32());
  QUERN_RETURN_IF_ERROR(in.expect_end());
  if (out.bytes > kPeerBlockBytes || out.offset > kMaxImage) return damaged();
  return out;
}

Vector<std::uint8_t> write_holdings(const PeerHoldings& holdings) {
  Vector<std::uint8_t> bytes;
  Writer out(bytes);
  out.u32(static_cast<std::uint32_t>(holdings.images.size()));
  for (const PeerOffer& image : holdings.images) write_offer(out, image);
  out.u32(static_cast<std::uint32_t>(holdings.sets.size()));
  for (const ParitySet& set : holdings.sets) write_set(out, set);
  return bytes;
}

Result<PeerHoldings> read_holdings(std::span<const std::uint8_t> bytes) {
  Reader in(bytes);
  PeerHoldings out;
  // A count that is too large meets the end of the bytes; nothing is taken for it before.
  QUERN_ASSIGN_OR_RETURN(const std::uint32_t images, in.u32());
  for (std::uint32_t i = 0; i < images; ++i) {
    QUERN_ASSIGN_OR_RETURN(PeerOffer image, read_offer(in));
    out.images.push_back(std::move(image));
  }
  QUERN_ASSIGN_OR_RETURN(const std::uint32_t sets, in.u32());
  for (std::uint32_t i = 0; i < sets; ++i) {
    QUERN_ASSIGN_OR_RETURN(ParitySet set, read_set(in));
    out.sets.push_back(std::move(set));
  }
  QUERN_RETURN_IF_ERROR(in.expect_end());
  return out;
}

void seal_answer(Vector<std::uint8_t>& answer) {
  const std::uint64_t checksum = checksum64(answer);
  Writer(answer).u64(checksum);
}

Result<std::span<const std::uint8_t>> open_answer(std::span<const std::uint8_t> answer) {
  if (answer.empty()) return Status(StatusCode::io_error, "the peer does not have it");
  if (answer.size() < 8) return damaged();
  const auto content = answer.first(answer.size() - 8);
  Reader in(answer.last(8));
  if (*in.u64() != checksum64(content)) return damaged();
  return content;
}

}  // namespace quern::checkpoint
