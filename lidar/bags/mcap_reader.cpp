// MCAP files, read from their first byte to their last: indexes, which may be missing or wrong, are not needed. A file
// without its end, as a crash leaves it, is read up to its last whole record.
#include <algorithm>
#include <deque>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "lidar/bags/bag.h"
#include "lidar/bags/expand.h"
#include "lidar/bags/mcap_format.h"

namespace quern::lidar {
namespace {

using mcap::Record;
using mcap::Walk;

constexpr std::uint32_t kNoChunk = UINT32_MAX;
/// Chunks: topics that are read side by side, or threads that are a little ahead of others.
constexpr std::size_t kMostRemembered = 4;

Status corrupt(const char* what, std::uint64_t at) {
  return Status(StatusCode::corrupt, what, static_cast<std::int64_t>(at));
}

/// A chunk of the file.
struct Chunk {
  std::uint64_t at = 0;  ///< of its content in the file
  std::uint64_t bytes = 0;
};

/// Where a message's data lie: in the records of a chunk, or in the file.
struct Place {
  std::int64_t log_time = 0;
  std::uint64_t at = 0;
  std::uint64_t bytes = 0;
  std::uint32_t chunk = kNoChunk;
};

using Shared = std::shared_ptr<const Vector<std::uint8_t>>;

class McapBag final : public Bag {
 public:
  McapBag(std::span<const std::uint8_t> file, const BagLimits& limits) : file_(file), limits_(limits) {}

  Status open() {
    Walk walk(file_, mcap::kMagic.size());
    bool has_end = false;
    while (const auto record = walk.next()) {
      if (record->opcode == mcap::kDataEnd || record->opcode == mcap::kFooter) {
        has_end = true;
        break;
      }
      if (record->opcode == mcap::kChunk) {
        QUERN_RETURN_IF_ERROR(take_chunk(*record));
      } else {
        QUERN_RETURN_IF_ERROR(take(*record, kNoChunk));
      }
    }
    is_cut_ = !has_end;
    sort_topics();
    return {};
  }

  Result<BagMessage> read(std::size_t topic, std::uint64_t index) override {
    const Place& place = places_[topic][static_cast<std::size_t>(index)];
    BagMessage out;
    out.log_time = place.log_time;
    std::span<const std::uint8_t> records = file_;
    if (place.chunk != kNoChunk) {
      QUERN_ASSIGN_OR_RETURN(out.owner, records_of(place.chunk));
      records = *out.owner;
    }
    out.bytes = records.subspan(static_cast<std::size_t>(place.at), static_cast<std::size_t>(place.bytes));
    return out;
  }

 private:
  struct Schema {
    String name;
    String bytes;  ///< its record, to tell it from another of the same number
  };
  struct Channel {
    std::size_t topic = 0;
    String bytes;
  };

  /// The records that a chunk packs.
  Result<Shared> unpack(const Chunk& chunk) const {
    const auto content = file_.subspan(static_cast<std::size_t>(chunk.at), static_cast<std::size_t>(chunk.bytes));
    const auto short_chunk = [&] { return corrupt("the chunk at byte {0} is shorter than its fields", chunk.at); };
    Reader reader(content);
    if (!reader.skip(16).ok()) return short_chunk();
    const auto size = reader.u64();
    const auto crc = reader.u32();
    if (!size.ok() || !crc.ok()) return short_chunk();
    const auto packing = mcap::read_text(reader);
    const auto packed_bytes = reader.u64();
    if (!packing.ok() || !packed_bytes.ok()) return short_chunk();
    const auto packed = reader.bytes(*packed_bytes);
    if (!packed.ok()) return short_chunk();
    if (*size > limits_.most_bytes)
      return Status(StatusCode::memory_limit, "a chunk of the MCAP file unpacks to {0} bytes, above the limit of {1}",
                    static_cast<std::int64_t>(*size), static_cast<std::int64_t>(limits_.most_bytes));
    auto out = std::make_shared<Vector<std::uint8_t>>();
    if (packing->empty()) {
      out->assign(packed->begin(), packed->end());
    } else if (*packing == "zstd") {
      auto expanded = expand_zstd(*packed, *size);
      if (!expanded.ok() && expanded.status().code() != StatusCode::memory_limit) return expanded.status();
      if (expanded.ok()) *out = std::move(expanded).value();
    } else if (*packing == "lz4") {
      // A byte of lz4 stands for 255 at most.
      if (*size / 255 > packed->size()) return corrupt("the chunk at byte {0} cannot unpack to its size", chunk.at);
      out->resize(static_cast<std::size_t>(*size));
      QUERN_RETURN_IF_ERROR(expand_lz4(*packed, *out));
    } else {
      return Status(StatusCode::unsupported, "the chunk at byte {0} is packed by something else than lz4 and zstd",
                    static_cast<std::int64_t>(chunk.at));
    }
    if (out->size() != *size) return corrupt("the chunk at byte {0} unpacks to another size than it says", chunk.at);
    if (*crc != 0 && crc32_of(*out) != *crc)
      return Status(StatusCode::checksum_mismatch, "the chunk at byte {0} is damaged: its checksum differs",
                    static_cast<std::int64_t>(chunk.at));
    return Shared(std::move(out));
  }

  Status take_chunk(const Record& record) {
    const Chunk chunk{record.offset, record.content.size()};
    if (chunks_.size() >= kNoChunk) return corrupt("the MCAP file has too many chunks, at byte {0}", record.offset);
    QUERN_ASSIGN_OR_RETURN(const Shared records, unpack(chunk));
    const auto number = static_cast<std::uint32_t>(chunks_.size());
    chunks_.push_back(chunk);
    Walk walk(*records);
    while (const auto inner = walk.next()) {
      if (inner->opcode == mcap::kChunk) return corrupt("the chunk at byte {0} has a chunk in it", chunk.at);
      QUERN_RETURN_IF_ERROR(take(*inner, number));
    }
    if (walk.is_cut()) return corrupt("a record in the chunk at byte {0} is longer than the chunk", chunk.at);
    return {};
  }

  Status take(const Record& record, std::uint32_t chunk) {
    Reader reader(record.content);
    switch (record.opcode) {
      case mcap::kSchema: return take_schema(record, reader);
      case mcap::kChannel: return take_channel(record, reader);
      case mcap::kMessage: return take_message(record, reader, chunk);
      default: return {};
    }
  }

  Status take_schema(const Record& record, Reader& reader) {
    const auto id = reader.u16();
    const auto name = id.ok() ? mcap::read_text(reader) : Result<std::string_view>(id.status());
    if (!name.ok()) return corrupt("the schema at byte {0} is shorter than its fields", record.offset);
    if (*id == 0) return corrupt("the schema at byte {0} has the number 0", record.offset);
    const std::string_view bytes(reinterpret_cast<const char*>(record.content.data()), record.content.size());
    const auto [entry, is_new] = schemas_.try_emplace(*id, Schema{String(*name), String(bytes)});
    if (!is_new && entry->second.bytes != bytes)
      return corrupt("the schema at byte {0} has the number of another schema", record.offset);
    return is_new ? take_index(bytes.size(), limits_) : Status();
  }

  Status take_channel(const Record& record, Reader& reader) {
    const auto id = reader.u16();
    const auto schema = reader.u16();
    const auto topic = schema.ok() ? mcap::read_text(reader) : Result<std::string_view>(schema.status());
    const auto encoding = topic.ok() ? mcap::read_text(reader) : topic;
    if (!id.ok() || !encoding.ok()) return corrupt("the channel at byte {0} is shorter than its fields", record.offset);
    const std::string_view bytes(reinterpret_cast<const char*>(record.content.data()), record.content.size());
    const auto known = channels_.find(*id);
    if (known != channels_.end())
      return known->second.bytes == bytes
                 ? Status()
                 : corrupt("the channel at byte {0} has the number of another channel", record.offset);
    const auto described = schemas_.find(*schema);
    if (*schema != 0 && described == schemas_.end())
      return corrupt("the channel at byte {0} has a schema that is not there", record.offset);
    const std::string_view type = *schema == 0 ? std::string_view() : std::string_view(described->second.name);
    // Before they are copied: many channels may share a type with a long name.
    QUERN_RETURN_IF_ERROR(take_index(bytes.size() + 2 * (topic->size() + type.size() + encoding->size()), limits_));
    channels_.emplace(*id, Channel{topic_at(*topic, type, *encoding), String(bytes)});
    places_.resize(topics_.size());
    return {};
  }

  Status take_message(const Record& record, Reader& reader, std::uint32_t chunk) {
    if (record.content.size() < mcap::kMessageHead)
      return corrupt("the message at byte {0} is shorter than its fields", record.offset);
    QUERN_ASSIGN_OR_RETURN(const auto id, reader.u16());
    QUERN_RETURN_IF_ERROR(reader.skip(4));
    QUERN_ASSIGN_OR_RETURN(const auto log_time, reader.u64());
    const auto channel = channels_.find(id);
    if (channel == channels_.end())
      return corrupt("the message at byte {0} has a channel that is not there", record.offset);
    BagTopic& topic = topics_[channel->second.topic];
    ++topic.messages;
    if (!topic.has_clouds()) return {};
    QUERN_RETURN_IF_ERROR(take_index(sizeof(Place), limits_));
    places_[channel->second.topic].push_back({static_cast<std::int64_t>(std::min<std::uint64_t>(log_time, INT64_MAX)),
                                              record.offset + mcap::kMessageHead,
                                              record.content.size() - mcap::kMessageHead, chunk});
    return {};
  }

  /// Names rising, and messages by time.
  void sort_topics() {
    end_topics();
    Vector<std::size_t> order(topics_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return topics_[a].name != topics_[b].name ? topics_[a].name < topics_[b].name : a < b;
    });
    Vector<BagTopic> topics;
    Vector<Vector<Place>> places;
    for (const std::size_t i : order) {
      topics.push_back(std::move(topics_[i]));
      places.push_back(std::move(places_[i]));
      std::stable_sort(places.back().begin(), places.back().end(),
                       [](const Place& a, const Place& b) { return a.log_time < b.log_time; });
    }
    topics_ = std::move(topics);
    places_ = std::move(places);
    channels_.clear();
    schemas_.clear();
  }

  /// The records of a chunk; those of the last few are remembered, as far as they fit into the limit together.
  Result<Shared> records_of(std::uint32_t chunk) {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, records] : remembered_)
      if (number == chunk) return records;
    QUERN_ASSIGN_OR_RETURN(Shared records, unpack(chunks_[chunk]));
    remembered_bytes_ += records->size();
    remembered_.emplace_back(chunk, records);
    while (remembered_.size() > kMostRemembered || (remembered_.size() > 1 && remembered_bytes_ > limits_.most_bytes)) {
      remembered_bytes_ -= remembered_.front().second->size();
      remembered_.pop_front();
    }
    return records;
  }

  std::span<const std::uint8_t> file_;
  BagLimits limits_;
  std::unordered_map<std::uint16_t, Schema> schemas_;
  std::unordered_map<std::uint16_t, Channel> channels_;
  Vector<Chunk> chunks_;
  Vector<Vector<Place>> places_;  ///< by topic
  std::mutex mutex_;              ///< of what follows
  std::deque<std::pair<std::uint32_t, Shared>> remembered_;
  std::uint64_t remembered_bytes_ = 0;
};

}  // namespace

Result<std::unique_ptr<Bag>> open_mcap(std::span<const std::uint8_t> file, const BagLimits& limits) {
  if (bag_format_of(file) != BagFormat::mcap) return Status(StatusCode::bad_magic, "this is no MCAP file");
  auto bag = std::make_unique<McapBag>(file, limits);
  QUERN_RETURN_IF_ERROR(bag->open());
  return std::unique_ptr<Bag>(std::move(bag));
}

}  // namespace quern::lidar
