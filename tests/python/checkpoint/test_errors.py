"""Errors, and the bounds of steps and names."""
import copy
import pickle
import unittest

from support import StoreTest, import_or_skip

np = import_or_skip("numpy")
import pyquern as quern  # noqa: E402
from pyquern._checkpoint.flatten import Flattened  # noqa: E402


class Errors(StoreTest):
    def test_errors_can_be_pickled_and_copied(self):
        for error in (quern.Error(62, "a sentence"), quern.checkpoint.Error(1000, "x")):
            for made_again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
                self.assertIs(type(made_again), type(error))
                self.assertEqual((made_again.status, made_again.name, str(made_again)), (error.status, error.name, str(error)))

    def test_steps_have_a_range(self):
        for step in (0, 10**19, 2**64 - 2):
            quern.checkpoint.save(self.store, {"step": step}, step=step)
            self.assertEqual(quern.checkpoint.load(self.store, step=step), {"step": step})
        for step in (-1, 2**64 - 1, 2**64):
            for call in (lambda: quern.checkpoint.save(self.store, {}, step=step), lambda: quern.checkpoint.load(self.store, step=step),
                         lambda: quern.checkpoint.save(self.store, {}, step=1, base=step)):
                with self.assertRaises(ValueError):
                    call()
        with self.assertRaises(TypeError):
            quern.checkpoint.save(self.store, {}, step=1.5)

    def test_names_for_the_library_have_no_nul(self):
        with quern.checkpoint.Store(self.store, write=True) as store, store.begin(1) as writer:
            source = Flattened({"w": np.arange(3)}).tensors["w"]
            for call in (lambda: writer.add("a\0b", source), lambda: writer.add_blob("a\0b", b"")):
                with self.assertRaises(ValueError):
                    call()


if __name__ == "__main__":
    unittest.main()
