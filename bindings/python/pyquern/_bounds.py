"""Bounds as keywords: exactly one of abs=, rel=, pwrel=, psnr=, ratio=, lossless=True; and effort=, from 1 to 9."""
from __future__ import annotations

import numbers
import operator
from typing import Any, NamedTuple

KINDS = {"lossless": 0, "abs": 1, "rel": 2, "pwrel": 3, "psnr": 4, "ratio": 5}
#: Kinds that are found from the values, and become one of those above.
PRECISION_KINDS = ("digits", "information")
_NAMES = {number: name for name, number in KINDS.items()}


class Bound(NamedTuple):
    """A kind ("abs", "rel", "pwrel", "psnr", "ratio" or "lossless") and its value: in the array's units for "abs", dB for
    "psnr", a number without unit for the others, 0 for "lossless"."""

    kind: str
    value: float

    @property
    def number(self) -> int:
        return KINDS[self.kind]

    def __str__(self) -> str:
        return self.kind if self.kind == "lossless" else f"{self.kind}={self.value:.17g}"


def bound_from(number: int, value: float) -> Bound:
    return Bound(_NAMES[number], value)


def chosen_bound(*, kinds: tuple[str, ...] = tuple(KINDS), **given: Any) -> Bound:
    """The one bound among keyword arguments; the others are None, or False for lossless. TypeError says what to give."""
    named = [(kind, value) for kind, value in given.items() if value is not None and value is not False]
    ways = ", ".join("lossless=True" if kind == "lossless" else f"{kind}=" for kind in kinds)
    if not named:
        raise TypeError(f"give a bound, exactly one of {ways}: quern never assumes how much may be lost")
    if len(named) > 1:
        raise TypeError(f"{' and '.join(kind for kind, _ in named)} were given: give exactly one of {ways}")
    kind, value = named[0]
    if kind == "lossless":
        if value is not True:
            raise TypeError(f"lossless is {value!r}: it is True, or left out")
        return Bound(kind, 0.0)
    if isinstance(value, bool) or not isinstance(value, numbers.Real) and not _is_scalar(value):
        raise TypeError(f"{kind} is {value!r}: give a number")
    return Bound(kind, float(value))


def _is_scalar(value: Any) -> bool:
    """A 0-dimensional array, of whatever library."""
    return getattr(value, "shape", None) == () and hasattr(value, "__float__")


#: The effort that the library takes where nothing is said.
USUAL_EFFORT = 6


def checked_effort(effort: Any, goal: str) -> int | None:
    """The number, or None where nothing was asked for. ValueError says what to give."""
    if effort is None:
        return None
    try:
        number = operator.index(effort)
    except TypeError:
        number = 0
    if isinstance(effort, bool) or not 1 <= number <= 9:
        raise ValueError(f"effort is {effort!r}: give a whole number from 1 (fast) to 9 (small)")
    if goal == "speed" and number > 1:
        raise ValueError(f"effort is {number}: leave goal='speed' out, which is effort 1")
    return number
