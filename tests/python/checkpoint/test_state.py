"""What a state dict may hold beside plain tensors: every type comes back as it was, or is refused by a sentence."""
import argparse
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import json
import os
import pathlib
import struct
import subprocess
import sys
import types
import unittest
import uuid
import zoneinfo

from support import StoreTest, import_or_skip

np = import_or_skip("numpy")
import pyquern as quern  # noqa: E402
from pyquern._checkpoint.flatten import Flattened  # noqa: E402
from pyquern._checkpoint.state import StateText  # noqa: E402

Point = collections.namedtuple("Point", "x y")


class Color(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Name(str, enum.Enum):
    A = "a"


class Access(enum.Flag):
    READ = 1
    WRITE = 2


@dataclasses.dataclass
class Settings:
    rate: float
    mask: np.ndarray = None

    def __post_init__(self):
        raise AssertionError("loading calls no code of the class")


class Opaque:
    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return type(other) is Opaque and other.value == self.value


def made(cls, **fields):
    out = object.__new__(cls)
    vars(out).update(fields)
    return out


def same(a, b):
    """Equal in value and in type, all the way down."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.dtype.str == b.dtype.str and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, np.generic):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    if isinstance(a, float):
        return struct.pack("<d", a) == struct.pack("<d", b)
    if isinstance(a, complex):
        return same(a.real, b.real) and same(a.imag, b.imag)
    if isinstance(a, dict):
        return list(a) == list(b) and all(map(same, a, b)) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple, collections.deque)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, (argparse.Namespace, types.SimpleNamespace)) or dataclasses.is_dataclass(a):
        return same(vars(a), vars(b))
    return a == b


class Types(StoreTest):
    def back(self, value, **options):
        self.step = getattr(self, "step", 0) + 1
        quern.checkpoint.save(self.store, {"x": value}, step=self.step, **options)
        return quern.checkpoint.load(self.store, **options)["x"]

    def test_values_come_back_in_their_types(self):
        nan = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000123))[0]
        counter = collections.Counter("abca")
        ordered = collections.OrderedDict(a=1)
        berlin = datetime.datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"))
        values = [
            None, True, 0, -2**200, "", "a\0b\ud800", 1.5, -0.0, float("inf"), float("nan"), nan, b"\0", bytearray(b"\0\1"),
            1j, complex("nan"), complex(-0.0, float("-inf")), range(3, 9, 2), slice(1, None, -2), Ellipsis, {1, "a"}, set(),
            frozenset([(1, 2), None]), collections.deque([1, 2], maxlen=5), counter, collections.Counter({"a": -3, "b": 0}),
            collections.defaultdict(int, a=1), collections.defaultdict(list, {3: [1]}), collections.defaultdict(None, b=2), ordered,
            Point(1, [2.5]), Color.RED, Level.HIGH, Name.A, Access.READ, Access.READ | Access.WRITE, Access(0),
            pathlib.Path("a/b"), pathlib.PurePosixPath("/c"), pathlib.PureWindowsPath("C:\\d"), decimal.Decimal("1.10"),
            fractions.Fraction(1, 3), uuid.UUID(int=5), datetime.datetime(2026, 1, 2, 3, 4, 5, 6), berlin, berlin.timetz(),
            datetime.datetime.now(datetime.timezone.utc), datetime.date(2026, 1, 2), datetime.timedelta(-1, 5, 7),
            datetime.timezone(datetime.timedelta(hours=1), "x"), argparse.Namespace(lr=0.1, layers=[1]),
            types.SimpleNamespace(a=np.float32(1)), np.dtype("f4"), np.dtype(">i2"), np.dtype([("a", "<f4"), ("b", "S3")]),
            made(Settings, rate=0.5, mask=np.arange(3)), [Point(x=(1,), y={})], (), ((),), [[]], {}, {"": {"": []}},
        ]
        back = self.back(values)
        for value, found in zip(values, back):
            self.assertTrue(same(value, found), (value, found))
        self.assertEqual(len(back), len(values))
        self.assertEqual(berlin.fold, back[values.index(berlin)].fold)
        self.assertEqual(back[-9].tzname(None) if hasattr(back[-9], "tzname") else "x", "x")
        self.assertEqual(next(b for b in back if isinstance(b, collections.deque)).maxlen, 5)
        self.assertEqual([b.default_factory for b in back if isinstance(b, collections.defaultdict)], [int, list, None])

    def test_a_multi_step_schedule_goes_on(self):
        # What MultiStepLR does with its milestones: a plain dict has no elements().
        state = {"milestones": collections.Counter([3, 5, 5]), "gamma": 0.1}
        self.assertEqual(sorted(self.back(state)["milestones"].elements()), [3, 5, 5])

    def test_metadata_of_modules_comes_back(self):
        state = collections.OrderedDict(w=np.zeros(2))
        state._metadata = collections.OrderedDict([("", {"version": 2})])
        back = self.back(state)
        self.assertIsInstance(back, collections.OrderedDict)
        self.assertEqual(back._metadata, state._metadata)
        self.assertIsInstance(back._metadata, collections.OrderedDict)
        self.assertFalse(hasattr(self.back(collections.OrderedDict(w=1)), "_metadata"))

    def test_any_key_round_trips(self):
        keys = ["", ".", "a.b", "a/b", "a\0b", "a\\0b", "\n", "\u00fc\U0001f600", "x" * 70000, "x" * 70000 + "y", 0, -1, 2**70, True,
                None, 1.5, (1, "a"), (), b"k", Color.RED, Level.HIGH, Point(1, 2), frozenset([1]), pathlib.Path("p"), "#", "#2"]
        state = {key: np.full(3, index) for index, key in enumerate(keys)}
        back = self.back(state)
        self.assertTrue(same(state, back))
        self.assertTrue(all(type(a) is type(b) for a, b in zip(state, back)))
        nested = {"a": {"b": {"c\0": np.arange(2)}}, "a.b": {"c\0": np.arange(3)}, "a.b.c\0": np.arange(4)}
        self.assertTrue(same(self.back(nested), nested))

    def test_what_is_refused_is_refused_by_a_sentence(self):
        class Local(enum.Enum):
            A = 1

        inner = collections.namedtuple("inner", "a")

        class Sub(dict):
            pass

        class Words(list):
            pass

        for value, error, words in (
                (Opaque(1), TypeError, "objects={Opaque"), (Local.A, TypeError, "class cannot be found"), (inner(1), TypeError, "register"),
                (Sub(a=1), TypeError, "register(Sub"), (Words(), TypeError, "register(Words"), (type, TypeError, "register"),
                (collections.defaultdict(lambda: 0), TypeError, "factory"), ({"\ud800": 1}, ValueError, "surrogate"),
                (datetime.time(1, tzinfo=type("Z", (datetime.tzinfo,), {})()), TypeError, "time zone"),
                (np.random.default_rng(1), TypeError, "Generator"), (np.array([{}]), TypeError, "Python objects"),
                ({(np.int64(1),): 1}, TypeError, "keys are")):
            with self.assertRaises(error) as caught:
                quern.checkpoint.save(self.store, {"x": [value]}, step=0)
            self.assertIn(words, str(caught.exception))
            self.assertIn("x/0", str(caught.exception))
        self.assertEqual(quern.checkpoint.ls(self.store), [])

    def test_nesting_has_an_end(self):
        deep = []
        for _ in range(100000):
            deep = [deep]
        with self.assertRaises(ValueError) as caught:
            quern.checkpoint.save(self.store, {"x": deep}, step=0)
        self.assertIn("nested too deep", str(caught.exception))

    def test_hooks(self):
        value = {"a": Opaque(np.arange(4.0)), "b": [Opaque(1)]}
        objects = {Opaque: (lambda o: {"value": o.value}, lambda s: Opaque(s["value"]))}
        quern.checkpoint.save(self.store, value, step=0, objects=objects)
        with self.assertRaises(ValueError) as caught:
            quern.checkpoint.load(self.store)
        self.assertIn("objects={Opaque", str(caught.exception))
        back = quern.checkpoint.load(self.store, objects=objects)
        self.assertTrue(same(back["a"].value, value["a"].value))
        self.assertEqual(back["b"], value["b"])
        quern.checkpoint.register(Opaque, objects[Opaque][0], objects[Opaque][1], name="opaque/1")
        from pyquern._checkpoint.classes import REGISTERED
        self.addCleanup(REGISTERED.__init__)
        self.assertEqual(self.back([Opaque(2)]), [Opaque(2)])
        for wrong in ({Opaque: 1}, {"Opaque": (int, int)}, {Opaque: (1, 2)}):
            with self.assertRaises(TypeError):
                quern.checkpoint.save(self.store, {}, step=1, objects=wrong)


class Classes(StoreTest):
    MODULE = "import enum, collections\nclass Kind(enum.Enum):\n  A = 1\nPair = collections.namedtuple('Pair', 'a b')\n"

    def test_classes_are_imported_by_the_caller_alone(self):
        folder = os.path.dirname(self.store)
        module = os.path.join(folder, "quern_test_kinds.py")
        with open(module, "w") as file:
            file.write(self.MODULE)
        code = ("import pyquern as quern, quern_test_kinds as k\nquern.checkpoint.save(__import__('sys').argv[1],"
                "{'x': k.Kind.A, 'p': k.Pair(1, 2)}, step=1)")
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join([*sys.path, folder]))
        subprocess.run([sys.executable, "-c", code, self.store], env=environment, check=True)
        with open(module, "a") as file:
            file.write(f"open({os.path.join(folder, 'was-run')!r}, 'w').close()\n")
        sys.path.insert(0, folder)
        self.addCleanup(sys.path.remove, folder)
        with self.assertRaises(ValueError) as caught:
            quern.checkpoint.load(self.store)
        self.assertIn("import quern_test_kinds", str(caught.exception))
        self.assertIn("classes=", str(caught.exception))
        self.assertFalse(os.path.exists(os.path.join(folder, "was-run")))
        import quern_test_kinds as kinds
        self.addCleanup(sys.modules.pop, "quern_test_kinds", None)
        self.assertEqual(quern.checkpoint.load(self.store), {"x": kinds.Kind.A, "p": kinds.Pair(1, 2)})
        del sys.modules["quern_test_kinds"]
        with self.assertRaises(ValueError):
            quern.checkpoint.load(self.store)
        back = quern.checkpoint.load(self.store, classes=[kinds.Kind, kinds.Pair])
        self.assertIs(back["x"], kinds.Kind.A)
        self.assertIs(type(back["p"]), kinds.Pair)

    def rebuild(self, node, **options):
        text = StateText(json.dumps({"format": 2, "tree": node}))
        return text.rebuild(lambda name, node, kind: np.arange(12, dtype=np.int32), **options)

    def test_a_text_of_a_stranger_runs_nothing(self):
        for node in ({"enum": "os:system", "member": "x"}, {"named": "os:system", "fields": ["a"], "items": [{"value": "ls"}]},
                     {"enum": "subprocess:Popen", "member": "x"}, {"named": "builtins:tuple", "fields": [], "items": []},
                     {"object": "builtins:eval", "value": {"value": "1"}}, {"dataclass": "subprocess:Popen", "fields": []},
                     {"wrapper": "builtins:object", "tensors": [], "context": {"value": 1}, "shape": [], "strides": []},
                     {"defaultdict": [], "factory": "eval"}, {"unknown": 1}, {"namespace": [], "class": "os"},
                     {"dtype": {"numpy": "|O"}}, {"dtype": {"numpy": "f4,f4"}}, {"path": "a", "class": "Path"},
                     {"enum": f"{__name__}:Color", "member": "__class__"}, {"enum": f"{__name__}:Color", "flags": 1}):
            with self.assertRaises((ValueError, KeyError, TypeError), msg=node):
                self.rebuild(node)

    def test_views_of_a_stranger_stay_in_their_tensor(self):
        tensor = {"tensor": "w", "kind": "numpy"}
        good = {**tensor, "view": {"offset": 8, "strides": [16], "shape": [2]}}
        self.assertEqual(self.rebuild(good).tolist(), [2, 6])
        for view in ({"offset": -4, "strides": [4], "shape": [2]}, {"offset": 0, "strides": [4], "shape": [13]},
                     {"offset": 44, "strides": [-4], "shape": [13]}, {"offset": 0, "strides": [2**62], "shape": [5]},
                     {"offset": 48, "strides": [], "shape": []}, {"offset": 0, "strides": [4, 4], "shape": [1]},
                     {"offset": 0, "strides": [4], "shape": [-1]}, {"offset": 0.0, "strides": [4], "shape": [1]}):
            with self.assertRaises(ValueError, msg=view):
                self.rebuild({**tensor, "view": view})

    def test_format_1_is_read(self):
        # As version 0.1.0 of the package wrote it.
        text = ('{"format":1,"tree":{"dict":[["model",{"ordered":[["w",{"tensor":"model.w","kind":"numpy"}]]}],["n",{"value":3}],'
                '["f",{"float":"nan"}],["b",{"bytes":"AAE="}],["l",{"list":[{"tuple":[{"value":null}]}]}],[7,{"value":"x"}]]}}')
        with quern.checkpoint.Store(self.store, write=True) as store, store.begin(1) as writer:
            writer.add("model.w", Flattened({"w": np.arange(3)}).tensors["w"])
            writer.add_blob("quern.state", text.encode())
            writer.publish()
        back = quern.checkpoint.load(self.store)
        self.assertIsInstance(back["model"], collections.OrderedDict)
        self.assertEqual(back["model"]["w"].tolist(), [0, 1, 2])
        self.assertEqual((back["n"], back["b"], back["l"], back[7]), (3, b"\0\1", [(None,)], "x"))
        self.assertEqual(json.loads(Flattened({}).text)["format"], 2)
        with self.assertRaises(ValueError) as caught:
            StateText('{"format":3,"tree":{"dict":[]}}')
        self.assertIn("newer", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
