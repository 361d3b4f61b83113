// A folder that gets a model's files: they are written under temporary names and appear when all of them are safe.
#pragma once

#include "checkpoint/convert/checkpoint_files.h"
#include "checkpoint/storage.h"

namespace quern::checkpoint {

class ModelFolder {
 public:
  /// Makes the folder, and those above it. Fails where it has a model already, unless that may be replaced.
  static Result<ModelFolder> open(FileSystem& files, std::string_view path, bool replace, Report& report);
  ModelFolder(ModelFolder&& other) noexcept;
  ModelFolder& operator=(ModelFolder&&) = delete;
  /// Removes what was not published.
  ~ModelFolder();

  /// Begins the file of that name; what is written goes into it until the next one begins.
  Status begin(std::string_view name, Report& report);
  Status write(std::span<const std::uint8_t> bytes, Report& report);
  /// Gives the files their names, in the order they were begun, and removes files of a model that was here before.
  Status publish(Report& report);

  std::uint64_t bytes() const { return bytes_; }

 private:
  struct Entry {
    String name;
    String temporary;
  };
  ModelFolder(FileSystem& files, std::string_view path) : files_(&files), path_(path) {}
  String in_folder(std::string_view name) const { return join({path_, "/", name}); }
  Status end_file(Report& report);

  FileSystem* files_;
  String path_;
  Vector<String> old_;  ///< files of the model that is replaced
  Vector<Entry> entries_;
  std::unique_ptr<File> file_;
  std::uint64_t at_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace quern::checkpoint
