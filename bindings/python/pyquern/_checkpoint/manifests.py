"""Which checkpoints a store has, by the names of their manifests: docs/format-checkpoint.md, section 1."""
import os
import re


def manifests(path, hidden=True):
    """(step, id) of each manifest. hidden: also of those that are no checkpoints any more, but have tensors that others need."""
    for name in os.listdir(os.path.join(path, "manifests")):
        found = re.fullmatch(r"([0-9]{12,20})(?:\.[0-9]+)?-([^.]+)(\.kept)?", name)
        if found and (hidden or found[3] is None):
            yield int(found[1]), found[2]


def steps_of(path, wanted):
    """Steps of the checkpoints `wanted`, pairs (step, id), that are there. A step that another checkpoint has as well, or
    alone, is left out: a store removes checkpoints by their steps."""
    wanted, there = set(wanted), set(manifests(path, hidden=False))
    others = {step for step, _ in there - wanted}
    return sorted({step for step, _ in there & wanted} - others)
