// Parity over the memories of several keepers: when up to `parity` of them are lost with all that they hold, those that are
// left give the lost ones their checkpoints back. How requests travel is the caller's: Unix sockets, MPI, anything.
#pragma once

#include <map>
#include <mutex>

#include "checkpoint/peers/peer_image.h"
#include "checkpoint/peers/peer_messages.h"
#include "checkpoint/tiers/tiers.h"

namespace quern::checkpoint {

/// Carries requests to the keepers of the group.
class PeerTransport {
 public:
  virtual ~PeerTransport() = default;
  /// What PeerMember::answer() of that member gives. Fails with io_error where no whole answer comes in time; never waits
  /// longer than some seconds. Called by one thread at a time.
  virtual Result<Vector<std::uint8_t>> ask(std::uint32_t member, std::span<const std::uint8_t> request) = 0;
};

struct PeerGroup {
  PeerLayout layout;
  std::uint32_t self = 0;                       ///< which member this keeper is
  std::uint32_t block_bytes = kPeerBlockBytes;  ///< that one request asks for, at most
};

/// What a round of a member found.
struct PeerRound {
  std::uint64_t made = 0;  ///< sets of which its columns were made now
  /// The newest step of which all members have their columns: any `parity` of them may be lost now. Its checkpoint here
  /// is to stay until there is a newer one.
  std::optional<CheckpointName> safe;
  Vector<std::uint32_t> silent;  ///< members that did not answer
};

/// A keeper's part in the group. Columns of parity lie in files of a folder `peers` of the store in memory.
class PeerMember {
 public:
  /// Both live as long as this.
  PeerMember(const Store& memory, const PeerGroup& group, PeerTransport& transport)
      : memory_(memory), group_(group), transport_(transport) {}

  /// Makes the folder for columns. Fails in a build without ISA-L.
  Status prepare(Report& report) const;

  /// The answer to another member's request; empty where it cannot be given. Never fails but for memory. Any thread.
  Vector<std::uint8_t> answer(std::span<const std::uint8_t> request);

  /// Makes this member's columns of each set that is complete in the group and lacks them, and removes those of checkpoints
  /// that have left memory. A member that does not answer is no failure: nothing new is made without it. Time: a request
  /// for each MiB of the other members' images, `parity` times; memory: some MiB for each member.
  Status protect(PeerRound& out, Report& report);

  /// For a memory that has lost its checkpoints: those that the others can give back are made again in `staging`, an empty
  /// store whose checkpoints are then proven by newest_of(). The names of those, in the order they were published. None
  /// where the group has none; those that too few columns are left of become notes.
  Result<Vector<CheckpointName>> recover(const Store& staging, Report& report);

 private:
  String folder() const { return join({memory_.root(), "/peers"}); }
  String set_path(const ParitySet& set) const;
  Result<PeerHoldings> own_holdings(Report& report);
  Result<PeerHoldings> holdings_of(std::uint32_t member);
  Result<Vector<ParitySet>> own_sets(Report& report) const;
  Result<PeerOffer> offer_of(const CheckpointName& name, Report& report);
  Status give(const PeerRequest& request, Vector<std::uint8_t>& out);
  Status read_column(const ParitySet& set, std::uint32_t stripe, std::uint32_t column, std::uint64_t offset,
                     std::span<std::uint8_t> out, Report& report);
  Status make_columns(const ParitySet& set, Report& report);
  Status rebuild(const ParitySet& set, std::span<const PeerHoldings> holdings, const Store& staging, Report& report);
  Status remove_others(const Vector<ParitySet>& wanted, Report& report);

  const Store& memory_;
  const PeerGroup group_;
  PeerTransport& transport_;
  std::mutex mutex_;
  std::map<String, PeerOffer> offers_;  ///< of checkpoints whose image was hashed
};

}  // namespace quern::checkpoint
