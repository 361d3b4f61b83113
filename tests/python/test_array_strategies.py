"""Arrays that hypothesis makes up: any type, shape, layout and bound; and the bytes of `quern compress` for the same
array.

usage: test_array_strategies.py [QUERN]     QUERN: the command of this build, without it that test is skipped"""
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np

from support import import_or_skip

import_or_skip("hypothesis")
import hypothesis.extra.numpy as npst  # noqa: E402
import hypothesis.strategies as st  # noqa: E402
from hypothesis import HealthCheck, given, settings  # noqa: E402

import pyquern as quern  # noqa: E402

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

QUERN = sys.argv.pop(1) if len(sys.argv) > 1 and os.path.exists(sys.argv[1]) else None
TYPES = [np.dtype(name) for name in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")]
#: Axes are turned, cut, reversed, and the order of bytes is another; None of this changes a value.
LAYOUTS = {"C": lambda a: a, "F": lambda a: a.copy(order="F"),
           "strided": lambda a: np.repeat(a, 2, axis=-1)[..., ::2] if a.ndim else a,
           "negative": lambda a: np.flip(np.flip(a).copy()), "swapped": lambda a: a.astype(a.dtype.newbyteorder())}
BOUNDS = st.one_of(
    st.just(("lossless", True)), st.tuples(st.just("abs"), st.floats(0, 1e6)), st.tuples(st.just("rel"), st.floats(0, 1)),
    st.tuples(st.just("pwrel"), st.floats(1e-6, 0.5)), st.tuples(st.just("psnr"), st.floats(10, 100)),
    st.tuples(st.just("ratio"), st.floats(1.1, 20)))


@st.composite
def cases(draw):
    dtype = draw(st.sampled_from(TYPES))
    values = draw(npst.arrays(dtype, npst.array_shapes(min_dims=0, max_dims=8, min_side=0, max_side=4)))
    kind, value = draw(BOUNDS)
    fill = draw(st.none() | npst.from_dtype(dtype)) if kind != "psnr" else None
    return values, draw(st.sampled_from(sorted(LAYOUTS))), kind, value, fill


def exact(values):
    """As integers of any size, or numbers of binary64, which hold every value."""
    return [value if isinstance(value, int) else float(value) for value in values.reshape(-1).tolist()]


class Strategies(unittest.TestCase):
    @settings(max_examples=500, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(cases())
    def test_every_value_keeps_its_bound(self, case):
        values, layout, kind, value, fill = case
        given_array = LAYOUTS[layout](values)
        try:
            stream = quern.compress(given_array, **{kind: value}, fill=fill)
        except (quern.BoundNotMet, quern.InvalidArgument, quern.Unsupported) as problem:
            # What no codec can do is refused with a sentence: a ratio that random bits do not have, a PSNR of nothing.
            self.assertIn(kind, ("psnr", "ratio", "pwrel"), problem)
            self.assertGreater(len(problem.sentence), 20)
            return
        back, info = quern.decompress(stream), quern.info(stream)
        self.assertEqual((back.dtype, back.shape), (values.dtype, values.shape))
        self.assertLessEqual(len(stream), values.nbytes + 256 + values.nbytes // 1000 + 1)
        bound = info.enforced
        if kind == "lossless":
            self.assertEqual(back.tobytes(), np.ascontiguousarray(values).tobytes())
            return
        if kind in ("abs", "pwrel"):
            self.assertLessEqual(bound.value, value)
        for a, b in zip(exact(values), exact(back)):
            if a != a or a in (float("inf"), float("-inf")):
                self.assertTrue(a == b or (a != a and b != b))
            elif bound.kind == "lossless":
                self.assertEqual(a, b)
            else:
                self.assertLessEqual(abs(a - b), bound.value * (abs(a) if bound.kind == "pwrel" else 1))
        if fill is not None:
            same = values.reshape(-1) == fill
            self.assertEqual(np.ascontiguousarray(back).reshape(-1)[same].tobytes(), np.ascontiguousarray(values).reshape(-1)[same].tobytes())
        if layout != "C":
            self.assertEqual(quern.compress(values, **{kind: value}, fill=fill), stream)

    @unittest.skipIf(ml_dtypes is None, "no ml_dtypes here")
    @settings(max_examples=50, deadline=None, database=None, derandomize=True)
    @given(npst.arrays("f4", npst.array_shapes(max_dims=3, max_side=6), elements=st.floats(-1e6, 1e6, width=32)), st.floats(0, 100))
    def test_bfloat16(self, wide, bound):
        values = wide.astype(ml_dtypes.bfloat16)
        back = quern.decompress(quern.compress(values, abs=bound))
        self.assertEqual(back.dtype, values.dtype)
        self.assertTrue(np.all(np.abs(back.astype("f8") - values.astype("f8")) <= bound))

    @unittest.skipIf(QUERN is None, "no quern command here")
    def test_the_command_writes_the_same_bytes(self):
        random = np.random.default_rng(13)
        field = np.cumsum(random.normal(size=(20, 30, 40)), axis=2)
        names = {"f2": "f16", "f4": "f32", "f8": "f64", "i2": "i16", "u8": "u64"}
        with tempfile.TemporaryDirectory() as folder:
            for dtype, name in names.items():
                values = (np.abs(field) * 3).astype(dtype)
                source, target = os.path.join(folder, "x.raw"), os.path.join(folder, "x.qn")
                values.tofile(source)
                for kind, value in (("abs", 0.5), ("rel", 1e-3), ("lossless", True)):
                    words = ["--lossless"] if value is True else [f"--{kind}", str(value)]
                    subprocess.run([QUERN, "compress", "-q", "-f", "-t", name, "-s", "20x30x40", *words, source, "-o", target], check=True)
                    with open(target, "rb") as file:
                        self.assertEqual(file.read(), quern.compress(values, **{kind: value}), (dtype, kind))


if __name__ == "__main__":
    sys.exit(unittest.main())
