"""One page to choose a bound by looking: pyquern.explore(array), and `quern explore FILE -o page.html` of the wheel."""
from __future__ import annotations

import html
import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._array import NUMBERS, refuse_masked
from .._bounds import Bound
from .._ranges import fills_of, range_of
from .measure import crop, curves, slices, views

__all__ = ["Page", "explore"]

_BOUNDS = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 1e-4, 1e-5)
#: The page is to go by mail.
_MOST_BYTES = 5 << 20
_TEMPLATE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "page.html")


class Page:
    """One HTML page that needs nothing else: no network, no library. Notebooks show it; save() writes it."""

    def __init__(self, text: str) -> None:
        self.html = text

    def save(self, path: str | os.PathLike[str]) -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html)

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{html.escape(self.html)}" style="width:100%;height:900px;border:0"></iframe>'


def explore(array: Any, bounds: Sequence[float | Bound] = _BOUNDS, *, codec: str = "auto", fill: Any = None, name: str = "array",
            command: str | None = None, most: int = 1 << 21, sample: int = 16, threads: int = 1) -> Page:
    """A page on which a bound is chosen by looking: rate against distortion of the codecs, a slider of bounds, slices of the
    original, what is decoded and the error, the error's histogram, power by wave number, and the command for the bound in view.

    array: 1 to 8 axes of real numbers, also lazy (HDF5 dataset, zarr array, File). bounds: 2 to 9, numbers relative to the
    range. Larger arrays than `most` elements are shown by a box of their middle, whose numbers those of the slider are; the
    curves are estimates from `sample` blocks of all of it. command: what the page names before --rel; None, Python alone.
    fill: values that mark missing data. Cost: one compression of the box a bound, O(most * bounds)."""
    chosen = [each if isinstance(each, Bound) else Bound("rel", float(each)) for each in bounds]
    if not 2 <= len(chosen) <= 9:
        raise ValueError(f"{len(chosen)} bounds: give 2 to 9")
    refuse_masked(array)
    shape = tuple(array.shape)
    if np.dtype(array.dtype).name not in NUMBERS or not 1 <= len(shape) <= 8 or 0 in shape:
        raise TypeError(f"an array of {array.dtype} {shape} cannot be shown: give 1 to 8 axes of real numbers, none of them empty")
    box, place = crop(array, most)
    if range_of(box, fills_of(fill)) is None:
        raise ValueError("the array has no valid value to look at")
    found = views(box, chosen, codec, fill, threads)
    data = {"name": name, "dtype": str(array.dtype), "shape": list(shape), "whole": box.shape == shape,
            "box": [[part.start, part.stop] for part in place], "bits": 8 * box.dtype.itemsize,
            "curves": curves(array, chosen, fill, sample),
            "bounds": [{**view.numbers, **_words(view.bound, codec, fill, command)} for view in found]}
    with open(_TEMPLATE, encoding="utf-8") as file:
        template = file.read()
    for pixels, count in ((176, 4), (176, 2), (112, 2), (64, 1)):
        data["slices"] = slices(box, found, fill, count, pixels)
        # Text in a script element ends at "</", whatever it is in.
        text = template.replace("{{TITLE}}", html.escape(name)).replace("{{DATA}}", json.dumps(data).replace("</", "<\\/"))
        if len(text) <= _MOST_BYTES:
            break
    return Page(text)


def _words(bound: Bound, codec: str, fill: Any, command: str | None) -> dict[str, str]:
    """The command and the line of Python that give this bound."""
    fills = [] if fill is None else np.atleast_1d(np.asarray(fill)).tolist()
    options = "" if codec == "auto" else f", codec={codec!r}"
    if fills:
        options += f", fill={fills[0] if len(fills) == 1 else fills!r}"
    words = {"python": f"pyquern.compress(array, {bound.kind}={bound.value:g}{options})"}
    if command is not None:
        line = command + "".join(f" --fill {value!r}" for value in fills)
        words["command"] = f"{line} --{bound.kind} {bound.value:g}" + ("" if codec == "auto" else f" --codec {codec}")
    return words
