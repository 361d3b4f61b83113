"""Codec 1, lorenzo (docs/format-lorenzo.md). Codes are kept as words: numbers modulo 2^32 or 2^64."""
import struct

from quern_bytes import Cursor, require

LINE, PLANE, BLOCK = range(3)
TILE_EXTENTS = [[1, 1, 1024], [1, 32, 32], [4, 8, 32]]
TILE_NAMES = ['line', 'plane', 'block']
PREDICTORS = [[0, 1, 8], [0, 1, 2, 3, 8, 9], list(range(10))]
BELOW_INFINITY = {'f16': 0x7BFF, 'bf16': 0x7F7F, 'f32': 0x7F7FFFFF, 'f64': 0x7FEFFFFFFFFFFFFF}

FEATURES = {'%s predictor %d' % (TILE_NAMES[t], p) for t in range(3) for p in PREDICTORS[t]}
FEATURES |= {'lorenzo constant chunk', 'lorenzo constant tile', 'lorenzo equal seed', 'lorenzo exact tile',
             'lorenzo exact tile of 8 bytes', 'lorenzo exceptions', 'lorenzo wide', 'lorenzo narrow 8 bytes',
             'lorenzo no signs', 'lorenzo signs 1', 'lorenzo signs 2', 'lorenzo signs 3', 'lorenzo signs 4',
             'lorenzo dense planes', 'lorenzo sparse planes', 'lorenzo 64 planes', 'lorenzo full tile',
             'lorenzo clipped tile'}
FEATURES |= {'lorenzo quantizer 0 on ' + t for t in ('f16', 'bf16', 'f32', 'f64', 'i8', 'u8', 'i16', 'i32', 'i64', 'u64')}
FEATURES |= {'lorenzo quantizer 1 on ' + t for t in ('f16', 'bf16', 'f32', 'f64')}
FEATURES |= {'lorenzo quantizer 2 on ' + t for t in ('f16', 'f32', 'f64')}


def unzigzag64(z):
    return (z >> 1 ^ -(z & 1)) & 2**64 - 1


def signed(value, bits):
    value &= 2**bits - 1
    return value - 2**bits if value >> bits - 1 else value


def binary32(value):
    """Rounded to binary32, to nearest even, infinities on overflow."""
    try:
        return struct.unpack('<f', struct.pack('<f', value))[0]
    except OverflowError:
        return float('inf') if value > 0 else float('-inf')


def float_bits(value, dtype):
    """The pattern of a binary64 (f64) or binary32 (all others) number rounded to the element type."""
    if dtype == 'f64':
        return struct.unpack('<Q', struct.pack('<d', value))[0]
    single = struct.unpack('<I', struct.pack('<f', value))[0]
    if dtype == 'f32':
        return single
    if dtype == 'bf16':
        return single + 0x7FFF + (single >> 16 & 1) >> 16
    try:
        return struct.unpack('<H', struct.pack('<e', value))[0]
    except OverflowError:
        return 0x7C00 if value > 0 else 0xFC00


class Tile:
    """Head and, later, values of one tile."""

    def __init__(self, at, before, kind, width):
        self.planes = self.predictor = self.dense = self.size = 0
        self.exact = self.exceptions = self.wide = self.signs = False
        a = at.unsigned(1)
        self.constant = a & 0x7F == 0
        self.same = a >> 7
        if not self.constant:
            b, self.dense = at.unsigned(1), at.unsigned(1)
            self.planes, self.predictor = (a & 0x7F) - 1, b & 15
            self.exact, self.exceptions, self.wide, self.signs = (bool(b >> i & 1) for i in range(4, 8))
            self.size = at.varint(65535)
            require(self.planes <= 64 and self.dense <= self.planes, 'planes')
            require(self.planes <= 32 or self.wide, 'planes without wide')
            require(not self.wide or width == 8, 'wide')
            require(self.predictor in PREDICTORS[kind], 'predictor')
            require(self.planes or self.size or self.exact or self.wide, 'a head without content')
        self.seed = before
        if not self.same:
            z = at.varint(2**64 - 1)
            require(z, 'difference of seeds')
            self.seed = (before + unzigzag64(z)) % 2**64


class Codec:
    def __init__(self, header, seen):
        self.dtype, self.width, self.seen = header.dtype, header.width, seen
        self.floating = 'f' in self.dtype
        at = Cursor(header.params, 0, len(header.params))
        self.quantizer, self.kind, first, second = (at.unsigned(1) for _ in range(4))
        require(self.quantizer <= 2 and self.kind <= 2, 'quantizer or tile')
        require(first <= second <= len(header.shape), 'merged axes')
        require(self.kind != LINE or second == 0, 'line tiles')
        require(self.kind != PLANE or first == 0, 'plane tiles')
        require(self.quantizer != 1 or self.floating, 'pointwise integers')
        if self.quantizer == 0 and self.floating:
            self.step = at.binary64()
            require(0 < self.step < float('inf'), 'step')
            require(self.dtype == 'f64' or binary32(self.step) == self.step, 'step')
        elif self.quantizer != 2:
            self.half = at.varint(2**31 - 1 if self.width <= 4 else 2**63 - 1)
        require(at.done(), 'parameters')
        seen.add('lorenzo quantizer %d on %s' % (self.quantizer, self.dtype))
        grid = [1, 1, 1]
        for axis, extent in enumerate(header.shape):
            grid[0 if axis < first else 1 if axis < second else 2] *= extent
        self.size = TILE_EXTENTS[self.kind]
        self.grid = grid, self.chunk_extents(grid)

    def chunk_extents(self, grid):
        left, counts, axis, idle = {8: 4, 1: 16}.get(self.width, 8), [1, 1, 1], 2, 0
        while left > 1 and idle < 3:
            if counts[axis] * self.size[axis] < grid[axis]:
                counts[axis] *= 2
                left //= 2
                idle = 0
            else:
                idle += 1
            axis = (axis + 2) % 3
        return [min(n * s, max(e, 1)) for n, s, e in zip(counts, self.size, grid)]

    def chunk(self, data, extents, _special):
        at = Cursor(data, 0, len(data))
        out = bytearray(extents[0] * extents[1] * extents[2] * self.width)
        places = [(z, y, x) for z in range(0, extents[0], self.size[0]) for y in range(0, extents[1], self.size[1])
                  for x in range(0, extents[2], self.size[2])]
        form = at.unsigned(1)
        require(form <= 1, 'form of a chunk')
        if form == 1:
            self.seen.add('lorenzo constant chunk')
            element = self.element(unzigzag64(at.varint(2**64 - 1)), 0, 8 * max(self.width, 4))
            require(at.done(), 'bytes left over in a constant chunk')
            return element.to_bytes(self.width, 'little') * (len(out) // self.width)
        tiles, seed = [], 0
        for _ in places:
            tiles.append(Tile(at, seed, self.kind, self.width))
            require(not tiles[-1].signs or self.quantizer == 1 and not tiles[-1].exact, 'signs')
            seed = tiles[-1].seed
        for place, tile in zip(places, tiles):
            box = [min(s, e - p) for s, e, p in zip(self.size, extents, place)]
            self.seen.add('lorenzo full tile' if box == self.size else 'lorenzo clipped tile')
            if tile.same:
                self.seen.add('lorenzo equal seed')
            elements = self.tile(at.take(tile.size), tile, box)
            for (z, y, x), element in elements.items():
                flat = ((place[0] + z) * extents[1] + place[1] + y) * extents[2] + place[2] + x
                out[flat * self.width:(flat + 1) * self.width] = element.to_bytes(self.width, 'little')
        require(at.done(), 'bytes left over in a chunk')
        return bytes(out)

    def position(self, row, lane):
        if self.kind == LINE:
            return 0, 0, 32 * lane + row
        return (0, row, lane) if self.kind == PLANE else (row // 8, row % 8, lane)

    def tile(self, payload, tile, box):
        """Elements of a tile by position."""
        exists = [[all(p < b for p, b in zip(self.position(r, l), box)) for l in range(32)] for r in range(32)]
        at = Cursor(payload, 0, len(payload))
        signs = [0] * 32
        if tile.signs:
            signs = self.read_signs(at)
        elif self.quantizer == 1 and not tile.exact:
            self.seen.add('lorenzo no signs')
        exceptions = self.read_exceptions(at, exists) if tile.exceptions else {}
        bits = 64 if self.width == 8 and tile.wide else 32
        residuals = read_residuals(at, tile, self.seen)
        require(at.done(), 'bytes left over in a payload')
        if tile.constant:
            self.seen.add('lorenzo constant tile')
            codes = [[tile.seed] * 32 for _ in range(32)]
            bits = 8 * max(self.width, 4)
        else:
            self.seen.add('%s predictor %d' % (TILE_NAMES[self.kind], tile.predictor))
            narrow = self.width == 8 and not tile.wide
            codes = predicted(self.kind, tile.predictor, residuals, 0 if narrow else tile.seed, bits)
            if narrow:
                self.seen.add('lorenzo narrow 8 bytes')
                codes = [[tile.seed + signed(q, 32) for q in row] for row in codes]
                bits = 64
        if tile.wide:
            self.seen.add('lorenzo wide')
        if tile.exact:
            self.seen.add('lorenzo exact tile of 8 bytes' if self.width == 8 else 'lorenzo exact tile')
        elements = {}
        for r in range(32):
            for l in range(32):
                if not exists[r][l]:
                    continue
                if (r, l) in exceptions:
                    elements[self.position(r, l)] = exceptions[r, l]
                elif tile.exact:
                    elements[self.position(r, l)] = self.exact_element(codes[r][l])
                else:
                    elements[self.position(r, l)] = self.element(codes[r][l], signs[l] >> r & 1, bits)
        return elements

    def read_signs(self, at):
        kind = at.unsigned(1)
        require(1 <= kind <= 4, 'kind of signs')
        self.seen.add('lorenzo signs %d' % kind)
        if kind == 1:
            return [2**32 - 1] * 32
        if kind == 4:
            return list(struct.unpack('<32I', at.take(128)))
        words = struct.unpack('<32I', read_sparse(at, 1)[0])
        return [w ^ 2**32 - 1 for w in words] if kind == 3 else list(words)

    def read_exceptions(self, at, exists):
        self.seen.add('lorenzo exceptions')
        rows = at.unsigned(4)
        require(rows, 'rows of exceptions')
        lanes = {}
        for r in range(32):
            if rows >> r & 1:
                lanes[r] = at.unsigned(4)
                require(lanes[r] and all(exists[r][l] for l in range(32) if lanes[r] >> l & 1), 'lanes of exceptions')
        return {(r, l): at.unsigned(self.width) for r in lanes for l in range(32) if lanes[r] >> l & 1}

    def exact_element(self, q):
        bits = 8 * self.width
        pattern = q & 2**bits - 1
        if self.floating and pattern >> bits - 1:
            pattern ^= 2**(bits - 1) - 1
        return pattern

    def element(self, q, sign, bits):
        """Section 6; q is a word of `bits` bits."""
        width = 8 * self.width
        if self.quantizer == 2:
            return self.exact_element(q)
        if self.quantizer == 1:
            return min((q & 2**bits - 1) * (2 * self.half + 1), BELOW_INFINITY[self.dtype]) | sign << width - 1
        if not self.floating:
            if self.dtype[0] == 'i':
                value = signed(q, bits) * (2 * self.half + 1)
                return min(max(value, -2**(width - 1)), 2**(width - 1) - 1) & 2**width - 1
            return min((q & 2**bits - 1) * (2 * self.half + 1), 2**width - 1)
        if self.dtype == 'f64':
            return float_bits(float(signed(q, 64)) * self.step, 'f64')
        # A product of two binary32 numbers is exact in binary64, so that rounding once more gives the binary32 product.
        return float_bits(binary32(binary32(float(signed(q, 32))) * self.step), self.dtype)


def read_sparse(at, count):
    """`count` planes in sparse form, 128 bytes each."""
    tops = [at.unsigned(2) for _ in range(count)]
    maps = [[at.unsigned(1) if top >> j & 1 else 0 for j in range(16)] for top in tops]
    for top, level1 in zip(tops, maps):
        require(all(level1[j] for j in range(16) if top >> j & 1), 'level-1 byte')
    return [bytes(at.unsigned(1) if level1[i // 8] >> i % 8 & 1 else 0 for i in range(128)) for level1 in maps]


def read_residuals(at, tile, seen):
    """Residuals z by row and lane from the planes of a tile."""
    planes = [at.take(128) for _ in range(tile.dense)]
    if planes:
        seen.add('lorenzo dense planes')
    if tile.planes > tile.dense:
        seen.add('lorenzo sparse planes')
        planes += read_sparse(at, tile.planes - tile.dense)
    if tile.planes == 64:
        seen.add('lorenzo 64 planes')
    z = [[0] * 32 for _ in range(32)]
    for p, plane in enumerate(planes):
        for lane, column in enumerate(struct.unpack('<32I', plane)):
            r = 0
            while column:
                if column & 1:
                    z[r][lane] |= 1 << p
                column >>= 1
                r += 1
    return z


def predicted(kind, predictor, residuals, seed, bits):
    """Section 5: codes from residuals, in the order in which a code needs those before it."""
    mask = 2**bits - 1
    d = [[(z >> 1 ^ -(z & 1)) & mask for z in row] for row in residuals]
    if predictor == 0:
        return [[seed + v & mask for v in row] for row in d]
    q = [[0] * 32 for _ in range(32)]
    if kind == LINE:
        one = two = seed
        for x in range(1024):
            value = d[x % 32][x // 32] + (one if predictor == 1 else 2 * one - two) & mask
            q[x % 32][x // 32] = value
            one, two = value, one
        return q
    per_plane = 32 if kind == PLANE else 8
    for r in range(32):
        z, y = divmod(r, per_plane)
        if predictor == 9:
            named_x, steps = True, []
        else:
            named_x = bool(predictor & 1) or predictor == 8
            steps = [] if predictor == 8 else ([1] if predictor & 2 and y else []) + (
                [per_plane] if predictor & 4 and z else [])
        if predictor == 9 and y:
            for l in range(32):
                q[r][l] = d[r][l] + (2 * q[r - 1][l] - q[r - 2][l] if y >= 2 else q[r - 1][l]) & mask
            continue
        e = row_differences(d[r], named_x or not steps, predictor == 8)
        if not steps:
            row_before = None if r == 0 else r - 1 if y else r - per_plane
            start = seed if row_before is None else q[row_before][0] + d[r][0]
            q[r] = [start + v & mask for v in e]
            continue
        for l in range(32):
            value = e[l] + d[r][0] if named_x else e[l]
            for s in steps:
                value += q[r - s][l]
            if len(steps) == 2:
                value -= q[r - steps[0] - steps[1]][l]
            q[r][l] = value & mask
    return q


def row_differences(d, along_x, second):
    """e of a row; with `along_x`, e(l) - e(0), the residuals of lanes 1.. added up once or, for xx, twice."""
    if not along_x:
        return list(d)
    e, slope = [0], 0
    for l in range(1, 32):
        slope = slope + d[l] if second else d[l]
        e.append(e[-1] + slope)
    return e
