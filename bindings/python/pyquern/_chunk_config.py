"""What the Zarr codecs are configured with, as keywords and as JSON: {"bound": "abs", "value": 0.001, "codec": "auto", "goal":
"ratio"}, and "effort" and "fill" if given."""
from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._bounds import Bound, checked_effort
from ._errors import Unsupported
from .core import compress
from ._requests import codec_number, options_word, request_bound

_KEYS = ("bound", "value", "codec", "goal", "effort", "fill")
_SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


@dataclass(frozen=True)
class ChunkConfig:
    """A request for chunks; `fill` is a tuple of numbers."""

    bound: Bound
    codec: str = "auto"
    goal: str = "ratio"
    fill: tuple[float, ...] = ()
    effort: int | None = None

    def compressed(self, array: Any, fills: tuple[Any, ...] = (), metadata: bytes = b"") -> bytes:
        """The stream of a chunk. Decoded values come back bit for bit when they are compressed again."""
        settings = None if self.bound.kind == "lossless" else {"idempotent": 1}
        lossless = self.bound.kind == "lossless"
        bounds: dict[str, Any] = {"lossless": True} if lossless else {self.bound.kind: self.bound.value}
        fill = [*self.fill, *fills]
        return bytes(compress(array, codec="auto" if lossless else self.codec, goal=self.goal, effort=self.effort,
                              settings=settings, fill=fill or None, metadata=metadata, **bounds))

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"bound": self.bound.kind}
        if self.bound.kind != "lossless":
            found["value"] = self.bound.value
        found.update(self._ways())
        if self.fill:
            found["fill"] = [_to_json(value) for value in self.fill]
        return found

    def keywords(self) -> dict[str, Any]:
        """Those of the constructors."""
        bound: dict[str, Any] = {"lossless": True} if self.bound.kind == "lossless" else {self.bound.kind: self.bound.value}
        return {**bound, **self._ways(), **({"fill": self.fill} if self.fill else {})}

    def _ways(self) -> dict[str, Any]:
        return {"codec": self.codec, "goal": self.goal, **({} if self.effort is None else {"effort": self.effort})}


def make_config(*, abs: Any, pwrel: Any, lossless: Any, rel: Any, codec: str, goal: str, fill: Any,
                effort: int | None = None) -> ChunkConfig:
    bound = request_bound(abs=abs, pwrel=pwrel, lossless=lossless, rel=rel)
    codec_number(codec)
    options_word(goal, effort)
    values = () if fill is None else tuple(_number(value) for value in np.atleast_1d(np.asarray(fill)).reshape(-1).tolist())
    return ChunkConfig(bound, codec, goal, values, checked_effort(effort, goal))


def from_json(config: Mapping[str, Any], others: tuple[str, ...] = ()) -> dict[str, Any]:
    """Keywords of a configuration. Unsupported names what a newer quern may have written there."""
    unknown = sorted(set(config) - set(_KEYS) - set(others))
    if unknown:
        raise Unsupported(40, f"the codec's configuration has {', '.join(map(repr, unknown))}, which this pyquern does not know: update "
                              "it, or make the array again with what it knows")
    kind = config.get("bound")
    if kind not in ("abs", "pwrel", "lossless"):
        raise Unsupported(40, f"the codec's bound is {kind!r}; this pyquern knows abs, pwrel and lossless")
    if kind != "lossless" and "value" not in config:
        raise ValueError(f"the codec's configuration has the bound {kind} without a value")
    found: dict[str, Any] = {"lossless": True} if kind == "lossless" else {kind: _number(config["value"])}
    found.update({name: config[name] for name in ("codec", "goal", "effort") if name in config})
    if config.get("fill") is not None:
        values = config["fill"] if isinstance(config["fill"], (list, tuple)) else [config["fill"]]
        found["fill"] = [_number(value) for value in values]
    return found


def _number(value: Any) -> Any:
    if isinstance(value, str) and value in _SPECIAL:
        return _SPECIAL[value]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{value!r} is no number")
    return value


def _to_json(value: float) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
