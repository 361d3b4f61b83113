"""load_into(): a checkpoint read straight into a model and its optimizer, or not at all."""
import os
import subprocess
import sys
import unittest
from collections import OrderedDict

from support import StoreTest, import_or_skip

np = import_or_skip("numpy")
torch = import_or_skip("torch")
import pyquern as quern  # noqa: E402
from test_restore import flip  # noqa: E402


class Model(torch.nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.embed = torch.nn.Embedding(30, width)
        self.norm = torch.nn.BatchNorm1d(width)
        self.head = torch.nn.Linear(width, 30, bias=False)
        self.head.weight = self.embed.weight
        self.extra = {"seen": 0}

    def forward(self, tokens):
        return self.head(self.norm(self.embed(tokens)))

    def get_extra_state(self):
        return self.extra

    def set_extra_state(self, state):
        self.extra = state


def trained(seed, steps=3, **options):
    torch.manual_seed(seed)
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, **options)
    train(model, optimizer, steps)
    return model, optimizer


def train(model, optimizer, steps):
    generator = torch.Generator().manual_seed(5)
    for _ in range(steps):
        tokens = torch.randint(0, 30, (64,), generator=generator)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(tokens), tokens).backward()
        optimizer.step()


def equal(a, b):
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return list(a) == list(b) and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(equal, a, b))
    return a == b


class Modules(StoreTest):
    def saved(self, seed=1, step=7, **more):
        model, optimizer = trained(seed)
        model.extra = {"seen": 12}
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), **more}
        quern.checkpoint.save(self.store, state, step=step)
        return model, optimizer

    def test_a_model_and_its_optimizer_go_on(self):
        model, optimizer = self.saved(epoch=3)
        for steps in (0, 2):
            other, other_optimizer = trained(9, steps)
            before = {name: tensor.data_ptr() for name, tensor in other.state_dict().items() if isinstance(tensor, torch.Tensor)}
            moments = [other_optimizer.state[p]["exp_avg"] for p in other.parameters()] if steps else []
            done = quern.checkpoint.load_into(self.store, other, optimizer=other_optimizer)
            self.assertEqual((done.step, done.missing, done.unexpected, done.passed_over), (7, [], [], {}))
            self.assertTrue(equal(dict(other.state_dict()), dict(model.state_dict())))
            self.assertTrue(equal(other_optimizer.state_dict(), optimizer.state_dict()))
            self.assertEqual(other.extra, {"seen": 12})
            after = {name: tensor.data_ptr() for name, tensor in other.state_dict().items() if isinstance(tensor, torch.Tensor)}
            self.assertEqual(before, after)
            for p, moment in zip(other.parameters(), moments):
                self.assertEqual(other_optimizer.state[p]["exp_avg"].data_ptr(), moment.data_ptr())
        train(model, optimizer, 3)
        train(other, other_optimizer, 3)
        self.assertTrue(equal(dict(other.state_dict()), dict(model.state_dict())))

    def test_what_does_not_fit_leaves_everything_as_it_was(self):
        self.saved()
        for build, words in ((lambda: Model(17), "embed.weight: float32 of shape"), (lambda: Model().double(), "torch.float64")):
            other = build()
            kept = {name: value.clone() for name, value in other.state_dict().items() if isinstance(value, torch.Tensor)}
            with self.assertRaises(ValueError) as caught:
                quern.checkpoint.load_into(self.store, other)
            self.assertIn("nothing was read", str(caught.exception))
            self.assertIn(words.split(":")[0].replace("torch.", ""), str(caught.exception))
            self.assertTrue(all(torch.equal(other.state_dict()[name], value) for name, value in kept.items()))
        model, optimizer = trained(3)
        optimizer.add_param_group({"params": [torch.nn.Parameter(torch.zeros(2))]})
        kept = model.embed.weight.detach().clone()
        with self.assertRaises(ValueError) as caught:
            quern.checkpoint.load_into(self.store, model, optimizer=optimizer)
        self.assertIn("groups of", str(caught.exception))
        self.assertTrue(torch.equal(model.embed.weight, kept))

    def test_states_of_an_optimizer_that_are_no_dicts_are_refused(self):
        model, optimizer = trained(1)
        before = [value.clone() for value in model.state_dict().values() if isinstance(value, torch.Tensor)]
        groups = optimizer.state_dict()["param_groups"]
        for state, sentence in (({0: torch.ones(3)}, "optimizer.0: a dict is expected, the checkpoint has a 'tensor'"),
                                ([1], "optimizer.state: a dict is expected")):
            other = {name: value + 1 if isinstance(value, torch.Tensor) else value for name, value in model.state_dict().items()}
            quern.checkpoint.save(self.store, {"model": other, "optimizer": {"state": state, "param_groups": groups}}, step=1,
                                  replace=True)
            with self.assertRaisesRegex(ValueError, sentence):
                quern.checkpoint.load_into(self.store, model, optimizer=optimizer)
        now = [value for value in model.state_dict().values() if isinstance(value, torch.Tensor)]
        self.assertTrue(equal(now, before))

    def test_a_module_without_memory_is_refused(self):
        self.saved()
        with torch.device("meta"):
            other = Model()
        with self.assertRaises(ValueError) as caught:
            quern.checkpoint.load_into(self.store, other)
        self.assertIn("to_empty", str(caught.exception))
        other = other.to_empty(device="cpu")
        quern.checkpoint.load_into(self.store, other)
        self.assertEqual(other.extra, {"seen": 12})

    def test_an_optimizer_beside_the_names_of_the_module(self):
        model, optimizer = trained(1)
        quern.checkpoint.save(self.store, {**model.state_dict(), "optimizer": optimizer.state_dict()}, step=1)
        other, other_optimizer = trained(2, 0)
        done = quern.checkpoint.load_into(self.store, other, optimizer=other_optimizer)
        self.assertEqual(done.unexpected, [])
        self.assertTrue(equal(other_optimizer.state_dict(), optimizer.state_dict()))
        with self.assertRaises(ValueError):
            quern.checkpoint.load_into(self.store, other)

    def test_missing_and_unexpected_names_are_said(self):
        model, _ = self.saved()
        other = Model()
        other.more = torch.nn.Linear(2, 2, bias=False)
        del other.norm
        kept = other.embed.weight.detach().clone()
        with self.assertRaises(ValueError) as caught:
            quern.checkpoint.load_into(self.store, other)
        self.assertIn("the checkpoint lacks more.weight; the target lacks norm.weight, norm.bias", str(caught.exception))
        self.assertIn("strict=False", str(caught.exception))
        self.assertTrue(torch.equal(other.embed.weight, kept))
        done = quern.checkpoint.load_into(self.store, other, strict=False)
        self.assertEqual(done.missing, ["more.weight"])
        self.assertIn("norm.running_mean", done.unexpected)
        self.assertTrue(torch.equal(other.embed.weight, model.embed.weight))

    def test_the_model_is_found_by_its_names_or_named(self):
        model, _ = trained(1)
        quern.checkpoint.save(self.store, model.state_dict(), step=1)
        quern.checkpoint.save(self.store, {"ema": trained(2)[0].state_dict(), "model": model.state_dict()}, step=2)
        quern.checkpoint.save(self.store, {"a": {"b": model.state_dict()}}, step=3)
        quern.checkpoint.save(self.store, {"x": trained(2)[0].state_dict(), "y": model.state_dict()}, step=4)
        for options in ({"step": 1}, {"step": 2}, {"step": 3, "key": ("a", "b")}, {"step": 4, "key": "y"}):
            other = Model()
            quern.checkpoint.load_into(self.store, other, **options)
            self.assertTrue(torch.equal(other.embed.weight, model.embed.weight), options)
        for options, words in (({"step": 3}, "key="), ({"step": 4}, "key="), ({"step": 2, "key": "z"}, "no z")):
            with self.assertRaises(ValueError) as caught:
                quern.checkpoint.load_into(self.store, Model(), **options)
            self.assertIn(words, str(caught.exception))

    def test_damage_falls_back_to_an_older_step(self):
        import glob

        model, _ = self.saved(seed=1, step=1)
        self.saved(seed=2, step=2)
        data, = glob.glob(os.path.join(self.store, "manifests", "000000000002*"))
        flip(os.path.join(self.store, "data", os.path.basename(data).partition("-")[2], "part-0000"), 0.7)
        other, optimizer = trained(4)
        with self.assertLogs("quern", "WARNING"):
            done = quern.checkpoint.load_into(self.store, other, optimizer=optimizer)
        self.assertEqual((done.step, list(done.passed_over)), (1, [2]))
        self.assertTrue(equal(dict(other.state_dict()), dict(model.state_dict())))
        with self.assertRaises(quern.Error) as caught:
            quern.checkpoint.load_into(self.store, other, optimizer=optimizer, step=2)
        self.assertIn("older steps that are whole: 1", str(caught.exception))


class Dicts(StoreTest):
    def test_nested_dicts_are_read_in_place(self):
        w = torch.randn(40, 50)
        state = {"w": w, "view": w.t(), "list": [torch.arange(3), {"x": np.arange(4.0)}], "step": 7, "tuple": (1, torch.ones(2)),
                 "complex": torch.randn(3, dtype=torch.complex64), "fp8": torch.randn(4, 4).to(torch.float8_e5m2),
                 "big": np.arange(5, dtype=">i4"), "sparse": torch.eye(3).to_sparse(), "scalar": torch.tensor(2.5)}
        quern.checkpoint.save(self.store, state, step=1)
        strided = torch.zeros(50, 80)[:, ::2]
        room = {"w": torch.zeros(40, 50), "view": strided, "list": [torch.zeros(3, dtype=torch.int64), {"x": np.zeros(4)}], "step": 0,
                "tuple": None, "complex": torch.zeros(3, dtype=torch.complex64).conj(),
                "fp8": torch.zeros(4, 8).to(torch.float8_e5m2).view(torch.uint8)[:, ::2].view(torch.float8_e5m2),
                "big": np.zeros(5, ">i4"), "sparse": torch.zeros(3, 3), "scalar": torch.tensor(0.0)}
        kept = dict(room)
        inner = room["list"][1]["x"]
        done = quern.checkpoint.load_into(self.store, room)
        self.assertEqual((done.missing, done.unexpected), ([], []))
        for name in ("w", "view", "complex", "big", "scalar"):
            self.assertIs(room[name], kept[name])
            self.assertTrue(bool((room[name] == state[name]).all()), name)
        self.assertTrue(torch.equal(room["fp8"].float(), state["fp8"].float()))
        self.assertTrue(torch.equal(room["sparse"], torch.eye(3)))
        self.assertIs(room["list"][1]["x"], inner)
        self.assertEqual((inner.tolist(), room["list"][0].tolist(), room["step"]), ([0, 1, 2, 3], [0, 1, 2], 7))
        self.assertTrue(equal(room["tuple"], state["tuple"]))

    def test_stores_of_files_are_read_too(self):
        from pyquern._checkpoint.flatten import Flattened

        with quern.checkpoint.Store(self.store, write=True) as store, store.begin(1) as writer:
            writer.add("a.w", Flattened({"w": np.arange(6.0)}).tensors["w"])
            writer.publish()
        room = {"a.w": torch.zeros(6, dtype=torch.float64)}
        quern.checkpoint.load_into(self.store, room)
        self.assertEqual(room["a.w"].tolist(), [0, 1, 2, 3, 4, 5])
        with self.assertRaises(ValueError):
            quern.checkpoint.load_into(self.store, OrderedDict([("a.w", np.zeros(6, np.float32))]))

    def test_memory_is_that_of_the_model(self):
        # 64 MB are read into; beside them only what one tensor needs.
        values = np.random.default_rng(1).standard_normal(1 << 20).astype(np.float32)
        quern.checkpoint.save(self.store, {str(i): values + i for i in range(16)}, step=1)
        code = (
            "import sys, numpy, pyquern as quern\n"
            "def peak(): return int(next(l for l in open('/proc/self/status') if 'VmHWM' in l).split()[1])\n"
            "room = {str(i): numpy.ones(1 << 20, numpy.float32) for i in range(16)}\n"
            "quern.checkpoint.ls(sys.argv[1])\n"
            "before = peak()\n"
            "quern.checkpoint.load_into(sys.argv[1], room, threads=1)\n"
            "assert 2.9 < room['3'].mean() < 3.1\n"
            "print(peak() - before)\n")
        done = subprocess.run([sys.executable, "-c", code, self.store], check=True, capture_output=True, text=True)
        grown = int(done.stdout)
        self.assertLess(grown, 32 * 1024)


if __name__ == "__main__":
    unittest.main()
