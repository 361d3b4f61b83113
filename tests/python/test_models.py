"""add_model(): streams of codec autoencoder with their model outside."""
import os
import sys
import tempfile
import threading
import unittest

import numpy as np
import pyquern as quern

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import block_models  # noqa: E402


class Models(unittest.TestCase):
    def test_a_stream_is_read_once_its_model_is_there(self):
        values = np.frombuffer(block_models.values(2, 7), "f4").reshape(16, 16, 16)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.qmodel")
            with open(path, "wb") as file:
                file.write(block_models.model(7))
            with self.assertRaises(quern.Error) as caught:
                quern.compress(values, rel=5e-2, codec="autoencoder", settings={"model": "0" * 32, "embed": "no"})
            self.assertEqual(caught.exception.name, "missing_model")
            model = quern.add_model(path)
            self.assertEqual(quern.add_model(block_models.model(7)), model)
        self.assertRegex(model, "^[0-9a-f]{32}$")
        stream = quern.compress(values, rel=5e-2, codec="autoencoder", settings={"model": model, "embed": "no"})
        back = quern.decompress(stream)
        bound = quern.info(stream).enforced.value
        self.assertLessEqual(np.abs(back.astype("f8") - values.astype("f8")).max(), bound)
        found = []
        thread = threading.Thread(target=lambda: found.append(quern.decompress(stream)))
        thread.start()
        thread.join()
        self.assertTrue(np.array_equal(found[0], back))

    def test_files_that_are_no_models_are_refused(self):
        for wrong in (b"", b"no model, no model, no model", block_models.model(3)[:-1]):
            with self.assertRaises(quern.CorruptStream):
                quern.add_model(wrong)
        with self.assertRaises(OSError):
            quern.add_model("there/is/none.qmodel")


if __name__ == "__main__":
    unittest.main()
