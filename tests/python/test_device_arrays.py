"""Tensors of PyTorch and arrays of CuPy on a CUDA device: in and out, on streams of their own, in Zarr; the host's bytes."""
import sys
import unittest

import numpy as np
import pyquern as quern

try:
    import torch
except ImportError:
    torch = None
try:
    import cupy
except ImportError:
    cupy = None

if not quern.build_info()["cuda"]["available"]:
    print(f"SKIP: no CUDA device here: {quern.build_info()['cuda']['why']}")
    sys.exit(77)

FIELD = np.cumsum(np.random.default_rng(18).normal(size=(64, 128, 128)), axis=2).astype("f4")


@unittest.skipIf(torch is None, "no PyTorch here")
class Torch(unittest.TestCase):
    def test_streams_are_those_of_the_host(self):
        for dtype in (torch.float32, torch.bfloat16):
            host = torch.from_numpy(FIELD).to(dtype)
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                tensor = host.to("cuda", non_blocking=True) * 1
                stream = quern.compress(tensor, abs=0.01, codec="lorenzo")
                out = torch.empty_like(tensor)
                quern.decompress(stream, out=out)
            self.assertEqual(stream, quern.compress(host, abs=0.01, codec="lorenzo"))
            expected = torch.empty_like(host)
            quern.decompress(stream, out=expected)
            self.assertTrue(torch.equal(out.cpu(), expected))


@unittest.skipIf(cupy is None, "no CuPy here")
class Cupy(unittest.TestCase):
    def test_streams_are_those_of_the_host(self):
        with cupy.cuda.Stream(non_blocking=True):
            array = cupy.asarray(FIELD) * 1
            stream = quern.compress(array, abs=0.01, codec="lorenzo")
            out = cupy.empty_like(array)
            quern.decompress(stream, out=out)
            found = cupy.asnumpy(out)
        self.assertEqual(stream, quern.compress(FIELD, abs=0.01, codec="lorenzo"))
        self.assertEqual(found.tobytes(), quern.decompress(stream).tobytes())

    def test_zarr(self):
        try:
            import zarr
            from pyquern.zarr import QuernCodec
        except ImportError:
            self.skipTest("no zarr 3 here")
        with zarr.config.enable_gpu():
            array = zarr.create_array({}, shape=FIELD.shape, chunks=(32, 128, 128), dtype="f4", serializer=QuernCodec(abs=0.01, codec="lorenzo"),
                                      compressors=None)
            array[...] = cupy.asarray(FIELD)
            found = array[...]
        self.assertIsInstance(found, cupy.ndarray)
        self.assertLessEqual(float(cupy.abs(found - cupy.asarray(FIELD)).max()), 0.01)


if __name__ == "__main__":
    sys.exit(unittest.main())
