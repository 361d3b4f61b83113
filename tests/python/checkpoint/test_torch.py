"""State dicts of PyTorch: every tensor bit for bit, ties kept, and a resumed run that goes on as if nothing had been."""
import copy
import unittest

from support import StoreTest, import_or_skip

np = import_or_skip("numpy")
torch = import_or_skip("torch")
import pyquern as quern  # noqa: E402


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(30, 16)
        self.mix = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 16))
        self.norm = torch.nn.BatchNorm1d(16)
        self.head = torch.nn.Linear(16, 30, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        return self.head(self.norm(self.mix(self.embed(tokens))))


def train(model, optimizer, steps, seed):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        tokens = torch.randint(0, 30, (64,), generator=generator)
        loss = torch.nn.functional.cross_entropy(model(tokens), (tokens + 1) % 30)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def same(a, b):
    if isinstance(a, torch.Tensor):
        width = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[a.element_size()]
        return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a.contiguous().view(width), b.contiguous().view(width))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return a == b


class TorchStates(StoreTest):
    def test_a_resumed_run_is_the_run(self):
        for make in (lambda p: torch.optim.AdamW(p, lr=1e-2), lambda p: torch.optim.Adam(p, lr=1e-2, amsgrad=True),
                     lambda p: torch.optim.SGD(p, lr=1e-2, momentum=0.9)):
            torch.manual_seed(3)
            model = Model()
            optimizer = make(model.parameters())
            train(model, optimizer, 5, seed=1)
            step = 1 if not self.seen else self.seen[-1] + 1
            self.seen.append(step)
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "rng": torch.get_rng_state(), "step": 5}
            quern.checkpoint.save(self.store, state, step=step)
            kept = copy.deepcopy(state)
            train(model, optimizer, 5, seed=2)

            back = quern.checkpoint.load(self.store, step=step)
            self.assertTrue(same(back["model"], kept["model"]))
            self.assertTrue(same(back["optimizer"], kept["optimizer"]))
            self.assertTrue(same(back["rng"], kept["rng"]))
            other = Model()
            other_optimizer = make(other.parameters())
            other.load_state_dict(back["model"])
            other_optimizer.load_state_dict(back["optimizer"])
            train(other, other_optimizer, 5, seed=2)
            self.assertTrue(same(other.state_dict(), model.state_dict()))
            self.assertTrue(same(other_optimizer.state_dict(), optimizer.state_dict()))

    def setUp(self):
        super().setUp()
        self.seen = []

    def test_presets_lose_what_they_say(self):
        torch.manual_seed(3)
        model = torch.nn.Linear(300, 200)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(8, 300)).square().mean().backward()
            optimizer.step()
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        sizes = [quern.checkpoint.save(self.store + preset, state, step=1, preset=preset).stored_bytes
                 for preset in ("exact", "moments", "balanced", "archive")]
        self.assertEqual(sizes, sorted(sizes, reverse=True))
        self.assertTrue(same(quern.checkpoint.load(self.store + "moments")["model"], state["model"]))
        back = quern.checkpoint.load(self.store + "balanced")
        self.assertFalse(same(back["model"], state["model"]))
        weight = state["model"]["weight"]
        self.assertLessEqual((back["model"]["weight"] - weight).abs().max().item(), 0.00101 * weight.std().item())
        lossless = {tensor.name: tensor.lossless for tensor in quern.checkpoint.info(self.store + "balanced").tensors}
        self.assertFalse(lossless["model.weight"])
        self.assertTrue(same(back["optimizer"]["param_groups"], state["optimizer"]["param_groups"]))

    def test_ties_stay_ties(self):
        model = Model()
        saved = quern.checkpoint.save(self.store, model.state_dict(), step=1)
        self.assertEqual(saved.tensors, len(model.state_dict()) - 1)
        back = quern.checkpoint.load(self.store)
        self.assertIs(back["embed.weight"], back["head.weight"])

    def test_every_dtype_and_layout(self):
        generator = torch.Generator().manual_seed(1)
        base = torch.randn(6, 10, 4, generator=generator)
        state = {"bf16": base.bfloat16(), "half": base.half(), "double": base.double(), "bool": base > 0,
                 "long": torch.arange(7), "scalar": torch.tensor(2.5), "none": torch.empty(0, 3), "transposed": base.transpose(0, 2),
                 "strided": base[:, ::2], "grad": torch.nn.Parameter(base), "expanded": base[0, :1].expand(5, 4),
                 "channels_last": torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)}
        for name in ("float8_e4m3fn", "float8_e5m2"):
            if hasattr(torch, name):
                state[name] = base.to(getattr(torch, name))
        if hasattr(torch, "uint16"):
            state["uint16"] = torch.arange(9, dtype=torch.int32).to(torch.uint16)
        quern.checkpoint.save(self.store, state, step=1)
        back = quern.checkpoint.load(self.store)
        for name, value in state.items():
            self.assertTrue(same(value.detach(), back[name]), name)
        self.assertIsInstance(back["grad"], torch.nn.Parameter)
        self.assertTrue(back["grad"].requires_grad)

    def test_what_cannot_be_saved_is_named(self):
        nested = torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)])
        for value in (nested, torch.empty(2, device="meta"), torch.eye(3).to_mkldnn()):
            with self.assertRaises(TypeError) as caught:
                quern.checkpoint.save(self.store, {"layer": {"x": value}}, step=1)
            self.assertIn("layer/x", str(caught.exception))

    def test_lazy_tensors_and_dlpack(self):
        values = torch.randn(40, 50).bfloat16()
        quern.checkpoint.save(self.store, {"w": values, "n": np.arange(3.0)}, step=1)
        with quern.checkpoint.open(self.store) as saved:
            self.assertTrue(same(torch.from_dlpack(saved["w"]), values))
            self.assertTrue(same(saved["w"][3:5], values[3:5]))
            self.assertTrue(same(saved["w"][:, 7], values[:, 7]))
            room = torch.empty(40, 50, dtype=torch.bfloat16)
            saved.read_into("w", room)
            self.assertTrue(same(room, values))
            with self.assertRaises(ValueError):
                saved.read_into("w", room.t())
            self.assertIsInstance(saved["n"].value(), np.ndarray)
            self.assertIsInstance(saved["n"].torch(), torch.Tensor)
        back = quern.checkpoint.load(self.store, framework="numpy")
        self.assertFalse(isinstance(back["w"], torch.Tensor))


if __name__ == "__main__":
    unittest.main()
