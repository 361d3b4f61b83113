"""The newest checkpoint whose every value is whole, and what to say of those that are not."""
import glob
import logging
import os
import re
import time
from dataclasses import dataclass, field

from .library import Error
from .manifests import manifests

log = logging.getLogger("quern")

#: Statuses of damage: bad magic, truncated, corrupt, checksum mismatch, and files that are gone or cannot be read.
DAMAGE = (20, 21, 22, 23, 62)
_SECONDS = 5


@dataclass(frozen=True)
class Restored:
    """`state` as load() gives it, the `step` it is of, and {step: why} of newer steps that were passed over."""
    state: object = field(repr=False)
    step: int
    passed_over: dict


def _folder(path):
    return os.fsdecode(path)


def repair_hint(path, step, problem):
    """What to type where parity may mend it; else ""."""
    path = _folder(path)
    ids = re.findall(r"data/([^/\s:]+)/", str(problem))
    steps = {name: of for of, name in manifests(path)}
    for name in dict.fromkeys(ids + [name for name, of in steps.items() if of == step]):
        if glob.glob(os.path.join(glob.escape(path), "data", glob.escape(name), "parity-*")):
            return (f"; it has parity, which may mend it: quern checkpoint repair --store {path} "
                    f"--step {steps.get(name, step)}")
    return ""


def newest(store, path, read):
    """(read(checkpoint), step, passed_over) of the step published last that `read` can read; each that it cannot is a warning."""
    passed_over = {}
    steps = store.history()
    if not steps:
        store.open()  # says why there is none
    for step in reversed(steps):
        try:
            with store.open(step) as saved:
                return read(saved), step, passed_over
        except Error as problem:
            if problem.status not in DAMAGE:
                if step not in store.steps():
                    continue  # collected meanwhile
                raise
            why = str(problem) + repair_hint(path, step, problem)
        passed_over[step] = why
        log.warning("step %d is passed over: %s", step, why)
    raise Error(62, f"{_folder(path)}: no checkpoint of the store is whole: "
                    + "; ".join(f"step {step}: {why}" for step, why in passed_over.items()))


def at_step(store, path, step, read):
    """read(checkpoint) of one step; where that is damaged the error says which older ones are whole."""
    try:
        with store.open(step) as saved:
            return read(saved)
    except Error as problem:
        if problem.status not in DAMAGE:
            raise
        raise Error(problem.status, f"{problem}{repair_hint(path, step, problem)}; {_older(store, step)}") from None


def _older(store, step):
    """Older steps that are whole, every byte of them read: as many as a few seconds allow, one at least."""
    whole, unknown, begun = [], [], time.monotonic()
    for other in reversed([other for other in store.history() if other < step]):
        if whole and time.monotonic() - begun > _SECONDS:
            unknown.append(other)
            continue
        try:
            store.verify(other, full=True)
        except Error:
            continue
        whole.append(other)
    if not whole:
        return "no older step is whole"
    more = f" (not checked: {', '.join(map(str, unknown))})" if unknown else ""
    return (f"older steps that are whole: {', '.join(map(str, whole))}{more}; load(path, step={whole[0]}) gives one, and "
            "load(path) the newest that is whole")
