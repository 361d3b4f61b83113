// Bags of rosbag2 in SQLite databases, and messages that it packed one by one.
#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "lidar/bags/bag.h"
#include "lidar/bags/expand.h"

#ifdef QUERN_HAVE_SQLITE
#include <sqlite3.h>
#endif

namespace quern::lidar {

#ifdef QUERN_HAVE_SQLITE
namespace {

Status damaged() { return Status(StatusCode::corrupt, "the database of the bag is damaged, or no bag of rosbag2"); }

Status status_of(int code) {
  if (code == SQLITE_NOMEM) return Status(StatusCode::out_of_memory, "out of memory");
  if (code == SQLITE_TOOBIG) return Status(StatusCode::memory_limit, "a message of the bag is above the limit");
  return damaged();
}

struct Close {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Database = std::unique_ptr<sqlite3, Close>;
using Statement = std::unique_ptr<sqlite3_stmt, Close>;

Result<Statement> prepare(sqlite3* database, const char* text) {
  sqlite3_stmt* made = nullptr;
  const int code = sqlite3_prepare_v2(database, text, -1, &made, nullptr);
  Statement out(made);
  if (code != SQLITE_OK || made == nullptr) return status_of(code);
  return out;
}

/// Calls `take` for each row.
template <class Take>
Status for_each_row(sqlite3_stmt* statement, const Take& take) {
  int code = sqlite3_step(statement);
  for (; code == SQLITE_ROW; code = sqlite3_step(statement)) QUERN_RETURN_IF_ERROR(take());
  return code == SQLITE_DONE ? Status() : status_of(code);
}

std::string_view text_of(sqlite3_stmt* row, int column) {
  const auto* const text = reinterpret_cast<const char*>(sqlite3_column_text(row, column));
  return text == nullptr ? std::string_view() : std::string_view(text, sqlite3_column_bytes(row, column));
}

/// What a file that somebody else made may do: nothing but hold tables.
void restrict_database(sqlite3* database, const BagLimits& limits) {
  sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  sqlite3_limit(database, SQLITE_LIMIT_LENGTH, static_cast<int>(std::min<std::uint64_t>(limits.most_bytes, INT32_MAX)));
  sqlite3_exec(database, "PRAGMA cell_size_check=ON; PRAGMA query_only=ON", nullptr, nullptr, nullptr);
}

class SqliteBag final : public Bag {
 public:
  SqliteBag(Database database, const BagLimits& limits) : database_(std::move(database)), limits_(limits) {}

  Status open() {
    restrict_database(database_.get(), limits_);
    QUERN_RETURN_IF_ERROR(check_tables());
    QUERN_RETURN_IF_ERROR(read_topics());
    QUERN_RETURN_IF_ERROR(read_messages());
    QUERN_ASSIGN_OR_RETURN(data_, prepare(database_.get(), "SELECT data FROM messages WHERE id = ?1"));
    return {};
  }

  Result<BagMessage> read(std::size_t topic, std::uint64_t index) override {
    const Place& place = places_[topic][static_cast<std::size_t>(index)];
    auto bytes = std::make_shared<Vector<std::uint8_t>>();
    {
      const std::lock_guard lock(mutex_);
      sqlite3_reset(data_.get());
      sqlite3_bind_int64(data_.get(), 1, place.id);
      const int code = sqlite3_step(data_.get());
      if (code != SQLITE_ROW) return status_of(code);
      const auto* const blob = static_cast<const std::uint8_t*>(sqlite3_column_blob(data_.get(), 0));
      if (blob != nullptr) bytes->assign(blob, blob + sqlite3_column_bytes(data_.get(), 0));
      sqlite3_reset(data_.get());
    }
    // No message in CDR begins as zstd does.
    if (bag_format_of(*bytes) == BagFormat::zstd) {
      QUERN_ASSIGN_OR_RETURN(*bytes, expand_zstd(*bytes, limits_.most_bytes));
    }
    BagMessage out;
    out.log_time = place.log_time;
    out.bytes = *bytes;
    out.owner = std::move(bytes);
    return out;
  }

 private:
  struct Place {
    std::int64_t log_time = 0;
    std::int64_t id = 0;
  };

  /// Virtual tables could compute rows without end.
  Status check_tables() const {
    QUERN_ASSIGN_OR_RETURN(
        const Statement tables,
        prepare(database_.get(),
                "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name IN ('topics', 'messages')"));
    int found = 0;
    QUERN_RETURN_IF_ERROR(for_each_row(tables.get(), [&]() -> Status {
      const std::string_view sql = text_of(tables.get(), 0);
      std::string words(sql.substr(0, 20));
      std::transform(words.begin(), words.end(), words.begin(),
                     [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
      if (!words.starts_with("create table")) return damaged();
      ++found;
      return {};
    }));
    return found == 2 ? Status() : damaged();
  }

  Status read_topics() {
    QUERN_ASSIGN_OR_RETURN(
        const Statement rows,
        prepare(database_.get(),
                "SELECT t.id, t.name, t.type, t.serialization_format, "
                "(SELECT COUNT(*) FROM messages m WHERE m.topic_id = t.id) FROM topics t ORDER BY t.name"));
    return for_each_row(rows.get(), [&]() -> Status {
      const std::size_t at = topic_at(text_of(rows.get(), 1), text_of(rows.get(), 2), text_of(rows.get(), 3));
      topics_[at].messages += static_cast<std::uint64_t>(sqlite3_column_int64(rows.get(), 4));
      ids_.emplace_back(sqlite3_column_int64(rows.get(), 0), at);
      if (ids_.size() > 100'000) return damaged();
      return {};
    });
  }

  Status read_messages() {
    places_.resize(topics_.size());
    QUERN_ASSIGN_OR_RETURN(
        const Statement rows,
        prepare(database_.get(), "SELECT id, timestamp FROM messages WHERE topic_id = ?1 ORDER BY id"));
    std::uint64_t bytes = 0;
    for (const auto& [id, topic] : ids_) {
      if (!topics_[topic].has_clouds()) continue;
      Vector<Place>& places = places_[topic];
      sqlite3_reset(rows.get());
      sqlite3_bind_int64(rows.get(), 1, id);
      QUERN_RETURN_IF_ERROR(for_each_row(rows.get(), [&]() -> Status {
        bytes += sizeof(Place);
        if (bytes > limits_.most_bytes)
          return Status(StatusCode::memory_limit, "the bag has more messages than fit into {0} bytes",
                        static_cast<std::int64_t>(limits_.most_bytes));
        places.push_back({sqlite3_column_int64(rows.get(), 1), sqlite3_column_int64(rows.get(), 0)});
        return {};
      }));
    }
    for (std::size_t i = 0; i < places_.size(); ++i) {
      std::stable_sort(places_[i].begin(), places_[i].end(),
                       [](const Place& a, const Place& b) { return a.log_time < b.log_time; });
      if (topics_[i].has_clouds()) topics_[i].messages = places_[i].size();
    }
    return {};
  }

  Database database_;
  BagLimits limits_;
  Vector<std::pair<std::int64_t, std::size_t>> ids_;  ///< of the file, and places in topics_
  Vector<Vector<Place>> places_;                      ///< by topic
  std::mutex mutex_;                                  ///< of the statement
  Statement data_;
};

Result<std::unique_ptr<Bag>> open_database(Database database, const BagLimits& limits) {
  auto bag = std::make_unique<SqliteBag>(std::move(database), limits);
  QUERN_RETURN_IF_ERROR(bag->open());
  return std::unique_ptr<Bag>(std::move(bag));
}

Result<Database> open_name(const std::string& name, int flags) {
  sqlite3* made = nullptr;
  const int code = sqlite3_open_v2(name.c_str(), &made, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  Database out(made);
  if (code != SQLITE_OK) return status_of(code);
  return out;
}

/// As a URI, in which a few characters have a meaning of their own.
std::string uri_of(const char* path, const char* query) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out = "file:";
  for (const char* c = path; *c != '\0'; ++c) {
    if (*c != '%' && *c != '?' && *c != '#') {
      out += *c;
    } else {
      out.append("%").append(1, kDigits[static_cast<unsigned char>(*c) >> 4]);
      out += kDigits[static_cast<unsigned char>(*c) & 15];
    }
  }
  return out + query;
}

}  // namespace

Result<std::unique_ptr<Bag>> open_sqlite_bag(const char* path, const BagLimits& limits) {
  QUERN_ASSIGN_OR_RETURN(Database database,
                         open_name(uri_of(path, "?mode=ro"), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI));
  auto bag = open_database(std::move(database), limits);
  if (bag.ok() || bag.status().code() == StatusCode::memory_limit) return bag;
  // A bag with a log of writes needs a folder that can be written; without one it is read as it lies there.
  auto still = open_name(uri_of(path, "?mode=ro&immutable=1"), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
  if (still.ok()) return open_database(std::move(still).value(), limits);
  return bag;
}

Result<std::unique_ptr<Bag>> open_sqlite_bag(Vector<std::uint8_t> file, const BagLimits& limits) {
  if (bag_format_of(file) != BagFormat::sqlite || file.size() < 100) return damaged();
  // Bytes 18 and 19 say whether there is a log of writes beside it; in memory there is none.
  file[18] = file[19] = 1;
  QUERN_ASSIGN_OR_RETURN(Database database, open_name(":memory:", SQLITE_OPEN_READWRITE));
  auto* const copy = static_cast<unsigned char*>(sqlite3_malloc64(file.size()));
  if (copy == nullptr) return Status(StatusCode::out_of_memory, "out of memory");
  std::memcpy(copy, file.data(), file.size());
  const auto size = static_cast<sqlite3_int64>(file.size());
  const int code = sqlite3_deserialize(database.get(), "main", copy, size, size,
                                       SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY);
  if (code != SQLITE_OK) return status_of(code);
  return open_database(std::move(database), limits);
}

#else

namespace {

Status absent() {
  return Status(StatusCode::unsupported,
                "this quern was built without SQLite; install libsqlite3-dev and build again, or make an MCAP file of "
                "the bag with ros2 bag convert");
}

}  // namespace

Result<std::unique_ptr<Bag>> open_sqlite_bag(const char*, const BagLimits&) { return absent(); }
Result<std::unique_ptr<Bag>> open_sqlite_bag(Vector<std::uint8_t>, const BagLimits&) { return absent(); }

#endif

}  // namespace quern::lidar
