"""The step of a replay beside PyTorch's Adam and AdamW, single tensors in binary32 on the CPU: what agrees bit for bit, and
what does not and why. Replays are planned only where they do agree, so a difference costs space and nothing else.

PyTorch decides at run time whether to fuse multiplications and additions, and builds with MKL take roots that are not rounded
correctly. Without fusing (ATEN_CPU_CAPABILITY=default) PyTorch 2 follows the order `separate` in both moments, and with exact
roots in the weight. With fusing the second moment is that of the order `fused`; the first is a fused interpolation,
m + (1 - beta1) * (g - m), which is neither's."""
import os
import subprocess
import sys
import unittest

from support import import_or_skip

np = import_or_skip("numpy")
torch = import_or_skip("torch")

COUNT = 100003
STEPS = 7
UNFUSED = os.environ.get("ATEN_CPU_CAPABILITY") == "default"
IS_2 = int(torch.__version__.split(".")[0]) >= 2


def replayed(order, decay_kind, group, step, arrays):
    numbers = (group["lr"], *group["betas"], group["eps"], group["weight_decay"])
    command = [os.environ["QUERN_ADAM_STEPS"], order, decay_kind, *map(repr, numbers), str(step), str(COUNT)]
    done = subprocess.run(command, input=b"".join(a.tobytes() for a in arrays), capture_output=True, check=True)
    return np.frombuffer(done.stdout, np.float32).reshape(3, COUNT)


def roots_are_exact():
    values = torch.rand(COUNT)
    return bool((torch.sqrt(values).numpy() == np.sqrt(values.numpy())).all())


class AdamSteps(unittest.TestCase):
    def compare(self, make, decay_kind, **settings):
        """{(order, tensor): elements whose bits differ}, over some steps that each begin from PyTorch's state."""
        torch.manual_seed(5)
        weight = torch.nn.Parameter(torch.randn(COUNT) * 0.02)
        optimizer = make([weight], foreach=False, **settings)
        differ = {}
        for step in range(1, STEPS + 1):
            gradient = torch.randn(COUNT) * 10.0 ** torch.empty(COUNT).uniform_(-6, -1)
            before = [weight.detach().clone()] + [
                optimizer.state[weight][key].clone() if step > 1 else torch.zeros(COUNT) for key in ("exp_avg", "exp_avg_sq")]
            weight.grad = gradient.clone()
            optimizer.step()
            after = [weight.detach(), optimizer.state[weight]["exp_avg"], optimizer.state[weight]["exp_avg_sq"]]
            group = optimizer.param_groups[0]
            for order in ("separate", "fused"):
                ours = replayed(order, decay_kind, group, step, [a.numpy() for a in before] + [gradient.numpy()])
                for name, a, b in zip(("weight", "exp_avg", "exp_avg_sq"), ours, after):
                    b = b.numpy()
                    differ[order, name] = differ.get((order, name), 0) + int((a.view(np.int32) != b.view(np.int32)).sum())
                # The same formula at the least: apart by roundings of what goes in.
                apart = np.abs(ours[0].astype(np.float64) - after[0].numpy())
                self.assertLess((apart / (np.abs(before[0].numpy()) + 10 * group["lr"])).max(), 2.0**-14)
        for (order, name), count in differ.items():
            print(f"{decay_kind} {order} {name}: {count} of {STEPS * COUNT} differ")
        return differ

    def check_differences(self, differ):
        if not UNFUSED:
            self.assertIn(0, (differ["fused", "exp_avg_sq"], differ["separate", "exp_avg_sq"]))
            return
        self.assertEqual(differ["separate", "exp_avg_sq"], 0)
        if IS_2:
            self.assertEqual(differ["separate", "exp_avg"], 0)
        if IS_2 and roots_are_exact():
            self.assertEqual(differ["separate", "weight"], 0)
        elif IS_2:
            print("the roots of this PyTorch are not rounded correctly, so weights differ")

    def test_adamw(self):
        self.verdict(self.compare(torch.optim.AdamW, "decoupled", lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1))

    def test_adam_with_l2(self):
        self.verdict(self.compare(torch.optim.Adam, "coupled", lr=1e-3, weight_decay=0.01))

    @unittest.skipIf(UNFUSED, "this is that run")
    def test_once_more_without_fusing(self):
        environment = dict(os.environ, ATEN_CPU_CAPABILITY="default")
        done = subprocess.run([sys.executable, os.path.abspath(__file__)], env=environment, capture_output=True, text=True)
        print(done.stdout)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
