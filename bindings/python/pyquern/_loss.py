"""Attributes that say what was lost: those that `quern h5 pack` writes (docs/hdf5.md). CF has no vocabulary for them."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ._bounds import Bound
from ._capi import library

_PREFIX = "lossy_compression"
_KINDS = {"abs": "absolute", "pwrel": "pointwise relative"}


def loss_attributes(bound: Bound, requested: Bound, previous: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Attributes of values that keep `bound` ("abs" in their own units, or "pwrel"), where `requested` was asked for.

    `previous`: attributes of values that were lossy before. Under the same bound they come back bit for bit, and the record
    stays. Under another one bounds add up, `lossy_compression_bound_accumulated`; those of two kinds have no sum, and
    `lossy_compression_history` lists them. Lossless values keep the record they had."""
    before = {name: value for name, value in (previous or {}).items() if name.startswith(_PREFIX)}
    if bound.kind == "lossless":
        return before
    own = {_PREFIX: "quern", f"{_PREFIX}_bound_kind": _KINDS[bound.kind], f"{_PREFIX}_bound": np.float64(bound.value),
           f"{_PREFIX}_requested": f"{requested.kind}={requested.value:.9g}",
           f"{_PREFIX}_software": f"quern {library().version_string().decode()}"}
    former = before.get(f"{_PREFIX}_bound")
    if former is None:
        return own
    history = before.get(f"{_PREFIX}_history")
    kind = str(before.get(f"{_PREFIX}_bound_kind"))
    if kind == _KINDS[bound.kind] and float(former) == bound.value:
        own.update({name: before[name] for name in (f"{_PREFIX}_bound_accumulated", f"{_PREFIX}_history") if name in before})
    elif kind == _KINDS[bound.kind] and history is None:
        total = float(before.get(f"{_PREFIX}_bound_accumulated", former))
        own[f"{_PREFIX}_bound_accumulated"] = np.float64(_sum(bound, total))
    else:
        earlier = history if history is not None else f"{kind} {float(before.get(f'{_PREFIX}_bound_accumulated', former)):.9g}"
        own[f"{_PREFIX}_history"] = f"{earlier}; {_KINDS[bound.kind]} {bound.value:.9g}"
    return own


def _sum(bound: Bound, total: float) -> float:
    """Rounded up: it is a bound."""
    if bound.kind == "abs":
        return float(np.nextafter(total + bound.value, np.inf))
    return float(np.nextafter(np.nextafter(total + bound.value + total * bound.value, np.inf), np.inf))


def declared_fills(attributes: Mapping[str, Any]) -> list[Any]:
    """Values that _FillValue and missing_value declare, whatever their types."""
    found: list[Any] = []
    for name in ("_FillValue", "missing_value"):
        value = attributes.get(name)
        if value is None:
            continue
        values = np.asarray(value)
        if values.dtype.kind in "iuf":
            found.extend(values.reshape(-1))
    return found
