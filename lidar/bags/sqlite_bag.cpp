// Bags of rosbag2 in SQLite databases, and messages that it packed one by one.
#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "lidar/bags/bag.h"
#include "lidar/bags/expand.h"
#include "lidar/bags/message_layout.h"

#ifdef QUERN_HAVE_SQLITE
#include <sqlite3.h>
#endif

namespace quern::lidar {

#ifdef QUERN_HAVE_SQLITE
namespace {

Status damaged() { return Status(StatusCode::corrupt, "the database of the bag is damaged, or no bag of rosbag2"); }

/// Far more than a robot has.
constexpr std::size_t kMostTopics = 4096;

Status status_of(int extended) {
  const int code = extended & 0xFF;
  if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
    return Status(StatusCode::io_error, "another program writes the bag; try again when it is done");
  if (code == SQLITE_IOERR || code == SQLITE_CANTOPEN || code == SQLITE_PERM)
    return Status(StatusCode::io_error, "the database of the bag cannot be read");
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
    for (const char* const columns : {"PRAGMA table_xinfo(topics)", "PRAGMA table_xinfo(messages)"})
      QUERN_RETURN_IF_ERROR(check_columns(columns));
    QUERN_RETURN_IF_ERROR(read_topics());
    QUERN_RETURN_IF_ERROR(read_messages());
    QUERN_ASSIGN_OR_RETURN(data_, prepare(database_.get(), "SELECT data FROM messages WHERE rowid = ?1"));
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

  /// Columns that are computed could grow out of a few bytes.
  Status check_columns(const char* pragma) const {
    constexpr int kHidden = 6;
    QUERN_ASSIGN_OR_RETURN(const Statement columns, prepare(database_.get(), pragma));
    return for_each_row(columns.get(),
                        [&] { return sqlite3_column_int(columns.get(), kHidden) == 0 ? Status() : damaged(); });
  }

  /// Sorted by name.
  Status read_topics() {
    QUERN_ASSIGN_OR_RETURN(const Statement rows,
                           prepare(database_.get(), "SELECT id, name, type, serialization_format FROM topics"));
    struct Row {
      std::int64_t id = 0;
      String name, type, encoding;
    };
    Vector<Row> found;
    const auto take = [&]() -> Status {
      if (found.size() == kMostTopics)
        return Status(StatusCode::unsupported, "the bag has more than {0} topics",
                      static_cast<std::int64_t>(kMostTopics));
      const std::array<std::string_view, 3> texts = {text_of(rows.get(), 1), text_of(rows.get(), 2),
                                                     text_of(rows.get(), 3)};
      for (const std::string_view text : texts) {
        if (text.size() > kMaxTopicBytes)
          return Status(StatusCode::unsupported, "name, type or encoding of a topic have more than {0} bytes",
                        static_cast<std::int64_t>(kMaxTopicBytes));
        QUERN_RETURN_IF_ERROR(take_index(2 * text.size(), limits_));
      }
      found.push_back({sqlite3_column_int64(rows.get(), 0), String(texts[0]), String(texts[1]), String(texts[2])});
      return {};
    };
    QUERN_RETURN_IF_ERROR(for_each_row(rows.get(), take));
    std::stable_sort(found.begin(), found.end(), [](const Row& a, const Row& b) { return a.name < b.name; });
    for (const Row& row : found) numbers_.try_emplace(row.id, topic_at(row.name, row.type, row.encoding));
    end_topics();
    return {};
  }

  /// All in one scan: a scan for each topic would take topics x messages steps.
  Status read_messages() {
    places_.resize(topics_.size());
    QUERN_ASSIGN_OR_RETURN(const Statement rows,
                           prepare(database_.get(), "SELECT rowid, topic_id, timestamp FROM messages ORDER BY rowid"));
    const auto take = [&]() -> Status {
      const auto number = numbers_.find(sqlite3_column_int64(rows.get(), 1));
      if (number == numbers_.end()) return {};
      BagTopic& topic = topics_[number->second];
      ++topic.messages;
      if (!topic.has_clouds()) return {};
      QUERN_RETURN_IF_ERROR(take_index(sizeof(Place), limits_));
      places_[number->second].push_back({sqlite3_column_int64(rows.get(), 2), sqlite3_column_int64(rows.get(), 0)});
      return {};
    };
    QUERN_RETURN_IF_ERROR(for_each_row(rows.get(), take));
    for (Vector<Place>& places : places_)
      std::stable_sort(places.begin(), places.end(),
                       [](const Place& a, const Place& b) { return a.log_time < b.log_time; });
    return {};
  }

  Database database_;
  BagLimits limits_;
  std::unordered_map<std::int64_t, std::size_t> numbers_;  ///< in topics_, by id of the file
  Vector<Vector<Place>> places_;                           ///< by topic
  std::mutex mutex_;                                       ///< of the statement
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

/// Whether a log of writes lies beside the database: what it holds is part of the bag.
bool has_log(const char* path) {
  std::error_code error;
  std::filesystem::path real = std::filesystem::canonical(path, error);
  if (error) real = path;
  for (const char* const ending : {"-wal", "-journal"}) {
    const auto bytes = std::filesystem::file_size(real.string() + ending, error);
    if (!error && bytes != 0) return true;
  }
  return false;
}

/// The code of the first read, which finds logs and locks.
int first_read(sqlite3* database) {
  return sqlite3_exec(database, "SELECT COUNT(*) FROM sqlite_schema", nullptr, nullptr, nullptr) & 0xFF;
}

}  // namespace

Result<std::unique_ptr<Bag>> open_sqlite_bag(const char* path, const BagLimits& limits) {
  QUERN_ASSIGN_OR_RETURN(Database database,
                         open_name(uri_of(path, "?mode=ro"), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI));
  const int code = first_read(database.get());
  if (code != SQLITE_CANTOPEN && code != SQLITE_READONLY) return open_database(std::move(database), limits);
  // A bag that is kept with a log of writes needs a folder that can be written. Only where the log is empty is the
  // file alone the whole bag.
  if (has_log(path))
    return Status(
        StatusCode::io_error,
        "a log of writes lies beside the bag, and its folder cannot be written; copy the bag with its -wal or "
        "-journal file to a folder that can be written");
  QUERN_ASSIGN_OR_RETURN(Database still,
                         open_name(uri_of(path, "?mode=ro&immutable=1"), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI));
  return open_database(std::move(still), limits);
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
