"""Arrays, chunks, shards and histories that zarr's own strategies make up, through the codec `quern`: format 3 and 2."""
import json
import os
import sys
import unittest
import warnings

import numpy as np

from support import import_or_skip

zarr = import_or_skip("zarr", (3, 0))
import_or_skip("hypothesis")
import_or_skip("pytest")  # zarr.testing imports it
import hypothesis.extra.numpy as npst  # noqa: E402
import hypothesis.strategies as st  # noqa: E402
from hypothesis import HealthCheck, assume, given, settings  # noqa: E402
from hypothesis.stateful import rule, run_state_machine_as_test  # noqa: E402
from zarr.storage import MemoryStore  # noqa: E402
from zarr.testing.stateful import ZarrHierarchyStateMachine  # noqa: E402
from zarr.testing.strategies import chunk_shapes, node_names, numpy_arrays, shard_shapes  # noqa: E402

import pyquern as quern  # noqa: E402
from pyquern.numcodecs import Quern  # noqa: E402
from pyquern.zarr import QuernCodec  # noqa: E402

THOROUGH = bool(os.environ.get("QUERN_TEST_THOROUGH"))
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
# No example is kept from one run to the next, and each run makes up the same ones.
COMMON = {"deadline": None, "database": None, "derandomize": True, "suppress_health_check": list(HealthCheck)}
NUMBERS = st.sampled_from([np.dtype(order + name) for order in "<>" for name in ("f2", "f4", "f8", "i2", "i4", "i8", "u2", "u4", "u8")]
                          + [np.dtype("i1"), np.dtype("u1")])
SHAPES = npst.array_shapes(max_dims=4, min_side=1, max_side=6)


@st.composite
def stored_arrays(draw):
    """(values, keywords of create_array())."""
    values = draw(numpy_arrays(shapes=SHAPES, dtype=draw(NUMBERS)))
    chunks = draw(chunk_shapes(shape=values.shape))
    keywords = {"chunks": chunks, "config": {"order": draw(st.sampled_from("CF"))}, "fill_value": draw(st.none() | npst.from_dtype(values.dtype))}
    if draw(st.booleans()):
        keywords["shards"] = draw(shard_shapes(shape=values.shape, chunk_shape=chunks))
    return values, keywords


def misses(found, values, bound):
    """Elements that are farther from the original than the bound, or no longer the same NaN or infinity. Exact: in Python's
    integers and in its binary64, which is wide enough for what is shorter; differences of binary64 are rounded once."""
    count = 0
    for a, b in zip(values.reshape(-1).tolist(), found.reshape(-1).tolist()):
        if isinstance(a, float) and not np.isfinite(a):
            count += not (a == b or (a != a and b != b))
        else:
            count += not abs(a - b) <= bound
    return count


class Strategies(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore")

    @settings(max_examples=200 if THOROUGH else 40, **COMMON)
    @given(stored_arrays(), st.sampled_from([0.0, 0.5, 3.0]))
    def test_format_3_keeps_its_bound(self, case, bound):
        values, keywords = case
        codec = QuernCodec(abs=bound) if bound else QuernCodec(lossless=True)
        array = zarr.create_array({}, shape=values.shape, dtype=values.dtype, serializer=codec, compressors=None, **keywords)
        array[...] = values
        found = array[...]
        self.assertEqual(found.dtype, values.dtype)
        if bound:
            self.assertEqual(misses(found, values, bound), 0)
        else:
            self.assertEqual(found.tobytes(), values.tobytes())
        array[...] = found  # what was decoded comes back as it is
        self.assertEqual(array[...].tobytes(), found.tobytes())

    @settings(max_examples=100 if THOROUGH else 25, **COMMON)
    @given(stored_arrays(), st.sampled_from([0.0, 0.5]), st.sampled_from("CF"))
    def test_format_2_keeps_its_bound(self, case, bound, order):
        values, keywords = case
        array = zarr.create_array({}, shape=values.shape, dtype=values.dtype, chunks=keywords["chunks"], zarr_format=2, order=order, filters=None,
                                  compressors=Quern(abs=bound) if bound else Quern(lossless=True), fill_value=keywords["fill_value"])
        array[...] = values
        if bound and values.dtype.itemsize > 1:
            self.assertEqual(misses(array[...], values, bound), 0)
        else:
            self.assertEqual(array[...].tobytes(), values.tobytes())

    def test_histories_of_a_hierarchy(self):
        """Groups and arrays are made, written in parts, resized, deleted; a store with the codec, against one without."""
        class Machine(ZarrHierarchyStateMachine):
            def __init__(self):
                super().__init__(MemoryStore())

            @rule(data=st.data(), name=node_names, values=numpy_arrays(shapes=SHAPES, dtype=np.dtype("f4")))
            def add_array(self, data, name, values):
                parent = data.draw(st.sampled_from(sorted(self.all_groups))) if self.all_groups else ""
                path = f"{parent}/{name}".lstrip("/")
                assume(self.can_add(path))
                chunks, fill = data.draw(chunk_shapes(shape=values.shape)), data.draw(npst.from_dtype(values.dtype))
                for store, serializer in ((self.store, QuernCodec(lossless=True)), (self.model, "auto")):
                    zarr.create_array(store, name=path, data=values, chunks=chunks, fill_value=fill, serializer=serializer, compressors=None)
                self.all_arrays.add(path)

        run_state_machine_as_test(Machine, settings=settings(max_examples=60 if THOROUGH else 8, stateful_step_count=20, **COMMON))

    def test_consolidated_groups(self):
        group = zarr.open_group(MemoryStore(), mode="w")
        values = np.linspace(0, 9, 600, dtype="f4").reshape(20, 30)
        for name in ("a", "b"):
            made = group.create_array(name, shape=values.shape, dtype="f4", chunks=(8, 30), serializer=QuernCodec(abs=0.01), compressors=None)
            made[...] = values
        zarr.consolidate_metadata(group.store)
        opened = zarr.open_consolidated(group.store)
        for name in ("a", "b"):
            self.assertEqual(opened[name].serializer, QuernCodec(abs=0.01))
            self.assertLessEqual(np.abs(opened[name][...] - values).max(), 0.01)

    def test_metadata_is_what_the_published_schema_says(self):
        jsonschema = import_or_none("jsonschema")
        if jsonschema is None:
            self.skipTest("no jsonschema here")
        with open(os.path.join(ROOT, "docs", "zarr", "codecs", "quern", "schema.json"), encoding="utf-8") as file:
            schema = json.load(file)
        for codec in (QuernCodec(abs=1e-3), QuernCodec(pwrel=1e-2, codec="lorenzo", goal="speed"), QuernCodec(lossless=True),
                      QuernCodec(abs=1, fill=[float("nan"), -9999, float("inf")])):
            jsonschema.validate(json.loads(json.dumps(codec.to_dict())), schema)
        for wrong in ({"name": "quern", "configuration": {"bound": "abs"}}, {"name": "quern", "configuration": {"bound": "rel", "value": 1}},
                      {"name": "quern", "configuration": {"bound": "lossless", "curve": 2}}):
            with self.assertRaises(jsonschema.ValidationError):
                jsonschema.validate(wrong, schema)
            with self.assertRaises((quern.Unsupported, ValueError)):
                QuernCodec.from_dict(wrong)


def import_or_none(name):
    try:
        return __import__(name)
    except ImportError:
        return None


if __name__ == "__main__":
    sys.exit(unittest.main())
