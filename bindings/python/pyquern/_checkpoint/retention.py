"""Which checkpoints of a run stay. Numbers alone: nothing here reads or writes a store."""
import math


def stays(steps, keep=None, keep_every=None, keep_best=0, values=None, mode="min", damaged=()):
    """The set of steps that stay. A step stays for any one reason of these.

    steps: the steps there are, each once, in the order they were saved (a run that went back saves 150 after 200).
    keep: the last so many stay; None: all. Damaged ones do not count: one of them stays while fewer than `keep` whole
    ones were saved after it, as it may yet be mended.
    keep_every: steps that it divides stay, but for 0.
    keep_best: so many with the best of `values` ({step: number}; mode "min": the smallest, "max": the largest) stay. NaN
    and infinities are never best; of equal ones the one saved later is better; damaged ones do not take part."""
    steps, damaged, values = list(steps), frozenset(damaged), values or {}
    if keep is None:
        return set(steps)
    out, whole = set(), 0
    for step in reversed(steps):
        if whole < keep:
            out.add(step)
        whole += step not in damaged
    if keep_every:
        out.update(step for step in steps if step > 0 and step % keep_every == 0)
    sign = 1 if mode == "min" else -1
    ranked = [(sign * values[step], -place, step) for place, step in enumerate(steps)
              if step not in damaged and math.isfinite(values.get(step, math.nan))]
    out.update(step for _, _, step in sorted(ranked)[:keep_best])
    return out
