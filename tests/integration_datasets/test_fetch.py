"""Tests of datasets/fetch.py. Usage: test_fetch.py DATASETS_FOLDER. Serves files from this machine, reaches no network."""

import contextlib
import errno
import hashlib
import http.server
import importlib.util
import io
import json
import os
import pathlib
import re
import sys
import tarfile
import tempfile
import threading
import unittest
import unittest.mock
import zipfile

DATASETS = pathlib.Path(sys.argv.pop(1)).resolve()


def load_fetch():
    sys.dont_write_bytecode = True
    spec = importlib.util.spec_from_file_location("fetch", DATASETS / "fetch.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


fetch = load_fetch()
FIELD = bytes(range(256)) * 400


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves `content`, with ranges; sends only `cut` bytes of a body when that is set."""

    content, tag, cut, ranges = b"", '"one"', None, []

    def do_GET(self):
        cls, start = type(self), 0
        asked = self.headers.get("Range")
        cls.ranges.append(asked)
        if self.path == "/missing.tar.gz":
            self.send_error(404)
            return
        if asked and self.headers.get("If-Range") == cls.tag:
            start = int(asked[len("bytes="):-1])
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(cls.content) - 1}/{len(cls.content)}")
        else:
            self.send_response(200)
        body = cls.content[start:]
        self.send_header("ETag", cls.tag)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body if cls.cut is None else body[:cls.cut])

    def log_message(self, *_):
        pass


class FetchTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.out = self.root / "out"

    def tar(self, members, name="set.tar.gz"):
        path = self.root / name
        with tarfile.open(path, "w:gz") as tar:
            for member_name, content in members:
                info = tarfile.TarInfo(member_name)
                if content is None:
                    info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
                    tar.addfile(info)
                else:
                    info.size = len(content)
                    tar.addfile(info, io.BytesIO(content))
        return path

    def catalogue(self, address, size=None, sha256=None, variable_bytes=len(FIELD)):
        path = self.root / "catalogue.json"
        path.write_text(json.dumps({"sets": [{
            "name": "waves", "title": "Waves", "description": "", "source": "", "licence": "", "citation": "A. Author",
            "note": "Ask the author.",
            "variables": [{"name": "u", "file": "u.f32", "shape": [100, 256], "dtype": "f32", "bytes": variable_bytes},
                          {"name": "w", "file": None, "shape": None, "dtype": "f32", "bytes": None}],
            "archive": {"address": address, "bytes": size, "sha256": sha256}}]}))
        return path

    def run_fetch(self, *arguments):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = fetch.main([str(a) for a in arguments])
            except SystemExit as stop:
                code = stop.code
        return code, out.getvalue(), err.getvalue()

    def get(self, catalogue, *more, name="waves"):
        return self.run_fetch("get", name, "--out", self.out, "--catalogue", catalogue, *more)

    def left(self):
        """Files under the output folder, relative to it."""
        return sorted(str(p.relative_to(self.out)) for p in self.out.rglob("*") if p.is_file())

    def serve(self, content, tag='"one"', cut=None):
        handler = type("H", (Handler,), {"content": content, "tag": tag, "cut": cut, "ranges": []})
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        self.addCleanup(lambda: (server.shutdown(), server.server_close(), thread.join()))
        return f"http://127.0.0.1:{server.server_port}/set.tar.gz", handler

    def test_tar_with_right_checksum_is_unpacked(self):
        path = self.tar([("folder/u.f32", FIELD), ("folder/readme.txt", b"hello")])
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        code, out, err = self.get(self.catalogue(path.as_uri(), path.stat().st_size, digest))
        self.assertEqual(code, 0, err)
        self.assertEqual(self.left(), ["set.tar.gz", "waves/folder/readme.txt", "waves/folder/u.f32"])
        self.assertEqual((self.out / "waves/folder/u.f32").read_bytes(), FIELD)
        self.assertNotIn("unverified", out)
        self.assertIn("waves: verified: sha256 " + digest, out)

    def test_missing_checksum_is_computed_and_printed(self):
        path = self.tar([("u.f32", FIELD)])
        code, out, _ = self.get(self.catalogue(path.as_uri()))
        self.assertEqual(code, 0)
        self.assertIn("waves: unverified: the catalogue has no checksum", out)
        self.assertNotIn(": verified", out)
        self.assertIn(hashlib.sha256(path.read_bytes()).hexdigest(), out)

    def test_zip_is_unpacked(self):
        path = self.root / "set.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a/u.f32", FIELD)
        self.assertEqual(self.get(self.catalogue(path.as_uri()))[0], 0)
        self.assertEqual((self.out / "waves/a/u.f32").read_bytes(), FIELD)

    def test_variable_unpacks_one_file(self):
        path = self.tar([("u.f32", FIELD), ("v.f32", FIELD)])
        self.assertEqual(self.get(self.catalogue(path.as_uri()), "--variable", "u")[0], 0)
        self.assertEqual(self.left(), ["set.tar.gz", "waves/u.f32"])

    def test_second_get_uses_the_archive_that_is_there(self):
        path = self.tar([("u.f32", FIELD)])
        catalogue = self.catalogue(path.as_uri())
        self.assertEqual(self.get(catalogue)[0], 0)
        path.unlink()
        code, out, _ = self.get(catalogue)
        self.assertEqual(code, 0)
        self.assertIn("already here", out)

    def test_wrong_checksum_is_refused_and_removed(self):
        path = self.tar([("u.f32", FIELD)])
        code, _, err = self.get(self.catalogue(path.as_uri(), sha256="0" * 64))
        self.assertEqual(code, 3)
        self.assertIn("sha256", err)
        self.assertEqual(self.left(), [])

    def test_wrong_size_is_refused_and_removed(self):
        path = self.tar([("u.f32", FIELD)])
        code, _, err = self.get(self.catalogue(path.as_uri(), size=path.stat().st_size + 1))
        self.assertEqual(code, 3)
        self.assertIn("bytes, but the catalogue says", err)
        self.assertEqual(self.left(), [])

    def test_wrong_size_of_a_variable_is_refused(self):
        path = self.tar([("u.f32", FIELD[:-4])])
        code, _, err = self.get(self.catalogue(path.as_uri()))
        self.assertEqual(code, 3)
        self.assertIn("u.f32", err)
        self.assertEqual(self.left(), ["set.tar.gz"])

    def test_truncated_download_keeps_the_part_and_resumes(self):
        content = self.tar([("u.f32", os.urandom(len(FIELD)))]).read_bytes()
        address, handler = self.serve(content, cut=1000)
        catalogue = self.catalogue(address, sha256=hashlib.sha256(content).hexdigest())
        code, _, err = self.get(catalogue)
        self.assertEqual(code, 2, err)
        self.assertIn("run the same command again", err)
        self.assertEqual((self.out / "set.tar.gz.partial").read_bytes(), content[:1000])
        self.assertFalse((self.out / "set.tar.gz").exists())
        handler.cut = None
        code, out, err = self.get(catalogue)
        self.assertEqual(code, 0, err)
        self.assertIn("going on after", out)
        self.assertEqual(handler.ranges, [None, "bytes=1000-"])
        self.assertEqual((self.out / "set.tar.gz").read_bytes(), content)
        self.assertEqual(self.left(), ["set.tar.gz", "waves/u.f32"])

    def test_file_that_changed_meanwhile_starts_over(self):
        content = self.tar([("u.f32", os.urandom(len(FIELD)))]).read_bytes()
        address, handler = self.serve(b"x" * len(content), cut=1000)
        catalogue = self.catalogue(address, sha256=hashlib.sha256(content).hexdigest())
        self.assertEqual(self.get(catalogue)[0], 2)
        handler.content, handler.tag, handler.cut = content, '"two"', None
        self.assertEqual(self.get(catalogue)[0], 0)
        self.assertEqual((self.out / "set.tar.gz").read_bytes(), content)

    def test_local_part_is_resumed(self):
        path = self.tar([("u.f32", os.urandom(len(FIELD)))])
        content, info = path.read_bytes(), path.stat()
        self.out.mkdir()
        (self.out / "set.tar.gz.partial").write_bytes(content[:500])
        (self.out / "set.tar.gz.partial.version").write_text(f"{info.st_size}-{info.st_mtime_ns}")
        code, out, _ = self.get(self.catalogue(path.as_uri(), sha256=hashlib.sha256(content).hexdigest()))
        self.assertEqual(code, 0)
        self.assertIn("going on after 500 B", out)

    def test_truncated_archive_is_refused(self):
        path = self.tar([("u.f32", os.urandom(len(FIELD)))])
        path.write_bytes(path.read_bytes()[:-2000])
        code, _, err = self.get(self.catalogue(path.as_uri()))
        self.assertEqual(code, 3, err)
        self.assertEqual(self.left(), ["set.tar.gz"])

    def test_members_that_leave_the_folder_are_refused(self):
        for name in ("../evil.txt", "a/../../evil.txt", "/evil.txt", "..\\evil.txt", "C:\\evil.txt"):
            with self.subTest(name):
                path = self.tar([("u.f32", FIELD), (name, b"evil")])
                code, _, err = self.get(self.catalogue(path.as_uri()))
                self.assertEqual(code, 3)
                self.assertIn("refused", err)
                self.assertEqual(self.left(), ["set.tar.gz"])
                self.assertFalse((self.root / "evil.txt").exists())
                (self.out / "set.tar.gz").unlink()

    def test_zip_member_that_leaves_the_folder_is_refused(self):
        path = self.root / "set.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("../evil.txt", b"evil")
        code, _, err = self.get(self.catalogue(path.as_uri()))
        self.assertEqual(code, 3, err)
        self.assertFalse((self.root / "evil.txt").exists())

    def test_link_is_refused(self):
        path = self.tar([("u.f32", None)])
        code, _, err = self.get(self.catalogue(path.as_uri()))
        self.assertEqual(code, 3)
        self.assertIn("link", err)
        self.assertEqual(self.left(), ["set.tar.gz"])

    def test_unknown_set_lists_the_known_ones(self):
        code, _, err = self.get(self.catalogue("file:///nowhere"), name="wave")
        self.assertEqual(code, 1)
        self.assertIn("'wave'", err)
        self.assertIn("waves", err)

    def test_unknown_variable_and_variable_without_file(self):
        catalogue = self.catalogue("file:///nowhere")
        self.assertEqual(self.get(catalogue, "--variable", "q")[0], 1)
        self.assertEqual(self.get(catalogue, "--variable", "w")[0], 1)

    def test_set_without_address_says_so(self):
        code, _, err = self.get(self.catalogue(None))
        self.assertEqual(code, 1)
        self.assertIn("no address for waves. Ask the author.", err)

    def test_no_server_is_explained(self):
        address, _ = self.serve(b"")
        with unittest.mock.patch.object(fetch.urllib.request, "urlopen",
                                        side_effect=fetch.urllib.error.URLError("Name or service not known")):
            code, _, err = self.get(self.catalogue(address))
        self.assertEqual(code, 2)
        self.assertIn("Is there a network?", err)

    def test_error_of_the_server_is_explained(self):
        address, _ = self.serve(b"")
        code, _, err = self.get(self.catalogue(address.replace("set.tar.gz", "missing.tar.gz")))
        self.assertEqual(code, 2)
        self.assertIn("404", err)

    def test_missing_local_file_and_strange_scheme(self):
        self.assertEqual(self.get(self.catalogue((self.root / "none.tar.gz").as_uri()))[0], 2)
        self.assertEqual(self.get(self.catalogue("ftp://host/set.tar.gz"))[0], 1)

    def test_too_small_a_disk_is_found_before_the_download(self):
        path = self.tar([("u.f32", FIELD)])
        usage = unittest.mock.Mock(free=10)
        with unittest.mock.patch.object(fetch.shutil, "disk_usage", return_value=usage):
            code, _, err = self.get(self.catalogue(path.as_uri()))
        self.assertEqual(code, 2)
        self.assertIn("free", err)

    def test_disk_that_fills_up_is_explained(self):
        path = self.tar([("u.f32", FIELD)])
        with unittest.mock.patch.object(fetch, "receive", side_effect=OSError(errno.ENOSPC, "No space left on device")):
            code, _, err = self.get(self.catalogue(path.as_uri()))
        self.assertEqual(code, 2)
        self.assertIn("disk is full", err)

    def test_wrong_arguments_exit_with_one(self):
        self.assertEqual(self.run_fetch("get")[0], 1)
        self.assertEqual(self.run_fetch("grab")[0], 1)
        self.assertEqual(self.run_fetch("list", "--catalogue", self.root / "none.json")[0], 2)
        broken = self.root / "broken.json"
        broken.write_text('{"sets": [{"name": "../up"}]}')
        self.assertEqual(self.run_fetch("list", "--catalogue", broken)[0], 1)

    def test_entries_that_contradict_themselves_are_refused(self):
        good = json.loads(self.catalogue("https://example.org/a.tar.gz").read_text())
        changes = [("variables", {"bytes": 4}), ("variables", {"shape": [100]}), ("variables", {"dtype": "f16x"}),
                   ("variables", {"dtype": "f64"}), ("variables", {"shape": None}), ("variables", {"shape": [-100, -256]}),
                   ("variables", {"shape": []}), ("archive", {"sha256": "abc"}), ("archive", {"bytes": -1}),
                   ("archive", {"address": "ftp://example.org/a"})]
        for where, change in changes:
            bad = json.loads(json.dumps(good))
            target = bad["sets"][0][where]
            (target[0] if where == "variables" else target).update(change)
            path = self.root / "bad.json"
            path.write_text(json.dumps(bad))
            code, out, err = self.run_fetch("list", "--catalogue", path)
            self.assertEqual((code, out), (1, ""), change)
            self.assertIn("is not a catalogue", err)


class CatalogueTest(unittest.TestCase):
    """The catalogue that is shipped."""

    BYTES = {"f32": 4, "f64": 8, "i64": 8}

    def setUp(self):
        self.sets = fetch.load_catalogue(str(DATASETS / "catalogue" / "catalogue.json"))

    def test_list_prints_every_set(self):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            self.assertEqual(fetch.main(["list"]), 0)
            table = out.getvalue()
            self.assertEqual(fetch.main(["list", "--json"]), 0)
        for entry in self.sets:
            self.assertIn(entry["name"], table)
        self.assertEqual(json.loads(out.getvalue()[len(table):]), self.sets)

    def test_names_are_unique(self):
        names = [entry["name"] for entry in self.sets]
        self.assertEqual(len(names), len(set(names)))

    def test_bytes_agree_with_shape_and_type(self):
        for entry in self.sets:
            for variable in entry["variables"]:
                if variable["shape"] is None:
                    self.assertIsNone(variable["bytes"])
                    continue
                expected = self.BYTES[variable["dtype"]]
                for extent in variable["shape"]:
                    expected *= extent
                self.assertEqual(variable["bytes"], expected, f"{entry['name']} {variable['name']}")

    def test_checksums_are_called_unverified_where_there_are_none(self):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            self.assertEqual(fetch.main(["list"]), 0)
        lines = {line.split()[0]: line for line in out.getvalue().splitlines()}
        for entry in self.sets:
            self.assertEqual("unverified" in lines[entry["name"]], entry["archive"]["sha256"] is None)

    def test_what_is_not_known_is_said(self):
        """No guesses as facts: what the catalogue does not know is null, and what it derives has a note that says from what."""
        for entry in self.sets:
            for variable in entry["variables"]:
                label = f"{entry['name']} {variable['name']}"
                if variable["file"] is None or variable["shape"] is None:
                    self.assertTrue(variable.get("note") or entry.get("note"), label)
                else:
                    self.assertEqual(os.path.basename(variable["file"]), variable["file"], label)
                    # File names that state extents or type must agree with the entry.
                    stated = re.search(r"(\d+(?:x\d+)+)", variable["file"])
                    if stated:
                        self.assertEqual(stated[1], "x".join(map(str, variable["shape"])), label)
                    suffix = re.search(r"\.(f32|f64|d64|i64)(?:\.dat)?$", variable["file"])
                    if suffix:
                        self.assertEqual(suffix[1].replace("d64", "f64"), variable["dtype"], label)

    def test_every_set_has_what_a_user_needs(self):
        for entry in self.sets:
            for key in ("title", "description", "licence", "citation", "source"):
                self.assertTrue(entry[key], f"{entry['name']}: {key}")
            address = entry["archive"]["address"]
            self.assertTrue(address.startswith("https://") if address else entry["note"], entry["name"])


if __name__ == "__main__":
    unittest.main()
