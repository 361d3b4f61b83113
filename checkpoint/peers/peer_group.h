// Parity over the memories of several keepers: when up to `parity` of them are lost with all that they hold, those that
// are left give the lost ones their checkpoints back. How requests travel is the caller's: Unix sockets, MPI, anything.
#pragma once

#include <functional>
#include <map>
#include <mutex>

#include "checkpoint/peers/peer_image.h"
#include "checkpoint/peers/peer_messages.h"
#include "checkpoint/tiers/retry.h"
#include "checkpoint/tiers/tiers.h"

namespace quern::checkpoint {

/// Carries requests to the keepers of the group.
class PeerTransport {
 public:
  virtual ~PeerTransport() = default;
  /// What PeerMember::answer() of that member gives. Fails with io_error where no whole answer comes in time; never
  /// waits longer than some seconds. Called by one thread at a time.
  virtual Result<Vector<std::uint8_t>> ask(std::uint32_t member, std::span<const std::uint8_t> request) = 0;
};

struct PeerGroup {
  PeerLayout layout;
  std::uint32_t self = 0;                       ///< which member this keeper is
  std::uint32_t block_bytes = kPeerBlockBytes;  ///< that one request asks for, at most
  /// As that of CopyControl, called before each block: false ends what is under way with `cancelled`. None: it goes on.
  std::function<bool(std::size_t)> turn = {};
};

/// What a round of a member found.
struct PeerRound {
  std::uint64_t made = 0;  ///< sets of which its columns were made now
  /// The newest step of which all members have their columns and checkpoints, also of all that this member's checkpoint
  /// needs: it comes back when any `parity` of them are lost now. It is to stay until there is a newer one. A member
  /// that does not answer is believed to have what it had, of the set that was safe before; after a start, of any.
  std::optional<CheckpointName> safe;
  Vector<std::uint32_t> silent;  ///< members that did not answer, or did not a moment ago and were not asked
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

  /// Hashes the images of checkpoints that are new in memory. Others are told of those alone, so that no request waits
  /// for it. Time: reads them once.
  Status hash_images(Report& report);

  /// hash_images(), makes this member's columns of each set that is complete in the group and lacks them, and removes
  /// those whose checkpoints have left the memories of all. A member that does not answer is no failure: nothing new is
  /// made without it. It is asked again ever later, and what could not be made is tried again ever later. Time: a
  /// request for each MiB of the other members' images, `parity` times; memory: some MiB for each member.
  Status protect(PeerRound& out, Report& report);

  /// For a memory that has lost its checkpoints: what the others can give back is made again in `staging`, an empty
  /// store. The newest comes first, then what it needs; after each that is complete there is_enough() says whether it
  /// ends. Checkpoints that too few columns are left of become notes. `silent`: members that did not answer.
  Status recover(const Store& staging, const std::function<bool(const CheckpointName&)>& is_enough,
                 Vector<std::uint32_t>& silent, Report& report);

 private:
  String folder() const { return join({memory_.root(), "/peers"}); }
  String set_path(const ParitySet& set) const;
  Result<PeerHoldings> own_holdings(Report& report);
  Status check_turn(Report& report) const;
  Result<PeerHoldings> holdings_of(std::uint32_t member);
  Result<Vector<ParitySet>> own_sets(Report& report) const;
  bool is_everywhere(const ParitySet& set, std::span<const PeerHoldings> holdings, bool believes_silent,
                     const PeerRound& round) const;
  bool is_safe(const ParitySet& set, const Vector<ParitySet>& made, std::span<const PeerHoldings> holdings,
               const PeerRound& round) const;
  Status give(const PeerRequest& request, Vector<std::uint8_t>& out);
  Status read_column(const ParitySet& set, std::uint32_t stripe, std::uint32_t column, std::uint64_t offset,
                     std::span<std::uint8_t> out, Report& report);
  Status make_columns(const ParitySet& set, Report& report);
  Status rebuild(const ParitySet& set, std::span<const PeerHoldings> holdings, const Store& staging, Report& report);
  bool rebuild_any(const Vector<ParitySet>& sets, std::string_view id, std::span<const PeerHoldings> holdings,
                   const Store& staging, Report& report);
  bool rebuild_needs(const CheckpointName& name, const Vector<ParitySet>& sets, std::span<const PeerHoldings> holdings,
                     const Store& staging, Report& report);
  Status remove_others(const Vector<ParitySet>& wanted, Report& report);

  const Store& memory_;
  const PeerGroup group_;
  PeerTransport& transport_;
  std::mutex mutex_;
  std::map<String, PeerOffer> offers_;  ///< of checkpoints whose image was hashed
  // For the one thread that calls protect().
  std::optional<ContentHash> safe_;        ///< the set that was safe last
  std::map<std::uint32_t, Retry> silent_;  ///< members that did not answer
  std::map<String, Retry> failed_;         ///< sets whose columns could not be made, by their hashes
};

}  // namespace quern::checkpoint
