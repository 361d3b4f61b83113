// What the checkpoint store takes from storage/, by its names here.
#pragma once

#include "storage/content_hash.h"
#include "storage/file_system.h"
#include "storage/publish_file.h"
#include "storage/report.h"

namespace quern::checkpoint {

using storage::content_hash;
using storage::ContentHash;
using storage::decimal;
using storage::exists_already;
using storage::fail;
using storage::fail_at;
using storage::fail_file;
using storage::File;
using storage::FileLock;
using storage::FileSystem;
using storage::hex;
using storage::is_busy;
using storage::is_missing;
using storage::join;
using storage::LockKind;
using storage::make_one_folder;
using storage::make_with_parents;
using storage::parent_of;
using storage::parse_content_hash;
using storage::parse_hex64;
using storage::publish_file;
using storage::read_file;
using storage::read_fully;
using storage::remove_tree;
using storage::Report;
using storage::system_files;
using storage::write_fully;
using storage::WriteQueue;

}  // namespace quern::checkpoint
