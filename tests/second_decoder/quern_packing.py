"""The example codec `packing` (docs/adding-a-codec.md): parts of record sections."""
import math
import struct

from quern_bytes import Cursor, require

FEATURES = {'packing exact', 'packing quantized', 'packing refused value', 'packing width 0', 'packing stride'}
WIDTHS = {'f32': ('<f', 4), 'f64': ('<d', 8)}
LARGEST_CODE = 2**51
ABS = 1


def unpack_words(cursor, count, width, block, stride, seen):
    words, mask = [], 2**width - 1
    while len(words) < count:
        n = min(block, count - len(words))
        bits = cursor.unsigned(1)
        require(bits <= width, 'width of a block')
        if not bits:
            seen.add('packing width 0')
        packed = int.from_bytes(cursor.take((n * bits + 7) // 8), 'little')
        require(packed >> n * bits == 0, 'padding of a block')
        for i in range(n):
            number = packed >> i * bits & 2**bits - 1
            before = words[-stride] if len(words) >= stride else 0
            words.append(before + (number >> 1 ^ -(number & 1)) & mask)
    return words


class Codec:
    """Parameters: block u8, then a stride for each section."""

    def __init__(self, header, seen):
        require(header.codec_version == 1, 'codec version')
        at = Cursor(header.params, 0, len(header.params))
        log2 = at.unsigned(1)
        require(4 <= log2 <= 12, 'block')
        self.block, self.seen = 1 << log2, seen
        self.strides = [at.varint(64) for _ in header.sections]
        require(all(self.strides) and at.done(), 'strides')

    def part(self, section, index, data, size):
        """The part's bytes, `size` of them."""
        at = Cursor(data, 0, len(data))
        mode, width = at.unsigned(1), section.width
        if self.strides[index] > 1:
            self.seen.add('packing stride')
        if mode == 0:
            self.seen.add('packing exact')
            words = unpack_words(at, size // width, 8 * width, self.block, self.strides[index], self.seen)
            out = b''.join(w.to_bytes(width, 'little') for w in words)
        else:
            require(mode == 1 and section.dtype in WIDTHS and section.enforced == ABS, 'mode')
            self.seen.add('packing quantized')
            out = self.quantized(section, index, at, size // width)
        require(at.done(), 'bytes left over in a part')
        return out

    def quantized(self, section, index, at, count):
        form, width = WIDTHS[section.dtype]
        step = 2 * section.bound
        require(math.isfinite(step) and math.isfinite(1 / step) and 1 / step > 0, 'step')
        refused, place = [], 0
        for _ in range(at.varint(count)):
            place += at.varint(count)
            require(place < count, 'place of a refused value')
            refused.append(place)
            place += 1
        exact = [at.take(width) for _ in refused]
        values = []
        for word in unpack_words(at, count, 64, self.block, self.strides[index], self.seen):
            code = word - 2**64 if word >> 63 else word
            require(abs(code) <= LARGEST_CODE, 'code')
            value = code * step
            require(abs(value) <= (3.4028234663852886e38 if width == 4 else 1.7976931348623157e308), 'value of a code')
            values.append(struct.pack(form, value))
        for i, bits in zip(refused, exact):
            self.seen.add('packing refused value')
            values[i] = bits
        return b''.join(values)
