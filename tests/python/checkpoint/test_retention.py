"""Which checkpoints stay: every small history, against the sentences of stays() one by one."""
import itertools
import math
import unittest

from support import import_or_skip

import_or_skip("numpy")
from pyquern._checkpoint.retention import stays  # noqa: E402


def reasons(step, steps, keep, keep_every, keep_best, values, mode, damaged):
    """The sentences, for one step."""
    if keep is None:
        return ["all stay"]
    out = []
    after = steps[steps.index(step) + 1:]
    if sum(later not in damaged for later in after) < keep:
        out.append("fewer than `keep` whole ones were saved after it")
    if keep_every and step and step % keep_every == 0:
        out.append("a step that keep_every divides")
    if step not in damaged and step in values and math.isfinite(values[step]):
        better = 0
        for other in steps:
            if other == step or other in damaged or not math.isfinite(values.get(other, math.nan)):
                continue
            a, b = values[other], values[step]
            ahead = a < b if mode == "min" else a > b
            better += ahead or (a == b and steps.index(other) > steps.index(step))
        if better < keep_best:
            out.append("one of the best")
    return out


class Retention(unittest.TestCase):
    def check(self, steps, **rules):
        got = stays(steps, **rules)
        rules = {"keep": None, "keep_every": None, "keep_best": 0, "values": {}, "mode": "min", "damaged": (), **rules}
        want = {step for step in steps if reasons(step, steps, **rules)}
        self.assertEqual(got, want, (steps, rules))
        return got

    def test_every_small_history(self):
        count = 0
        for length in range(6):
            for steps in itertools.permutations((0, 10, 20, 30, 40), length):
                for damaged in itertools.chain.from_iterable(itertools.combinations(steps, n) for n in range(length + 1)):
                    for keep, keep_every in itertools.product((None, 1, 2, 3), (None, 20)):
                        self.check(list(steps), keep=keep, keep_every=keep_every, damaged=damaged)
                        count += 1
        self.assertGreater(count, 30000)

    def test_every_ranking_of_metrics(self):
        levels = (None, 1.0, 2.0, math.nan, math.inf, -math.inf)
        for length in range(1, 5):
            steps = [10 * (i + 1) for i in range(length)]
            for chosen in itertools.product(levels, repeat=length):
                values = {step: value for step, value in zip(steps, chosen) if value is not None}
                for keep_best, mode in itertools.product((0, 1, 2), ("min", "max")):
                    self.check(steps, keep=1, keep_best=keep_best, values=values, mode=mode)
                    self.check(steps, keep=1, keep_best=keep_best, values=values, mode=mode, damaged=steps[:1])

    def test_examples(self):
        steps = list(range(500, 5001, 500))
        self.assertEqual(stays(steps, keep=3), {4000, 4500, 5000})
        self.assertEqual(stays(steps, keep=1, keep_every=2000), {2000, 4000, 5000})
        self.assertEqual(stays(steps, keep=1, keep_best=2, values={500: 1.0, 1000: 3.0, 1500: 2.0}), {500, 1500, 5000})
        # A run that went back from 200 to 150: what it saves now is the newest.
        self.assertEqual(stays([100, 150, 200, 160], keep=2), {200, 160})
        # The two damaged ones do not push out the whole ones that the run went on from.
        self.assertEqual(stays([100, 150, 190, 200, 160], keep=2, damaged={190, 200}), {150, 190, 200, 160})
        self.assertEqual(stays([100, 190, 200, 160, 170], keep=2, damaged={190, 200}), {160, 170})

    def test_what_was_saved_last_stays(self):
        for steps in itertools.permutations((10, 20, 30)):
            for damaged in ((), (10,), (10, 20)):
                self.assertIn(steps[-1], stays(steps, keep=1, damaged=damaged))


if __name__ == "__main__":
    unittest.main()
