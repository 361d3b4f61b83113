"""pyquern.offload with PyTorch: a drop-in Adam, in memory and in files, and states that either optimizer reads."""
import copy
import os
import tempfile
import unittest

try:
    import torch
    from pyquern.offload import Adam, AdamW
except ImportError as problem:
    raise SystemExit(print(f"skipped: {problem}") or 77)

from pyquern import InvalidArgument


torch.set_num_threads(1)


def model_of(dtype=torch.float32):
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(16, 128), torch.nn.Tanh(), torch.nn.Linear(128, 4)).to(dtype)


def batch_of(step, dtype=torch.float32):
    generator = torch.Generator().manual_seed(step)
    x = torch.randn(64, 16, generator=generator)
    return x.to(dtype), torch.stack([x[:, 0] * x[:, 1], x[:, 2].abs(), x[:, 3:8].sum(1), x[:, 9] - x[:, 8]], 1).to(dtype)


def train(model, optimizer, first, steps, scheduler=None):
    losses = []
    for step in range(first, first + steps):
        x, y = batch_of(step, next(model.parameters()).dtype)
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        losses.append(float(loss.detach()))
    return losses


def weights_of(model):
    return torch.cat([p.detach().float().flatten() for p in model.parameters()])


class Offload(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)

    def folders(self, *names):
        return [os.path.join(self._folder.name, name) for name in names]

    def test_trains_like_torch(self):
        for ours, theirs, decay in ((Adam, torch.optim.Adam, 0.01), (AdamW, torch.optim.AdamW, 0.1)):
            plain, offloaded = model_of(), model_of()
            wanted = train(plain, theirs(plain.parameters(), lr=3e-3, weight_decay=decay), 0, 120)
            got = train(offloaded, ours(offloaded.parameters(), lr=3e-3, weight_decay=decay), 0, 120)
            self.assertLess(wanted[-1], 0.7 * wanted[0])
            self.assertLess(abs(sum(got[-30:]) - sum(wanted[-30:])) / 30, 0.05 * wanted[0])
            # The first step has no codes behind it: the same arithmetic as PyTorch's, but for the order of operations.
            self.assertAlmostEqual(got[0], wanted[0], places=6)
            self.assertAlmostEqual(got[1], wanted[1], places=4)

    def test_groups_and_schedulers(self):
        def run(cls):
            model = model_of()
            optimizer = cls([{"params": [model[0].weight, model[2].weight], "weight_decay": 0.1},
                             {"params": [model[0].bias, model[2].bias], "weight_decay": 0.0, "lr": 1e-2}], lr=1e-3)
            scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
            train(model, optimizer, 0, 5, scheduler)
            return weights_of(model), [group["lr"] for group in optimizer.param_groups]

        (ours, rates), (theirs, wanted) = run(AdamW), run(torch.optim.AdamW)
        self.assertEqual(rates, wanted)
        moved = (theirs - weights_of(model_of())).abs().sum()
        self.assertLess((ours - theirs).abs().sum(), 0.05 * moved)

    def test_files_and_memory_agree_bit_for_bit_and_go_on(self):
        for dtype in (torch.float32, torch.bfloat16):
            memory, files = model_of(dtype), model_of(dtype)
            train(memory, AdamW(memory.parameters(), lr=1e-3, seed=5), 0, 8)
            folders = self.folders(f"{dtype}/a", f"{dtype}/b")
            optimizer = AdamW(files.parameters(), lr=1e-3, seed=5, folders=folders)
            train(files, optimizer, 0, 5)
            with self.assertRaisesRegex(InvalidArgument, "holds this folder"):
                AdamW(model_of(dtype).parameters(), folders=folders)
            optimizer.close()
            again = model_of(dtype)
            resumed = AdamW(again.parameters(), lr=1e-3, folders=folders, files="packed")
            self.assertTrue(torch.equal(weights_of(again), weights_of(files)))
            self.assertEqual(resumed.info().step_count, 5)
            train(again, resumed, 5, 3)
            self.assertTrue(torch.equal(weights_of(again), weights_of(memory)))

    def test_state_dicts_go_both_ways(self):
        model = model_of()
        plain = torch.optim.AdamW(model.parameters(), lr=2e-3)
        train(model, plain, 0, 10)
        taken = copy.deepcopy(model)
        offloaded = AdamW(taken.parameters())
        offloaded.load_state_dict(plain.state_dict())
        self.assertEqual(offloaded.param_groups[0]["lr"], 2e-3)
        self.assertEqual(offloaded.info().step_count, 10)
        state = offloaded.state_dict()["state"]
        for index, parameter in enumerate(model.parameters()):
            v, m = plain.state[parameter]["exp_avg_sq"], plain.state[parameter]["exp_avg"]
            ours_v, ours_m = state[index]["exp_avg_sq"], state[index]["exp_avg"]
            self.assertTrue(bool(((ours_v < 1.25 * v) & (1.25 * ours_v > v) | (v == ours_v)).all()))
            self.assertTrue(bool(((ours_m - m).abs() <= 0.1 * ours_v.sqrt()).all()))
        # And back: PyTorch's optimizer goes on from what the codes stand for.
        back = copy.deepcopy(model)
        ordinary = torch.optim.AdamW(back.parameters())
        ordinary.load_state_dict(offloaded.state_dict())
        losses = [train(*pair, 10, 20)[-1] for pair in ((model, plain), (back, ordinary), (taken, offloaded))]
        self.assertLess(max(losses) - min(losses), 0.1 * losses[0])

    def test_bfloat16_keeps_its_master(self):
        model = model_of(torch.bfloat16)
        optimizer = AdamW(model.parameters(), lr=1e-5)
        before = weights_of(model)
        train(model, optimizer, 0, 30)
        state = optimizer.state_dict()
        masters = torch.cat([state["state"][i]["master"].flatten() for i in range(4)])
        self.assertTrue(torch.equal(masters.bfloat16().float(), weights_of(model)))
        # Steps far below a bfloat16's last bit add up.
        self.assertGreater(float((masters - before).abs().median()), 5e-5)
        other = model_of(torch.bfloat16)
        resumed = AdamW(other.parameters(), lr=1e-5)
        resumed.load_state_dict(state)
        again = torch.cat([resumed.state_dict()["state"][i]["master"].flatten() for i in range(4)])
        self.assertTrue(torch.equal(again, masters))

    def test_not_finite_gradients_are_skipped(self):
        model = model_of()
        optimizer = AdamW(model.parameters(), lr=1e-3)
        train(model, optimizer, 0, 2)
        before = weights_of(model)
        for parameter in model.parameters():
            parameter.grad = torch.full_like(parameter, float("nan"))
        optimizer.step()
        self.assertTrue(optimizer.last_skipped)
        self.assertEqual(optimizer.info().step_count, 2)
        self.assertTrue(torch.equal(weights_of(model), before))

    def test_loss_scale(self):
        plain, scaled = model_of(), model_of()
        a, b = AdamW(plain.parameters(), max_grad_norm=0.1), AdamW(scaled.parameters(), max_grad_norm=0.1)
        b.loss_scale = 1024.0
        for model, optimizer, factor in ((plain, a, 1), (scaled, b, 1024)):
            x, y = batch_of(0)
            (torch.nn.functional.mse_loss(model(x), y) * factor).backward()
            norm = torch.cat([p.grad.flatten() for p in model.parameters()]).norm() / factor
            optimizer.step()
            self.assertAlmostEqual(optimizer.last_norm, float(norm), places=5)
        self.assertTrue(torch.equal(weights_of(plain), weights_of(scaled)))

    def test_what_does_not_fit_is_refused(self):
        model = model_of()
        optimizer = AdamW(model.parameters())
        with self.assertRaisesRegex(ValueError, "no gradient"):
            optimizer.step()
        with self.assertRaisesRegex(ValueError, "when it is made"):
            optimizer.add_param_group({"params": [torch.nn.Parameter(torch.zeros(3))]})
        with self.assertRaisesRegex(TypeError, "float64"):
            AdamW(model_of(torch.float64).parameters())
        with self.assertRaisesRegex(ValueError, "contiguous"):
            AdamW([torch.nn.Parameter(torch.zeros(4, 6).t())])
        with self.assertRaisesRegex(InvalidArgument, "8 or 4 bits"):
            AdamW(model.parameters(), bits=5)
        with self.assertRaisesRegex(ValueError, "other parameter groups"):
            optimizer.load_state_dict({"state": {}, "param_groups": [{"params": [0]}]})
        with self.assertRaisesRegex(ValueError, "measured, plain, packed, not 'zip'"):
            AdamW(model.parameters(), files="zip")
        with self.assertRaisesRegex(TypeError, "sequence of paths"):
            AdamW(model.parameters(), folders=self.folders("a")[0])
        optimizer.close()
        for parameter in model.parameters():
            parameter.grad = torch.zeros_like(parameter)
        with self.assertRaisesRegex(ValueError, "closed"):
            optimizer.step()

    def test_parameters_that_change_shape_are_refused(self):
        model = model_of()
        optimizer = AdamW(model.parameters(), lr=1e-3)
        train(model, optimizer, 0, 1)
        state = optimizer.state_dict()
        for group in state["param_groups"]:
            group["lr"] = 5.0
        whole = model[0].weight.data
        for changed in (whole[:10].clone(), torch.cat([whole, whole]), whole.t().contiguous()):
            model[0].weight.grad = None
            model[0].weight.data = changed
            for parameter in model.parameters():
                parameter.grad = torch.zeros_like(parameter)
            for call in (optimizer.step, optimizer.state_dict, lambda: optimizer.load_state_dict(state)):
                with self.assertRaisesRegex(ValueError, "shape"):
                    call()
        self.assertEqual(optimizer.param_groups[0]["lr"], 1e-3)
        model[0].weight.grad = None
        model[0].weight.data = whole
        train(model, optimizer, 1, 1)

    def test_a_master_of_another_shape_is_refused(self):
        model = model_of(torch.bfloat16)
        optimizer = AdamW(model.parameters())
        state = optimizer.state_dict()
        state["state"][0]["master"] = state["state"][0]["master"][:5]
        before = weights_of(model)
        with self.assertRaisesRegex(ValueError, "master of parameter 0"):
            optimizer.load_state_dict(state)
        self.assertTrue(torch.equal(weights_of(model), before))

    def test_checkpoints_at_rest_go_on_bit_for_bit(self):
        for dtype in (torch.float32, torch.bfloat16):
            model = model_of(dtype)
            optimizer = AdamW(model.parameters(), lr=1e-3, seed=5, weight_decay=0.1, folders=self.folders(f"{dtype}"))
            train(model, optimizer, 0, 4)
            optimizer.param_groups[0]["lr"] = 2e-3
            (store,) = self.folders(f"{dtype}-store")
            # So few bytes that each subgroup has a writer of its own.
            for batch_bytes, step in ((1, 4), (1 << 28, 5)):
                saved = optimizer.save_checkpoint(store, step, {"model": model.state_dict()}, batch_bytes=batch_bytes,
                                                  tags={"loss": 1.5})
                self.assertTrue(saved.published)
            at_rest = optimizer.at_rest_state()
            train(model, optimizer, 4, 4)
            wanted = weights_of(model)
            for take in (lambda o: self.assertEqual(o.load_checkpoint(store, 4)[0], 4),
                         lambda o: self.assertEqual(list(o.load_checkpoint(store)[1]), ["model"]),
                         lambda o: o.load_at_rest_state(copy.deepcopy(at_rest))):
                again = model_of(dtype)
                resumed = AdamW(again.parameters(), lr=0.5)
                take(resumed)
                self.assertEqual((resumed.info().step_count, resumed.param_groups[0]["lr"]), (4, 2e-3))
                train(again, resumed, 4, 4)
                self.assertTrue(torch.equal(weights_of(again), wanted))
            optimizer.close()

    def test_an_engine_saves_the_bytes_while_training_goes_on(self):
        import pyquern.checkpoint

        model = model_of()
        optimizer = AdamW(model.parameters(), lr=1e-3)
        train(model, optimizer, 0, 3)
        (store,) = self.folders("store")
        with pyquern.checkpoint.Engine(store) as engine:
            save = engine.save({"optimizer": optimizer.at_rest_state()}, step=3)
            train(model, optimizer, 3, 3)
            self.assertTrue(save.result().published)
        again = model_of()
        resumed = AdamW(again.parameters())
        resumed.load_at_rest_state(pyquern.checkpoint.load(store)["optimizer"])
        train(again, resumed, 3, 3)
        self.assertTrue(torch.equal(weights_of(again), weights_of(model)))

    def test_checkpoints_keep_the_bytes_and_say_what_is_wrong(self):
        import pyquern.checkpoint

        model = model_of()
        optimizer = AdamW(model.parameters(), bits=4)
        train(model, optimizer, 0, 3)
        (store,) = self.folders("store")
        optimizer.save_checkpoint(store, 3)
        state = optimizer.at_rest_state()
        with pyquern.checkpoint.open(store) as saved:
            for number, subgroup in enumerate(state["subgroups"]):
                for part in ("weights", "moments"):
                    self.assertTrue(torch.equal(torch.as_tensor(saved[f"offload.{number}.{part}"].torch()), subgroup[part]))
            self.assertTrue(all(tensor.lossless for tensor in saved.info.tensors))
        # The same by way of a state dict.
        pyquern.checkpoint.save(store, {"model": model.state_dict(), "optimizer": state}, step=9)
        again = model_of()
        other = AdamW(again.parameters(), bits=4)
        other.load_at_rest_state(pyquern.checkpoint.load(store)["optimizer"])
        self.assertTrue(torch.equal(weights_of(again), weights_of(model)))
        before = weights_of(again)
        with self.assertRaisesRegex(ValueError, "step 9 holds no offloaded optimizer"):
            other.load_checkpoint(store)
        with self.assertRaisesRegex(InvalidArgument, "codes of 4 bits"):
            AdamW(model_of().parameters()).load_checkpoint(store, 3)
        with self.assertRaisesRegex(ValueError, "other parameter groups"):
            AdamW(list(model_of().parameters())[:2], bits=4).load_checkpoint(store, 3)
        with self.assertRaisesRegex(ValueError, "key 'offload'"):
            other.save_checkpoint(store, 10, {"offload": 1})
        files = AdamW(again.parameters(), bits=4, folders=self.folders("state"))
        train(again, files, 0, 1)
        before = weights_of(again)
        state["subgroups"][0]["moments"][100] ^= 1
        with self.assertRaisesRegex(Exception, "not those that were saved|at rest"):
            files.load_at_rest_state(state)
        train(again, files, 1, 1)
        self.assertEqual(files.info().step_count, 2)


if __name__ == "__main__":
    unittest.main()
