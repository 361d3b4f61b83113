"""pyquern.torch: data sets that are held compressed, in memory and on disk, by samples, batches and workers."""
import os
import pickle
import sys
import tempfile
import unittest

import numpy as np

from support import import_or_skip

torch = import_or_skip("torch", (2, 0))
from torch.utils.data import DataLoader  # noqa: E402

import pyquern as quern  # noqa: E402
import pyquern.torch as qt  # noqa: E402

RANDOM = np.random.default_rng(9)
IMAGES = np.cumsum(RANDOM.normal(size=(100, 12, 16)), axis=2).astype("f4")
LABELS = RANDOM.integers(0, 10, 100)


class Sets(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.join(folder.name, "set")

    def test_every_sample_keeps_the_bound(self):
        for arguments in ({"abs": 0.01}, {"rel": 1e-3}, {"pwrel": 1e-2}, {"lossless": True}):
            data = qt.CompressedDataset(IMAGES, LABELS, block=7, codec="lorenzo" if "lossless" not in arguments else "auto", **arguments)
            limit = {"abs": 0.01, "rel": 1e-3 * float(np.ptp(IMAGES)), "lossless": 0.0}.get(next(iter(arguments)))
            for index in (0, 6, 7, 99, -1):
                tensor, label = data[index]
                allowed = limit if limit is not None else 1e-2 * np.abs(IMAGES[index])
                self.assertTrue(np.all(np.abs(tensor.numpy().astype("f8") - IMAGES[index]) <= allowed))
                self.assertEqual(label, LABELS[index])
            self.assertEqual((len(data), data.nbytes), (100, IMAGES.nbytes))
            self.assertEqual(data.ratio, data.nbytes / data.stored_bytes)
        with self.assertRaises(IndexError):
            data[100]

    def test_samples_of_several_lengths(self):
        clouds = [RANDOM.normal(size=(int(count), 3)).astype("f4") for count in RANDOM.integers(0, 50, 30)]
        data = qt.CompressedDataset(clouds, abs=1e-3, block=4)
        for index, cloud in enumerate(clouds):
            self.assertEqual(tuple(data[index].shape), cloud.shape)
            self.assertLessEqual(np.abs(data[index].numpy() - cloud).max(initial=0), 1e-3)

    def test_a_folder_holds_the_same(self):
        data = qt.CompressedDataset(IMAGES, LABELS, abs=0.01, block=9)
        data.save(self.folder)
        self.assertEqual(quern.info(os.path.join(self.folder, "000003.qn")).shape, (9, 12, 16))
        opened = qt.CompressedDataset.open(self.folder, transform=lambda tensor: tensor * 2)
        self.assertEqual((len(opened), opened.stored_bytes, opened.bound), (100, data.stored_bytes, data.bound))
        for index in (0, 50, 99):
            self.assertTrue(torch.equal(opened[index][0], data[index][0] * 2))
        with self.assertRaises(FileExistsError):
            data.save(self.folder)
        with open(os.path.join(self.folder, "000000.qn"), "r+b") as file:
            file.truncate(40)
        with self.assertRaises(quern.CorruptStream):
            qt.CompressedDataset.open(self.folder)[0]

    def test_batches_of_workers(self):
        data = qt.CompressedDataset(IMAGES, LABELS, abs=0.01, block=10)
        self.assertTrue(torch.equal(pickle.loads(pickle.dumps(data))[3][0], data[3][0]))
        for workers in (0, 2):
            seen = [None] * 100
            sampler = qt.BlockSampler(data, window=3, generator=torch.Generator().manual_seed(1))
            order = list(qt.BlockSampler(data, window=3, generator=torch.Generator().manual_seed(1)))
            self.assertEqual(sorted(order), list(range(100)))
            loader = DataLoader(data, batch_size=16, sampler=sampler, num_workers=workers)
            places = iter(order)
            for images, labels in loader:
                for image, label in zip(images, labels):
                    index = next(places)
                    self.assertEqual(int(label), LABELS[index])
                    seen[index] = image
            self.assertLessEqual(np.abs(torch.stack(seen).numpy() - IMAGES).max(), 0.01)

    def test_a_batch_decodes_each_block_once(self):
        data = qt.CompressedDataset(IMAGES, abs=0.01, block=10, cache=1)
        read, stream = [], data._stream
        data._stream = lambda number: read.append(number) or stream(number)
        data.__getitems__([1, 95, 2, 91, 3, 90])
        self.assertEqual(sorted(read), [0, 9])

    def test_what_is_refused(self):
        for samples, targets, arguments, kind in ((IMAGES, LABELS, {}, TypeError), (IMAGES, LABELS[:5], {"abs": 1}, ValueError), ([], None, {"abs": 1}, ValueError),
                                                  ([IMAGES[0], IMAGES[0, :, :5]], None, {"abs": 1}, ValueError), (np.array([["a"]]), None, {"abs": 1}, TypeError)):
            with self.assertRaises(kind):
                qt.CompressedDataset(samples, targets, **arguments)


if __name__ == "__main__":
    sys.exit(unittest.main())
