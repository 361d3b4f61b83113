"""pyquern.checkpoint with NumPy alone: nesting, types, aliases, slices, DLPack, errors."""
import array
import gc
import os
import subprocess
import threading
import unittest
from collections import OrderedDict

from support import StoreTest, import_or_skip

np = import_or_skip("numpy")
import pyquern as quern  # noqa: E402
from pyquern import TypedArray  # noqa: E402


def weights(count, seed=1):
    return (np.random.default_rng(seed).standard_normal(count) * 0.02).astype(np.float32)


def same(a, b):
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


class States(StoreTest):
    def test_nested_state_comes_back(self):
        state = {
            "model": OrderedDict([("layer.0.weight", weights(60).reshape(6, 10)), ("layer.0.bias", weights(6))]),
            "optimizer": {
                "state": {0: {"step": np.float32(7), "exp_avg": weights(60).reshape(6, 10)}},
                "param_groups": [{"lr": 0.1 + 0.2, "betas": (0.9, 0.999), "params": [0, 1], "foreach": None, "amsgrad": False}],
            },
            "epoch": 3, "big": 2**80, "negative": -5, "loss": float("nan"), "best": float("-inf"), "name": "a \"b\"\n\u00fc",
            "rng": b"\x00\x01\xff", "empty": {}, "nothing": [], "": weights(2), "deep": [[{"x": (weights(1),)}]],
        }
        saved = quern.checkpoint.save(self.store, state, step=12)
        self.assertTrue(saved.published)
        self.assertEqual((saved.step, saved.tensors), (12, 6))
        back = quern.checkpoint.load(self.store)
        self.assertIsInstance(back["model"], OrderedDict)
        self.assertEqual(list(back), list(state))
        self.assertTrue(same(back["model"]["layer.0.weight"], state["model"]["layer.0.weight"]))
        self.assertTrue(same(back["optimizer"]["state"][0]["exp_avg"], state["optimizer"]["state"][0]["exp_avg"]))
        step = back["optimizer"]["state"][0]["step"]
        self.assertIsInstance(step, np.float32)
        self.assertEqual(step, 7)
        self.assertEqual(back["optimizer"]["param_groups"], state["optimizer"]["param_groups"])
        self.assertIsInstance(back["optimizer"]["param_groups"][0]["betas"], tuple)
        for key in ("epoch", "big", "negative", "best", "name", "rng", "empty", "nothing"):
            self.assertEqual(back[key], state[key])
        self.assertTrue(np.isnan(back["loss"]))
        self.assertTrue(same(back["deep"][0][0]["x"][0], state["deep"][0][0]["x"][0]))
        self.assertTrue(same(back[""], state[""]))

    def test_folders_above_a_store_are_made(self):
        store = os.path.join(self.store, "a", "b")
        quern.checkpoint.save(store, {"w": weights(10)}, step=1)
        self.assertTrue(same(quern.checkpoint.load(store)["w"], weights(10)))

    def test_the_package_lists_what_it_has(self):
        self.assertTrue({"checkpoint", "torch_dcp", "Error", "TypedArray"} <= set(dir(quern)))

    def test_names_that_would_be_one_stay_two(self):
        state = {"a.b": weights(3, 1), "a": {"b": weights(3, 2)}, "a.b#2": weights(3, 3)}
        quern.checkpoint.save(self.store, state, step=0)
        back = quern.checkpoint.load(self.store)
        self.assertTrue(same(back["a.b"], state["a.b"]))
        self.assertTrue(same(back["a"]["b"], state["a"]["b"]))
        self.assertTrue(same(back["a.b#2"], state["a.b#2"]))

    def test_tied_tensors_stay_tied_and_equal_ones_stay_two(self):
        tied, equal = weights(1000), weights(1000)
        state = {"embed": tied, "head": tied, "view": tied[:], "other": equal}
        saved = quern.checkpoint.save(self.store, state, step=0)
        self.assertEqual(saved.tensors, 2)
        self.assertEqual(saved.stored_already, 1)  # `other` has the same bytes: stored once, restored as two
        back = quern.checkpoint.load(self.store)
        self.assertIs(back["embed"], back["head"])
        self.assertIs(back["embed"], back["view"])
        self.assertFalse(np.shares_memory(back["embed"], back["other"]))
        self.assertTrue(same(back["other"], equal))

    def test_types_layouts_and_buffers(self):
        base = weights(240).reshape(2, 10, 12)
        state = {
            "transposed": base.T, "strided": base[:, ::3, 1:], "reversed": base[::-1], "fortran": np.asfortranarray(base[0]),
            "big_endian": base.astype(">f4"), "scalar": np.array(2.5), "none": np.zeros((3, 0, 2), np.int16),
            "bool": base > 0, "memory": memoryview(b"abc"), "array": array.array("d", [1, 2, 3]), "complex": None,
        }
        for name in ("float16", "float64", "int8", "int64", "uint8", "uint16", "uint32", "uint64"):
            state[name] = np.arange(17).astype(name)
        quern.checkpoint.save(self.store, state, step=0)
        back = quern.checkpoint.load(self.store)
        for name, value in state.items():
            if value is None:
                continue
            expected = np.asarray(value)
            self.assertTrue(same(back[name], expected), name)

    def test_bf16_without_a_framework(self):
        bits = (weights(50).view(np.uint32) >> 16).astype(np.uint16).reshape(5, 10)
        quern.checkpoint.save(self.store, {"w": TypedArray(bits, "bf16")}, step=0)
        self.assertEqual(quern.checkpoint.info(self.store).tensors[0].dtype, "bf16")
        back = quern.checkpoint.load(self.store)["w"]
        self.assertTrue(same(back.array if isinstance(back, TypedArray) else back.view(np.uint16), bits))
        with quern.checkpoint.open(self.store) as saved:
            part = saved["w"][1:3, 4]
            self.assertTrue(same(part.array if isinstance(part, TypedArray) else part.view(np.uint16), bits[1:3, 4]))
        with self.assertRaises(TypeError):
            TypedArray(bits, "f8_e4m3")

    def test_what_cannot_be_saved_is_named(self):
        for state, where in (({"a": {"b": object()}}, "a/b"), ({"a": [1, {2: iter(())}]}, "a/1/2"),
                             ({"a": {np.int64(1): 2}}, "a/1"), ({"a": np.array([None])}, "a"),
                             ({"a": np.ma.array([1, 2], mask=[0, 1])}, "MaskedArray"), ({"a": lambda: 0}, "objects=")):
            with self.assertRaises(TypeError) as caught:
                quern.checkpoint.save(self.store, state, step=0)
            self.assertIn(where, str(caught.exception))
        loop = {}
        loop["self"] = loop
        with self.assertRaises(ValueError):
            quern.checkpoint.save(self.store, loop, step=0)
        self.assertEqual(quern.checkpoint.ls(self.store), [])


class Stores(StoreTest):
    def chain(self):
        state = {"w": weights(4000).reshape(40, 100), "frozen": weights(20000, 2)}
        quern.checkpoint.save(self.store, state, step=10)
        state["w"] = state["w"] * np.float32(1.000001)
        return state, quern.checkpoint.save(self.store, state, step=20, base="newest", threads=1)

    def test_differences_names_and_info(self):
        state, saved = self.chain()
        self.assertEqual((saved.differences, saved.stored_already), (1, 1))
        self.assertEqual(quern.checkpoint.ls(self.store), [10, 20])
        info = quern.checkpoint.info(self.store)
        self.assertEqual((info.step, info.base), (20, 10))
        self.assertEqual([(t.name, t.shape, t.dtype) for t in info.tensors],
                         [("w", (40, 100), "f32"), ("frozen", (20000,), "f32")])
        only = quern.checkpoint.load(self.store, step=20, names=["w"])
        self.assertEqual(list(only), ["w"])
        self.assertTrue(same(only["w"], state["w"]))
        self.assertEqual(list(quern.checkpoint.load(self.store, names="fro*")), ["frozen"])
        with self.assertRaises(KeyError):
            quern.checkpoint.load(self.store, names=["v"])
        quern.checkpoint.verify(self.store)

    def test_lazy_slices(self):
        state, _ = self.chain()
        w = state["w"]
        with quern.checkpoint.open(self.store) as saved:
            lazy = saved["w"]
            self.assertEqual((lazy.shape, lazy.dtype, len(lazy), lazy.ndim), ((40, 100), "f32", 40, 2))
            for key in (slice(3, 7), (slice(None), 5), (-1, slice(10, -10)), (..., 0), (2, 3), slice(30, 10), ...):
                self.assertTrue(same(lazy[key], w[key]), key)
            self.assertTrue(same(np.asarray(lazy), w))
            self.assertTrue(same(lazy.numpy(), w))
            for wrong in ((slice(None, None, 2),), (40,), (0, 0, 0), (Ellipsis, Ellipsis)):
                with self.assertRaises(IndexError):
                    lazy[wrong]
            room = np.full((40, 100), -1, np.float32)
            saved.read_into("w", room)
            self.assertTrue(same(room, w))
            saved.read_into("w", room[:2].reshape(-1)[:50].reshape(10, 5), (5, 5), (15, 10))
            self.assertTrue(same(room.reshape(-1)[:50].reshape(10, 5), w[5:15, 5:10]))
            for wrong in (np.empty((100, 40), np.float32), np.empty((40, 100)), room[:, ::2], room.T):
                with self.assertRaises(ValueError):
                    saved.read_into("w", wrong)

    def test_dlpack_lends_memory_that_lives_on(self):
        state, _ = self.chain()
        saved = quern.checkpoint.open(self.store)
        lent = np.from_dlpack(saved["w"])
        unused = saved["w"].__dlpack__()
        self.assertEqual(saved["w"].__dlpack_device__(), (1, 0))
        saved.close()
        from pyquern import _dlpack

        self.assertEqual(len(_dlpack._exported), 2)
        gc.collect()
        self.assertTrue(same(lent, state["w"]))
        del unused
        del lent
        gc.collect()
        self.assertEqual(len(_dlpack._exported), 0)

    def test_whatever_speaks_dlpack_is_read_where_it_lies(self):
        class Foreign:
            def __init__(self, array):
                self.array = array

            def __dlpack__(self):
                return self.array.__dlpack__()

        values = weights(100).reshape(10, 10)
        quern.checkpoint.save(self.store, {"w": Foreign(values), "tied": Foreign(values)}, step=1)
        back = quern.checkpoint.load(self.store)
        self.assertTrue(same(back["w"], values))
        self.assertIs(back["w"], back["tied"])
        with self.assertRaises(TypeError) as caught:
            quern.checkpoint.save(self.store, {"w": Foreign(values.T)}, step=2)
        self.assertIn("not contiguous", str(caught.exception))

    def test_errors_have_the_sentence_of_the_library(self):
        with self.assertRaises(quern.Error) as caught:
            quern.checkpoint.load(self.store)
        self.assertIn("no checkpoint store is here", str(caught.exception))
        self.assertEqual(caught.exception.name, "io_error")
        self.chain()
        for call, words in ((lambda: quern.checkpoint.save(self.store, {"w": weights(3)}, step=10), "is in the store already"),
                            (lambda: quern.checkpoint.load(self.store, step=11), "no checkpoint of step 11"),
                            (lambda: quern.checkpoint.save(self.store, {}, step=1, preset="dense"), "no preset 'dense'")):
            with self.assertRaises(quern.Error) as caught:
                call()
            self.assertIn(words, str(caught.exception))
        self.assertEqual(quern.checkpoint.ls(self.store), [10, 20])

    def test_progress_ends_a_save_and_its_exceptions_come_out(self):
        seen = []
        state = {"a": weights(10), "b": weights(20)}
        quern.checkpoint.save(self.store, state, step=1, progress=lambda done, total: seen.append((done, total)))
        self.assertEqual(seen, [(40, 120), (120, 120)])
        with self.assertRaises(quern.Error) as caught:
            quern.checkpoint.save(self.store, state, step=2, progress=lambda done, total: False)
        self.assertEqual(caught.exception.name, "cancelled")

        def interrupted(done, total):
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            quern.checkpoint.save(self.store, state, step=2, progress=interrupted)
        self.assertEqual(quern.checkpoint.ls(self.store), [1])

    def test_care(self):
        self.chain()
        with quern.checkpoint.Store(self.store, write=True) as store:
            store.compact(20)
            self.assertEqual(store.collect(keep=1)[0], 1)
            self.assertEqual(store.steps(), [20])
            store.verify()
            self.assertFalse(store.repair())
        part = subprocess.check_output(["find", self.store + "/data", "-name", "part-0000"], text=True).strip()
        with open(part, "r+b") as file:
            file.seek(os.path.getsize(part) // 2)
            byte = file.read(1)
            file.seek(-1, 1)
            file.write(bytes([byte[0] ^ 1]))
        with self.assertRaises(quern.Error) as caught:
            quern.checkpoint.verify(self.store)
        self.assertEqual(caught.exception.name, "corrupt")

    def test_writers_of_a_group_make_one_checkpoint_of_pieces(self):
        from pyquern._tensors import source_of

        whole = weights(600).reshape(20, 30)
        with quern.checkpoint.Store(self.store, write=True) as store:
            def write(number):
                with store.begin(5, group="g5", writer=number, writers=3) as writer:
                    rows = whole[number * 7 : min(20, number * 7 + 7)]
                    writer.add("w", source_of(rows, "w"), piece=(whole.shape, (number * 7, 0)))
                    writer.add_blob(f"rank-{number}", b"state")
                    published.append(writer.publish().published)

            published = []
            threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(sorted(published), [False, False, True])
            with store.open(5) as saved:
                self.assertTrue(same(saved["w"].numpy(), whole))
                self.assertTrue(same(saved["w"][5:9, 3:8], whole[5:9, 3:8]))
                self.assertEqual(saved.info.tensors[0].pieces, 3)
                self.assertEqual(saved.blob("rank-2"), b"state")

    def test_a_library_that_is_not_there_is_said_to_be_looked_for(self):
        code = "import pyquern as quern; quern.checkpoint.ls('x')"
        environment = dict(os.environ, QUERN_LIBRARY="/nowhere")
        done = subprocess.run([os.sys.executable, "-c", code], env=environment, capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("set QUERN_LIBRARY", done.stderr)


if __name__ == "__main__":
    unittest.main()
