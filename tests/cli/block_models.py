# A model for codec autoencoder without a trainer: the cosines of lowest frequencies of blocks of 8 x 8 x 8 values, as
# docs/format-model.md stores it; and values that it describes.
import array
import hashlib
import math
import random
import struct

SIDE = 8
VALUE_UNIT, LATENT_UNIT = 4096, 128


def cosine(k, i):
    return math.cos(math.pi * k * (i + 0.5) / SIDE)


def basis(count):
    """Unit vectors of 512 numbers, but the one of equal numbers."""
    out = []
    for a, b, c in sorted(((a, b, c) for a in range(3) for b in range(3) for c in range(3)), key=sum)[1:count + 1]:
        v = [cosine(a, z) * cosine(b, y) * cosine(c, x) for z in range(SIDE) for y in range(SIDE) for x in range(SIDE)]
        norm = math.sqrt(sum(w * w for w in v))
        out.append([w / norm for w in v])
    return out


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def dense(rows, in_shape, in_bits, out_shape, in_unit, out_unit):
    """A network of one dense layer."""
    scale = 127 / max(abs(w) for row in rows for w in row)
    shift = 28
    multiplier = round(out_unit / (scale * in_unit) * 2**shift)
    shape = lambda s: b"".join(varint(n) for n in s)
    out = shape(in_shape) + bytes([in_bits]) + varint(1) + bytes([0, 0, 15 if in_bits == 16 else 16, shift])
    out += shape(out_shape) + varint(0) * len(rows) + varint(multiplier) * len(rows)
    return out + b"".join(struct.pack("b", round(w * scale)) for row in rows for w in row)


def model(components, record=b"{}"):
    """The bytes of a model file with an encoder."""
    rows = basis(components)
    columns = [list(column) for column in zip(*rows)]
    block, latents = (SIDE, SIDE, SIDE, 1), (1, 1, 1, components)
    body = b"\x8bQMD\r\n\x1a\n" + struct.pack("<HHH", 3, 2, 1) + bytes([SIDE, SIDE, SIDE, 12])
    body += varint(len(record)) + record + varint(1) + bytes([1, 1])
    body += dense(rows, block, 15, latents, VALUE_UNIT, LATENT_UNIT)
    body += dense(columns, latents, 16, block, LATENT_UNIT, VALUE_UNIT)
    return body + hashlib.sha256(body).digest()


def values(blocks, components, seed=1):
    """An array of f32 of blocks along each axis: cosines with other weights in each block, and a little noise."""
    source = random.Random(seed)
    rows = basis(components)
    side = blocks * SIDE
    out = array.array("f", bytes(4 * side**3))
    for z in range(blocks):
        for y in range(blocks):
            for x in range(blocks):
                weights = [source.uniform(-4, 4) for _ in rows]
                for i in range(SIDE**3):
                    at = ((z * SIDE + i // 64) * side + y * SIDE + i // 8 % 8) * side + x * SIDE + i % 8
                    out[at] = sum(w * row[i] for w, row in zip(weights, rows)) + source.uniform(-0.01, 0.01)
    return out.tobytes()
