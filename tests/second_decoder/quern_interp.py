"""Codec 4, interp (docs/format-interp.md)."""
from math import prod

from quern_bytes import Cursor, require
from quern_stencil import Scale
from quern_stencil_symbols import Bits, level_of, read_distributions, read_lanes

RAW, CONSTANT, NARROW, WIDE = range(4)
CLASSES = [4, 2, 1, 6, 5, 3, 7]
KINDS = ['linear', 'cubic', 'natural']
INNER = [(0, 32, 32, 0), (-4, 36, 36, -4), (-5, 37, 37, -5)]
ANCHOR_BIN = 63

FEATURES = {'interp constant chunk', 'interp several chunks', 'interp narrow', 'interp wide', 'interp exceptions',
            'interp mask', 'interp several lanes'}
FEATURES |= {'interp predictor ' + kind for kind in KINDS} | {'interp mean of %d' % n for n in (1, 2, 3)}
FEATURES |= {'interp on ' + t for t in ('f16', 'bf16', 'f32', 'f64', 'i8', 'i16', 'i32', 'u8', 'u16', 'u32')}


def odd_axes(cls):
    return [a for a in range(3) if cls >> a & 1]


class Codec:
    def __init__(self, header, seen):
        self.dtype, self.width, self.seen = header.dtype, header.width, seen
        self.section_ends = None
        require(self.dtype not in ('i64', 'u64'), 'element type')
        at = Cursor(header.params, 0, len(header.params))
        first, second = at.unsigned(1), at.unsigned(1)
        require(first <= second <= len(header.shape), 'merged axes')
        self.logs = [at.unsigned(1) for _ in range(3)]
        require(1 <= sum(self.logs) <= 12, 'tile')
        self.top = max(self.logs)
        self.predictors = {}
        for level, cls in self.classes():
            byte = at.unsigned(1)
            axes, kind = odd_axes(byte & 7), byte >> 3
            require(axes and not byte & 7 & ~cls and kind < 3, 'predictor')
            self.predictors[level, cls] = axes, kind
        require(at.done(), 'bytes left over in the parameters')
        groups = [header.shape[:first], header.shape[first:second], header.shape[second:]]
        grid = [prod(group) for group in groups]
        self.grid = grid, self.chunk_extents(grid)
        merged = any(log and sum(e > 1 for e in group) > 1 for log, group in zip(self.logs, groups))
        require(not header.level_tables or not merged, 'level tables without levels')
        seen.add('interp on ' + self.dtype)
        if self.grid[1] != grid:
            seen.add('interp several chunks')

    def chunk_extents(self, grid):
        whole = [max(e, 1) for e in grid]
        most = [(e - 1 >> t) + 1 for e, t in zip(whole, self.logs)]
        tiles, grown = [1, 1, 1], True
        while grown:
            grown = False
            for a in (2, 1, 0):
                more = [2 * c if b == a else c for b, c in enumerate(tiles)]
                if tiles[a] < most[a] and prod(min(c << t, e) for c, t, e in zip(more, self.logs, whole)) <= 2**19:
                    tiles, grown = more, True
        chunks = [-(-m // c) for m, c in zip(most, tiles)]
        return [min(-(-m // k) << t, e) for m, k, t, e in zip(most, chunks, self.logs, whole)]

    def classes(self):
        for level in range(self.top - 1, -1, -1):
            for cls in CLASSES:
                if all(self.logs[a] > level for a in odd_axes(cls)):
                    yield level, cls

    def chunk(self, data, extents, special):
        n = prod(extents)
        cursor = Cursor(data, 0, len(data))
        self.section_ends = None
        mode = cursor.unsigned(1)
        require(mode <= WIDE, 'mode')
        if mode in (RAW, CONSTANT):
            elements = cursor.take(n * self.width if mode == RAW else self.width)
            require(cursor.done(), 'bytes left over in a chunk')
            if mode == CONSTANT:
                self.seen.add('interp constant chunk')
            return elements if mode == RAW else elements * n
        self.seen.add('interp narrow' if mode == NARROW else 'interp wide')
        if special is not None:
            self.seen.add('interp mask')
        bits = Bits(cursor)
        scale = Scale(bits)
        fraction = bits.take(4)
        require(fraction <= 10, 'fraction bits')
        scale.unit = scale.step / 2**fraction
        contexts = {key: (bits.take(12), bits.take(16)) for key in self.classes()}
        distributions = read_distributions(bits, self.seen)
        exceptions, least = [], 0
        for _ in range(cursor.varint(n)):
            index = cursor.unsigned(3)
            require(least <= index < n, 'place of an exception')
            exceptions.append((index, cursor.take(self.width)))
            least = index + 1
            self.seen.add('interp exceptions')
        walk = Walk(self, extents, fraction, 32 if mode == NARROW else 64)
        self.section_ends = walk.run(cursor, contexts, distributions)
        elements = [scale.element(x, self.dtype, self.width) for x in walk.values]
        for index, element in exceptions:
            elements[index] = element
        return b''.join(elements)


class Walk:
    def __init__(self, codec, extents, fraction, bits):
        self.codec, self.extents, self.fraction, self.bits = codec, extents, fraction, bits
        self.values, self.sizes = [0] * prod(extents), [0] * prod(extents)

    def wrap(self, v):
        v &= (1 << self.bits) - 1
        return v - (1 << self.bits) if v >> self.bits - 1 else v

    def at(self, place):
        return (place[0] * self.extents[1] + place[1]) * self.extents[2] + place[2]

    def run(self, cursor, contexts, distributions):
        """Decodes all; returns where sections but the last end."""
        top = self.codec.top
        count = min(top, 2) + 1
        sizes = [cursor.varint(2**32 - 1) for _ in range(count - 1)]
        ends = []
        for section in range(count):
            end = cursor.at + sizes[section] if section < count - 1 else cursor.end
            require(end <= cursor.end, 'size of a section')
            part = Cursor(cursor.data, cursor.at, end)
            lane_bits = part.unsigned(1)
            require(lane_bits <= 5, 'lane bits')
            self.lanes, self.number = read_lanes(part, lane_bits), 0
            if lane_bits:
                self.codec.seen.add('interp several lanes')
            cursor.at = end
            ends.append(end)
            if section == 0:
                self.anchors(distributions[ANCHOR_BIN])
            levels = range(top - 1, count - 2, -1) if section == 0 else [count - 1 - section]
            for level in levels:
                for cls in [c for k, c in self.codec.classes() if k == level]:
                    self.one_class(level, cls, contexts[level, cls], distributions)
            for lane in self.lanes:
                lane.finish()
        return ends[:-1]

    def residual(self, distribution):
        lane = self.lanes[self.number % len(self.lanes)]
        self.number += 1
        return lane.residual(distribution)

    def set(self, place, predicted, code):
        self.values[self.at(place)] = self.wrap(predicted + (code << self.fraction))

    def anchors(self, distribution):
        steps = [2**t for t in self.codec.logs]
        for z in range(0, self.extents[0], steps[0]):
            for y in range(0, self.extents[1], steps[1]):
                for x in range(0, self.extents[2], steps[2]):
                    before = None
                    for a, place in reversed(list(enumerate((z, y, x)))):
                        if place:
                            before = [z, y, x][:a] + [place - steps[a]] + [0] * (2 - a)
                            break
                    predicted = self.values[self.at(before)] if before else 0
                    self.set((z, y, x), predicted, self.residual(distribution))

    def moved(self, place, axis, by):
        return [p + by if a == axis else p for a, p in enumerate(place)]

    def along(self, place, axis, level, kind):
        h, extent, tile = 2**level, self.extents[axis], 2**self.codec.logs[axis]
        p = place[axis]
        low = p - p % tile
        before = p - 3 * h >= low
        after = p + h < extent
        later = p + 3 * h < extent and p + 3 * h <= low + tile
        if not after:
            weights = (-32, 96, 0, 0) if before else (0, 64, 0, 0)
        elif kind == 0 or not before and not later:
            weights = (0, 32, 32, 0)
        elif not before:
            weights = (0, 24, 48, -8)
        elif not later:
            weights = (-8, 48, 24, 0)
        else:
            weights = INNER[kind]
        total = sum(w * self.values[self.at(self.moved(place, axis, k * h))]
                    for k, w in zip((-3, -1, 1, 3), weights) if w)
        return self.wrap(total + 32) >> 6

    def predicted(self, place, level, cls):
        axes, kind = self.codec.predictors[level, cls]
        self.codec.seen.add('interp predictor ' + KINDS[kind])
        self.codec.seen.add('interp mean of %d' % len(axes))
        parts = [self.along(place, a, level, kind) for a in reversed(axes)]
        if len(parts) == 1:
            return parts[0]
        if len(parts) == 2:
            return self.wrap(parts[0] + parts[1] + 1) >> 1
        a, b, c = parts
        return self.wrap(a + (self.wrap((b - a + c - a) * 85 + 128) >> 8))

    def one_class(self, level, cls, context, distributions):
        h, odd = 2**level, odd_axes(cls)
        ranges = []
        for a in range(3):
            t = self.codec.logs[a]
            step = 2 * h if t > level else 2**t
            ranges.append(range(h if a in odd else 0, self.extents[a], step))
        # No point sees another of its class.
        for z in ranges[0]:
            for y in ranges[1]:
                for x in ranges[2]:
                    place = (z, y, x)
                    spread = 0
                    for a in odd:
                        below = self.sizes[self.at(self.moved(place, a, -h))]
                        inside = place[a] + h < self.extents[a]
                        spread += below + (self.sizes[self.at(self.moved(place, a, h))] if inside else below)
                    spread *= 6 // len(odd)
                    code = self.residual(distributions[level_of(spread * context[0] + context[1])])
                    self.set(place, self.predicted(place, level, cls), code)
                    self.sizes[self.at(place)] = min(abs(code), 2**14 - 1)
