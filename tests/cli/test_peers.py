# quern bench --sweep with other compressors: templates, what is recorded of them, and models that know them.
import csv
import os
import signal
import stat
import subprocess
import sys
import time

import harness
from harness import CliTest, run, wave

# A compressor of a few lines: keeps the values as multiples of twice the bound. Its first word says how it goes wrong.
TOOL = """#!{python}
import array, sys, zlib
how, source, stream, output, bound = sys.argv[1:]
if how == "fails":
    sys.exit("no licence")
if how == "dies":
    import os, signal
    os.kill(os.getpid(), signal.SIGKILL)
values = array.array("f")
with open(source, "rb") as f:
    values.frombytes(f.read())
step = 2 * float(bound) * (3 if how == "misses" else 0.999)
codes = array.array("i", [round(v / step) for v in values])
with open(stream, "wb") as f:
    f.write(zlib.compress(codes.tobytes()))
back = array.array("f", [c * step for c in codes])
with open(output, "wb") as f:
    f.write(back.tobytes()[:4 if how == "short" else None])
print("seconds: 0.25 0.125")
"""


class Peers(CliTest):
    def setUp(self):
        super().setUp()
        # Names that a shell would take apart.
        self.tool = self.path("my tool$(x)'s.py")
        with open(self.tool, "w") as f:
            f.write(TOOL.format(python=sys.executable))
        os.chmod(self.tool, os.stat(self.tool).st_mode | stat.S_IXUSR)
        self.field = self.write("a_t0001_40x50.f32", wave(2000).tobytes())
        self.csv = self.path("runs.csv")

    def template(self, how, name=None):
        tool = self.tool.replace("'", "\\'").replace(" ", "\\ ")
        return f"name={name or how}: {tool} {how} {{input}} {{stream}} {{output}} {{bound}}"

    def sweep(self, *words, how=("works",), bounds="1e-2,1e-3"):
        peers = [word for h in how for word in ("--peer", self.template(h))]
        return run("bench", "--sweep", "-q", "--csv", self.csv, "--rel", bounds, *peers, *words, self.field,
                   env={"TMPDIR": self.folder.name})

    def runs(self):
        with open(self.csv, newline="") as f:
            return list(csv.DictReader(f))

    def test_runs_are_measured(self):
        self.assertEqual(self.sweep("--codec", "works,lorenzo").returncode, 0)
        rows = [r for r in self.runs() if r["codec"] == "works"]
        self.assertEqual(len(self.runs()), 4)
        for row in rows:
            self.assertEqual((row["status"], row["codec_version"]), ("ok", "0"))
            self.assertEqual((float(row["compress_seconds"]), float(row["decompress_seconds"])), (0.25, 0.125))
            self.assertLessEqual(float(row["max_error"]), float(row["bound_abs"]))
            self.assertGreater(float(row["psnr_db"]), 40)
        self.assertEqual([f for f in self.files() if f.startswith("quern-peer")], [])
        self.assertEqual({r["power_steps"] for r in self.runs()}, {"0"})
        # Nothing is made again.
        before = self.runs()
        self.assertEqual(self.sweep("--codec", "works,lorenzo").returncode, 0)
        self.assertEqual(self.runs(), before)

    def test_failures_are_runs(self):
        self.assertEqual(self.sweep("--codec", "fails,dies,short,misses", how=("fails", "dies", "short", "misses")).returncode, 0)
        status = {r["codec"]: r["status"] for r in self.runs()}
        self.assertEqual(status, {"fails": "compress_exit_1", "dies": "compress_ended_by_signal_9", "short": "wrong_size",
                                  "misses": "ok"})
        for row in self.runs():
            if row["codec"] == "misses":
                self.assertGreater(float(row["max_error"]), float(row["bound_abs"]))

    def test_a_line_that_was_cut_is_measured_again(self):
        sweep = ["bench", "--sweep", "-q", "--csv", self.csv, "--rel", "1e-2,1e-3", "--codec", "lorenzo", self.field]
        self.ok(*sweep)
        with open(self.csv, "rb") as f:
            whole = f.read()
        self.assertEqual(whole.count(b"\n"), 3)
        header = whole.index(b"\n") + 1
        # In the last of the inputs, before the end of the line alone, in the header.
        for left in (len(whole) - 100, len(whole) - 1, header // 2, header - 1, 0):
            self.write("runs.csv", whole[:left])
            self.ok(*sweep)
            with open(self.csv, "rb") as f:
                again = f.read()
            self.assertEqual([line.rsplit(b",", 1)[1] for line in again.splitlines()],
                             [line.rsplit(b",", 1)[1] for line in whole.splitlines()], left)
            self.assertTrue(again.endswith(b"\n"))
        for text in (b"a note", b"a note\n"):  # what no sweep wrote stays as it is
            self.write("runs.csv", text)
            self.refused(1, "other columns", *sweep)
            with open(self.csv, "rb") as f:
                self.assertEqual(f.read(), text)

    def test_an_interrupted_sweep_ends_what_it_runs(self):
        said = self.path("peer")
        script = self.write("stubborn.sh", f"trap '' TERM\necho $$ > {said}.new\nmv {said}.new {said}\nwhile :; do sleep 1; done\n".encode())
        sweep = subprocess.Popen([harness.QUERN, "bench", "--sweep", "-q", "--csv", self.csv, "--codec", "x", "--peer",
                                  f"name=x: sh {script} {{input}} {{stream}} {{output}} {{bound}}", self.field],
                                 env=dict(os.environ, TMPDIR=self.folder.name))
        until = time.monotonic() + 60
        while not os.path.exists(said) and time.monotonic() < until:
            time.sleep(0.01)
        with open(said) as f:
            peer = int(f.read())
        sweep.send_signal(signal.SIGINT)
        self.assertEqual(sweep.wait(timeout=20), 130)
        until = time.monotonic() + 10
        while self.goes_on(peer) and time.monotonic() < until:
            time.sleep(0.01)
        self.assertFalse(self.goes_on(peer))
        self.assertEqual([f for f in self.files() if f.startswith("quern-peer")], [])

    def goes_on(self, process):
        try:
            with open(f"/proc/{process}/stat") as f:
                return f.read().rpartition(")")[2].split()[0] not in "ZX"
        except OSError:
            return False

    def test_what_cannot_be_meant_is_refused(self):
        base = ["bench", "--sweep", "--csv", self.csv, self.field]
        self.refused(1, "that name is taken", *base, "--peer", self.template("works", "stencil"))
        self.refused(1, "that name is taken", *base, "--peer", self.template("works"), "--peer", self.template("works"))
        self.refused(1, "nosuch was not found", *base, "--peer", "name=x: nosuch {input} {stream} {output} {bound}")
        self.refused(1, "{bound} is missing", *base, "--peer", "name=x: cp {input} {stream} {output}")
        self.refused(1, "no such codec or peer", *base, "--codec", "stencli")
        self.refused(1, "is not estimated", *base, "--codec", "autoencoder")
        self.refused(1, "is not estimated", "estimate", "--codec", "autoencoder", self.field)
        self.refused(1, "use deep or counts", "estimate", "--features", "shallow", self.field)
        self.refused(1, "goes with --features deep", "train", "quality", "--runs", self.csv, "--deep-epochs", 5, "-o", self.csv)
        self.refused(1, "name the arrays", "train", "quality", "--runs", self.csv, "--features", "deep", "-o", self.csv)
        for words in (["--effort", "4"], ["--goal", "speed"], ["--set", "layout=raster"]):
            self.refused(1, "estimates are of the default effort", *base, *words)
        self.refused(1, "goes with --sweep", "bench", "--peer", self.template("works"), self.field)
        self.assertFalse(os.path.exists(self.csv))

    def test_training_loses_no_file(self):
        train = ["train", "quality", "--runs", self.write("runs.csv", b"runs\n")]
        rows, model = self.write("rows.csv", b"rows\n"), self.path("m.qmodel")
        self.refused(2, "give -f to replace it", *train, "-o", model, "--rows", rows)
        self.refused(2, "give -f to replace it", *train, "-o", rows)
        self.refused(1, "is what --runs reads", *train, "-f", "-o", model, "--rows", self.path("./runs.csv"))
        self.refused(1, "is what --runs reads", *train, "-f", "-o", self.csv)
        self.refused(1, "is what --test reads", *train, "-f", "--test", rows, "--rows", rows)
        self.refused(1, "is the model's file", *train, "-o", model, "--rows", self.path("./m.qmodel"))
        self.refused(2, "no/rows.csv", *train, "-o", model, "--rows", self.path("no/rows.csv"))
        self.assertEqual(self.files(), ["a_t0001_40x50.f32", "my tool$(x)'s.py", "rows.csv", "runs.csv"])
        with open(rows) as f:
            self.assertEqual(f.read(), "rows\n")

    def test_a_model_knows_them(self):
        trainer = os.path.join(os.path.dirname(os.path.realpath(harness.QUERN)), "quern-train")
        if not os.path.exists(trainer):
            self.skipTest("this build has no quern-train")
        for step in range(1, 4):
            self.field = self.write(f"a_t000{step}_40x50.f32", wave(2000, seed=step).tobytes())
            self.assertEqual(self.sweep("--codec", "works,lorenzo", bounds="1e-1,3e-2,1e-2,3e-3,1e-3").returncode, 0)
        model = self.path("m.qmodel")
        self.ok("train", "quality", "--runs", self.csv, "-o", model, "--epochs", 400, "--experts", 2, "--rows", self.path("rows.csv"))
        info = self.json(self.ok("model", "info", model, "--json"))
        self.assertEqual(info["peers"], ["works"])
        found = self.json(self.ok("estimate", "--model", model, "--codec", "all", "--at", "1e-2", "--json", self.field))
        by_codec = {e["codec"]: e for e in found["estimates"]}
        self.assertEqual(set(by_codec), {"works", "lorenzo"})
        true = [r for r in self.runs() if r["codec"] == "works" and float(r["bound_rel"]) == 1e-2][-1]
        ratio = int(true["raw_bytes"]) / int(true["stream_bytes"])
        self.assertLess(abs(by_codec["works"]["ratio"] / ratio - 1), 0.5)
        # Deep features: of a model that has none, and of one that has.
        deep = ["estimate", "--features", "deep", "--at", "1e-2", "--json", self.field, "--model"]
        self.refused(1, "no deep features", *deep, model)
        self.refused(1, "in none of the files", "train", "quality", "--runs", self.csv, "-o", self.path("d.qmodel"),
                     "--features", "deep", "--data", self.field)
        self.ok("train", "quality", "--runs", self.csv, "-o", self.path("d.qmodel"), "--epochs", 20, "--deep-epochs", 10, "--hidden", 8,
                "--features", "deep", "--data", *[self.path(f) for f in self.files() if f.endswith(".f32")])
        info = self.json(self.ok("model", "info", self.path("d.qmodel"), "--json"))
        self.assertEqual((info["deep_features"], info["deep_features_usual"]), (True, False))
        self.assertEqual((info["record"]["epochs"], info["record"]["deep_epochs"]), (20, 10))
        found = self.json(self.ok(*deep, self.path("d.qmodel")))
        self.assertEqual({e["codec"] for e in found["estimates"]}, {"works", "lorenzo"})
        # Runs with fill values, and a peer whose runs are of two kinds.
        for column, codec, value, words, message in (
                ("range", None, "7", ["--features", "deep", "--data", self.field], "has another range"),
                ("power_steps", "works", "1", [], "some runs of works are with steps=2")):
            rows = self.runs()
            for row in [r for r in rows if codec in (None, r["codec"])][-1 if codec else 0:]:
                row[column] = value
            with open(self.path("odd.csv"), "w", newline="") as f:
                writer = csv.DictWriter(f, rows[0].keys(), lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
            self.refused(1, message, "train", "quality", "--runs", self.path("odd.csv"), "-o", self.path("o.qmodel"), *words)
            self.assertFalse(os.path.exists(self.path("o.qmodel")))
        # Of types that no run was of nothing is said.
        ints = self.write("b_40x50.i32", bytes(8000))
        found = self.json(self.ok("estimate", "--model", model, "--json", ints))
        self.assertNotIn("works", {e["codec"] for e in found["estimates"]})
        with open(self.path("rows.csv"), newline="") as f:
            rows = list(csv.DictReader(f))
        self.assertEqual({r["codec"] for r in rows}, {"works", "lorenzo"})
        again = ["train", "quality", "--runs", self.csv, "--test", model, "--rows"]
        with open(self.path("rows.csv"), "rb") as f:
            before = f.read()
        self.ok(*again, self.path("rows.csv"), "-f")
        with open(self.path("rows.csv"), "rb") as f:
            self.assertEqual(f.read(), before)
        self.refused(2, "cannot be written", *again, "/dev/full")
        self.assertEqual([f for f in self.files() if f.endswith(".part")], [])


if __name__ == "__main__":
    harness.main()
