"""Codec 2, lossless (docs/format-lossless.md)."""
from quern_bytes import Cursor, Unsupported, require

M64 = 2**64 - 1

FEATURES = {'lossless constant', 'lossless coded', 'lossless zstd', 'lossless zstd planes', 'lossless dictionary',
            'lossless shift', 'lossless one context', 'lossless several contexts', 'lossless raw bits',
            'lossless three axes'}
FEATURES |= {'lossless order %d along axis %d' % (o, a) for o in range(3) for a in range(3)}


class Bits:
    """Bits from the least significant of each byte upwards."""

    def __init__(self, cursor):
        self.cursor, self.value, self.count = cursor, 0, 0

    def take(self, count):
        while self.count < count:
            self.value |= self.cursor.unsigned(1) << self.count
            self.count += 8
        result = self.value & (1 << count) - 1
        self.value >>= count
        self.count -= count
        return result


def read_table(bits, largest):
    """(frequency, start) of the symbols first..last, as a list of (symbol, frequency, start)."""
    first, last = bits.take(8), bits.take(8)
    require(first <= last <= largest, 'symbols of a table')
    table, start, before = [], 0, 4
    for symbol in range(first, last):
        u = 0
        while bits.take(1) == 0:
            u += 1
            require(u <= 24, 'width of a frequency')
        width = before - (u + 1) // 2 if u & 1 else before + u // 2
        require(0 <= width <= 12, 'width of a frequency')
        frequency = 0 if width == 0 else 1 << width - 1 | bits.take(width - 1)
        table.append((symbol, frequency, start))
        start += frequency
        before = width
    require(start < 4096, 'sum of a table')
    table.append((last, 4096 - start, start))
    slots = []
    for symbol, frequency, begin in table:
        slots += [(symbol, frequency, begin)] * frequency
    return slots


class Section:
    """Values below 2^b on planes x rows x width."""

    def __init__(self, cursor, b, extents, seen):
        self.extents = extents
        raw_bytes, words, contexts = cursor.unsigned(4), cursor.unsigned(4), cursor.unsigned(1)
        require(1 <= contexts <= 16, 'contexts')
        seen.add('lossless one context' if contexts == 1 else 'lossless several contexts')
        self.thresholds = [cursor.unsigned(2) for _ in range(contexts - 1)]
        bits = Bits(cursor)
        largest = 2**b - 1 if b <= 4 else 4 * b - 1
        self.tables = [read_table(bits, largest) for _ in range(contexts)]
        raw = cursor.take(raw_bytes)
        self.raw = Bits(Cursor(raw, 0, raw_bytes))
        if raw_bytes:
            seen.add('lossless raw bits')
        self.states = [cursor.unsigned(4) for _ in range(8)]
        require(all(s >= 2**16 for s in self.states), 'state')
        self.words = Cursor(cursor.take(2 * words), 0, 2 * words)
        require(cursor.done(), 'bytes left over behind a section')
        self.values = self.decode()
        require(self.words.done(), 'words left over')
        require(self.raw.cursor.done(), 'raw bits left over')
        require(all(s == 2**16 for s in self.states), 'last states')

    def context(self, activity):
        context = 0
        while context < len(self.thresholds) and self.thresholds[context] <= activity:
            context += 1
        return context

    def token(self, lane, activity):
        state = self.states[lane]
        symbol, frequency, start = self.tables[self.context(activity)][state % 4096]
        state = frequency * (state // 4096) + state % 4096 - start
        if state < 2**16:
            state = state * 2**16 + self.words.unsigned(2)
        self.states[lane] = state
        return symbol

    def value(self, token):
        if token < 16:
            return token
        n, t = (token + 4) // 4, token % 4
        return (4 | t) << n - 3 | self.raw.take(n - 3)

    def decode(self):
        planes, rows, width = self.extents
        tokens, values = [], []
        for r in range(planes * rows):
            above = tokens[r - 1] if r % rows else None
            behind = tokens[r - rows] if r >= rows else None
            above, behind = above or behind, behind or above
            row = []
            for x in range(width):
                block = x // 8 * 8
                if block:
                    p = sum(row[block - 8:block])
                else:
                    p = sum(above[min(i, width - 1)] for i in range(8)) if above else 0
                if above:
                    sides = above[max(x - 1, 0)] + 2 * above[x] + above[min(x + 1, width - 1)]
                    activity = (sides + 2 * behind[x] + p // 4) // 4
                else:
                    activity = p // 4
                row.append(self.token(x % 8, activity))
                values.append(self.value(row[-1]))
            tokens.append(row)
        return values


class Codec:
    def __init__(self, header, seen):
        self.seen, self.dtype, self.width = seen, header.dtype, header.width
        at = Cursor(header.params, 0, len(header.params))
        self.flags = at.unsigned(1)
        require(self.flags <= 1, 'flags')
        extents = [at.varint(2**59) for _ in range(3)]
        chunk = [at.varint(2**59) for _ in range(3)]
        require(at.done(), 'parameters')
        require(extents[0] * extents[1] * extents[2] == header.elems, 'grid of the parameters')
        require(all(1 <= c <= e for c, e in zip(chunk, extents)) and chunk[0] * chunk[1] * chunk[2] <= 2**18, 'chunk')
        self.grid = extents, chunk

    def chunk(self, data, extents, _special):
        elems = extents[0] * extents[1] * extents[2]
        at = Cursor(data, 0, len(data))
        mode = at.unsigned(1)
        if mode == 0:
            elements = at.take(elems * self.width)
        elif mode == 1:
            self.seen.add('lossless constant')
            elements = at.take(self.width) * elems
        elif mode == 2:
            self.seen.add('lossless coded')
            elements = self.coded(at, extents)
        else:
            require(mode <= 4 and self.flags & 1, 'mode of a chunk')
            self.seen.add('lossless zstd' if mode == 3 else 'lossless zstd planes')
            raise Unsupported('a chunk packed by zstd')
        require(at.done(), 'bytes left over in a chunk')
        return elements

    def coded(self, at, extents):
        bits = 8 * self.width
        shift, orders = at.unsigned(1), at.unsigned(1)
        require(shift < bits and orders < 0x80, 'shift or orders')
        o = [orders >> 4 & 3, orders >> 2 & 3, orders & 3]
        require(max(o) <= 2, 'order of differences')
        for axis in range(3):
            if extents[axis] > 1:
                self.seen.add('lossless order %d along axis %d' % (o[axis], axis))
        if all(o):
            self.seen.add('lossless three axes')
        if shift:
            self.seen.add('lossless shift')
        b = key_bits = bits - shift
        keys = None
        if orders & 0x40:
            self.seen.add('lossless dictionary')
            keys = self.dictionary(at, b, extents)
            b = max(1, (len(keys) - 1).bit_length())
        section = Section(at, b, extents, self.seen)
        values = [undo_fold(v) for v in section.values]
        require(all(v < 2**b for v in section.values), 'value of a section')
        for axis in range(3):
            for _ in range(o[axis]):
                add_up(values, extents, axis)
        values = [v % 2**b for v in values]
        if keys is not None:
            require(all(v < len(keys) for v in values), 'rank')
            values = [keys[v] for v in values]
        return b''.join((self.pattern(k, key_bits) << shift).to_bytes(self.width, 'little') for k in values)

    def dictionary(self, at, b, extents):
        entries, size = at.unsigned(4), at.unsigned(4)
        require(1 <= entries <= extents[0] * extents[1] * extents[2], 'entries')
        data = at.take(size)
        gaps = Section(Cursor(data, 0, size), b, [1, 1, entries], self.seen).values
        keys = [gaps[0]]
        for gap in gaps[1:]:
            keys.append(keys[-1] + gap + 1)
        require(keys[-1] < 2**b, 'key')
        return keys

    def pattern(self, key, b):
        half = 2**(b - 1)
        if self.dtype[0] == 'u':
            return key
        if self.dtype[0] == 'i':
            return key ^ half
        return key - half if key >= half else 2**b - 1 - key


def undo_fold(v):
    return v // 2 if v % 2 == 0 else -(v // 2) - 1


def add_up(values, extents, axis):
    """One order of differences along an axis undone: running sums."""
    stride = [extents[1] * extents[2], extents[2], 1][axis]
    for i in range(len(values)):
        if i // stride % extents[axis]:
            values[i] += values[i - stride]
