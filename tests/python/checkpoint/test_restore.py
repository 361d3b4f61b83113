"""What load() does with damage: the newest checkpoint that is whole in every value, and sentences about the others."""
import glob
import os
import unittest

from support import StoreTest, import_or_skip

np = import_or_skip("numpy")
import pyquern as quern  # noqa: E402


def weights(seed):
    return np.random.default_rng(seed).standard_normal(5000).astype(np.float32)


def flip(path, at=0.5):
    with open(path, "r+b") as file:
        file.seek(int(os.path.getsize(path) * at))
        byte = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([byte[0] ^ 1]))


class Damage(StoreTest):
    def save(self, *steps, **options):
        for step in steps:
            quern.checkpoint.save(self.store, {"w": weights(step), "step": step}, step=step, **options)

    def part(self, step):
        manifest, = glob.glob(os.path.join(self.store, "manifests", f"{step:012d}*"))
        return os.path.join(self.store, "data", os.path.basename(manifest).partition("-")[2], "part-0000")

    def test_load_falls_back_over_a_damaged_value(self):
        self.save(10, 20, 30)
        flip(self.part(30))
        os.remove(self.part(20))
        with self.assertLogs("quern", "WARNING") as logged:
            back = quern.checkpoint.load(self.store)
        self.assertEqual(back["step"], 10)
        self.assertEqual(back["w"].tobytes(), weights(10).tobytes())
        self.assertEqual(len(logged.output), 2)
        self.assertIn("step 30 is passed over", logged.output[0])
        self.assertIn("step 20 is passed over", logged.output[1])
        with self.assertLogs("quern", "WARNING"):
            self.assertEqual(list(quern.checkpoint.load(self.store, names="w")), ["w"])
        with self.assertLogs("quern", "WARNING"):
            restored = quern.checkpoint.restore_newest(self.store)
        self.assertEqual((restored.step, restored.state["step"], list(restored.passed_over)), (10, 10, [30, 20]))
        self.assertIn("part-0000", restored.passed_over[20])

    def test_whole_stores_pass_over_nothing(self):
        self.save(1, 2)
        with self.assertNoLogs("quern", "WARNING") if hasattr(self, "assertNoLogs") else self.subTest():
            restored = quern.checkpoint.restore_newest(self.store)
        self.assertEqual((restored.step, restored.passed_over), (2, {}))

    def test_a_named_step_that_is_damaged_says_which_are_whole(self):
        self.save(10, 20, 30, 40)
        flip(self.part(30))
        os.remove(self.part(20))
        with self.assertRaises(quern.Error) as caught:
            quern.checkpoint.load(self.store, step=30)
        self.assertIn("older steps that are whole: 10;", str(caught.exception))
        self.assertIn("load(path, step=10)", str(caught.exception))
        self.assertNotIn("repair", str(caught.exception))
        flip(self.part(10))
        with self.assertRaises(quern.Error) as caught:
            quern.checkpoint.load(self.store, step=30)
        self.assertIn("no older step is whole", str(caught.exception))

    def test_repair_is_named_where_parity_may_mend(self):
        self.save(10, parity=(2, 1))
        command = f"quern checkpoint repair --store {self.store} --step 10"
        for damage in (lambda part: flip(part, 0.6), os.remove):
            damage(self.part(10))
            for step in (None, 10):
                with self.assertRaises(quern.Error) as caught:
                    quern.checkpoint.load(self.store, step=step)
                self.assertIn(command, str(caught.exception))
            with quern.checkpoint.Store(self.store, write=True) as store:
                self.assertTrue(store.repair(10))
            self.assertEqual(quern.checkpoint.load(self.store)["w"].tobytes(), weights(10).tobytes())

    def test_nothing_whole_says_what_is_wrong_with_each(self):
        self.save(1, 2)
        flip(self.part(1))
        os.remove(self.part(2))
        with self.assertRaises(quern.Error) as caught, self.assertLogs("quern", "WARNING"):
            quern.checkpoint.load(self.store)
        for words in ("no checkpoint of the store is whole", "step 1:", "step 2:"):
            self.assertIn(words, str(caught.exception))
        with self.assertRaises(quern.Error) as caught:
            quern.checkpoint.load(self.store + "2")
        self.assertIn("no checkpoint store is here", str(caught.exception))
        quern.checkpoint.Store(self.store + "2", write=True).close()
        with self.assertRaises(quern.Error) as caught:
            quern.checkpoint.load(self.store + "2")
        self.assertIn("the store has no checkpoint", str(caught.exception))

    def test_other_errors_are_not_damage(self):
        self.save(1, 2)
        with quern.checkpoint.Store(self.store, write=True) as store, store.begin(3) as writer:
            writer.add_blob("quern.state", b'{"format":99,"tree":{}}')
            writer.publish()
        with self.assertRaises(ValueError) as caught:
            quern.checkpoint.load(self.store)
        self.assertIn("format 99", str(caught.exception))

    def test_a_damaged_base_is_no_base(self):
        # In the shape of a training run: small steps away from a checkpoint whose values were damaged since.
        self.save(10)
        base = weights(10)
        flip(self.part(10))
        with self.assertLogs("quern", "INFO"):
            quern.checkpoint.save(self.store, {"w": base * np.float32(1.0000001)}, step=20, base="newest")
        self.assertEqual(quern.checkpoint.load(self.store)["w"].tobytes(), (base * np.float32(1.0000001)).tobytes())


class Bases(StoreTest):
    def test_the_newest_base_is_another_step(self):
        w = weights(1)
        for step in (10, 20, 30):
            quern.checkpoint.save(self.store, {"w": w * np.float32(1 + step * 1e-7)}, step=step, base="newest")
        bases = [quern.checkpoint.info(self.store, step).base for step in (10, 20, 30)]
        self.assertEqual(bases, [None, 10, 10])
        saved = quern.checkpoint.save(self.store, {"w": w}, step=30, base="newest", replace=True)
        self.assertTrue(saved.published)

    def test_a_step_is_reached_again_after_a_resume(self):
        w = weights(1)
        for step in (10, 20, 30):
            quern.checkpoint.save(self.store, {"w": w + step}, step=step, base="newest")
        for step in (20, 30):  # resumed from 10
            quern.checkpoint.save(self.store, {"w": w - step}, step=step, base="newest", replace=True)
            self.assertEqual(quern.checkpoint.ls(self.store), [10, 20, 30])


if __name__ == "__main__":
    unittest.main()
