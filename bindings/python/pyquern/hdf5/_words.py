"""The filter's settings (cd_values) as keywords and back: docs/hdf5.md has the table."""
from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._array import NUMBERS
from .._bounds import USUAL_EFFORT, Bound, bound_from
from .._requests import GOALS, codec_number, options_word
from ..core import codec_names

_VERSION, _HAS_FILL, _BIG_ENDIAN, _HAS_MISSING, _MANDATORY = 1, 0x100, 0x200, 0x400, 0x800
_WRITE_ONCE = 0x20
_REQUEST, _FIRST_VALUE, _MOST_VALUES = 6, 16, 8


def _missing_words(fill: Any, dtype: Any) -> list[int]:
    """Pairs of words of missing values, whose bits depend on the dataset's type."""
    words = []
    values = [fill] if np.ndim(fill) == 0 else list(fill)
    if len(values) > _MOST_VALUES:
        raise ValueError(f"fill has {len(values)} values; the filter's settings have room for {_MOST_VALUES}")
    for value in values:
        if dtype is not None:
            value = np.asarray(value).astype(dtype)
        elif not isinstance(value, (np.generic, np.ndarray)):
            raise TypeError(f"fill is {value!r}: give it in the dataset's type, such as numpy.float32({value!r}), or use h5py's "
                            "fillvalue=, which is kept without a word")
        value = np.asarray(value)
        if value.dtype.name not in NUMBERS:
            raise TypeError(f"fill is a {value.dtype}: give a number in the dataset's type")
        bits = int.from_bytes(value.astype(value.dtype.newbyteorder("<")).tobytes(), "little")
        words += [bits >> 32, bits & 0xFFFFFFFF]
    return words


def request_words(bound: Bound, *, codec: str = "auto", goal: str = "ratio", effort: int | None = None, fill: Any = None,
                  dtype: Any = None, mandatory: bool = True) -> tuple[int, ...]:
    """cd_values for H5Pset_filter and nc_def_var_filter."""
    high, low = struct.unpack(">II", struct.pack(">d", bound.value))
    words = [_VERSION | (_MANDATORY if mandatory else 0), codec_number(codec), bound.number, high, low,
             options_word(goal, effort)]
    if fill is not None:
        words[0] |= _HAS_MISSING
        words += [0] * (_FIRST_VALUE - _REQUEST) + _missing_words(fill, dtype)
    return tuple(words)


def settings(words: Sequence[int]) -> dict[str, Any]:
    """What words of a dataset ask for."""
    padded = list(words) + [0] * max(0, _REQUEST - len(words))
    value = struct.unpack(">d", struct.pack(">II", padded[3], padded[4]))[0]
    bound = bound_from(padded[2], value)
    number = padded[1]
    goal = GOALS[padded[5] & 0xF] if padded[5] & 0xF < len(GOALS) else "unknown"
    return {"bound": bound, "codec": "auto" if number == 0 else codec_names().get(number, f"unknown codec {number}"),
            "goal": goal,
            "effort": 1 if goal == "speed" else padded[5] >> 8 & 0xF or USUAL_EFFORT,
            "write_once": bool(padded[5] & _WRITE_ONCE), "big_endian": bool(padded[0] & _BIG_ENDIAN)}
