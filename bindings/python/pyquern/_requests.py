"""What can be asked of something that sees one chunk at a time: the HDF5 filter and the Zarr codecs."""
from __future__ import annotations

from typing import Any

from ._bounds import Bound, checked_effort, chosen_bound
from ._errors import Unsupported
from .core import codec_names

KINDS = ("abs", "pwrel", "lossless")
GOALS = ("ratio", "psnr", "speed")


def request_bound(*, abs: Any = None, pwrel: Any = None, lossless: Any = False, rel: Any = None, psnr: Any = None,
                  ratio: Any = None, whole: str = "pyquern.hdf5.bound_of(array, rel=...)") -> Bound:
    """The bound of something that sees one chunk at a time: TypeError for kinds that depend on the whole variable."""
    for kind, value in (("rel", rel), ("psnr", psnr), ("ratio", ratio)):
        if value is not None:
            raise TypeError(f"{kind}={value!r}: chunks are compressed one at a time, and each would get another bound. Give abs= with "
                            f"the bound of the whole variable: {whole} works it out from a relative one")
    return chosen_bound(kinds=KINDS, abs=abs, pwrel=pwrel, lossless=lossless)


def codec_number(codec: str) -> int:
    if codec == "auto":
        return 0
    for number, name in codec_names().items():
        if number and name == codec:
            return number
    raise Unsupported(41, f"there is no codec {codec!r}; this library has auto, {', '.join(list(codec_names().values())[1:])}")


def goal_number(goal: str) -> int:
    if goal not in GOALS:
        raise ValueError(f"goal is {goal!r}: it is one of {', '.join(GOALS)}")
    return GOALS.index(goal)


def options_word(goal: str, effort: int | None) -> int:
    """Goal and effort in one word, as the HDF5 filter has them."""
    return goal_number(goal) | (checked_effort(effort, goal) or 0) << 8
