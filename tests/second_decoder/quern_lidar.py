#!/usr/bin/env python3
"""Second decoder of coded scans, from docs/format-lidar.md alone.

usage: quern_lidar.py FOLDER      decodes every NAME.scan and compares with NAME.points
"""
import math
import pathlib
import struct
import sys

from quern_bytes import Cursor, M64, Malformed, require, xxh3

WIDTHS = (1, 2, 4, 8)


def quotient(a, b):
    """Division towards zero."""
    return a // b if (a >= 0) == (b >= 0) else -(-a // b)


def clamp(value, low, high):
    return max(low, min(high, value))


def unzigzag(n):
    return n >> 1 if n % 2 == 0 else -(n >> 1) - 1


# Chapter 2: decisions.

class Coder:
    def __init__(self, data):
        self.data, self.at, self.range, self.code = data, 0, 2**32 - 1, 0
        for _ in range(4):
            self.code = self.code << 8 | self.byte()
        require(self.code < self.range, 'a code begins beyond its range')

    def byte(self):
        self.at += 1
        return self.data[self.at - 1] if self.at <= len(self.data) else 0

    def normalize(self):
        while self.range < 2**24:
            self.code = (self.code << 8 | self.byte()) % 2**32
            self.range = self.range << 8
        require(self.at <= len(self.data) + 3, 'coded bytes end too early')

    def bit(self, one):
        bound = (self.range >> 15) * (32 + ((65536 - one) * 32704 >> 16))
        if self.code < bound:
            self.range = bound
            value = 0
        else:
            self.code -= bound
            self.range -= bound
            value = 1
        self.normalize()
        return value

    def direct(self, count):
        self.range >>= count
        value = self.code // self.range
        require(value < 1 << count, 'a direct value beyond its range')
        self.code -= value * self.range
        self.normalize()
        return value

    def finish(self):
        require(self.at >= len(self.data) + 3, 'coded bytes are left')


RATES = [131072 // (2 * age + 3) for age in range(21)]


class Counter:
    __slots__ = ('one', 'age')

    def __init__(self):
        self.one, self.age = 32768, 0

    def learn(self, bit):
        self.one += (65535 * bit - self.one) * RATES[self.age] >> 16
        self.age = min(self.age + 1, 20)

    def code(self, coder):
        bit = coder.bit(max(self.one, 1))
        self.learn(bit)
        return bit


ROOTS = (0x16A09E667, 0x1306FE0A3, 0x1172B83C7, 0x10B5586CF, 0x1059B0D31, 0x102C9A3E7, 0x10163DA9F, 0x100B1AFA5)


def squash_of(x):
    value = 1 << 32
    for k in range(8):
        if abs(x) >> (7 - k) & 1:
            value = (value >> 16) * (ROOTS[k] >> 1) >> 15
    value <<= abs(x) >> 8
    small = 2**48 // (2**32 + value)
    return clamp(small if x < 0 else 65536 - small, 1, 65535)


SQUASH = [squash_of(x) for x in range(-3071, 3072)]


def squash(x):
    return SQUASH[clamp(x, -3071, 3071) + 3071]


def stretches():
    at, table = 0, []
    for i in range(4096):
        while at + 1 < len(SQUASH) and SQUASH[at] < 16 * i + 8:
            at += 1
        table.append(at - 3071)
    return table


STRETCH = stretches()
FIRST_MAP = [squash((j - 16) * 192) for j in range(33)]


def hashed(a, b=0):
    u = (a * 0x9E3779B97F4A7C15 + b * 0xC2B2AE3D27D4EB4F) & M64
    u ^= u >> 29
    return (u * 0xBF58476D1CE4E5B9 & M64) >> 32


def table_bits(items):
    return clamp(items.bit_length() + 2, 8, 17)


class Mixer:
    """Tables, weights and maps come to be when they are first used."""

    def __init__(self, contexts, bits):
        self.contexts, self.bits = contexts, bits
        self.counters = [{} for _ in range(contexts)]
        self.weights = ({}, {})
        self.maps = {}

    def set_of(self, family, number):
        if number not in self.weights[family]:
            self.weights[family][number] = [14750 // self.contexts] * self.contexts + [0] * self.contexts
        return self.weights[family][number]

    def code(self, coder, hashes, first, second, map_number):
        counters = []
        for table, h in zip(self.counters, hashes):
            place = h >> (32 - self.bits)
            if place not in table:
                table[place] = Counter()
            counters.append(table[place])
        trusts = [256 * c.age // (c.age + 1) for c in counters]
        inputs = [STRETCH[c.one >> 4] * t >> 8 for c, t in zip(counters, trusts)]
        inputs += [(c.one - 32768) * t >> 13 for c, t in zip(counters, trusts)]
        sets = (self.set_of(0, first), self.set_of(1, second))
        sums = [sum(i * w for i, w in zip(inputs, s)) >> 14 for s in sets]
        x = clamp(sum(sums) >> 1, -3071, 3071)
        chosen = self.maps.setdefault(map_number, list(FIRST_MAP))
        j, s = divmod(x + 3072, 192)
        mapped = (chosen[j] * (192 - s) + chosen[j + 1] * s) // 192
        bit = coder.bit(clamp((squash(x) + mapped) // 2, 1, 65535))
        target = 65535 * bit
        for weights, d in zip(sets, sums):
            step = quotient(target - squash(d), 2)
            for i, value in enumerate(inputs):
                weights[i] = clamp(weights[i] + (((2 * value * step >> 16) + 1) >> 1), -30000, 30000)
        for k in (j, j + 1):
            chosen[k] += quotient(target - chosen[k], 64)
        for counter in counters:
            counter.learn(bit)
        return bit


class Number:
    def __init__(self):
        self.longer = [Counter() for _ in range(64)]
        self.below = {}

    def code(self, coder):
        length = 0
        while length < 64 and self.longer[length].code(coder):
            length += 1
        if length <= 1:
            return length
        result, left = 1, length - 1
        counters = self.below.setdefault(length, [Counter() for _ in range(3)])
        for _ in range(min(left, 2)):
            result = result << 1 | counters[result - 1].code(coder)
            left -= 1
        while left:
            count = min(left, 8)
            result = result << count | coder.direct(count)
            left -= count
        return result


# Chapter 3: blocks.

def bit_of_window(steps):
    return 16 * (steps[0] + 1) + 4 * (steps[1] + 1) + steps[2] + 1


STEPS = [(x, y, z) for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1)]
AROUND = [s for s in STEPS if s != (0, 0, 0)]
FACES = sum(1 << bit_of_window(s) for s in AROUND if sum(map(abs, s)) == 1)
EDGES = sum(1 << bit_of_window(s) for s in AROUND if sum(map(abs, s)) == 2)
FACE_STEPS = ((-1, 0, 0), (1, 0, 0), (0, -1, 0), (0, 1, 0), (0, 0, -1), (0, 0, 1))


def ones(n):
    return bin(n).count('1')


def weight(window):
    return ones(window) + ones(window & FACES)


def moved(at, step, times=1):
    return tuple(a + times * s for a, s in zip(at, step))


class View:
    """What the sensor sees of a node's children."""

    def __init__(self, header, block, below, node):
        self.shift = below + header['centred']
        self.origin, self.node = block['origin'], node
        self.roots = [math.isqrt(self.centre(2 * node[0] + (i >> 1), 0)**2 + self.centre(2 * node[1] + (i & 1), 1)**2)
                      for i in range(4)]
        self.band = self.halves(2 * self.roots[0] * header['spacing'] // header['per_metre'])
        self.distance = self.halves(self.roots[0] >> (self.shift + 1))
        height = quotient(2 * self.centre(2 * node[2] + 1, 2) * header['spacing'], header['per_metre']) + 40
        self.height = clamp(height, 0, 63)

    def centre(self, at, axis):
        return clamp(2 * self.origin[axis] + ((2 * at + 1) << self.shift), -2**28, 2**28)

    @staticmethod
    def halves(n):
        return min(15, (min(n + 1, 65535)**2).bit_length() - 1)

    def elevation(self, child):
        scaled = clamp(600 * self.centre(2 * self.node[2] + (child & 1), 2), -2**30, 2**30)
        return clamp(scaled * (2**32 // (self.roots[child >> 1] + 1)) >> 32, -2**20, 2**20)

    def layer(self, child):
        return (2 * self.node[2] + (child & 1)) % 2**16


def child_at(node, child):
    return (2 * node[0] + (child >> 2), 2 * node[1] + (child >> 1 & 1), 2 * node[2] + (child & 1))


def code_occupancy(coder, mixer, header, block, level, node, places, children, found_before):
    """`places`: nodes of the level and their order. `children`: those that exist so far."""
    below = block['depth'] - 1 - level
    g, fine = min(below, 5), min(below, 3)
    view = View(header, block, below, node)
    here = places[node]
    faces = sum((moved(node, s) in places) << i for i, s in enumerate(FACE_STEPS))
    m = sum(moved(node, s) in places for s in AROUND)
    path, found = 1, []
    for child in range(8):
        bit = 1
        if child < 7 or found:
            at = child_at(node, child)
            full = possible = 0
            for step in AROUND:
                other = moved(at, step)
                parent = tuple(a >> 1 for a in other)
                order = places.get(parent, -1)
                if order < 0:
                    continue
                if order < here or (order == here and other in found_before):
                    full |= (other in children) << bit_of_window(step)
                elif order > here:
                    possible |= 1 << bit_of_window(step)
            k, u, o = weight(full), weight(possible), min(len(found), 3)
            c = 2 if k > 2 else 1 if k > 0 else 0
            hashes = (
                hashed(path + (faces << 8) + (fine << 14) + ((m > 12) << 16), 1),
                hashed(full & (FACES | EDGES), 8 * (possible & FACES) + child),
                hashed(child + (g << 3) + (min(k, 15) << 6) + (min(u, 15) << 10) + (o << 14), 2),
                hashed(view.layer(child) + (level << 16), view.band),
                hashed(view.elevation(child), view.distance + (c << 4) + ((o > 0) << 6) + 128),
                hashed(full, 8 * (possible & FACES) + child + 2**60),
                hashed((full | possible) & (FACES | EDGES), child + (fine << 3) + 2**32),
                hashed(path + (g << 8) + (view.height << 12) + (view.band << 20), 3))
            bit = mixer.code(coder, hashes, (8 * g + child) * 8 + min((k + 1) // 2, 7),
                             min((m + 1) // 2, 13) + 14 * (o + 4 * view.distance),
                             child + 8 * min(k, 15) + 128 * min(u // 2, 7))
        path = path << 1 | bit
        at = child_at(node, child)
        found_before.add(at)
        if bit:
            found.append(at)
            children.add(at)
    return found


def code_halves(coder, mixer, places, halves, cube):
    here = places[cube]

    def coded(other):
        order = places.get(other, -1)
        return halves[order] if 0 <= order < here else -1

    odd = even = behind = 0
    for q in range(1, 8):
        step = (q >> 2, q >> 1 & 1, q & 1)
        odd |= (coded(moved(cube, step, -1)) > 1) << q
        other = moved(cube, step)
        even |= (coded(other) > 0 and coded(other) % 2 == 1) << q
        behind |= (places.get(other, -1) > here) << q
    sides = sum(max(coded(moved(cube, FACE_STEPS[2 * axis])), 0) << (2 * axis) for axis in range(3))
    around = [coded(moved(cube, s)) for s in AROUND if moved(cube, s) in places]
    a = min(sum(h % 2 for h in around if h > 0), 15)
    b = min(sum(h >> 1 for h in around if h > 0), 15)
    m, faces = len(around), sum((moved(cube, s) in places) << i for i, s in enumerate(FACE_STEPS))
    n = min((m + 1) // 2, 13)
    result = 0
    for e in (0, 1):
        hashes = (hashed(odd + (e << 8) + (even << 9), 1), hashed(faces + (e << 6) + (sides << 7), 2),
                  hashed(a + (b << 4) + (n << 8) + (e << 12), 3), hashed(even + (behind << 8) + (e << 16), 4),
                  hashed(2 * cube[2] + e, 5))
        bit = mixer.code(coder, hashes, 14 * e + n, 16 * a + b, e + 2 * min(m, 31))
        result |= bit << e
        if e == 0 and not bit:
            return 2
    return result


def decode_block(header, block, data):
    """Sites in order, and their counts."""
    coder, bits = Coder(data), table_bits(block['cubes'])
    mixer, nodes = Mixer(8, bits), [(0, 0, 0)]
    for level in range(block['depth']):
        places = {node: i for i, node in enumerate(nodes)}
        children, before, following = set(), set(), []
        for node in nodes:
            following += code_occupancy(coder, mixer, header, block, level, node, places, children, before)
        nodes = following
        require(len(nodes) <= block['cubes'], 'more cubes than promised')
    require(len(nodes) == block['cubes'], 'other cubes than promised')
    places, halves = {node: i for i, node in enumerate(nodes)}, []
    half_mixer = Mixer(5, bits)
    for cube in nodes:
        halves.append(code_halves(coder, half_mixer, places, halves, cube) if header['centred'] else 1)
    sites, counts, models = [], [], [Number() for _ in range(4)]
    for cube, half in zip(nodes, halves):
        m = sum(moved(cube, s) in places for s in AROUND)
        for h in (0, 1):
            if half >> h & 1:
                sites.append(tuple(o + (c << header['centred']) + h for o, c in zip(block['origin'], cube)))
                if header['mode'] != 0:
                    counts.append(1 + models[min((m + 1) // 4, 3)].code(coder))
    coder.finish()
    require(header['mode'] == 0 or sum(counts) == block['points'], 'other points than promised')
    return sites, counts


# Chapter 4: the order of points.

def decode_order(data, sites, counts, points):
    c = data[0]
    require(1 <= c <= 40, 'cells of an impossible size')
    coder, left = Coder(data[1:]), list(counts)
    buckets = 64
    while buckets < len(sites):
        buckets *= 2

    def bucket(cell):
        u = (cell[0] * 0x9E3779B97F4A7C15 + cell[1] * 0xC2B2AE3D27D4EB4F + cell[2] * 0x165667B19E3779F9) & M64
        return (u ^ u >> 32) & (buckets - 1)

    def cell_of(site):
        return tuple(a >> c for a in site)

    held = {}
    for i, site in enumerate(sites):
        held.setdefault(bucket(cell_of(site)), set()).add(i)
    elsewhere, name, ranks = [Counter(), Counter()], Number(), [Number() for _ in range(4)]
    walk, last_rank, last_site, was_elsewhere, order = [], 0, 0, 1, []
    for _ in range(points):
        place = (0, 0, 0)
        if walk:
            d = min(len(walk) - 1, 4)
            place = walk[-1]
            if d:
                place = tuple(a + quotient(a - b, d) for a, b in zip(place, walk[-1 - d]))
        candidates, seen = [], 0
        for step in STEPS:
            cell = moved(cell_of(place), step)
            inside = held.get(bucket(cell), set())
            seen += len(inside)
            if seen > 512:
                candidates = []
                break
            candidates += [i for i in inside if cell_of(sites[i]) == cell]
        distance = {i: sum(clamp(a - b, -2**30, 2**30)**2 for a, b in zip(sites[i], place)) for i in candidates}
        candidates = sorted(candidates, key=lambda i: (distance[i], i))
        away = elsewhere[was_elsewhere].code(coder) if candidates else 1
        if away:
            site = last_site + unzigzag(name.code(coder))
            walk = []
        else:
            last_rank_model = ranks[min(last_rank, 3)]
            last_rank = last_rank_model.code(coder)
            require(last_rank < len(candidates), 'a rank beyond the candidates')
            site = candidates[last_rank]
        require(0 <= site < len(sites) and left[site] > 0, 'a site without points')
        left[site] -= 1
        if not left[site]:
            held[bucket(cell_of(sites[site]))].discard(site)
        was_elsewhere, last_site = away, site
        walk.append(sites[site])
        order.append(site)
    coder.finish()
    return order


# Chapter 5: rays.

ONE = 1 << 30


def unit(x, y):
    n = math.isqrt(x * x + y * y)
    return (quotient(x * ONE, n), quotient(y * ONE, n)) if n else (ONE, 0)


def turn(a, b):
    return unit((a[0] * b[0] - a[1] * b[1]) >> 30, (a[0] * b[1] + a[1] * b[0]) >> 30)


def bucket_of(n):
    return n if n < 4 else n.bit_length() + 1


def signed_bucket(n):
    return bucket_of(n) if n >= 0 else 32 + bucket_of(-n)


class Symbol:
    def __init__(self, contexts, bits):
        self.mixer, self.rest = Mixer(contexts, bits), Number()

    def code(self, coder, contexts, second):
        def decide(node):
            hashes = [hashed(c, node + 256 * i) for i, c in enumerate(contexts)]
            return self.mixer.code(coder, hashes, node, second, node)

        if not decide(0):
            return 0
        negative, r = decide(1), 1
        while r < 20 and decide(r + 1):
            r += 1
        if r == 20:
            r += self.rest.code(coder)
        r = min(r, 2**40)
        return -r if negative else r


class Chain:
    def __init__(self):
        self.azimuth = self.elevation = (ONE, 0)
        self.range = self.former = self.side = self.up = self.miss = self.former_miss = 0
        self.steps = 1


def bin_of(azimuth):
    x, y = abs(azimuth[0]), abs(azimuth[1])
    part = min(1024 * y // (x + y + 1), 1023)
    if (azimuth[0] < 0) != (azimuth[1] < 0):
        part = 1023 - part
    return part + 1024 * ((2 if azimuth[0] < 0 else 3) if azimuth[1] < 0 else 1 if azimuth[0] < 0 else 0)


def follow(direction, deviation, distance):
    if deviation == 0 or distance < 32:
        return direction
    w = clamp(quotient(clamp(deviation, -2**31, 2**31) * ONE, distance), -ONE, ONE)
    if abs(deviation) == 1:
        w = quotient(w, 8)
    x, y = direction
    return unit(x - (y * w >> 30), y + (x * w >> 30))


def decode_rays(data, spacing, points):
    cursor = Cursor(data, 0, len(data))
    step = (cursor.unsigned(4), cursor.unsigned(4))
    require(step[0] <= ONE and 0 < step[1] <= ONE, 'an impossible step')
    kind, height = cursor.varint(511), unzigzag(cursor.varint(2**17))
    sign, chains = -1 if kind & 1 else 1, [Chain() for _ in range((kind >> 1) + 1)]
    coder = Coder(data[cursor.at:])
    table = [(ONE, 0)]
    while len(table) < 8192:
        following = turn(table[-1], step)
        if following[1] <= 0:
            break
        table.append(following)
    most = len(table) - 1
    few, many = table_bits(points // 4), table_bits(points)
    step_model, range_model = Symbol(3, few), Symbol(6, many)
    side_model, up_model = Symbol(4, few), Symbol(4, few)
    bins, last_beside, result = {}, None, []
    for index in range(points):
        number = index % len(chains)
        chain = chains[number]
        contexts = (signed_bucket(chain.steps), bucket_of(chain.miss) | 256, number + 2**20)
        steps = clamp(sign * (step_model.code(coder, contexts, 0) + 1), -most, most)
        turned = table[abs(steps)]
        azimuth = turn(chain.azimuth, (turned[0], turned[1] if steps >= 0 else -turned[1]))
        place = bin_of(azimuth)
        beside, slope, gap, miss_beside = None, 0, 0, 0
        if len(chains) == 1:
            if place in bins and last_beside is not None:
                beside, miss_beside = bins[place]
                slope = beside - last_beside
        elif number:
            other = chains[number - 1]
            beside, miss_beside, slope = other.range, other.miss, other.range - other.former
        expected = chain.range
        if beside is not None:
            gap = beside - chain.range
            expected = sorted((chain.range, beside, chain.range + slope))[1]
        big_m, big_n = bucket_of(chain.miss), bucket_of(miss_beside) + 1 if beside is not None else 0
        big_p, big_s = expected % 2, signed_bucket(slope)
        contexts = (
            big_m + (bucket_of(chain.former_miss) << 6) + (big_p << 16),
            big_s + (big_n << 8) + 2**32,
            signed_bucket(gap) + (big_m << 8) + (big_p << 16) + 2 * 2**32,
            bucket_of(chain.miss + miss_beside) + (big_s << 8) + (big_p << 16) + 3 * 2**32,
            bucket_of(max(chain.range, 0)) + (big_n << 8) + (big_m << 16) + 4 * 2**32,
            signed_bucket(chain.side) + (signed_bucket(chain.up) << 8) + (signed_bucket(chain.steps) << 16)
            + (big_p << 24) + 5 * 2**32)
        second = 4 * min(big_m, 7) + min(big_n, 3)
        distance = clamp(expected + range_model.code(coder, contexts, second), -2**40, 2**40)
        o = distance % 2

        def deviation(model, last, other):
            seen = (o + 2 * signed_bucket(last),
                    o + 2 * signed_bucket(other) + (signed_bucket(last) << 9) + 2**32,
                    o + 2 * signed_bucket(chain.steps) + 2 * 2**32, o + 2 * number + 3 * 2**32)
            return o + 2 * model.code(coder, seen, o)

        side = deviation(side_model, chain.side, chain.up)
        up = deviation(up_model, chain.up, side)
        (a, b), (c, d) = azimuth, chain.elevation
        axes = ((a * c >> 30, b * c >> 30, d), (-b, a, 0), (-(a * d >> 30), -(b * d >> 30), c))
        lengths = [clamp(v * spacing, -2**31, 2**31) for v in (distance, side, up)]
        point = [(sum(n * axis[i] for n, axis in zip(lengths, axes)) + 2**29) >> 30 for i in range(3)]
        point[2] += height
        result.append(tuple(point))
        last_beside = bins[place][0] if place in bins else None
        chain.former_miss, chain.miss = chain.miss, abs(distance - expected)
        bins[place] = (distance, chain.miss)
        chain.steps = steps
        chain.azimuth, chain.elevation = follow(azimuth, side, distance), follow(chain.elevation, up, distance)
        chain.former, chain.range, chain.side, chain.up = chain.range, distance, side, up
    coder.finish()
    return result


# Chapter 6: columns.

def decode_column(data, width, points):
    form, rest = data[0], data[1:]
    if form == 0:
        require(len(rest) == width * points, 'a raw column of another size')
        return rest
    require(form in (1, 2), 'an unknown form of column')
    table = None
    if form == 2:
        entries = rest[0] + 1
        table = [rest[1 + width * i:1 + width * (i + 1)] for i in range(entries)]
        require(all(len(t) == width for t in table), 'a table that ends too early')
        rest = rest[1 + width * entries:]
        if entries == 1:
            require(not rest, 'bytes after a table of one')
            return table[0] * points
    coder = Coder(rest)
    mixer = Mixer(6, table_bits(width * points if form == 1 else points))
    past = [[0, 0, 0] for _ in range(8)]

    def byte(plane, above, bits):
        p0, p1, p2 = past[plane]
        mean, spread, path = (2 * p0 + p1 + p2 + 2) // 4, (max(p0, p1, p2) - min(p0, p1, p2)).bit_length(), 1
        for left in reversed(range(bits)):
            h = path + (plane << 8)
            hashes = (hashed(h, 1), hashed(h + (p0 << 16), 2), hashed(h + (p0 << 16) + (p1 << 24), 3),
                      hashed(h + (mean << 16) + (above << 24), 4), hashed(h + (above << 16), 5),
                      hashed(h + ((mean >> 1) << 16) + (spread << 24), 6))
            path = path << 1 | mixer.code(coder, hashes, 8 * plane + left, spread, path % 256)
        value = path - (1 << bits)
        past[plane] = [value, p0, p1]
        return value

    out = bytearray()
    for _ in range(points):
        if table is not None:
            index = byte(0, 0, max(1, (len(table) - 1).bit_length()))
            require(index < len(table), 'an index beyond its table')
            out += table[index]
            continue
        above, element = 0, []
        for plane in reversed(range(width)):
            above = byte(plane, above, 8)
            element.append(above)
        out += bytes(reversed(element))
    coder.finish()
    return bytes(out)


# Chapter 1: the stream.

def read_part(cursor):
    return cursor.varint(M64), cursor.unsigned(4)


def read_header(data):
    cursor = Cursor(data, 0, len(data))
    require(cursor.unsigned(1) == 1, 'another version')
    kind = cursor.unsigned(1)
    header = {'mode': kind & 3, 'type': kind >> 2 & 3, 'centred': kind >> 4 & 1, 'rays': kind >> 5 & 1,
              'whole': kind >> 6 & 1}
    require(header['mode'] < 3 and header['type'] < 2 and kind < 128, 'an unknown kind')
    for name, limit in (('per_metre', 2**28 - 1), ('spacing', 2**20), ('bound', 2**20), ('error', 2**20),
                        ('source', 2**28), ('points', 2**28), ('dropped', 2**28), ('verbatim', 2**28)):
        header[name] = cursor.varint(limit)
    require(header['per_metre'] and header['spacing'], 'a scale of 0')
    header['blocks'] = []
    for _ in range(cursor.varint(2**24)):
        block = {'origin': [unzigzag(cursor.varint(2**42)) for _ in range(3)], 'depth': cursor.unsigned(1),
                 'cubes': cursor.varint(2**28)}
        block['points'] = cursor.varint(2**28) if header['mode'] else 0
        block['part'] = read_part(cursor)
        header['blocks'].append(block)
    for name in ('order', 'residuals', 'verbatim_part'):
        header[name] = read_part(cursor)
    header['columns'] = []
    for _ in range(cursor.varint(64)):
        width = cursor.unsigned(1)
        require(width in WIDTHS, 'a column of another width')
        header['columns'].append((width, read_part(cursor)))
    require(xxh3(data[:cursor.at]) == cursor.unsigned(8), 'the header is damaged')
    return header, cursor


def word_of(units, header):
    if header['type'] == 1:
        return clamp(units, -2**31, 2**31 - 1) % 2**32
    return struct.unpack('<I', struct.pack('<f', units / header['per_metre']))[0]


def ordered(word):
    return ~word % 2**32 ^ 2**31 if word >> 31 else word


def add_residuals(data, units, header):
    coordinates = [at for point in units for at in point]
    if not data:
        return [word_of(at, header) for at in coordinates]
    coder, models = Coder(data), [Number() for _ in range(3)]
    values = coordinates if header['whole'] else [ordered(word_of(at, header)) for at in coordinates]
    values = [value + unzigzag(models[i % 3].code(coder)) for i, value in enumerate(values)]
    coder.finish()
    return [word_of(v, header) if header['whole'] else ordered(v) for v in values]


def merge_verbatim(data, words, header):
    cursor, merged, taken = Cursor(data, 0, len(data)), [], 0
    if header['mode'] == 0:
        merged, taken = list(words), len(words)
    left = header['verbatim']
    while left:
        run = left
        if header['mode']:
            between = cursor.varint(header['points'])
            run = cursor.varint(left)
            require(run, 'an empty run')
            merged += words[taken:taken + 3 * between]
            taken += 3 * between
        left -= run
        merged += [cursor.unsigned(4) for _ in range(3 * run)]
    require(cursor.done(), 'bytes after the verbatim points')
    return merged + words[taken:]


def decode(data):
    """Type, words and columns."""
    header, cursor = read_header(data)

    def part(entry):
        taken = cursor.take(entry[0])
        require(xxh3(taken) % 2**32 == entry[1], 'a part is damaged')
        return taken

    sites, counts = [], []
    for block in header['blocks']:
        more, their = decode_block(header, block, part(block['part']))
        sites += more
        counts += their
    order, coded = part(header['order']), header['points'] - header['verbatim']
    if header['rays']:
        units = decode_rays(order, header['spacing'], coded)
    else:
        if header['mode'] and coded:
            sites = [sites[i] for i in decode_order(order, sites, counts, coded)]
        units = [tuple(at * header['spacing'] for at in site) for site in sites]
    words = add_residuals(part(header['residuals']), units, header)
    words = merge_verbatim(part(header['verbatim_part']), words, header)
    require(len(words) == 3 * header['points'], 'other points than promised')
    columns = [decode_column(part(entry), width, header['points']) for width, entry in header['columns']]
    require(cursor.done(), 'bytes after the parts')
    return header['type'], words, columns


def main():
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    scans = sorted(pathlib.Path(sys.argv[1]).glob('*.scan'))
    failed = 0 if scans else 1
    for scan in scans:
        try:
            kind, words, columns = decode(scan.read_bytes())
            got = bytes([kind]) + struct.pack(f'<I{len(words)}I', len(words) // 3, *words) + b''.join(columns)
            problem = '' if got == scan.with_suffix('.points').read_bytes() else 'decodes to something else'
        except Malformed as error:
            problem = str(error)
        if problem:
            print(f'{scan.name}: {problem}')
            failed += 1
    print(f'{len(scans)} scans, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
