"""How calls behave in a program: the bound that is asked for, errors, threads, fork, pickle, progress, Ctrl-C, hostile bytes."""
import ctypes
import multiprocessing
import os
import pickle
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import numpy as np
import pyquern as quern

FIELD = np.cumsum(np.random.default_rng(1).normal(size=(64, 96)), axis=1).astype("f4")


def large():
    """What takes the ratio codec a second or more."""
    return np.cumsum(np.random.default_rng(2).normal(size=(64, 256, 256)), axis=2).astype("f4")


class Bounds(unittest.TestCase):
    def test_a_bound_is_asked_for_never_assumed(self):
        for call in (lambda: quern.compress(FIELD), lambda: quern.compress(FIELD, lossless=False),
                     lambda: quern.save("never.qn", FIELD)):
            with self.assertRaisesRegex(TypeError, "abs=, rel=, pwrel=, psnr=, ratio=|lossless=True, abs="):
                call()
        self.assertFalse(os.path.exists("never.qn"))

    def test_one_bound_and_a_number(self):
        for arguments, kind in (({"abs": 1, "rel": 1}, TypeError), ({"abs": 1, "lossless": True}, TypeError), ({"abs": "1"}, TypeError),
                                ({"abs": True}, TypeError), ({"lossless": 1}, TypeError), ({"abs": float("nan")}, ValueError),
                                ({"abs": -1}, ValueError), ({"pwrel": 2}, ValueError), ({"abs": float("inf")}, ValueError)):
            with self.subTest(arguments=arguments), self.assertRaises(kind):
                quern.compress(FIELD, **arguments)
        self.assertEqual(quern.compress(FIELD, abs=np.float32(0.5)), quern.compress(FIELD, abs=np.array(0.5)))


class Errors(unittest.TestCase):
    def test_classes_are_natural_and_pickle(self):
        for status, natural in ((1, ValueError), (3, ValueError), (5, RuntimeError), (22, ValueError), (24, ValueError),
                                (40, NotImplementedError), (61, MemoryError), (63, RuntimeError), (80, RuntimeError)):
            from pyquern._errors import error_of

            problem = error_of(status, "what to do")
            self.assertIsInstance(problem, quern.Error)
            self.assertIsInstance(problem, natural)
            again = pickle.loads(pickle.dumps(problem))
            self.assertEqual((type(again), again.status, again.name, str(again)),
                             (type(problem), status, problem.name, "what to do"))
            self.assertNotEqual(problem.name, "unknown")
        self.assertTrue(issubclass(quern.LibraryNotFound, ImportError))

    def test_unknown_codecs_and_settings_are_named(self):
        for arguments, words in (({"codec": "zip"}, "'zip'.* auto, lorenzo"), ({"goal": "zip"}, "goal"),
                                 ({"codec": "lorenzo", "settings": {"zip": 3}}, "setting")):
            with self.assertRaisesRegex(quern.Error, words):
                quern.compress(FIELD, abs=1, **arguments)
        with self.assertRaises(TypeError):
            quern.compress(FIELD, abs=1, codec=3)
        for threads in (-1, 1.5, True, "2"):
            with self.assertRaises(TypeError):
                quern.compress(FIELD, abs=1, threads=threads)

    def test_memory_limit(self):
        with self.assertRaises(quern.OutOfMemory):
            quern.compress(FIELD, abs=1e-3, memory_limit=1000)
        stream = quern.compress(FIELD, abs=1e-3)
        with self.assertRaisesRegex(MemoryError, "memory_limit is 1000"):
            quern.decompress(stream, memory_limit=1000)
        self.assertEqual(quern.decompress(stream, memory_limit=1 << 26).shape, FIELD.shape)

    def test_hardware_faults_are_looked_for(self):
        stream = quern.compress(FIELD, abs=1e-3, codec="lorenzo", settings={"verify": "fault"})
        self.assertEqual(stream, quern.compress(FIELD, abs=1e-3, codec="lorenzo"))
        self.assertEqual(quern.decompress(stream, check_faults=True).tobytes(), quern.decompress(stream).tobytes())
        with self.assertRaisesRegex(TypeError, "leave region and level out"):
            quern.decompress(stream, check_faults=True, region=(slice(0, 3), slice(None)))
        with self.assertRaises(quern.Unsupported):
            quern.decompress(quern.compress(FIELD, abs=1e-3, codec="stencil"), check_faults=True)

    def test_device(self):
        stream = quern.compress(FIELD, abs=1e-3)
        self.assertEqual(quern.compress(FIELD, abs=1e-3, device="auto"), stream)
        self.assertEqual(quern.decompress(stream, device="auto").tobytes(), quern.decompress(stream).tobytes())
        cuda = quern.build_info()["cuda"]
        if cuda["available"]:
            self.assertEqual(quern.compress(FIELD, abs=1e-3, codec="lorenzo", device="cuda"), quern.compress(FIELD, abs=1e-3, codec="lorenzo"))
        else:
            self.assertTrue(cuda["why"])
            with self.assertRaises((quern.DeviceError, quern.Unsupported)):
                quern.compress(FIELD, abs=1e-3, device="cuda")
            with self.assertRaises((quern.DeviceError, quern.Unsupported)):
                quern.decompress(stream, device="cuda")
        with self.assertRaises(ValueError):
            quern.compress(FIELD, abs=1e-3, device="gpu")

    def test_libraries_of_another_age_or_place(self):
        code = "import pyquern; pyquern.compress(b'1234', lossless=True)"
        with tempfile.TemporaryDirectory() as folder:
            for named, words in (("/nowhere", "set QUERN_LIBRARY"), (folder, "Tried")):
                done = subprocess.run([sys.executable, "-c", code], env=dict(os.environ, QUERN_LIBRARY=named), text=True,
                                      capture_output=True)
                self.assertEqual(done.returncode, 1)
                self.assertIn(words, done.stderr)

    def test_importing_is_light(self):
        code = ("import sys, pyquern; print(sorted({'h5py', 'torch', 'xarray', 'zarr', 'numcodecs', 'dask'} & set(sys.modules)))")
        done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True)
        self.assertEqual(done.stdout, "[]\n")

    def test_somebody_elses_package_quern_is_left_alone(self):
        """The index has a package of that name, which may be installed beside this one."""
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "quern.py"), "w", encoding="utf-8") as file:
                file.write("raise SystemExit('somebody else')\n")
            code = ("import sys, importlib, pyquern\npyquern.build_info()\n"
                    "for name in ('checkpoint', 'hdf5', 'numcodecs', 'zarr', 'xarray', 'torch'):\n"
                    "    try:\n        importlib.import_module('pyquern.' + name)\n    except ImportError:\n        pass\n"
                    "print('quern' in sys.modules)\n")
            path = os.pathsep.join([folder, *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
            done = subprocess.run([sys.executable, "-c", code], env=dict(os.environ, PYTHONPATH=path), text=True, capture_output=True)
            self.assertEqual((done.stdout, done.returncode), ("False\n", 0), done.stderr)


class Running(unittest.TestCase):
    def test_threads_share_nothing(self):
        expected = quern.compress(FIELD, abs=1e-3)
        found, problems = [], []

        def work():
            try:
                for _ in range(5):
                    found.append(quern.compress(FIELD, abs=1e-3) == expected)
                    quern.decompress(expected)
                    with self.assertRaises(quern.CorruptStream):
                        quern.decompress(expected[:-3])
            except BaseException as problem:
                problems.append(problem)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((problems, found), ([], [True] * 20))

    def test_bytes_do_not_depend_on_threads(self):
        self.assertEqual(quern.compress(FIELD, abs=1e-3, threads=0), quern.compress(FIELD, abs=1e-3, threads=3))

    def test_children_by_fork_and_spawn(self):
        expected = quern.compress(FIELD, abs=1e-3)  # a context of this thread, which a child must not use
        for method in ("fork", "spawn"):
            with multiprocessing.get_context(method).Pool(2) as pool:
                self.assertEqual(pool.map(_compressed, [FIELD] * 4), [expected] * 4)

    def test_progress_counts_up_and_cancels(self):
        seen = []
        values = large()[:16]
        quern.compress(values, abs=1e-2, codec="lorenzo", progress=lambda done, total: seen.append((done, total)))
        self.assertGreater(len(seen), 0)
        self.assertEqual(seen, sorted(seen))
        self.assertTrue(all(done <= total for done, total in seen))
        with self.assertRaises(quern.Cancelled):
            quern.compress(values, abs=1e-2, codec="lorenzo", progress=lambda done, total: False)

        def failing(done, total):
            raise KeyError("mine")

        with self.assertRaisesRegex(KeyError, "mine"):
            quern.compress(values, abs=1e-2, codec="lorenzo", progress=failing)
        stream = quern.compress(values, abs=1e-2, codec="lorenzo")
        with self.assertRaises(quern.Cancelled):
            quern.decompress(stream, progress=lambda done, total: False)

    def test_progress_may_call_the_library(self):
        expected = quern.compress(FIELD, abs=1e-3)
        found = []

        def progress(done, total):
            for _ in range(20):
                found.append(quern.compress(FIELD, abs=1e-3) == expected)

        values = large()[:4]
        quern.compress(values, abs=1e-3, codec="lorenzo", progress=progress)
        self.assertTrue(found and all(found))

    def test_interrupts_end_a_long_call(self):
        code = ("import os, signal, sys, threading, time\nimport numpy as np, pyquern as quern\n"
                "x = np.cumsum(np.random.default_rng(2).normal(size=(128, 512, 512)), axis=2).astype('f4')\n"
                "def later():\n    time.sleep(0.5)\n    print('sent', flush=True)\n    os.kill(os.getpid(), signal.SIGINT)\n"
                "    global sent\n    sent = time.monotonic()\n"
                "threading.Thread(target=later).start()\n"
                "try:\n    while True:\n        quern.compress(x, psnr=80, codec='stencil')  # one call takes some 12 s\n"
                "except KeyboardInterrupt:\n    print('interrupted', time.monotonic() - sent)\n"
                "print(quern.decompress(quern.compress(x[0], abs=1)).shape)\n")
        done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True)
        self.assertEqual(done.stderr, "")
        lines = done.stdout.split("\n")
        self.assertEqual(lines[0], "sent", done.stdout)
        self.assertTrue(lines[1].startswith("interrupted"), done.stdout)
        self.assertLess(float(lines[1].split()[1]), 5.0)  # 0.3 on an idle machine
        self.assertEqual(lines[2], "(512, 512)")

    def test_other_threads_of_python_go_on_meanwhile(self):
        thread = threading.Thread(target=quern.compress, args=(large()[:16],), kwargs={"abs": 1e-3, "codec": "stencil"})
        thread.start()
        count = 0
        while thread.is_alive():
            count += 1
        thread.join()
        self.assertGreater(count, 1000)  # one that waited for the interpreter's lock would count to some tens

    def test_the_handler_of_interrupts_stays_as_it_was(self):
        for handler in (signal.default_int_handler, signal.SIG_IGN, lambda number, frame: None):
            former = signal.signal(signal.SIGINT, handler)
            try:
                quern.compress(large()[:8], abs=1e-2, codec="lorenzo")
                self.assertIs(signal.getsignal(signal.SIGINT), handler)
            finally:
                signal.signal(signal.SIGINT, former)

    def test_arrays_that_change_while_they_are_read(self):
        values = large()[:8].copy()
        stop = threading.Event()

        def change():
            random = np.random.default_rng(3)
            while not stop.is_set():
                values[random.integers(8)] = random.normal()

        changer = threading.Thread(target=change)
        changer.start()
        try:
            for codec in ("lorenzo", "stencil", "lossless"):
                for _ in range(3):
                    try:
                        stream = quern.compress(values, codec=codec, **({"lossless": True} if codec == "lossless" else {"abs": 1e-2}))
                        self.assertEqual(quern.decompress(stream).shape, values.shape)
                    except quern.Error:
                        pass
        finally:
            stop.set()
            changer.join()

    def test_nothing_is_leaked(self):
        def work(times):
            for _ in range(times):
                quern.decompress(quern.compress(FIELD, abs=1e-2, codec="lorenzo"))
                with self.assertRaises(quern.Error):
                    quern.decompress(b"x" * 50)
                thread = threading.Thread(target=quern.compress, args=(FIELD,), kwargs={"abs": 1e-2, "codec": "lorenzo"})
                thread.start()
                thread.join()

        work(50)
        before = _resident()
        work(400)
        self.assertLess(_resident() - before, 16 << 20)


class Hostile(unittest.TestCase):
    def test_damaged_streams_are_errors_of_ours(self):
        random = np.random.default_rng(4)
        streams = [quern.compress(FIELD, abs=1e-3, codec="lorenzo"), quern.compress(FIELD, abs=1e-3, codec="stencil"),
                   quern.compress(FIELD, lossless=True, metadata=b"m" * 1000, fill=-1)]
        for trial in range(900):
            damaged = bytearray(streams[trial % 3])
            for _ in range(random.integers(1, 4)):
                damaged[random.integers(len(damaged)) if trial % 2 else random.integers(120)] ^= 1 << random.integers(8)
            if trial % 5 == 0:
                del damaged[random.integers(len(damaged)):]
            for call in (lambda: quern.decompress(damaged, memory_limit=1 << 28), lambda: quern.info(damaged),
                         lambda: quern.decompress(damaged, region=(slice(3, 9), slice(1, 2)), memory_limit=1 << 28)):
                try:
                    call()
                except (quern.Error, ValueError):
                    pass  # ValueError: the damaged shape has fewer axes than the region
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, 2 << 20)

    def test_what_is_no_stream(self):
        for stream in (b"", b"x", b"\x89QRNX\r\n\n", bytes(1000), np.zeros(100, "f4")):
            with self.assertRaises(quern.CorruptStream):
                quern.decompress(stream)
        for stream in ("text", None, 3):
            with self.assertRaises((TypeError, OSError)):
                quern.decompress(stream)
        stream = quern.compress(FIELD, abs=1e-3)
        with self.assertRaisesRegex(quern.CorruptStream, "after byte"):
            quern.decompress(stream + b"more")
        with self.assertRaises(ValueError):
            quern.decompress(np.frombuffer(stream * 2, np.uint8)[::2])

    def test_a_stream_longer_than_memory_says_what_to_do(self):
        from pyquern import _array

        with self.assertRaisesRegex(MemoryError, r"region=.*pyquern.open\(\)"):
            _array.empty(4, (1 << 30, 1 << 28), None)
        with self.assertRaisesRegex(MemoryError, r"region=.*pyquern.open\(\)"):
            _array.empty(4, (1 << 62, 1 << 62), None)
        with self.assertRaisesRegex(MemoryError, "in parts"):
            quern.compress(np.broadcast_to(np.float32(3), (1 << 20, 1 << 30)), abs=1)

    def test_another_copy_of_the_library_in_the_process(self):
        """As another package may bring one: neither takes the other's functions or handles."""
        expected = quern.compress(FIELD, abs=1e-3)
        with tempfile.TemporaryDirectory() as folder:
            path = shutil.copy(os.path.realpath(quern.build_info()["library_path"]), os.path.join(folder, "libother.so"))
            other = ctypes.CDLL(path)
            other.quern_version_string.restype = ctypes.c_char_p
            self.assertTrue(other.quern_version_string().decode())
            self.assertEqual(quern.compress(FIELD, abs=1e-3), expected)
            code = ("import ctypes, sys\nctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)\nimport numpy as np, pyquern\n"
                    "print(pyquern.decompress(pyquern.compress(np.ones(9), abs=1)).sum())")
            done = subprocess.run([sys.executable, "-c", code, path], text=True, capture_output=True)
            self.assertEqual((done.stdout, done.stderr), ("9.0\n", ""))


def _compressed(values):
    return quern.compress(values, abs=1e-3)


def _resident():
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


if __name__ == "__main__":
    sys.exit(unittest.main())
