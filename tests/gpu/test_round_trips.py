# Files that one process writes and another reads: encoded on a device and on the CPU to the same bytes, decoded by
# either to the same values, run after run. The same script for a real device and for the simulated one; without a
# device it skips.
import array
import hashlib
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import harness  # noqa: E402
from harness import CliTest, read_bytes, wave  # noqa: E402

RUNS = int(os.environ.get("QUERN_GPU_RUNS", "100"))
PLANES = int(os.environ.get("QUERN_GPU_PLANES", "256"))
POISON = b"\xa5"
DEVICE_UNAVAILABLE = 5


def with_specials(values):
    """Gaps of every kind: single NaNs, a patch of them, infinities, a fill value, minus zeros."""
    values = values[:]
    for i in range(0, len(values), 997):
        values[i] = float("nan")
    for i in range(len(values) // 3, len(values) // 3 + len(values) // 10):
        values[i] = float("nan")
    for i in range(5, len(values), 4999):
        values[i] = float("inf") if i % 2 else float("-inf")
    for i in range(len(values) // 2, len(values) // 2 + len(values) // 20):
        values[i] = -9999.0
    for i in range(3, len(values), 1999):
        values[i] = -0.0
    return values


class RoundTrips(CliTest):
    def setUp(self):
        super().setUp()
        self.shape = "%dx50x60" % PLANES
        self.values = wave(PLANES * 50 * 60)

    def fields(self):
        """Name, type, values."""
        yield "plain", "f32", self.values
        yield "gaps", "f32", with_specials(self.values)
        yield "wide", "f64", array.array("d", [v * 1e-3 for v in self.values])
        yield "counts", "u16", array.array("H", [int(30000 + 900 * v) for v in self.values])

    def encode(self, raw, dtype, device, out, *options):
        line = self.ok("compress", raw, "-t", dtype, "-s", self.shape, "--codec", "lorenzo", "--fill",
                       "-9999" if dtype != "u16" else "65535", "-o", self.path(out), "-f", "--json", "--device", device,
                       *options, timeout=300).stdout
        self.assertEqual(json.loads(line)["device"], "cpu" if device == "cpu" else "cuda:0")
        return self.path(out)

    def decode(self, stream, device, out, count):
        """Into a file that holds poison of the same size before."""
        self.write(out, POISON * count)
        line = self.ok("decompress", stream, "-f", "-o", self.path(out), "--json", "--device", device,
                       timeout=300).stdout
        self.assertEqual(json.loads(line)["device"], "cpu" if device == "cpu" else "cuda:0")
        return self.path(out)

    def test_both_ways(self):
        for name, dtype, values in self.fields():
            data = values.tobytes()
            raw = self.write(name + ".raw", data)
            for options in (("--rel", "1e-3"), ("--abs", "2"), ("--pwrel", "1e-2")):
                if options[0] == "--pwrel" and dtype == "u16":
                    continue
                with self.subTest(field=name, options=options):
                    by_cpu = self.encode(raw, dtype, "cpu", "cpu.qn", *options)
                    by_cuda = self.encode(raw, dtype, "cuda", "cuda.qn", *options)
                    self.assertEqual(read_bytes(by_cpu), read_bytes(by_cuda))
                    # Encoded by the device and decoded by the CPU, and the reverse.
                    of_cpu = self.decode(by_cuda, "cpu", "of_cpu.raw", len(data))
                    of_cuda = self.decode(by_cpu, "cuda", "of_cuda.raw", len(data))
                    self.assertEqual(read_bytes(of_cpu), read_bytes(of_cuda))
                    self.ok("verify", raw, by_cuda)

    def test_run_after_run(self):
        values = with_specials(self.values)
        raw = self.write("gaps.raw", values.tobytes())
        stream = self.encode(raw, "f32", "cpu", "cpu.qn", "--rel", "1e-4")
        restored = read_bytes(self.decode(stream, "cpu", "cpu.raw", 4 * len(values)))
        hashes = set()
        for _ in range(RUNS):
            again = read_bytes(self.encode(raw, "f32", "cuda", "cuda.qn", "--rel", "1e-4"))
            hashes.add(hashlib.sha256(again).hexdigest())
            self.assertEqual(read_bytes(self.decode(stream, "cuda", "cuda.raw", 4 * len(values))), restored)
        self.assertEqual(hashes, {hashlib.sha256(read_bytes(stream)).hexdigest()})


def has_device(quern):
    with tempfile.TemporaryDirectory(prefix="quern-test-") as folder:
        said = subprocess.run([quern, "compress", "-", "-t", "f32", "-s", "1", "--abs", "1", "--device", "cuda", "-o",
                               os.path.join(folder, "x.qn")], input=bytes(4), capture_output=True, check=False)
    if said.returncode == DEVICE_UNAVAILABLE:
        print("SKIP:", said.stderr.decode().strip())
        return False
    return True


if __name__ == "__main__":
    if not has_device(sys.argv[1]):
        sys.exit(77)
    harness.main()
