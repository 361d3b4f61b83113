#!/usr/bin/env python3
"""Streams of records under the command: info and verify know them, what wants an array refuses them in a sentence."""
import json
import os
import unittest

import harness
from harness import CliTest, read_bytes, run

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "records")


def golden(name):
    return os.path.join(GOLDEN, name)


class Info(CliTest):
    def test_scan_text(self):
        text = self.ok("info", golden("scan.qn")).stdout.decode()
        for part in ("300 items in 3 segments of 128, 3 frames", "codec     number 61441, version 1: not in this build",
                     "position: 300 items of 3 f32, |x - x'| <= 0.0078125, tag 1, 3600 bytes as ",
                     "(asked ", "intensity: 300 items of 1 u16, lossless", "h\u00f6he: a string of bytes a segment",
                     "parts     15, "):
            self.assertIn(part, text)

    def test_scan_json(self):
        line = self.json(self.ok("info", "--json", golden("scan.qn")))
        stream = line["streams"][0]
        self.assertEqual(stream["kind"], "records")
        self.assertEqual((stream["items"], stream["segment_items"], stream["segments"]), (300, 128, 3))
        self.assertEqual(stream["frames"], [170, 0, 130])
        self.assertEqual((stream["codec"], stream["codec_id"], stream["codec_built_in"]), ("unknown", 61441, False))
        names = [section["name"] for section in stream["sections"]]
        self.assertEqual(names, ["position", "time", "intensity", "class", "h\u00f6he"])
        time = stream["sections"][1]
        self.assertEqual((time["dtype"], time["bound"]["kind"], time["enforced"]["kind"]), ("f64", "rel", "abs"))
        self.assertEqual(time["bytes"], 2400)
        self.assertLess(sum(s["stored_bytes"] for s in stream["sections"]), stream["stream_bytes"])
        self.assertIsNone(stream["sections"][4]["dtype"])
        self.assertEqual(stream["metadata_bytes"], len('{"scanner":"none"}'))
        self.assertIsNone(line["whole"])
        self.assertFalse(stream["checked"])

    def test_headers_only_reads_no_segments(self):
        data = bytearray(read_bytes(golden("stored.qn")))
        size = int.from_bytes(data[8:12], "little")
        data[size + 9] ^= 1  # in the head of the first segment
        damaged = self.write("damaged.qn", data)
        stream = self.json(self.ok("info", "--json", "--headers-only", damaged))["streams"][0]
        self.assertIsNone(stream["sections"][0]["bytes"])
        self.assertIsNone(stream["ratio"])
        result = run("info", "--json", damaged)
        self.assertEqual(result.returncode, 3)
        self.assertIn("segment 0", json.loads(result.stdout)["streams"][0]["damage"][0])

    def test_check_tells_what_was_not_decoded(self):
        text = self.ok("info", "--check", golden("scan.qn")).stdout.decode()
        self.assertIn("which this build does not have, and were not decoded", text)
        text = self.ok("info", "--check", golden("stored.qn")).stdout.decode()
        self.assertIn("codec     stored (id 0, version 1)", text)
        self.assertIn("every part decodes", text)
        self.ok("info", "--check", golden("empty.qn"))

    def test_damage_is_found(self):
        whole = read_bytes(golden("scan.qn"))
        size = int.from_bytes(whole[8:12], "little")
        for at in (size // 2, size + 3, len(whole) // 2, len(whole) - 10):
            data = bytearray(whole)
            data[at] ^= 0x10
            self.assertEqual(run("info", "--check", self.write("bad.qn", data)).returncode, 3, at)
        for length in (0, 5, size - 1, size + 40, len(whole) - 1):
            self.assertEqual(run("info", self.write("cut.qn", whole[:length])).returncode, 3, length)

    def test_mixed_file_lists_both_kinds(self):
        self.ok("compress", "--abs", "0.1", "-t", "f32", "-s", "100",
                self.write("a.raw", harness.wave(100).tobytes()))
        mixed = self.write("mixed.qn", read_bytes(self.path("a.raw.qn")) + read_bytes(golden("stored.qn")))
        kinds = [s["kind"] for s in self.json(self.ok("info", "--json", mixed))["streams"]]
        self.assertEqual(kinds, ["grid", "records"])
        self.assertIn("records: 10 items, 3 sections", self.ok("info", mixed).stdout.decode())
        self.refused(3, "holds records, not an array", "decompress", mixed)
        other = self.write("other.qn", read_bytes(golden("stored.qn")) + read_bytes(self.path("a.raw.qn")))
        self.refused(1, "also holds an array", "verify", other)


class Verify(CliTest):
    def test_whole_streams_pass(self):
        for name in ("scan.qn", "tensors.qn", "specials.qn", "noise.qn", "stored.qn", "empty.qn"):
            text = self.ok("verify", golden(name)).stdout.decode()
            self.assertIn("is whole", text)
        line = self.json(self.ok("verify", "--json", golden("noise.qn")))
        self.assertTrue(line["whole"])
        stream = line["streams"][0]
        self.assertTrue(stream["checked"])
        self.assertFalse(stream["decoded"])
        self.assertEqual((stream["parts"], stream["raw_parts"]), (6, 4))
        self.assertTrue(self.json(self.ok("verify", "--json", golden("stored.qn")))["streams"][0]["decoded"])

    def test_damage_fails(self):
        data = bytearray(read_bytes(golden("stored.qn")))
        data[-40] ^= 1
        damaged = self.write("damaged.qn", data)
        result = run("verify", damaged)
        self.assertEqual(result.returncode, 3)
        self.assertIn("DAMAGED", result.stdout.decode())
        self.assertFalse(json.loads(run("verify", "--json", damaged).stdout)["whole"])

    def test_originals_do_not_fit(self):
        raw = self.write("a.raw", bytes(400))
        self.refused(1, "checked without an original", "verify", raw, golden("scan.qn"))
        self.refused(1, "verify needs two files", "verify", raw)
        self.refused(2, "cannot", "verify", self.path("none.qn"))


class Refusals(CliTest):
    def test_what_wants_an_array_says_what_it_got(self):
        scan = golden("scan.qn")
        for words in (["decompress", "-o", self.path("out.raw"), scan], ["decompress", "-c", scan],
                      ["decompress", "--keep-going", "-o", self.path("out.raw"), scan]):
            self.refused(3, "holds records, not an array; `quern info` tells of them", *words)
        self.refused(1, "is a quern stream of records already", "compress", "--abs", "1", scan, "-o", self.path("o.qn"))
        self.assertEqual(self.files(), [])


if __name__ == "__main__":
    harness.main()
