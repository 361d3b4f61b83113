"""Chunks of stencil as integer wavelet coefficients and corrections (docs/format-stencil.md, mode 4)."""
from itertools import product
from math import prod

from quern_bytes import require
from quern_stencil_symbols import floor2, level_of, read_distributions, round2

MOST_LEVELS, MOST_WEIGHT, MOST_MAGNITUDE, WEIGHTS = 21, 8191, 4095, 15
NEAREST = 1.5 * 2.0**52
# Which half a step of lifting changes, and what it multiplies the sums of neighbours with; in the order of decoding.
LIFTING = (('s', -29066 * 2.0**-16), ('d', -57862 * 2.0**-16), ('s', 3472 * 2.0**-16), ('d', 103949 * 2.0**-16))

FEATURES = {'stencil wavelet of %d axes' % r for r in range(1, 5)} | {'stencil %d packet axes' % p for p in range(3)}
FEATURES |= {'stencil wavelet feature %d' % k for k in range(WEIGHTS)}
FEATURES |= {'stencil correction feature %d' % k for k in range(11)}
FEATURES |= {'stencil wavelet corrections', 'stencil wavelet without corrections', 'stencil joint axes of unequal levels',
             'stencil joint axes without levels', 'stencil band of negative gain', 'stencil offset below 0',
             'stencil offset above 0', 'stencil wavelet split axis'}


def nearest(v):
    """The nearest integer of a small binary64 number, ties to even."""
    return (v + NEAREST) - NEAREST


def strides_of(extents):
    strides, n = [], 1
    for extent in reversed(extents):
        strides.insert(0, n)
        n *= extent
    return strides


class Band:
    """A box of coefficients, or the chunk's corrections: the magnitudes of what is decoded, and where contexts look."""

    def __init__(self, extents):
        self.extents, self.strides = extents, strides_of(extents)
        self.magnitude = [0] * prod(extents)
        # Other bands, each with the axes along which its place is half of the own.
        self.parents, self.siblings, self.packet_parents = [], [], []

    def at(self, place):
        i = 0
        for p, extent, stride in zip(place, self.extents, self.strides):
            if not 0 <= p < extent:
                return 0
            i += p * stride
        return self.magnitude[i]

    def moved(self, place, axis, step, other=None, sideways=0):
        """The magnitude at a place `step` further along an axis, and `sideways` further along another."""
        if axis < 0:
            return 0
        there = list(place)
        there[axis] += step
        if other is not None:
            if other < 0:
                return 0
            there[other] += sideways
        return self.at(there)

    def around(self, place):
        return sum(self.moved(place, a, s) for a in range(len(place)) for s in (-1, 1))

    def feature(self, number, place):
        rank = len(place)
        column, row, plane = rank - 1, rank - 2, rank - 3
        if number < 2:
            return self.moved(place, column, -1 - number)
        if number == 2:
            return self.moved(place, row, -1)
        if number == 3:
            return sum(self.moved(place, row, -1, column, s) for s in (-1, 1))
        if number == 4:
            return sum(self.moved(place, row, -1, column, s) for s in (-2, 2)) + self.moved(place, row, -2)
        if number == 5:
            return self.moved(place, plane, -1)
        if number == 6:
            return sum(self.moved(place, plane, -1, a, s) for a in (row, column) for s in (-1, 1))
        if number == 7:
            return self.moved(place, plane, -2)
        if number == 8:
            return self.moved(place, rank - 4, -1)
        others = (self.parents, self.siblings, self.packet_parents)[(number - 9) // 2]
        total = 0
        for other, halved in others:
            there = [p >> 1 if a in halved else p for a, p in enumerate(place)]
            total += other.around(there) if (number - 9) % 2 else other.at(there)
        return total


class Axes:
    """The bands of a chunk: what its axes and their levels decide."""

    def __init__(self, extents, packet, levels):
        self.extents, self.rank, self.packet, self.levels = extents, len(extents), packet, levels
        self.joint = range(packet, self.rank)
        self.depth = max(levels[a] for a in self.joint)
        self.bands, self.named = [], {}
        for p, ks in enumerate(product(*(range(levels[a] + 1) for a in range(packet)))):
            self.add(p, ks, self.depth, 0)
            for level in range(self.depth - 1, -1, -1):
                split = self.bits_of(self.split(level))
                classes = [c for c in range(1, 2**self.rank) if c & ~split == 0]
                for cls in sorted(classes, key=lambda c: (bin(c).count('1'), -c)):
                    self.add(p, ks, level, cls)
        self.groups = prod(levels[a] + 1 for a in range(packet)) * (self.depth + 1)

    def places(self, level, axis):
        return (self.extents[axis] - 1 >> level) + 1

    def split(self, level):
        """The joint axes split at a level."""
        return [a for a in self.joint if level < self.levels[a]]

    def bit(self, axis):
        return 1 << self.rank - 1 - axis

    def bits_of(self, axes):
        return sum(self.bit(a) for a in axes)

    def add(self, p, ks, level, cls):
        """The next band: number `p` of the packet bands `ks`."""
        begins, ends, gain = [], [], 0
        for a, k in enumerate(ks):
            here = self.levels[a] - k
            begins.append(self.places(here + 1, a) if k else 0)
            ends.append(self.places(here, a))
            gain += here - 1 if k else self.levels[a]
        for a in self.joint:
            odd = cls & self.bit(a)
            above = min(level + 1, self.levels[a])
            begins.append(self.places(level + 1, a) if odd else 0)
            ends.append(self.places(level if odd else above, a))
            gain += level - 1 if odd else above
        band = Band([e - b for b, e in zip(begins, ends)])
        band.begins, band.gain = begins, gain
        band.group = p * (self.depth + 1) + self.depth - level
        if cls and level + 1 < self.depth:
            halved = self.split(level + 1)
            parent = cls & self.bits_of(halved)
            if parent:
                band.parents = [(self.named[ks, level + 1, parent], halved)]
        if cls:
            band.siblings = [(other, ()) for (k, l, _), other in self.named.items() if k == ks and l == level]
        for a, k in enumerate(ks):
            if k:
                before = ks[:a] + (k - 1,) + ks[a + 1:]
                band.packet_parents.append((self.named[before, level, cls], (a,) if k > 1 else ()))
        self.named[ks, level, cls] = band
        self.bands.append(band)

    def corrections(self):
        """The chunk itself as the band of its corrections."""
        band = Band(list(self.extents))
        halved = [a for a in range(self.packet) if self.levels[a]] + self.split(0)
        last = tuple(self.levels[:self.packet])
        band.parents = [(other, halved) for (k, level, _), other in self.named.items() if k == last and level == 0]
        return band


def read_weights(bits):
    weights = [bits.golomb(7) + 1 if bits.take(1) else 0 for _ in range(WEIGHTS)]
    require(max(weights) <= MOST_WEIGHT, 'weight of a feature')
    return [(k, w) for k, w in enumerate(weights) if w]


def read_constant(bits, order):
    constant = bits.golomb(order)
    require(constant <= MOST_WEIGHT, 'constant of a context')
    return constant


class Model:
    """What a chunk stores after base and unit."""

    def __init__(self, bits, extents, masked, seen):
        self.seen = seen
        require(bits.take(1) == masked, 'masked')
        rank, packet = len(extents), bits.take(2)
        require(rank <= 4, 'axes of a chunk')
        require(packet < rank and packet <= 2, 'packet axes')
        levels = [bits.take(5) for _ in extents]
        for extent, level in zip(extents, levels):
            require(level <= MOST_LEVELS and (level == 0 or (extent - 1 >> level - 1) + 1 >= 2), 'levels of an axis')
        self.axes = axes = Axes(list(extents), packet, levels)
        self.quantum = bits.take(20)
        require(self.quantum >= 1, 'step of coefficients')
        self.offsets = [o - 32 if o >= 16 else o for o in (bits.take(5) for _ in range(2))]
        self.weights = read_weights(bits)
        order = bits.take(4)
        self.constants = [read_constant(bits, order) for _ in range(axes.groups)]
        self.correction_step = 0
        if bits.take(1):
            self.correction_step = bits.take(20)
            require(self.correction_step >= 1, 'step of corrections')
            self.correction_weights = read_weights(bits)
            self.correction_constant = read_constant(bits, 7)
        self.distributions = read_distributions(bits, seen)
        self.note(rank, packet, levels)

    def note(self, rank, packet, levels):
        seen = self.seen
        seen.update(('stencil wavelet of %d axes' % rank, 'stencil %d packet axes' % packet))
        seen.update('stencil wavelet feature %d' % k for k, _ in self.weights)
        if self.correction_step:
            seen.update('stencil correction feature %d' % k for k, _ in self.correction_weights)
        seen.add('stencil wavelet corrections' if self.correction_step else 'stencil wavelet without corrections')
        if len({levels[a] for a in self.axes.joint}) > 1:
            seen.add('stencil joint axes of unequal levels')
        if self.axes.depth == 0:
            seen.add('stencil joint axes without levels')
        if min(band.gain for band in self.axes.bands) < 0:
            seen.add('stencil band of negative gain')
        for o in self.offsets:
            if o:
                seen.add('stencil offset ' + ('below 0' if o < 0 else 'above 0'))

    def step(self, gain):
        f = 2**24
        for _ in range(abs(gain)):
            f = round2((57007 if gain > 0 else 75340) * f, 16)
        return max(1, floor2(self.quantum * f + 2**23, 24))

    def coefficient(self, code, step):
        if code == 0:
            return 0
        m = abs(code)
        size = floor2((64 * m + self.offsets[0 if m == 1 else 1]) * step, 6)
        return -size if code < 0 else size


class Walk:
    """Codes of all bands and of corrections, and what they make of a chunk."""

    def __init__(self, model, lanes, special):
        self.m, self.lanes, self.special, self.row = model, lanes, special, 0

    def codes(self, band, weights, constant, special=()):
        """Places of a band in C order, each with its code."""
        i = 0
        for place in product(*(range(extent) for extent in band.extents)):
            if i and place[-1] == 0:
                self.row += 1
            code = 0
            if i not in special:
                total = constant + sum(w * band.feature(k, place) for k, w in weights)
                lane = self.lanes[self.row % len(self.lanes)]
                code = lane.residual(self.m.distributions[level_of(total)])
                band.magnitude[i] = min(abs(code), MOST_MAGNITUDE)
            yield place, code
            i += 1
        self.row += 1

    def run(self):
        m, axes = self.m, self.m.axes
        strides = strides_of(axes.extents)
        x = [0] * prod(axes.extents)
        for band in axes.bands:
            step = m.step(band.gain)
            for place, code in self.codes(band, m.weights, m.constants[band.group]):
                at = sum((p + b) * s for p, b, s in zip(place, band.begins, strides))
                x[at] = m.coefficient(code, step)
        corrections = [0] * len(x)
        if m.correction_step:
            walk = self.codes(axes.corrections(), m.correction_weights, m.correction_constant, self.special)
            corrections = [code for _, code in walk]
        for lane in self.lanes:
            lane.finish()
        transform_back(axes, strides, x)
        return [int(v) + m.correction_step * c for v, c in zip(x, corrections)]


def transform_back(axes, strides, x):
    for level in range(axes.depth - 1, -1, -1):
        box = [axes.extents[a] for a in range(axes.packet)]
        box += [axes.places(min(level, axes.levels[a]), a) for a in axes.joint]
        for a in reversed(axes.split(level)):
            along(x, strides, box, a)
    for a in range(axes.packet - 1, -1, -1):
        for level in range(axes.levels[a] - 1, -1, -1):
            box = list(axes.extents)
            box[a] = axes.places(level, a)
            along(x, strides, box, a)


def along(x, strides, box, axis):
    """One level of the transform, along an axis in a box."""
    n, stride = box[axis], strides[axis]
    others = [range(0, e * s, s) for a, (e, s) in enumerate(zip(box, strides)) if a != axis]
    for begin in (sum(at) for at in product(*others)):
        line = slice(begin, begin + n * stride, stride)
        x[line] = lift(x[line])


def lift(values):
    n = len(values)
    h = n + 1 >> 1
    s, d = [float(v) for v in values[:h]], [float(v) for v in values[h:]]
    for half, factor in LIFTING:
        if half == 's':
            last = len(d) - 1
            s = [v + nearest((d[max(i - 1, 0)] + d[min(i, last)]) * factor) for i, v in enumerate(s)]
        else:
            last = len(s) - 1
            d = [v + nearest((s[i] + s[min(i + 1, last)]) * factor) for i, v in enumerate(d)]
    out = [0.0] * n
    out[0::2], out[1::2] = s, d
    return out
