# What the scripts of this folder share: running the command, making arrays, expectations. Standard library only.
import array
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import unittest

QUERN = None
SEED = 20240917


def run(*words, stdin=None, env=None, preexec=None, timeout=120, stdout=subprocess.PIPE):
    """Runs the command; stdin is bytes. Returns CompletedProcess with bytes."""
    environment = dict(os.environ)
    environment.pop("HDF5_PLUGIN_PATH", None)
    environment.update(env or {})
    return subprocess.run([QUERN] + [str(w) for w in words], input=stdin if stdin is not None else b"",
                          stdout=stdout, stderr=subprocess.PIPE, env=environment, preexec_fn=preexec, timeout=timeout)


def wave(count, seed=SEED, scale=1.0):
    """Smooth values with some noise, as float32."""
    source = random.Random(seed)
    return array.array("f", [scale * (math.sin(i * 0.01) * 10 + math.cos(i * 0.003) + source.random() * 1e-3)
                             for i in range(count)])


def read_array(path, code):
    out = array.array(code)
    with open(path, "rb") as f:
        out.frombytes(f.read())
    return out


def read_bytes(path):
    with open(path, "rb") as f:
        return f.read()


class CliTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="quern-test-")
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as f:
            f.write(data)
        return self.path(name)

    def ok(self, *words, **options):
        result = run(*words, **options)
        self.assertEqual(result.returncode, 0, (words, result.stderr.decode(errors="replace")))
        return result

    def refused(self, code, part, *words, **options):
        """The command must fail with `code` and exactly one line on stderr that holds `part`."""
        result = run(*words, **options)
        text = result.stderr.decode(errors="replace")
        self.assertEqual(result.returncode, code, (words, text))
        lines = text.splitlines()
        self.assertEqual(len(lines), 1, (words, text))
        self.assertTrue(lines[0].startswith("quern: "), text)
        self.assertIn(part, lines[0])
        return result

    def json(self, result):
        lines = result.stdout.decode().splitlines()
        self.assertEqual(len(lines), 1, result.stdout)
        return json.loads(lines[0])

    def files(self):
        """Everything in the folder, hidden temporaries too."""
        return sorted(os.listdir(self.folder.name))

    def assert_within(self, a, b, bound):
        self.assertEqual(len(a), len(b))
        worst = max((abs(x - y) for x, y in zip(a, b)), default=0.0)
        self.assertLessEqual(worst, bound)


def main():
    global QUERN
    if len(sys.argv) < 2:
        sys.exit("usage: test_x.py PATH_OF_QUERN [unittest options]")
    QUERN = os.path.abspath(sys.argv.pop(1))
    print("seed", SEED)
    unittest.main()
