#!/usr/bin/env python3
"""Fetches public data sets named in a catalogue: list them, download one, check it, unpack it.

Needs Python 3.8 or newer and nothing else. What arrives is never trusted: a download has a temporary name until its size
and checksum are right, and an archive member that would land outside its folder makes the whole archive refused.
"""

import argparse
import errno
import hashlib
import http.client
import json
import math
import os
import re
import shutil
import stat
import sys
import tarfile
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile
import zlib

EXIT_OK, EXIT_USAGE, EXIT_IO, EXIT_BAD_DATA, EXIT_INTERRUPTED = 0, 1, 2, 3, 130
BLOCK = 1 << 20
TIMEOUT_S = 60
DEFAULT_CATALOGUE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "catalogue", "catalogue.json")


class FetchError(Exception):
    """Something the user should read, with the exit status it leads to."""

    def __init__(self, message, code):
        super().__init__(message)
        self.code = code


def human(size):
    """1234567 -> '1.2 MB'."""
    value = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


# --- the catalogue ---------------------------------------------------------------------------------------------------


ELEMENT_BYTES = {"f32": 4, "f64": 8, "i64": 8}


def sound_variable(variable):
    """Shape, type and size must say the same, or the size be unknown because the shape is."""
    name, shape, size = variable["name"], variable["shape"], variable["bytes"]
    element = ELEMENT_BYTES.get(variable["dtype"])
    if element is None:
        raise ValueError(f"{name}: unknown type {variable['dtype']!r}")
    if shape is None:
        if size is not None:
            raise ValueError(f"{name}: {size} bytes of an unknown shape")
        return
    if not shape or not all(isinstance(extent, int) and extent > 0 for extent in shape):
        raise ValueError(f"{name}: bad shape {shape}")
    if size != element * math.prod(shape):
        raise ValueError(f"{name}: {size} bytes, but {'x'.join(map(str, shape))} of {variable['dtype']} has "
                         f"{element * math.prod(shape)}")


def sound_archive(archive):
    address, size, digest = archive["address"], archive["bytes"], archive["sha256"]
    if address is not None and urllib.parse.urlsplit(address).scheme not in ("https", "http", "file"):
        raise ValueError(f"bad address {address!r}")
    if size is not None and not (isinstance(size, int) and size > 0):
        raise ValueError(f"bad archive size {size!r}")
    if digest is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", digest):
        raise ValueError(f"bad sha256 {digest!r}")


def load_catalogue(path):
    """The list of sets. Names become folder names, so they are held to letters, digits and hyphens."""
    try:
        with open(path, encoding="utf-8") as file:
            sets = json.load(file)["sets"]
        for entry in sets:
            if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", entry["name"]):
                raise ValueError(f"bad name {entry['name']!r}")
            sound_archive(entry["archive"])
            for variable in entry["variables"]:
                variable["file"]  # may be null, not left out
                sound_variable(variable)
        return sets
    except OSError as error:
        raise FetchError(f"cannot read the catalogue {path}: {error.strerror}", EXIT_IO) from error
    except (ValueError, KeyError, TypeError) as error:
        raise FetchError(f"{path} is not a catalogue: {error}", EXIT_USAGE) from error


def find_set(sets, name):
    for entry in sets:
        if entry["name"] == name:
            return entry
    known = ", ".join(entry["name"] for entry in sets)
    raise FetchError(f"no data set is called {name!r}; the catalogue has {known}", EXIT_USAGE)


def find_variable(entry, name):
    for variable in entry["variables"]:
        if variable["name"] == name:
            if variable["file"] is None:
                raise FetchError(
                    f"the catalogue does not know the file of {name!r}; get {entry['name']} without --variable", EXIT_USAGE)
            return variable
    known = ", ".join(variable["name"] for variable in entry["variables"])
    raise FetchError(f"{entry['name']} has no variable {name!r}; it has {known}", EXIT_USAGE)


def print_list(sets):
    rows = [("NAME", "ARCHIVE", "CHECKSUM", "TYPE", "SHAPE", "WHAT")]
    for entry in sets:
        first = entry["variables"][0]
        shape = "x".join(map(str, first["shape"])) if first["shape"] else "?"
        size = entry["archive"].get("listed_size") or "?"
        if entry["archive"]["address"] is None:
            size = "no address"
        checksum = "unverified" if entry["archive"]["sha256"] is None else "known"
        rows.append((entry["name"], size, checksum, first["dtype"], shape, entry["title"]))
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)) + "  " + row[5])


# --- download --------------------------------------------------------------------------------------------------------


class Progress:
    """One line on standard error that overwrites itself; silent when that is no terminal."""

    def __init__(self, label, total, start):
        self.label, self.total, self.first = label, total, start
        self.begin = self.shown = time.monotonic()
        self.active = sys.stderr.isatty()

    def update(self, done):
        now = time.monotonic()
        if not self.active or now - self.shown < 0.2:
            return
        self.shown = now
        share = f"{100 * done / self.total:.0f} % of {human(self.total)}" if self.total else human(done)
        speed = human((done - self.first) / max(now - self.begin, 1e-3))
        sys.stderr.write(f"\r\x1b[K{self.label}: {share}, {speed}/s")
        sys.stderr.flush()

    def close(self):
        if self.active:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


class Source:
    """An open download: bytes from `offset` on, and the whole length and version of the file when they are known."""

    def __init__(self, stream, offset, total, version):
        self.stream, self.offset, self.total, self.version = stream, offset, total, version


def open_local(path, offset):
    stream = open(path, "rb")
    info = os.fstat(stream.fileno())
    version = f"{info.st_size}-{info.st_mtime_ns}"
    offset = offset if offset <= info.st_size else 0
    stream.seek(offset)
    return Source(stream, offset, info.st_size, version)


def open_remote(address, offset, version):
    """Asks for the rest of a file. The server sends all of it when it cannot do that or when the file has changed."""
    request = urllib.request.Request(address, headers={"User-Agent": "quern-fetch", "Accept-Encoding": "identity"})
    if offset > 0 and version:
        request.add_header("Range", f"bytes={offset}-")
        request.add_header("If-Range", version)
    try:
        stream = urllib.request.urlopen(request, timeout=TIMEOUT_S)
    except urllib.error.HTTPError as error:
        if error.code == 416 and offset > 0:
            return open_remote(address, 0, None)
        raise
    tag = stream.headers.get("ETag")
    new_version = tag if tag and not tag.startswith("W/") else stream.headers.get("Last-Modified")
    if stream.status == 206:
        match = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", stream.headers.get("Content-Range", ""))
        if match and int(match.group(1)) == offset:
            total = int(match.group(2)) if match.group(2) != "*" else None
            return Source(stream, offset, total, new_version)
        stream.close()
        return open_remote(address, 0, None)
    length = stream.headers.get("Content-Length")
    return Source(stream, 0, int(length) if length else None, new_version)


def open_source(address, offset, version):
    parts = urllib.parse.urlsplit(address)
    try:
        if parts.scheme == "file":
            source = open_local(urllib.request.url2pathname(parts.path), offset)
            if version != source.version:
                source.stream.seek(0)
                source.offset = 0
            return source
        if parts.scheme in ("http", "https"):
            return open_remote(address, offset, version)
    except urllib.error.HTTPError as error:
        raise FetchError(f"{address}: the server answers {error.code} {error.reason}", EXIT_IO) from error
    except urllib.error.URLError as error:
        raise FetchError(f"cannot reach {parts.hostname}: {error.reason}. Is there a network?", EXIT_IO) from error
    except (OSError, http.client.HTTPException) as error:
        raise FetchError(f"cannot open {address}: {error}", EXIT_IO) from error
    raise FetchError(f"{address}: only https, http and file addresses are supported", EXIT_USAGE)


def read_version(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return None


def need_space(folder, size, what):
    free = shutil.disk_usage(folder).free
    if size > free:
        raise FetchError(f"{what} needs {human(size)}, but {folder} has only {human(free)} free", EXIT_IO)


def receive(source, partial, label):
    """Appends what the source sends to the partial file. Returns its size."""
    progress = Progress(label, source.total, source.offset)
    done = source.offset
    try:
        with open(partial, "r+b" if os.path.exists(partial) else "w+b") as file:
            file.seek(done)
            file.truncate()
            while True:
                try:
                    block = source.stream.read(BLOCK)
                except (OSError, http.client.HTTPException) as error:
                    raise FetchError(
                        f"{label}: the connection broke after {human(done)} ({error}); run the same command again to go on",
                        EXIT_IO) from error
                if not block:
                    break
                file.write(block)
                done += len(block)
                progress.update(done)
            file.flush()
            os.fsync(file.fileno())
    finally:
        progress.close()
        source.stream.close()
    return done


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(BLOCK), b""):
            digest.update(block)
    return digest.hexdigest()


def check(path, archive, label):
    """Refuses a file whose size or checksum is not the catalogue's. Returns the checksum."""
    size = os.path.getsize(path)
    if archive["bytes"] is not None and size != archive["bytes"]:
        raise FetchError(f"{label}: {size} bytes, but the catalogue says {archive['bytes']}", EXIT_BAD_DATA)
    digest = sha256_of(path)
    if archive["sha256"] is not None and digest != archive["sha256"].lower():
        raise FetchError(f"{label}: sha256 {digest}, but the catalogue says {archive['sha256']}", EXIT_BAD_DATA)
    return digest


def remove(*paths):
    for path in paths:
        if os.path.lexists(path):
            os.remove(path)


def download(archive, target, label):
    """The checked archive at `target`; resumes a partial download. A file that fails its checks is removed."""
    partial, version_file = target + ".partial", target + ".partial.version"
    if os.path.exists(target):
        print(f"{label}: already here, checking it")
        return check(target, archive, label)
    offset = os.path.getsize(partial) if os.path.exists(partial) else 0
    source = open_source(archive["address"], offset, read_version(version_file))
    if source.offset > 0:
        print(f"{label}: going on after {human(source.offset)}")
    if source.total is not None:
        need_space(os.path.dirname(target), source.total - source.offset, label)
    if source.version:
        with open(version_file, "w", encoding="utf-8") as file:
            file.write(source.version)
    else:
        remove(version_file)
    size = receive(source, partial, label)
    if source.total is not None and size < source.total:
        raise FetchError(
            f"{label}: truncated, {size} of {source.total} bytes came; run the same command again to go on", EXIT_IO)
    try:
        digest = check(partial, archive, label)
    except FetchError:
        remove(partial, version_file)
        raise
    os.replace(partial, target)
    remove(version_file)
    return digest


# --- unpack ----------------------------------------------------------------------------------------------------------


def safe_path(folder, name, archive):
    """Where a member goes; refuses one that would leave the folder."""
    parts = name.replace("\\", "/").split("/")
    if name.startswith(("/", "\\")) or ".." in parts or re.match(r"[A-Za-z]:", name) or "\0" in name:
        raise FetchError(f"{archive}: member {name!r} would leave its folder; the archive is refused", EXIT_BAD_DATA)
    return os.path.join(folder, *[part for part in parts if part not in ("", ".")])


def copy_member(stream, path, size, archive):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    left = size
    with open(path, "xb") as out:
        while left > 0:
            block = stream.read(min(BLOCK, left))
            if not block:
                raise FetchError(f"{archive}: ends inside {os.path.basename(path)}", EXIT_BAD_DATA)
            out.write(block)
            left -= len(block)


def unpack_tar(path, folder, wanted):
    name = os.path.basename(path)
    with tarfile.open(path, "r:*") as tar:
        for member in tar:
            target = safe_path(folder, member.name, name)
            if member.isdir():
                continue
            if not member.isreg():
                raise FetchError(f"{name}: member {member.name!r} is a link or device; the archive is refused", EXIT_BAD_DATA)
            if wanted is None or os.path.basename(target) == wanted:
                copy_member(tar.extractfile(member), target, member.size, name)


def unpack_zip(path, folder, wanted):
    name = os.path.basename(path)
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            target = safe_path(folder, member.filename, name)
            mode = member.external_attr >> 16
            if member.is_dir():
                continue
            if mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                raise FetchError(f"{name}: member {member.filename!r} is a link or device; the archive is refused",
                                 EXIT_BAD_DATA)
            if wanted is None or os.path.basename(target) == wanted:
                with archive.open(member) as stream:
                    copy_member(stream, target, member.file_size, name)


def unpack(path, folder, wanted):
    """Unpacks all members, or those with the file name `wanted`, into an empty folder."""
    name = os.path.basename(path)
    try:
        if name.endswith((".tar.gz", ".tgz", ".tar")):
            unpack_tar(path, folder, wanted)
        elif name.endswith(".zip"):
            unpack_zip(path, folder, wanted)
        else:
            shutil.copyfile(path, os.path.join(folder, name))
    except FileExistsError as error:
        raise FetchError(f"{name}: holds {os.path.basename(error.filename)} twice; the archive is refused",
                         EXIT_BAD_DATA) from error
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, NotImplementedError) as error:
        raise FetchError(f"{name}: not a readable archive ({error})", EXIT_BAD_DATA) from error


def files_under(folder):
    return [os.path.join(root, name) for root, _, names in os.walk(folder) for name in sorted(names)]


def check_sizes(folder, variables, label):
    sizes = {variable["file"]: variable["bytes"] for variable in variables}
    for path in files_under(folder):
        expected = sizes.get(os.path.basename(path))
        if expected is not None and os.path.getsize(path) != expected:
            raise FetchError(f"{label}: {os.path.basename(path)} has {os.path.getsize(path)} bytes, but the catalogue says "
                             f"{expected}; the archive is kept, the file is not", EXIT_BAD_DATA)


def install(staging, folder):
    """Moves finished files to their place. Returns their paths."""
    installed = []
    for path in files_under(staging):
        target = os.path.join(folder, os.path.relpath(path, staging))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.replace(path, target)
        installed.append(target)
    return installed


def get(entry, variable_name, out):
    archive, label = entry["archive"], entry["name"]
    variable = find_variable(entry, variable_name) if variable_name else None
    if archive["address"] is None:
        note = entry.get("note", "")
        raise FetchError(f"the catalogue has no address for {label}. {note}".rstrip(), EXIT_USAGE)
    file_name = os.path.basename(urllib.parse.unquote(urllib.parse.urlsplit(archive["address"]).path))
    if file_name in ("", ".", ".."):
        raise FetchError(f"{archive['address']} names no file", EXIT_USAGE)
    os.makedirs(out, exist_ok=True)
    target = os.path.join(out, file_name)
    digest = download(archive, target, label)
    if archive["sha256"] is None:
        print(f"{label}: unverified: the catalogue has no checksum for this archive, so nothing was compared; what came has "
              f"sha256 {digest}")
    else:
        print(f"{label}: verified: sha256 {digest}")

    staging = os.path.join(out, f".{label}.unpacking")
    shutil.rmtree(staging, ignore_errors=True)
    os.makedirs(staging)
    try:
        unpack(target, staging, variable["file"] if variable else None)
        check_sizes(staging, entry["variables"], label)
        installed = install(staging, os.path.join(out, label))
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    if not installed:
        raise FetchError(f"{file_name}: holds no file {variable['file'] if variable else ''}".rstrip(), EXIT_BAD_DATA)
    for path in installed:
        print(path)
    for known in [variable] if variable else entry["variables"]:
        if known.get("note"):
            print(f"{label}: {known['name']}: {known['note']}")
    print(f"{label}: please cite: {entry['citation']}", file=sys.stderr)


# --- the command -----------------------------------------------------------------------------------------------------


class Parser(argparse.ArgumentParser):
    """Wrong arguments exit with 1, as everywhere in quern."""

    def error(self, message):
        self.print_usage(sys.stderr)
        self.exit(EXIT_USAGE, f"{self.prog}: {message}\n")


def parse_arguments(arguments):
    parser = Parser(prog="fetch.py", description="Fetches public data sets for compression.",
                    epilog="Exit status: 0 done, 1 wrong arguments, 2 network or disk, 3 what came is not what the "
                           "catalogue says or not safe to unpack, 130 interrupted.")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=Parser)
    listing = commands.add_parser("list", help="show what the catalogue holds")
    listing.add_argument("--json", action="store_true", help="the sets as JSON, with variables and citations")
    getting = commands.add_parser("get", help="download, check and unpack one set",
                                  description="Downloads the archive to DIR and unpacks it to DIR/NAME. An interrupted "
                                              "download goes on where it ended. The archive is kept.")
    getting.add_argument("name", metavar="NAME")
    getting.add_argument("--variable", metavar="V", help="unpack only this variable (the whole archive is downloaded)")
    getting.add_argument("--out", metavar="DIR", default=".", help="where to put archive and files [.]")
    for sub in (listing, getting):
        sub.add_argument("--catalogue", metavar="FILE", default=DEFAULT_CATALOGUE, help="another catalogue")
    return parser.parse_args(arguments)


def main(arguments=None):
    args = parse_arguments(arguments)
    try:
        sets = load_catalogue(args.catalogue)
        if args.command == "get":
            get(find_set(sets, args.name), args.variable, args.out)
        elif args.json:
            print(json.dumps(sets))
        else:
            print_list(sets)
        return EXIT_OK
    except FetchError as error:
        print(f"fetch.py: {error}", file=sys.stderr)
        return error.code
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            print("fetch.py: the disk is full; make room and run the same command again to go on", file=sys.stderr)
        else:
            print(f"fetch.py: {error}", file=sys.stderr)
        return EXIT_IO
    except KeyboardInterrupt:
        print("fetch.py: interrupted; run the same command again to go on", file=sys.stderr)
        return EXIT_INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
