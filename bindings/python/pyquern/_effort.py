"""How much time encoders may take: effort=, from 1 (fast) to 9 (small)."""
from __future__ import annotations

import operator
from typing import Any

#: What the library takes where nothing is said.
USUAL = 6


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
