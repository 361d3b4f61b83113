"""Slices as PNG files with a palette, written by zlib alone."""
from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import numpy as np

#: Anchors of palettes that people with colour blindness tell apart: values dark to light, errors blue over white to brown.
_VALUES = ("440154", "3b528b", "21918c", "5ec962", "fde725")
_ERRORS = ("2166ac", "67a9cf", "f7f7f7", "fdb863", "b35806")
#: The place of NaN, infinities and fill values, grey.
_INVALID = 255


def _palette(anchors: tuple[str, ...]) -> bytes:
    colours = np.array([[int(text[k:k + 2], 16) for k in (0, 2, 4)] for text in anchors], float)
    places = np.linspace(0, len(anchors) - 1, _INVALID)
    rows = np.stack([np.interp(places, range(len(anchors)), colours[:, k]) for k in range(3)], 1)
    return np.vstack([np.rint(rows), [[128, 128, 128]]]).astype(np.uint8).tobytes()


_PALETTES = {"values": _palette(_VALUES), "errors": _palette(_ERRORS)}


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def indices(values: Any, low: float, high: float) -> Any:
    """Values as places in a palette: 0 for `low`, 254 for `high`, _INVALID for what is no number."""
    numbers = np.asarray(values, np.float64)
    width = high - low if high > low else 1.0
    with np.errstate(invalid="ignore"):
        places = np.clip(np.rint((numbers - low) / width * (_INVALID - 1)), 0, _INVALID - 1)
    return np.where(np.isfinite(numbers), places, _INVALID).astype(np.uint8)


def png(places: Any, palette: str) -> bytes:
    """An image of 8-bit places (rows, columns) in a palette, "values" or "errors"."""
    height, width = places.shape
    rows = np.zeros((height, width + 1), np.uint8)  # each row begins with its filter, none
    rows[:, 1:] = places
    return b"".join((b"\x89PNG\r\n\x1a\n", _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
                     _chunk(b"PLTE", _PALETTES[palette]), _chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)), _chunk(b"IEND", b"")))


def data_url(values: Any, low: float, high: float, palette: str) -> str:
    return "data:image/png;base64," + base64.b64encode(png(indices(values, low, high), palette)).decode()


def thinned(plane: Any, pixels: int) -> Any:
    """At most `pixels` rows and columns of a plane, evenly taken: no value is made up."""
    rows, columns = (np.unique(np.linspace(0, extent - 1, min(extent, pixels)).astype(int)) for extent in plane.shape)
    return plane[np.ix_(rows, columns)]
