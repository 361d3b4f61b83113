// The order of write, sync and rename.
#include "storage/publish_file.h"

namespace quern::storage {

Status publish_file(FileSystem& files, const String& temporary, const String& path, const String& folder,
                    std::span<const std::uint8_t> bytes, Report& report) {
  auto file = files.create(temporary);
  if (!file.ok()) return fail_file(report, temporary, "create it", file.status());
  Status status = write_fully(*file.value(), 0, bytes);
  if (status.ok()) status = file.value()->sync();
  if (!status.ok()) {
    (void)files.remove(temporary);
    return fail_file(report, temporary, "write it", status);
  }
  status = files.rename(temporary, path);
  if (!status.ok()) {
    (void)files.remove(temporary);
    return fail_file(report, path, "put it in place", status);
  }
  status = files.sync_folder(folder);
  if (!status.ok()) return fail_file(report, folder, "sync it", status);
  return {};
}

Status make_one_folder(FileSystem& files, std::string_view path, Report& report) {
  const Status status = files.make_folder(path);
  if (!status.ok() && !exists_already(status)) return fail_file(report, path, "make the folder", status);
  return {};
}

String parent_of(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string_view::npos) return ".";
  path = path.substr(0, slash);
  while (path.ends_with('/')) path.remove_suffix(1);
  return path.empty() ? String("/") : String(path);
}

Status make_with_parents(FileSystem& files, const String& path, Report& report) {
  Status status = files.make_folder(path);
  const String parent = parent_of(path);
  if (is_missing(status) && parent != "." && parent != "/") {
    QUERN_RETURN_IF_ERROR(make_with_parents(files, parent, report));
    const String above = parent_of(parent);
    const Status synced = files.sync_folder(above);
    if (!synced.ok()) return fail_file(report, above, "sync it", synced);
    status = files.make_folder(path);
  }
  if (!status.ok() && !exists_already(status)) return fail_file(report, path, "make the folder", status);
  return {};
}

Status remove_tree(FileSystem& files, const String& folder) {
  const auto names = files.list(folder);
  if (!names.ok()) return is_missing(names.status()) ? Status() : names.status();
  for (const String& name : *names) QUERN_RETURN_IF_ERROR(files.remove(join({folder, "/", name})));
  return files.remove_folder(folder);
}

}  // namespace quern::storage
