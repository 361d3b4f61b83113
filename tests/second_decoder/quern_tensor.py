"""Coded tensors (docs/format-tensor.md), all but zstd. usage: quern_tensor.py FOLDER of golden tensors"""
import pathlib
import struct
import sys

from quern_bytes import Cursor, require
from quern_lossless import Bits

WIDTH = {1: 2, 2: 2, 3: 4, 4: 8, 5: 1, 6: 1, 8: 1, 9: 2, 10: 4, 11: 8, 16: 1, 17: 2, 18: 4, 19: 8, 24: 1}
FLOATS = (1, 2, 3, 4, 5, 6)
KNOWN_SHIFT = {1: 10, 2: 7, 3: 23, 4: 52}
FEATURES = {'raw', 'constant', 'planes', 'delta', 'derived', 'form raw', 'plane raw', 'plane run', 'plane packed',
            'plane rans', 'plane rans of two states', 'source none', 'source previous', 'source given', 'two parts', 'scaled'}


def read_table(bits):
    first, last = bits.take(8), bits.take(8)
    require(first <= last, 'symbols of a table')
    slots, before = [], 4
    for symbol in range(first, last):
        u = 0
        while bits.take(1) == 0:
            u += 1
            require(u <= 22, 'width of a frequency')
        width = before - (u + 1) // 2 if u & 1 else before + u // 2
        require(0 <= width <= 11, 'width of a frequency')
        frequency = 0 if width == 0 else 1 << width - 1 | bits.take(width - 1)
        slots += [(symbol, frequency, len(slots))] * frequency
        before = width
    require(len(slots) < 2048, 'sum of a table')
    start = len(slots)
    return slots + [(last, 2048 - start, start)] * (2048 - start)


def read_rans(cursor, count, known, lanes, seen):
    head = cursor.unsigned(1)
    source, contexts = head & 3, (head >> 2) + 1
    require(source <= 2 and contexts <= 8 and (source == 0) == (contexts == 1), 'model of a plane')
    require(source != 2 or known is not None, 'model of a plane')
    seen.add('source ' + ('none', 'previous', 'given')[source])
    thresholds = [cursor.unsigned(2 if source == 1 else 1) for _ in range(contexts - 1)]
    require(all(a < b for a, b in zip([0] + thresholds, thresholds + [65535])), 'thresholds')
    bits = Bits(cursor)
    tables = [read_table(bits) for _ in range(contexts)]
    parts = 1 if count < 2**15 else 2 if count < 2**17 else 4
    if parts == 2:
        seen.add('two parts')
    words = [cursor.varint(count) for _ in range(parts)]
    states = [[cursor.unsigned(4) for _ in range(lanes)] for _ in range(parts)]
    symbols, q = [], count // 32 // parts
    for part in range(parts):
        state, left = states[part], words[part]
        require(all(2**15 <= s < 2**31 for s in state), 'state')
        size = 32 * q if part < parts - 1 else count - 32 * q * (parts - 1)
        total = current = 0
        for j in range(size):
            if j % 32 == 0:
                total, current = current, 0
            if source == 2:
                value = known[len(symbols)]
            else:
                value = total
            context = sum(t <= value for t in thresholds)
            s = state[j % lanes]
            symbol, frequency, start = tables[context][s % 2048]
            s = frequency * (s // 2048) + s % 2048 - start
            if s < 2**15:
                require(left > 0, 'words of a part')
                s, left = s << 16 | cursor.unsigned(2), left - 1
            state[j % lanes] = s
            current += symbol
            symbols.append(symbol)
        require(left == 0 and state == [2**15] * lanes, 'end of a part')
    return symbols


def read_words(cursor, count, width, known, seen):
    heads = []
    for _ in range(width):
        kind = cursor.unsigned(1)
        require(kind <= 3 or kind == 5 and count <= 2**13, 'kind of a plane')
        heads.append((kind, cursor.varint(2**63) if kind >= 3 else 0))
    words = [0] * count
    for plane, (kind, size) in zip(range(width - 1, -1, -1), heads):
        seen.add('plane ' + ('raw', 'run', 'packed', 'rans', 'zstd', 'rans of two states')[kind])
        if kind == 0:
            symbols = list(cursor.take(count))
        elif kind == 1:
            symbols = [cursor.unsigned(1)] * count
        elif kind == 2:
            mask, fixed = cursor.unsigned(1), cursor.unsigned(1)
            require(mask not in (0, 255) and fixed & mask == 0, 'packed bits')
            places = [b for b in range(8) if mask >> b & 1]
            bits = Bits(cursor)
            symbols = [fixed | sum(bits.take(1) << b for b in places) for _ in range(count)]
        else:
            end = cursor.at + size
            symbols = read_rans(cursor, count, known, 32 if kind == 3 else 2, seen)
            require(cursor.at == end, 'size of a plane')
        words = [w | s << 8 * plane for w, s in zip(words, symbols)]
    cursor.done()
    return words


def scaled(pattern, factor):
    """Rounded once: the product of two binary32 numbers is exact in binary64."""
    if factor == 1 or not 16 <= pattern >> 23 & 255 <= 254:
        return pattern
    value = struct.unpack('<f', struct.pack('<I', pattern))[0] * factor
    try:
        return struct.unpack('<I', struct.pack('<f', value))[0]
    except OverflowError:
        return 0xff800000 if value < 0 else 0x7f800000


def derived(pattern):
    if pattern & 0x7fffffff > 0x7f800000:
        return pattern >> 16 | 0x40
    return pattern + 0x7fff + (pattern >> 16 & 1) >> 16


def words_of(data, width):
    return [int.from_bytes(data[i:i + width], 'little') for i in range(0, len(data), width)]


def decode(kind, mode, side, chunk, base, companion, count, seen):
    width = WIDTH[kind]
    seen.add(('raw', 'constant', 'planes', 'delta', 'derived')[mode])
    if mode == 0:
        require(not side and len(chunk) == count * width, 'size')
        return chunk
    if mode == 1:
        require(len(side) == width and not chunk, 'size')
        return side * count
    if mode == 4:
        require(kind == 2 and not side and not chunk, 'size')
        return b''.join(derived(w).to_bytes(2, 'little') for w in words_of(companion, 4))
    cursor = Cursor(chunk, 0, len(chunk))
    form = cursor.unsigned(1)
    require(form <= 1, 'form')
    if form == 0:
        seen.add('form raw')
        elements = cursor.take(count * width)
        cursor.done()
        return bytes(elements)
    limit = 1 << 8 * width
    if mode == 2:
        require(not side, 'size')
        words = read_words(cursor, count, width, None, seen)
        if kind in FLOATS:
            words = [w >> 1 | (w & 1) << 8 * width - 1 for w in words]
    else:
        require(len(side) == (4 if kind == 3 else 0), 'size')
        reference = words_of(base, width)
        shift = KNOWN_SHIFT.get(kind)
        known = None if shift is None else [w >> shift & 255 for w in reference]
        differences = read_words(cursor, count, width, known, seen)
        if kind == 3:
            factor = struct.unpack('<f', side)[0]
            require(2**-8 <= factor <= 2, 'factor')
            if factor != 1:
                seen.add('scaled')
            reference = [scaled(w, factor) for w in reference]
        words = [(r + (d >> 1 ^ -(d & 1))) % limit for r, d in zip(reference, differences)]
    return b''.join(w.to_bytes(width, 'little') for w in words)


def check(path, seen):
    data = path.read_bytes()
    cursor = Cursor(data, 0, len(data))
    kind, mode, inputs, count = (cursor.unsigned(w) for w in (1, 1, 1, 4))
    side = bytes(cursor.take(cursor.unsigned(4)))
    chunk = bytes(cursor.take(cursor.unsigned(4)))
    base = bytes(cursor.take(count * WIDTH[kind])) if inputs & 1 else b''
    companion = bytes(cursor.take(4 * count)) if inputs & 2 else b''
    values = bytes(cursor.take(count * WIDTH[kind]))
    cursor.done()
    good = decode(kind, mode, side, chunk, base, companion, count, seen) == values
    print(path.name, 'ok' if good else 'IS WRONG')
    return good


def main():
    seen = set()
    paths = sorted(pathlib.Path(sys.argv[1]).rglob('*.tensor'))
    results = [check(path, seen) for path in paths]
    if FEATURES - seen:
        print('never met:', ', '.join(sorted(FEATURES - seen)))
    return 0 if paths and all(results) and not FEATURES - seen else 1


if __name__ == '__main__':
    sys.exit(main())
