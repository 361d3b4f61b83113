#include "checkpoint/peers/peer_group.h"

#include <algorithm>

#include "checkpoint/store/stored_manifests.h"
#include "libcompress/format/reader.h"
#include "libcompress/format/writer.h"
#include "storage/parity/erasure.h"

namespace quern::checkpoint {
namespace {

constexpr std::uint32_t kColumnsMagic = 0x32505151;
constexpr std::size_t kMaxColumnsHead = std::size_t{1} << 16;
constexpr std::chrono::seconds kLongestPause(1);  ///< between tries that fail at once
constexpr std::string_view kColumnsEnd = ".columns", kNewEnd = ".columns.new";

/// What stands before the columns in their file: magic, bytes of the set, the set, a checksum.
Vector<std::uint8_t> columns_head(const ParitySet& set) {
  const Vector<std::uint8_t> text = write_parity_set(set);
  Vector<std::uint8_t> head;
  Writer out(head);
  out.u32(kColumnsMagic);
  out.u32(static_cast<std::uint32_t>(text.size()));
  out.bytes(text);
  seal_answer(head);
  return head;
}

/// The set of a file of columns that is as long as it must be; nothing where it is another file.
std::optional<ParitySet> set_of_file(FileSystem& files, const String& path) {
  const auto file = files.open(path);
  if (!file.ok()) return {};
  const auto size = (*file)->size();
  if (!size.ok()) return {};
  Vector<std::uint8_t> head(static_cast<std::size_t>(std::min<std::uint64_t>(*size, kMaxColumnsHead)));
  if (!read_fully(**file, 0, head).ok()) return {};
  Reader in(head);
  const auto magic = in.u32(), bytes = in.u32();
  if (!bytes.ok() || *magic != kColumnsMagic || in.remaining() < std::size_t{8} + *bytes) return {};
  const auto text = open_answer(std::span<const std::uint8_t>(head).first(std::size_t{16} + *bytes));
  if (!text.ok()) return {};
  auto set = read_parity_set(text->subspan(8));
  if (!set.ok() || *size != columns_head(*set).size() + set->layout.parity * set->column_bytes) return {};
  return std::move(set).value();
}

const ParitySet* find(const Vector<ParitySet>& sets, const ContentHash& hash) {
  const auto at = std::find_if(sets.begin(), sets.end(), [&](const ParitySet& set) { return set.hash() == hash; });
  return at == sets.end() ? nullptr : &*at;
}

/// The last of that step, as it may have been saved again.
const PeerOffer* find(const Vector<PeerOffer>& offers, std::uint64_t step) {
  const auto at = std::find_if(offers.rbegin(), offers.rend(), [&](const PeerOffer& one) { return one.step == step; });
  return at == offers.rend() ? nullptr : &*at;
}

bool has(const Vector<PeerOffer>& offers, const PeerOffer& offer) {
  return std::find(offers.begin(), offers.end(), offer) != offers.end();
}

bool is_one_of(const Vector<std::uint32_t>& members, std::uint32_t member) {
  return std::find(members.begin(), members.end(), member) != members.end();
}

bool same_layout(const PeerLayout& a, const PeerLayout& b) { return a.members == b.members && a.parity == b.parity; }

}  // namespace

Status PeerMember::prepare(Report& report) const {
  if (!storage::has_erasure_coding())
    return fail(report, StatusCode::unsupported, "parity over peers needs a build with ISA-L");
  return make_one_folder(memory_.files(), folder(), report);
}

String PeerMember::set_path(const ParitySet& set) const { return join({folder(), "/", hex(set.hash()), kColumnsEnd}); }

Result<Vector<ParitySet>> PeerMember::own_sets(Report& report) const {
  const auto names = memory_.files().list(folder());
  if (!names.ok()) return fail_file(report, folder(), "read it", names.status());
  Vector<ParitySet> out;
  for (const String& name : *names) {
    if (!name.ends_with(kColumnsEnd)) continue;
    auto set = set_of_file(memory_.files(), join({folder(), "/", name}));
    if (set && same_layout(set->layout, group_.layout) && set_path(*set) == join({folder(), "/", name}))
      out.push_back(std::move(*set));
  }
  return out;
}

Status PeerMember::check_turn(Report& report) const {
  if (!group_.turn || group_.turn(0)) return {};
  return fail(report, StatusCode::cancelled, "interrupted");
}

Status PeerMember::hash_images(Report& report) {
  QUERN_ASSIGN_OR_RETURN(const auto names, memory_.list_all(report));
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(offers_, [&](const auto& known) {
      return std::none_of(names.begin(), names.end(), [&](const auto& name) { return name.id == known.first; });
    });
  }
  for (const CheckpointName& name : names) {
    {
      const std::lock_guard lock(mutex_);
      if (offers_.contains(name.id)) continue;
    }
    QUERN_RETURN_IF_ERROR(check_turn(report));
    Report unheard;  // what leaves memory meanwhile is not offered
    const auto image = PeerImage::open(memory_, name, unheard);
    if (!image.ok()) continue;
    const auto hash = image->hash(unheard);
    if (!hash.ok()) continue;
    const std::lock_guard lock(mutex_);
    offers_.emplace(name.id, PeerOffer{name.step, name.generation, name.id, image->bytes(), *hash});
  }
  return {};
}

Result<PeerHoldings> PeerMember::own_holdings(Report& report) {
  PeerHoldings out;
  QUERN_ASSIGN_OR_RETURN(const auto names, memory_.list_all(report));
  {
    const std::lock_guard lock(mutex_);
    for (const CheckpointName& name : names) {
      const auto known = offers_.find(name.id);
      if (known != offers_.end() && !has(out.images, known->second)) out.images.push_back(known->second);
    }
  }
  std::stable_sort(out.images.begin(), out.images.end(),
                   [](const PeerOffer& a, const PeerOffer& b) { return a.generation < b.generation; });
  QUERN_ASSIGN_OR_RETURN(out.sets, own_sets(report));
  return out;
}

Status PeerMember::give(const PeerRequest& request, Vector<std::uint8_t>& out) {
  Report unheard;
  if (request.to != group_.self || !same_layout(request.layout, group_.layout))
    return Status(StatusCode::invalid_argument, "another group asks");
  if (request.kind == PeerRequest::Kind::list) {
    QUERN_ASSIGN_OR_RETURN(const PeerHoldings holdings, own_holdings(unheard));
    out = write_holdings(holdings);
    return {};
  }
  out.resize(request.bytes);
  if (request.kind == PeerRequest::Kind::image) {
    QUERN_ASSIGN_OR_RETURN(const auto names, memory_.list_all(unheard));
    const auto name =
        std::find_if(names.begin(), names.end(), [&](const CheckpointName& one) { return one.id == request.id; });
    if (name == names.end()) return Status(StatusCode::io_error, "it is not in memory any more");
    QUERN_ASSIGN_OR_RETURN(const PeerImage image, PeerImage::open(memory_, *name, unheard));
    return image.read(request.offset, out, unheard);
  }
  const String path = join({folder(), "/", hex(request.set), kColumnsEnd});
  const auto set = set_of_file(memory_.files(), path);
  if (!set || request.nth >= set->layout.parity || request.offset > set->column_bytes ||
      request.bytes > set->column_bytes - request.offset)
    return Status(StatusCode::io_error, "its columns are not here");
  QUERN_ASSIGN_OR_RETURN(const auto file, memory_.files().open(path));
  return read_fully(*file, columns_head(*set).size() + request.nth * set->column_bytes + request.offset, out);
}

Vector<std::uint8_t> PeerMember::answer(std::span<const std::uint8_t> bytes) {
  Vector<std::uint8_t> out;
  const auto request = read_peer_request(bytes);
  if (!request.ok() || !give(*request, out).ok()) return {};
  seal_answer(out);
  return out;
}

Result<PeerHoldings> PeerMember::holdings_of(std::uint32_t member) {
  PeerRequest request;
  request.layout = group_.layout;
  request.to = member;
  QUERN_ASSIGN_OR_RETURN(const auto answer, transport_.ask(member, write_peer_request(request)));
  QUERN_ASSIGN_OR_RETURN(const auto content, open_answer(answer));
  return read_holdings(content);
}

Status PeerMember::read_column(const ParitySet& set, std::uint32_t stripe, std::uint32_t column, std::uint64_t offset,
                               std::span<std::uint8_t> out, Report& report) {
  const std::uint32_t member = set.layout.member(stripe, column);
  PeerRequest request;
  request.layout = set.layout;
  request.to = member;
  request.bytes = static_cast<std::uint32_t>(out.size());
  if (set.layout.is_parity(column)) {
    request.kind = PeerRequest::Kind::parity;
    request.set = set.hash();
    request.nth = column - set.layout.data();
    request.offset = offset;
  } else {
    request.kind = PeerRequest::Kind::image;
    request.id = set.members[member].id;
    request.offset = set.layout.piece(stripe, member) * set.column_bytes + offset;
    if (request.offset >= set.members[member].bytes) {
      std::fill(out.begin(), out.end(), std::uint8_t{0});
      return {};
    }
  }
  Vector<std::uint8_t> answer;
  if (member == group_.self) {
    answer = this->answer(write_peer_request(request));
  } else {
    QUERN_ASSIGN_OR_RETURN(answer, transport_.ask(member, write_peer_request(request)));
  }
  const auto content = open_answer(answer);
  if (content.ok() && content->size() == out.size()) {
    std::copy(content->begin(), content->end(), out.begin());
    return {};
  }
  return fail(report, StatusCode::io_error,
              join({"member ", decimal(member), " of the peers does not give what it has of step ",
                    decimal(set.members[member].step)}));
}

namespace {

/// Memory for one block of each column of a stripe.
struct Blocks {
  Blocks(const PeerGroup& group, std::uint64_t column_bytes)
      : bytes(static_cast<std::size_t>(
            std::min<std::uint64_t>({column_bytes, group.block_bytes, std::uint64_t{kPeerBlockBytes}}))),
        room(bytes * group.layout.members) {
    for (std::uint32_t i = 0; i < group.layout.members; ++i) columns.push_back(room.data() + i * bytes);
  }
  std::span<std::uint8_t> of(std::uint32_t column, std::size_t count) { return {columns[column], count}; }

  std::size_t bytes;
  Vector<std::uint8_t> room;
  Vector<std::uint8_t*> columns;
};

}  // namespace

Status PeerMember::make_columns(const ParitySet& set, Report& report) {
  FileSystem& files = memory_.files();
  const String path = set_path(set), temporary = join({folder(), "/", hex(set.hash()), kNewEnd});
  (void)files.remove(temporary);
  auto file = files.create(temporary);
  if (!file.ok()) return fail_file(report, temporary, "create it", file.status());
  const auto write = [&](std::uint64_t at, std::span<const std::uint8_t> bytes) -> Status {
    const Status status = write_fully(**file, at, bytes);
    return status.ok() ? status : fail_file(report, temporary, "write it", status);
  };
  const auto fill = [&]() -> Status {
    const Vector<std::uint8_t> head = columns_head(set);
    QUERN_RETURN_IF_ERROR(write(0, head));
    Blocks blocks(group_, set.column_bytes);
    for (std::uint32_t nth = 0; nth < set.layout.parity; ++nth) {
      const std::uint32_t stripe = set.layout.parity_stripe(group_.self, nth);
      for (std::uint64_t at = 0; at < set.column_bytes; at += blocks.bytes) {
        const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(blocks.bytes, set.column_bytes - at));
        QUERN_RETURN_IF_ERROR(check_turn(report));
        for (std::uint32_t column = 0; column < set.layout.data(); ++column)
          QUERN_RETURN_IF_ERROR(read_column(set, stripe, column, at, blocks.of(column, count), report));
        QUERN_RETURN_IF_ERROR(storage::make_parity(set.layout.data(), set.layout.parity, count, blocks.columns));
        QUERN_RETURN_IF_ERROR(
            write(head.size() + nth * set.column_bytes + at, blocks.of(set.layout.data() + nth, count)));
      }
    }
    Status status = (*file)->sync();
    if (status.ok()) status = files.rename(temporary, path);
    return status.ok() ? status : fail_file(report, path, "put it in place", status);
  };
  const Status status = fill();
  if (!status.ok()) (void)files.remove(temporary);
  return status;
}

Status PeerMember::remove_others(const Vector<ParitySet>& wanted, Report& report) {
  const auto names = memory_.files().list(folder());
  if (!names.ok()) return fail_file(report, folder(), "read it", names.status());
  for (const String& name : *names) {
    const String path = join({folder(), "/", name});
    const bool is_wanted =
        std::any_of(wanted.begin(), wanted.end(), [&](const ParitySet& set) { return set_path(set) == path; });
    // What a keeper that was killed has begun goes, too.
    if (is_wanted || !(name.ends_with(kColumnsEnd) || name.ends_with(kNewEnd))) continue;
    const Status status = memory_.files().remove(path);
    if (!status.ok() && !is_missing(status)) return fail_file(report, path, "remove it", status);
  }
  return {};
}

/// Whether all members have their columns of the set, and the checkpoints that these are made of.
bool PeerMember::is_everywhere(const ParitySet& set, std::span<const PeerHoldings> holdings, bool believes_silent,
                               const PeerRound& round) const {
  for (std::uint32_t i = 0; i < set.layout.members; ++i) {
    if (i == group_.self) continue;
    if (is_one_of(round.silent, i)
            ? !believes_silent
            : find(holdings[i].sets, set.hash()) == nullptr || !has(holdings[i].images, set.members[i]))
      return false;
  }
  return true;
}

/// `made`: the sets of which this member has its columns.
bool PeerMember::is_safe(const ParitySet& set, const Vector<ParitySet>& made, std::span<const PeerHoldings> holdings,
                         const PeerRound& round) const {
  const bool believes_silent = !safe_ || *safe_ == set.hash();
  if (!is_everywhere(set, holdings, believes_silent, round)) return false;
  const PeerOffer& own = set.members[group_.self];
  StoredManifests manifests(memory_);
  Needs needs(manifests);
  Report unheard;
  const auto manifest = manifests.find({own.step, own.id, own.generation}, unheard);
  if (!manifest.ok() || !needs.add(**manifest, unheard).ok()) return false;
  const auto& all = needs.checkpoints();
  return std::all_of(all.begin(), all.end(), [&](const Needed& needed) {
    return needed.name.id == own.id || std::any_of(made.begin(), made.end(), [&](const ParitySet& other) {
             return other.members[group_.self].id == needed.name.id &&
                    is_everywhere(other, holdings, believes_silent, round);
           });
  });
}

Status PeerMember::protect(PeerRound& out, Report& report) {
  const std::uint32_t members = group_.layout.members;
  QUERN_RETURN_IF_ERROR(hash_images(report));
  Vector<PeerHoldings> holdings(members);
  QUERN_ASSIGN_OR_RETURN(holdings[group_.self], own_holdings(report));
  for (std::uint32_t i = 0; i < members; ++i) {
    if (i == group_.self) continue;
    QUERN_RETURN_IF_ERROR(check_turn(report));
    const auto known = silent_.find(i);
    if (known != silent_.end() && !known->second.is_due()) {
      out.silent.push_back(i);
      continue;
    }
    const auto begun = Retry::Clock::now();
    auto found = holdings_of(i);
    if (found.ok()) {
      holdings[i] = std::move(found).value();
      silent_.erase(i);
    } else {
      out.silent.push_back(i);
      silent_.try_emplace(i, kLongestPause).first->second.heard(false, begun);
    }
  }
  const PeerHoldings& own = holdings[group_.self];
  Status first;
  Vector<ParitySet> wanted;
  // The newest first: it is the one that a restart wants.
  for (auto image = own.images.rbegin(); image != own.images.rend(); ++image) {
    ParitySet set{group_.layout, 0, {}};
    for (std::uint32_t i = 0; i < members; ++i) {
      const PeerOffer* const offer = i == group_.self ? &*image : find(holdings[i].images, image->step);
      if (offer != nullptr) set.members.push_back(*offer);
    }
    set.column_bytes = ParitySet::column_bytes_for(set.layout, set.members);
    // One whose step was saved again is of no use to a restart.
    const bool complete = set.members.size() == members && find(own.images, image->step) == &*image;
    bool made = complete && find(own.sets, set.hash()) != nullptr;
    const auto failed = failed_.find(image->id);
    if (complete && !made && (failed == failed_.end() || failed->second.is_due())) {
      Report own_report;
      const auto begun = Retry::Clock::now();
      const Status status = make_columns(set, own_report);
      made = status.ok();
      out.made += made ? 1 : 0;
      if (status.code() == StatusCode::cancelled) return status;
      if (made) {
        failed_.erase(image->id);
      } else {
        failed_.try_emplace(image->id, kLongestPause).first->second.heard(false, begun);
      }
      if (!made && first.ok()) {
        first = status;
        report.problem = own_report.problem;
      }
    }
    if (made) wanted.push_back(set);
    // What cannot be made now, as a member is away or saves, may be all there is of that step.
    if (!made)
      for (const ParitySet& old : own.sets)
        if (old.members[group_.self] == *image) wanted.push_back(old);
  }
  for (const ParitySet& set : wanted) {
    if (!is_safe(set, wanted, holdings, out)) continue;
    const PeerOffer& image = set.members[group_.self];
    out.safe = CheckpointName{image.step, image.id, image.generation};
    safe_ = set.hash();
    break;
  }
  // Another member may need its checkpoint longer, for later ones. Without a member no set is added, so this ends.
  for (const ParitySet& old : own.sets) {
    if (has(own.images, old.members[group_.self])) continue;
    bool is_listed = !out.silent.empty();
    for (std::uint32_t i = 0; i < members; ++i) is_listed = is_listed || has(holdings[i].images, old.members[i]);
    if (is_listed) wanted.push_back(old);
  }
  std::erase_if(failed_, [&](const auto& one) {
    return std::none_of(own.images.begin(), own.images.end(),
                        [&](const PeerOffer& image) { return image.id == one.first; });
  });
  QUERN_RETURN_IF_ERROR(remove_others(wanted, report));
  return first;
}

Status PeerMember::rebuild(const ParitySet& set, std::span<const PeerHoldings> holdings, const Store& staging,
                           Report& report) {
  const PeerLayout& layout = set.layout;
  const ContentHash hash = set.hash();
  Vector<bool> gone(layout.members);  // did not give what they had
  for (;;) {
    std::uint32_t failed = layout.members;
    PeerImageWriter image(staging);
    Blocks blocks(group_, set.column_bytes);
    std::uint64_t left = set.members[group_.self].bytes;
    for (std::uint32_t piece = 0; piece < layout.data() && left != 0 && failed == layout.members; ++piece) {
      const std::uint32_t stripe = layout.piece_stripe(group_.self, piece);
      std::array<bool, kMostMembers> lost{};
      std::uint32_t count_lost = 0;
      for (std::uint32_t column = 0; column < layout.members; ++column) {
        const std::uint32_t holder = layout.member(stripe, column);
        const bool there = layout.is_parity(column) ? find(holdings[holder].sets, hash) != nullptr
                                                    : has(holdings[holder].images, set.members[holder]);
        lost[column] = gone[holder] || !there;
        count_lost += lost[column] ? 1 : 0;
      }
      if (count_lost > layout.parity)
        return fail(report, StatusCode::corrupt,
                    join({"step ", decimal(set.members[group_.self].step), ": ", decimal(count_lost),
                          " of the peers' columns are lost, and parity covers ", decimal(layout.parity)}));
      for (std::uint64_t at = 0; at < set.column_bytes && left != 0; at += blocks.bytes) {
        QUERN_RETURN_IF_ERROR(check_turn(report));
        const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(blocks.bytes, set.column_bytes - at));
        std::uint32_t sources = 0;
        for (std::uint32_t column = 0; column < layout.members && sources < layout.data(); ++column) {
          if (lost[column]) continue;
          if (!read_column(set, stripe, column, at, blocks.of(column, count), report).ok()) {
            failed = layout.member(stripe, column);
            break;
          }
          ++sources;
        }
        if (failed != layout.members) break;
        QUERN_RETURN_IF_ERROR(storage::rebuild_columns(layout.data(), layout.parity, count, blocks.columns,
                                                       std::span<const bool>(lost).first(layout.members)));
        const auto own = static_cast<std::size_t>(std::min<std::uint64_t>(left, count));
        QUERN_RETURN_IF_ERROR(image.write(blocks.of(layout.column(stripe, group_.self), own), report));
        left -= own;
      }
    }
    if (failed == layout.members) return image.finish(set.members[group_.self].hash, report).status();
    QUERN_RETURN_IF_ERROR(check_turn(report));
    gone[failed] = true;
  }
}

/// Of the sets with that checkpoint of this member the first that gives it is enough. Others become notes.
bool PeerMember::rebuild_any(const Vector<ParitySet>& sets, std::string_view id, std::span<const PeerHoldings> holdings,
                             const Store& staging, Report& report) {
  for (const ParitySet& set : sets) {
    const PeerOffer& own = set.members[group_.self];
    if (own.id != id) continue;
    Report own_report;
    if (rebuild(set, holdings, staging, own_report).ok()) return true;
    (void)remove_tree(staging.files(), staging.data_folder(id));  // its memory is for the others
    report.notes.push_back(join({"step ", decimal(own.step), ": not given back by the peers: ", own_report.problem}));
  }
  return false;
}

/// Whether all that the checkpoint needs is there, with what had to be made for that.
bool PeerMember::rebuild_needs(const CheckpointName& name, const Vector<ParitySet>& sets,
                               std::span<const PeerHoldings> holdings, const Store& staging, Report& report) {
  for (;;) {
    StoredManifests manifests(staging);
    Needs needs(manifests);
    Report unheard;
    const auto manifest = manifests.find(name, unheard);
    if (!manifest.ok()) return false;
    const Status whole = needs.add(**manifest, unheard);
    bool grew = false;
    for (const Needed& needed : needs.checkpoints()) {
      if (needed.manifest != nullptr) continue;
      if (!rebuild_any(sets, needed.name.id, holdings, staging, report)) return false;
      grew = true;
    }
    if (!grew) return whole.ok();
  }
}

Status PeerMember::recover(const Store& staging, const std::function<bool(const CheckpointName&)>& is_enough,
                           Vector<std::uint32_t>& silent, Report& report) {
  Vector<PeerHoldings> holdings(group_.layout.members);
  QUERN_RETURN_IF_ERROR(hash_images(report));
  QUERN_ASSIGN_OR_RETURN(holdings[group_.self], own_holdings(report));
  for (std::uint32_t i = 0; i < group_.layout.members; ++i) {
    if (i == group_.self) continue;
    QUERN_RETURN_IF_ERROR(check_turn(report));
    auto found = holdings_of(i);
    if (found.ok()) {
      holdings[i] = std::move(found).value();
    } else {
      silent.push_back(i);
    }
  }
  Vector<ParitySet> sets;
  for (const PeerHoldings& one : holdings)
    for (const ParitySet& set : one.sets)
      if (same_layout(set.layout, group_.layout) && find(sets, set.hash()) == nullptr &&
          !has(holdings[group_.self].images, set.members[group_.self]))
        sets.push_back(set);
  const auto own = [&](const ParitySet& set) -> const PeerOffer& { return set.members[group_.self]; };
  std::stable_sort(sets.begin(), sets.end(),
                   [&](const ParitySet& a, const ParitySet& b) { return own(a).generation > own(b).generation; });
  Vector<String> tried;
  for (const ParitySet& set : sets) {
    const CheckpointName name{own(set).step, own(set).id, own(set).generation};
    if (std::find(tried.begin(), tried.end(), name.id) != tried.end()) continue;
    tried.push_back(name.id);
    QUERN_RETURN_IF_ERROR(check_turn(report));
    Report unheard;
    const bool there = staging.read(name, unheard).ok() || rebuild_any(sets, name.id, holdings, staging, report);
    if (there && rebuild_needs(name, sets, holdings, staging, report) && is_enough(name)) break;
  }
  return {};
}

}  // namespace quern::checkpoint
