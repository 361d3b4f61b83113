// What keepers of a group ask each other, and the answers, as bytes. Little-endian; every answer ends with its
// checksum.
#pragma once

#include "checkpoint/peers/peer_layout.h"
#include "checkpoint/storage.h"

namespace quern::checkpoint {

inline constexpr std::uint32_t kPeerBlockBytes = std::uint32_t{1} << 20;  ///< most that is read by one request
inline constexpr std::size_t kMaxPeerRequest = 256;
inline constexpr std::size_t kMaxPeerAnswer = std::size_t{1} << 24;

/// A checkpoint that a member has in memory.
struct PeerOffer {
  std::uint64_t step = 0;
  std::uint64_t generation = 0;
  String id;
  std::uint64_t bytes = 0;  ///< of its image
  ContentHash hash;         ///< of its image

  friend bool operator==(const PeerOffer&, const PeerOffer&) = default;
};

/// What the columns of one parity set are made of: one checkpoint of each member, of one step.
struct ParitySet {
  PeerLayout layout;
  std::uint64_t column_bytes = 0;
  Vector<PeerOffer> members;  ///< in their order

  ContentHash hash() const;
  /// Bytes of every column for images of these sizes.
  static std::uint64_t column_bytes_for(const PeerLayout& layout, const Vector<PeerOffer>& members);
};

Vector<std::uint8_t> write_parity_set(const ParitySet& set);
/// Reads what write_parity_set() wrote, hostile bytes as well: all counts and sizes are checked against each other.
Result<ParitySet> read_parity_set(std::span<const std::uint8_t> bytes);

struct PeerRequest {
  enum class Kind : std::uint8_t { list = 1, image = 2, parity = 3 };
  Kind kind = Kind::list;
  PeerLayout layout;      ///< of the one who asks: the other must have the same
  std::uint32_t to = 0;   ///< who is meant
  String id;              ///< image: of which checkpoint
  ContentHash set;        ///< parity: of which set
  std::uint32_t nth = 0;  ///< parity: which of the member's columns
  std::uint64_t offset = 0;
  std::uint32_t bytes = 0;  ///< at most kPeerBlockBytes
};
Vector<std::uint8_t> write_peer_request(const PeerRequest& request);
Result<PeerRequest> read_peer_request(std::span<const std::uint8_t> bytes);

/// What a member has: checkpoints in the order they were published, and the sets of which it has its columns.
struct PeerHoldings {
  Vector<PeerOffer> images;
  Vector<ParitySet> sets;
};
Vector<std::uint8_t> write_holdings(const PeerHoldings& holdings);
Result<PeerHoldings> read_holdings(std::span<const std::uint8_t> bytes);

/// An answer with its checksum behind it; an empty one is a refusal.
void seal_answer(Vector<std::uint8_t>& answer);
Result<std::span<const std::uint8_t>> open_answer(std::span<const std::uint8_t> answer);

}  // namespace quern::checkpoint
