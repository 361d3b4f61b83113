"""Chunks of stencil from coarse to fine (docs/format-stencil.md, modes 3, 8 and 9)."""
from itertools import product

from quern_bytes import Cursor, require
from quern_stencil_symbols import MAGNITUDE_LIMIT, floor2, level_of, read_distributions, read_lanes, round2, unzigzag

# For each tightening, sixteenths of a step at levels 0, 1, 2 and from 3 on.
LEVEL_STEPS = ((16, 16, 16, 16), (16, 14, 13, 12), (16, 13, 10, 8), (16, 11, 7, 5))
STORED, BEFORE, NETWORK = 6, 5, 7  # kinds of predictors; 0 is the mean of cubics, 1 + a the cubic along axis a

FEATURES = {'stencil levels of %d axes' % r for r in range(1, 5)}
FEATURES |= {'stencil beside a reference of %d axes' % r for r in range(1, 4)}
FEATURES |= {'stencil predictor kind %d' % k for k in range(8)}
FEATURES |= {'stencil feature %d' % f for f in range(1, 30) if f not in (7, 11, 13, 14, 15)}  # three axes and more
FEATURES |= {'stencil planes', 'stencil linear border', 'stencil mirrored border', 'stencil predictor of the level above',
             'stencil weights of the level above', 'stencil contexts of other planes', 'stencil contexts of set 1',
             'stencil tightening 0', 'stencil tightening 1', 'stencil tightening 2', 'stencil tightening 3',
             'stencil calmest mean', 'stencil curvature', 'stencil class without edges', 'stencil constant context', 'stencil several sections', 'stencil one section'}


class Axes:
    """Places and classes of the levels."""

    def __init__(self, extents, sequential, given=0, edges=False):
        self.given = given  # planes that are a reference
        self.edges = edges  # whether classes have groups that are not linear
        self.extents, self.rank = extents, len(extents)
        self.sequential = sequential and self.rank > 1
        self.hierarchical = list(range(1 if self.sequential else 0, self.rank))
        require(self.rank <= 4, 'axes of a chunk')
        self.planes = extents[0] if self.sequential else 1
        self.top = 0
        while any(self.places(self.top, a) > 1 for a in self.hierarchical):
            self.top += 1

    def places(self, level, axis):
        return (self.extents[axis] - 1 >> level) + 1

    def live(self, level):
        return [a for a in self.hierarchical if self.places(level, a) > 1]

    def bit(self, axis):
        return 1 << self.rank - 1 - axis

    def odd(self, cls):
        return [a for a in range(self.rank) if cls & self.bit(a)]

    def exists(self, level, cls):
        return all(a in self.live(level) for a in self.odd(cls))

    def classes(self, level):
        """The coded classes of a level in their order."""
        if level == self.top:
            return [0]
        known = [c for c in range(1, 2**self.rank) if self.exists(level, c)]
        return sorted(known, key=lambda c: (bin(c).count('1'), -c))

    def known(self, level, cls, other):
        """Whether class `other` is known to `cls`."""
        if other == 0:
            return cls != 0
        order = self.classes(level)
        return other in order and cls in order and order.index(other) < order.index(cls)

    def vector(self, components):
        return tuple(components.get(a, 0) for a in range(self.rank))

    def near(self, level, counts):
        """Near offsets with as many components other than 0 as `counts` allows."""
        live = self.live(level)
        for steps in product((-1, 0, 1), repeat=len(live)):
            if sum(s != 0 for s in steps) in counts:
                yield self.vector(dict(zip(live, steps)))

    def groups(self, level, cls, later):
        """Offsets that share a weight: pairs (an offset, its opposite left out), then single ones."""
        odd, live = self.odd(cls), self.live(level)
        pairs = [self.vector({a: 1}) for a in odd]
        pairs += [self.vector({a: 3}) for a in odd if self.places(level, a) >= 4]
        if cls:
            for offset in self.near(level, (2, 3)):
                towards = sum(self.bit(a) for a in live if offset[a])
                if next(s for s in offset if s) == 1 and self.known(level, cls, cls ^ towards):
                    pairs.append(offset)
        if len(odd) == 1:
            for b in live:
                if b != odd[0]:
                    pairs += [self.vector({odd[0]: 1, b: -2}), self.vector({odd[0]: 1, b: 2})]
        single = []
        if later:
            before = self.vector({0: -1})
            single = [before]
            for offset in self.near(level, (1,) if self.rank == 4 and not self.given else (1, 2)):
                single.append((-1,) + offset[1:])
            if not self.given:
                single.append(self.vector({0: -2}))
        return pairs, single


CALMEST, CURVATURE = 'calmest mean', 'curvature'
MOST_GROUPS = 40
EDGE_FACTORS = {1: 16, 2: 11, 3: 9, 5: 7, 6: 7}  # by the square of the distance


def signed32(value):
    return (value + 2**31) % 2**32 - 2**31


class Predictor:
    """A kind and, for each group, a weight."""

    def __init__(self, axes, level, cls, later, fraction):
        self.pairs, self.single = axes.groups(level, cls, later)
        self.edges = []  # groups that are not linear: what, and the offset of pair 1 along the axis of a curvature
        self.edge_weights = {}
        if axes.edges and cls:
            self.edges = [(CALMEST, None)]
            self.edges += [(CURVATURE, axes.vector({a: 1})) for a in axes.odd(cls) if axes.places(level, a) >= 4]
            del self.edges[MOST_GROUPS - len(self.pairs) - len(self.single):]
        self.axes, self.cls, self.later, self.one = axes, cls, later, 2**fraction

    def read(self, bits, above, seen, networks):
        """`networks`: of which classes the model has some, by number."""
        if above is not None and bits.take(1):
            seen.add('stencil predictor of the level above')
            if above.kind != STORED:
                return self.set_kind(above.kind)
            if (above.pairs, above.single) != (self.pairs, self.single):
                return self.set_kind(0)
            seen.add('stencil weights of the level above')
            self.kind, self.weights, self.edge_weights = STORED, above.weights, above.edge_weights
            return self
        kind = bits.take(3)
        require(kind != NETWORK or self.cls in networks, 'a class without a network')
        require(not 1 <= kind <= 4 or kind - 1 in self.axes.odd(self.cls), 'axis of a predictor')
        require(kind != BEFORE or self.later, 'plane before the first')
        require(kind < STORED or self.cls or self.later, 'weights of the first point')
        seen.add('stencil predictor kind %d' % kind)
        if kind < STORED:
            return self.set_kind(kind)
        with_edges = self.edges and bits.take(1)
        if self.edges and not with_edges:
            seen.add('stencil class without edges')
        order = bits.take(4)
        if kind == NETWORK:
            self.single = self.single + [self.axes.vector({})]
            if self.edges:
                seen.add('stencil network beside edges')
        self.kind, self.weights = kind, [bits.zigzag(order) for _ in self.pairs + self.single]
        total = sum(abs(w) * (2 if i < len(self.pairs) else 1) for i, w in enumerate(self.weights))
        if with_edges:
            self.edge_weights = {edge: bits.zigzag(order) for edge in self.edges}
            seen.update('stencil ' + what for (what, _), w in self.edge_weights.items() if w)
            total += sum(abs(w) for w in self.edge_weights.values())
        require(total <= 4 * self.one, 'sum of weights')
        return self

    def set_kind(self, kind):
        self.kind, self.weights = kind, [0] * (len(self.pairs) + len(self.single))
        if kind == BEFORE or self.cls == 0:
            if self.later:
                self.weights[len(self.pairs)] = self.one
            return self
        taken = self.axes.odd(self.cls) if kind == 0 else [kind - 1]
        for a in taken:
            outer = self.axes.vector({a: 3})
            third = 0
            if outer in self.pairs:
                third = -(self.one // 16 // len(taken))
                self.weights[self.pairs.index(outer)] = third
            self.weights[self.pairs.index(self.axes.vector({a: 1}))] = self.one // 2 // len(taken) - third
        first = self.pairs.index(self.axes.vector({taken[0]: 1}))
        self.weights[first] += self.one // 2 - sum(self.weights)
        return self


def features(axes, level, cls, later):
    """Numbers of the features a class has at a level."""
    live, odd, rank = axes.live(level), axes.odd(cls), axes.rank
    numbers = []
    for number in range(1, 2**rank):
        along = axes.odd(number)
        if len(along) <= 2 and all(a in live for a in along) and axes.known(level, cls, cls ^ number):
            numbers.append(number)
    if cls and rank >= 2 and rank - 2 in axes.hierarchical:
        numbers += [16, 17]
    if cls and rank >= 3 and rank - 3 in axes.hierarchical:
        numbers.append(18)
    if later and not axes.given:
        numbers += [19, 20]
    numbers += [21 + a for a in odd] + [25 + a for a in odd]
    return numbers + [29] if later else numbers


class Model:
    def __init__(self, bits, head, extents, sequential, masked, seen, given=0, networks=None, edges=False):
        self.networks = networks
        self.axes = axes = Axes(extents, sequential, given, edges)
        self.seen = seen
        if given:
            seen.add('stencil beside a reference of %d axes' % (axes.rank - 1))
        else:
            seen.add('stencil levels of %d axes' % axes.rank)
        self.linear = bits.take(1)
        seen.add('stencil linear border' if self.linear else 'stencil mirrored border')
        self.tightening = bits.take(2)
        seen.add('stencil tightening %d' % self.tightening)
        require(bits.take(1) == masked, 'masked')
        if masked or given:
            self.low, self.high = (unzigzag(bits.take(50)) for _ in range(2))
            require(self.low <= self.high, 'limits of special elements')
        self.later_kinds = [True] if given else [False, True] if axes.planes > 1 else [False]
        if axes.sequential and not given:
            seen.add('stencil planes')
        fits = networks is not None and not axes.sequential and networks.axes == axes.rank
        self.predictors = {}
        for level in range(axes.top, -1, -1):
            for later in self.later_kinds:
                for cls in axes.classes(level):
                    above = self.predictors.get((level + 1, later, cls)) if level + 1 < axes.top else None
                    self.predictors[level, later, cls] = Predictor(axes, level, cls, later, head.fraction).read(
                        bits, above, seen, networks.classes if fits and level == 0 else ())
        self.stored = {}
        for number in range(2 if axes.top > 0 else 1):
            for later in self.later_kinds:
                for cls in axes.classes(number) + ([0] if number == 1 and axes.top > 1 else []):
                    self.stored[number, later, cls] = self.read_context(bits, number, cls, later)
        self.distributions = read_distributions(bits, seen)

    def read_context(self, bits, level, cls, later):
        """Weights by feature and the constant, or None."""
        if not bits.take(1):
            return None
        weights = {}
        for number in features(self.axes, level, cls, later):
            if bits.take(1):
                weights[number] = bits.golomb(5) + 1
                self.seen.add('stencil feature %d' % number)
        constant = bits.golomb(5)
        require(max(list(weights.values()) + [constant]) <= 4095, 'weight of a context')
        return weights, constant

    def context(self, level, cls, later):
        """The weights of the features that a class has at a level, and the constant."""
        own = min(level, 1)
        for number in range(own, 2):
            for kind in (later, not later):
                found = self.stored.get((number, kind, cls))
                if found:
                    if kind != later:
                        self.seen.add('stencil contexts of other planes')
                    elif number != own:
                        self.seen.add('stencil contexts of set 1')
                    there = features(self.axes, level, cls, later)
                    return {f: w for f, w in found[0].items() if f in there}, found[1]
        self.seen.add('stencil constant context')
        return {}, 2048


class Walk:
    """X and residuals of a chunk's elements, level after level."""

    def __init__(self, model, head):
        self.m, self.head, self.axes = model, head, model.axes
        self.strides, n = [], 1
        for extent in reversed(self.axes.extents):
            self.strides.insert(0, n)
            n *= extent
        self.x, self.magnitude = [0] * n, [0] * n
        self.given = n // 2 * self.axes.given  # elements of the reference, which come first
        self.level = 0
        self.section_ends = []  # in the bytes of the chunk, of all but the last

    def along(self, axis, place, linear):
        """Where a place along an axis takes its value from: coordinates and factors."""
        if not self.axes.sequential or axis > 0:
            n = self.axes.places(self.level, axis)
            parity = place & 1
            if linear and not 0 <= place < n:
                m = (n - parity + 1) // 2
                i = (place - parity) // 2
                at = lambda k: 2 * k + parity << self.level
                if m == 1:
                    return [(at(0), 1)]
                if i < 0:
                    return [(at(0), 1 - i), (at(1), i)]
                j = i - m + 1
                return [(at(m - 1), 1 + j), (at(m - 2), -j)]
            while not 0 <= place < n:
                place = 0 if n == 1 else -place if place < 0 else 2 * (n - 1) - place
            return [(place << self.level, 1)]
        return [(max(place, 0), 1)]

    def value(self, places, offset, linear_axes):
        total = [(0, 1)]
        for a, (place, step) in enumerate(zip(places, offset)):
            terms = self.along(a, place + step, a in linear_axes)
            total = [(at + c * self.strides[a], f * g) for at, f in total for c, g in terms]
        return sum(f * self.x[at] for at, f in total)

    def edge(self, predictor, what, offset, places, linear_axes):
        """The value of a group that is not linear."""
        at = lambda steps, along: signed32(self.value(places, tuple(steps * s for s in along), linear_axes))
        if what == CURVATURE:
            far, near, next_one, last = (at(k, offset) for k in (-3, -1, 1, 3))
            limit = abs(signed32(next_one - near)) % 2**32 >> 2
            return max(min(signed32(near + next_one - far - last) >> 4, limit), -limit)
        best = None
        for along in predictor.pairs:
            if max(abs(s) for s in along) > 2:
                continue
            first, second = at(1, along), at(-1, along)
            factor = EDGE_FACTORS[sum(s * s for s in along)]
            distance = abs(signed32(first - second)) * factor % 2**32
            if best is None or distance < best[0]:
                best = distance, signed32(first + second) >> 1
        return best[1]

    def size(self, places, offset):
        """Magnitude of the residual at an offset."""
        at = 0
        for a, (place, step) in enumerate(zip(places, offset)):
            at += self.along(a, place + step, False)[0][0] * self.strides[a]
        return self.magnitude[at]

    def feature(self, number, places, p):
        axes, rank = self.axes, self.axes.rank
        last = [rank - 1] if self.m.linear else []
        if number < 16:
            steps = [(-1, 1) if number & axes.bit(a) else (0,) for a in range(rank)]
            return sum(self.size(places, offset) for offset in product(*steps))
        if number < 19:
            axis = rank - 3 if number == 18 else rank - 2
            if places[axis] < 2:
                return 0
            across = (-2, 2) if number == 17 else (0,)
            return sum(self.size(places, axes.vector({axis: -2, rank - 1: c} if c else {axis: -2})) for c in across)
        if number == 19:
            return self.size(places, axes.vector({0: -1}))
        if number == 20:
            return sum(self.size(places, axes.vector({0: -1, a: s})) for a in axes.live(self.level) for s in (-1, 1))
        if number == 29:
            spread = abs(self.value(places, axes.vector({0: -1}), last) - p) << 6
        else:
            a = (number - 21) % 4
            below, above = (self.value(places, axes.vector({a: s}), last) for s in (-1, 1))
            spread = abs(below + above - 2 * p if number < 25 else above - below) << 5
        return min(floor2(spread, self.head.value_bits), 2**16 - 1)

    def context_sum(self, weights, constant, places, p):
        total, spread = constant, 0
        for number, weight in weights.items():
            if number < 21:
                total += weight * self.feature(number, places, p)
            else:
                spread += weight * self.feature(number, places, p)
        return total + floor2(spread, 6)

    def points(self, level, cls, plane):
        """Places of a class in a plane, in C order."""
        ranges = []
        for a in range(self.axes.rank):
            if self.axes.sequential and a == 0:
                ranges.append([plane])
            elif level == self.axes.top:
                ranges.append([0])
            else:
                ranges.append(range(1 if cls & self.axes.bit(a) else 0, self.axes.places(level, a), 2))
        return product(*ranges)

    def one_class(self, cls, plane, lanes, special, index):
        later, m = plane > 0, self.m
        predictor = m.predictors[self.level, later, cls]
        groups = list(zip(predictor.weights, predictor.pairs + predictor.single))
        taps = [(w, offset) for w, offset in groups if w]
        taps += [(w, tuple(-s for s in offset)) for w, offset in groups[:len(predictor.pairs)] if w]
        weights, constant = m.context(self.level, cls, later)
        network = None
        if predictor.kind == NETWORK:
            network = m.networks.classes[cls]
            network_weight = predictor.weights[-1]
            taps = [(w, offset) for w, offset in taps if any(offset)]
        linear = self.axes.hierarchical if m.linear else []
        ends = [a for a in linear if a >= self.axes.rank - 2]
        edges = [(w, edge) for edge, w in predictor.edge_weights.items() if w]
        quantum = max(1, (LEVEL_STEPS[m.tightening][min(self.level, 3)] << self.head.value_bits) // 16)
        for places in self.points(self.level, cls, plane):
            at = sum((q if self.axes.sequential and a == 0 else q << self.level) * self.strides[a]
                     for a, q in enumerate(places))
            total = sum(w * self.value(places, offset, linear) for w, offset in taps)
            if network:
                total += network_weight * self.network_value(network, cls, places)
            total += sum(w * self.edge(predictor, *edge, places, ends) for w, edge in edges)
            p = round2(total, self.head.fraction)
            if at - self.given in special:
                self.x[at] = min(max(p, m.low), m.high)
            else:
                level = level_of(self.context_sum(weights, constant, places, p))
                residual = lanes[index % len(lanes)].residual(m.distributions[level])
                self.x[at] = p + residual * quantum
                self.magnitude[at] = min(abs(residual), MAGNITUDE_LIMIT)
            if self.axes.edges:
                require(abs(self.x[at]) < 2**26 and self.magnitude[at] < 2**16, 'values beside edges')
            index += 1
        return index

    def network_offsets(self, cls):
        """Offsets of all points that a network of a class may look at, nearest first."""
        reach = [range(-3, 4) if cls & self.axes.bit(a) else range(-2, 3) for a in range(self.axes.rank)]
        order = [0] + sorted(range(1, 2**self.axes.rank), key=lambda c: (bin(c).count('1'), -c))
        known = order[:order.index(cls)]
        lies_in = lambda offset: cls ^ sum(self.axes.bit(a) for a, s in enumerate(offset) if s & 1)
        return sorted((o for o in product(*reach) if lies_in(o) in known), key=lambda o: (sum(s * s for s in o), o))

    def network_value(self, network, cls, places):
        """What a network makes of a point."""
        n = network.input.channels - 1
        last = [self.axes.rank - 1] if self.m.linear else []
        values = [self.value(places, offset, last) for offset in self.network_offsets(cls)[:n]]
        values = [min(max(v, -2**44), 2**44) for v in values]
        require(len(values) == n, 'points that a network reads')
        nearest = 2 * bin(cls).count('1')
        require(nearest <= n, 'points that a network reads')
        base = sum(values[:nearest]) // nearest
        distances = [v - base for v in values]
        scale = max(sum(map(abs, distances)).bit_length() - (n.bit_length() - 1), 0)
        inputs = [min(max((d << 12) >> scale, -32767), 32767) for d in distances]
        out = network.run(inputs + [(scale - self.head.value_bits) * 512])[0]
        return base + ((out << scale) + 2**14 >> 15)

    def set_reference(self, values):
        """Reference elements as numbers, in C order."""
        low, high = self.m.low, self.m.high
        inverse, last = 1 / self.head.unit, float(low)
        for i, value in enumerate(values):
            at = (value - self.head.base) * inverse
            if low - (high - low) <= at <= high + (high - low):
                last = min(max(round(at), low), high)
            self.x[i] = int(last)

    def run(self, cursor, special):
        top = self.axes.top
        own = cursor.unsigned(1)
        require(own <= top, 'levels with sections of their own')
        self.m.seen.add('stencil several sections' if own else 'stencil one section')
        sizes = [cursor.varint(2**31) for _ in range(own)]
        self.section_ends = [cursor.at + sum(sizes[:i + 1]) for i in range(own)]
        sections = [cursor.take(size) for size in sizes] + [cursor.take(cursor.end - cursor.at)]
        lanes = []
        for level in range(top, -1, -1):
            self.level = level
            if level == top or level < own:
                section_bytes = sections[own - min(level, own)]
                section = Cursor(section_bytes, 0, len(section_bytes))
                lane_bits = section.unsigned(1)
                require(lane_bits <= 5, 'lane bits')
                lanes = read_lanes(section, lane_bits)
                self.m.seen.add('stencil levels ' + ('several lanes' if len(lanes) > 1 else 'one lane'))
            counts = {}
            for plane in range(self.axes.given, self.axes.planes):
                for cls in self.axes.classes(level):
                    counts[cls] = self.one_class(cls, plane, lanes, special, counts.get(cls, 0))
            if level <= own:
                for lane in lanes:
                    lane.finish()
        return self.x[self.given:]
