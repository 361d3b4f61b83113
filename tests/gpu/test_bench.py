# What the device benchmarks write, checked on the simulator: every line, that figures fit together, and that what was
# decoded keeps its bound. Times mean nothing here.
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest

BENCH = None
FIELDS = {"rough", "noisy", "mixed", "smooth", "calm"}
SUBJECT_STEPS = {
    "range": {"find"},
    "lorenzo": {"estimate_sample", "measure_sample", "encode_to_slots", "join", "find_range_and_encode_to_slots", "decode"},
    "bound_check": {"check"},
    "mask": {"scan_and_list", "encode_and_fill", "decode", "encode_levels_and_fill", "decode_levels"},
    "interp": {"decode"},
    "interp_encode": {"encode", "write"},
    "stencil": {"decode_levels", "decode_raster"},
    "stencil_encode": {"encode_raster", "write_raster_lanes"},
    "arrays": {"compress_relative", "compress_relative_given_range", "compress_absolute", "decompress",
               "compress_absolute_checked", "decompress_checked"},
    "batches": {"compress", "decompress"},
}


class Bench(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="quern-test-")
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def run_bench(self, *options, code=0):
        result = subprocess.run([BENCH, "--out", self.path("out.jsonl"), *options], capture_output=True, timeout=3000)
        self.assertEqual(result.returncode, code, result.stderr.decode())
        return result.stderr.decode()

    def records(self, *options):
        # The default of --seconds is for devices; a slow machine's simulator takes longer.
        self.run_bench("--repeats", "1", "--seconds-each", "0", "--seconds", "3000", *options)
        with open(self.path("out.jsonl"), encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    def of(self, records, kind):
        return [r for r in records if r["record"] == kind]

    def check_spread(self, spread):
        self.assertGreater(spread["least"], 0)
        self.assertLessEqual(spread["least"], spread["median"])
        self.assertLessEqual(spread["median"], spread["most"])

    def check_timing(self, timing, copy_gbs):
        self.assertGreaterEqual(timing["repeats"], 1)
        self.check_spread(timing["device_ms"])
        self.check_spread(timing["host_ms"])
        gbs = timing["input_bytes"] / timing["device_ms"]["median"] * 1e-6
        self.assertAlmostEqual(timing["gbs"] / gbs, 1, places=5)
        limit = copy_gbs / (1 + timing["stored_bytes"] / timing["input_bytes"])
        self.assertAlmostEqual(timing["limit_gbs"] / limit, 1, places=5)
        self.assertAlmostEqual(timing["percent_of_limit"] / (100 * gbs / limit), 1, places=5)
        moved = 100 * timing["moved_bytes"] / timing["device_ms"]["median"] * 1e-6 / copy_gbs
        self.assertAlmostEqual(timing["percent_of_copy"] / moved, 1, places=5)
        if timing["stored_bytes"]:
            self.assertAlmostEqual(timing["ratio"] * timing["stored_bytes"] / timing["input_bytes"], 1, places=5)
        self.assertIn(timing["step"], SUBJECT_STEPS[timing["subject"]])

    def check_all(self, records, arrays):
        self.assertEqual(records[0]["record"], "machine")
        for name in ("clock_khz", "memory_clock_khz", "memory_peak_gbs", "l2_bytes", "memory_bytes", "driver",
                     "runtime", "multiprocessors"):
            self.assertGreater(records[0][name], 0, name)
        self.assertEqual(records[-1]["record"], "end")
        self.assertTrue(records[-1]["complete"])
        copy_gbs = max(r["gbs"] for r in self.of(records, "copy"))
        seen = {}
        for timing in self.of(records, "timing"):
            if timing["subject"] == "stencil_steps":
                # How many there are depends on chunk and layout.
                self.assertRegex(timing["step"], r"^(encode_(levels|planes|wavelet)_\d+|write_(levels|planes|wavelet)_lanes)$")
                continue
            self.check_timing(timing, copy_gbs)
            where = (timing["element"], timing["tile"], timing["field"], timing["cache"], timing["queueing"])
            seen.setdefault(where, set()).add((timing["subject"], timing["step"]))
        wanted = {(subject, step) for subject, steps in SUBJECT_STEPS.items() for step in steps}
        ways = {("cold", "calls"), ("warm", "calls"), ("warm", "graph")}
        self.assertEqual(set(seen), {array + way for array in arrays for way in ways})
        # Small arrays may have chunks that are not in levels, or that devices leave, and then no such step.
        optional = {("stencil", "decode_levels"), ("stencil", "decode_raster"), ("stencil_encode", "encode_raster"),
                    ("stencil_encode", "write_raster_lanes"), ("interp_encode", "encode"), ("interp_encode", "write")}
        for where, steps in seen.items():
            self.assertEqual(steps | optional, wanted, where)
        self.assertGreater(2 * sum(optional <= steps for steps in seen.values()), len(seen))
        checks = self.of(records, "check")
        for subject in ("range", "lorenzo", "mask", "interp", "arrays", "batches"):
            self.assertEqual(sum(c["subject"] == subject for c in checks), len(arrays))
        self.assertGreater(2 * sum(c["subject"] == "interp_encode" for c in checks), len(arrays))
        for check in checks:
            if check["subject"] == "range":
                self.assertTrue(check["all_valid"])
            elif check["subject"] == "lorenzo":
                self.assertEqual((check["damaged_chunks"], check["violations"]), (0, 0))
                self.assertLessEqual(check["largest_error"], check["bound"])
                # Nearly all of the bound is used, or the field is not what it should be.
                self.assertGreater(check["largest_error"], 0.5 * check["bound"])
            elif check["subject"] in ("interp", "stencil"):
                self.assertEqual((check["damaged_chunks"], check["same_values"]), (0, True))
            elif check["subject"] in ("interp_encode", "stencil_encode", "stencil_steps"):
                self.assertTrue(check["same_bytes"])
            elif check["subject"] == "arrays":
                self.assertEqual((check["all_decoded"], check["violations"]), (True, 0))
            elif check["subject"] == "batches":
                self.assertEqual((check["all_decoded"], check["violations"]), (True, 0))
                self.assertGreaterEqual(check["arrays"], 4)
            else:
                self.assertEqual((check["damaged_masks"], check["wrong_cells"]), (0, 0))
                self.assertGreater(check["masked_share"], 0.05)
                self.assertLess(check["masked_share"], 0.9)
        return checks

    def test_every_field_and_tile(self):
        # The three tiles take the simulator minutes.
        tiles = ("block", "plane", "line") if os.environ.get("QUERN_TEST_THOROUGH") == "1" else ("plane",)
        records = self.records("--bytes", "40000", "--types", "f32", "--tiles", ",".join(tiles), "--subjects",
                               "range,lorenzo,mask,interp,stencil,arrays,batches")
        checks = self.check_all(records, {("f32", tile, field) for tile in tiles for field in FIELDS})
        ratios = {}
        for check in checks:
            if check["subject"] == "lorenzo":
                ratios.setdefault(check["field"], []).append(check["ratio"])
        means = [sum(ratios[f]) / len(ratios[f]) for f in ("rough", "noisy", "mixed", "smooth", "calm")]
        self.assertEqual(means, sorted(means))
        layouts = {check["layout"] for check in checks if check["subject"] == "stencil_steps"}
        self.assertEqual(layouts, {"levels", "planes", "wavelet"})
        self.assertLess(means[0], 3)
        self.assertGreater(means[-1], 20)

    def test_binary64_and_sizes(self):
        records = self.records("--bytes", "33000,70000", "--types", "f64", "--tiles", "block", "--subjects", "lorenzo")
        self.assertEqual({r["bytes"] for r in self.of(records, "copy")}, {33000, 70000})
        checks = self.of(records, "check")
        self.assertEqual(len(checks), 2 * len(FIELDS))
        for check in checks:
            self.assertEqual((check["damaged_chunks"], check["violations"]), (0, 0))
            self.assertLessEqual(check["largest_error"], check["bound"])

    def test_field_of_a_file(self):
        with open(self.path("x.f32"), "wb") as out:
            out.write(struct.pack("<6000f", *(0.001 * (i % 977) for i in range(6000))))
        records = self.records("--field", self.path("x.f32"), "--shape", "3x40x50", "--types", "f32", "--bound", "1e-3",
                               "--bytes", "50000", "--subjects", "range,lorenzo")
        shapes = {r["shape"] for r in self.of(records, "timing")}
        self.assertEqual(shapes, {"6x40x50"})
        check = [c for c in self.of(records, "check") if c["subject"] == "lorenzo"][0]
        self.assertEqual(check["violations"], 0)
        self.assertLessEqual(check["largest_error"], 1e-3)

    def test_time_runs_out(self):
        records = self.records("--bytes", "4000", "--seconds", "0")
        self.assertFalse(records[-1]["complete"])

    def test_wrong_options_are_refused(self):
        self.assertIn("--types", self.run_bench("--types", "f16", code=1))
        self.assertIn("--shape", self.run_bench("--field", "x", code=1))
        self.assertIn("unknown", self.run_bench("--unknown", "1", code=1))


if __name__ == "__main__":
    BENCH = sys.argv.pop(1)
    unittest.main()
