#!/usr/bin/env python3
"""Second decoder of coded scans, from docs/format-lidar.md alone.

usage: quern_lidar.py FOLDER      decodes every NAME.scan, with NAME.prediction if it is there, and compares with
                                  NAME.points
"""
import math
import pathlib
import struct
import sys

from quern_bytes import Cursor, M64, Malformed, require, xxh3
from quern_lidar_coding import Coder, Counter, Mixer, Number, clamp, hashed, quotient, table_bits, unzigzag
from quern_lidar_rays import decode_rays

WIDTHS = (1, 2, 4, 8)


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
    return at[0] + times * step[0], at[1] + times * step[1], at[2] + times * step[2]


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


# Prediction: places where points are expected.

def predicted_sites(prediction, header):
    """Expected sites and their weights, and known sites and how many points they have."""
    s, expected, known = header['spacing'], {}, {}
    for *point, points_weight in prediction:
        sites = expected if points_weight else known
        site = tuple((2 * a + s) // (2 * s) for a in point)
        if header['centred']:
            pair = [tuple(2 * ((2 * a + 2 * s) // (4 * s)) for a in point),
                    tuple(2 * (2 * a // (4 * s)) + 1 for a in point)]
            site = min(pair, key=lambda one: sum((a - i * s)**2 for a, i in zip(point, one)))
        sites[site] = min(sites.get(site, 0) + max(points_weight, 1), 255)
    return expected, known


def cubes_of(sites, header, block):
    """Cubes of the block that hold sites: which halves, and the weights of both."""
    cubes, weights = {}, {}
    for site, site_weight in sites.items():
        at = tuple(a - o for a, o in zip(site, block['origin']))
        cube = tuple(a >> header['centred'] for a in at)
        if all(0 <= a < 1 << block['depth'] for a in cube):
            half = at[0] & 1 if header['centred'] else 0
            cubes[cube] = cubes.get(cube, 0) | 1 << half
            weights.setdefault(cube, [0, 0])[half] = site_weight
    return cubes, weights


def block_prediction(sites, header, block):
    """Expected cubes and their halves; the weights of both, or nothing where they do not count; and those of known
    cubes."""
    cubes, weights = cubes_of(sites[0], header, block)
    return cubes, weights if header['version'] > 1 else None, cubes_of(sites[1], header, block)[1]


def expected_contexts(seen, node, at, child, path, view, known):
    """Contexts 8 to 11 and the hint."""
    g, fine, k, u, o = known
    window = sum(1 << bit_of_window(s) for s in STEPS if moved(at, s) in seen)
    v, w = int(at in seen), weight(window & ~(1 << 21))
    own = sum((child_at(node, i) in seen) << i for i in range(8))
    hint = v + 2 * min((w + 1) // 2, 15)
    return (hashed(window, child + (fine << 3) + 2**34),
            hashed(hint + ((child + (g << 3)) << 8) + (min(k, 15) << 16) + (min(u, 15) << 20) + (o << 24), 5),
            hashed(path + (own << 8) + (fine << 16), 6),
            hashed(view.elevation(child), view.distance + (v << 4) + ((w > 3) << 5) + ((o > 0) << 6) + 256)), hint


def weighed_contexts(seen, weights, node, at, child, path, view, known):
    """Contexts 12 to 15, and what stands for the hint; `weights`: of the expected children."""
    g, fine, k, u, o = known
    window = sum(1 << bit_of_window(s) for s in STEPS if moved(at, s) in seen)
    w, s, here = weight(window & ~(1 << 21)), weights.get(at, 0), child + (g << 3)
    level, every = min(s.bit_length(), 7), 0
    for i in range(8):
        every = every << 2 | min(weights.get(child_at(node, i), 0).bit_length(), 3)
    return (hashed(level + (min(w, 31) << 3) + (here << 8) + (min(k, 15) << 16) + (o << 24), 9),
            hashed(min(s, 63) + ((window & FACES) << 6), here + 10 * 2**32),
            hashed(level + (view.band << 3) + (here << 8) + (min(w, 15) << 16) + (min(u, 7) << 20), 11),
            hashed(path + (every << 8) + (fine << 24), 12)), 4 * level + min((w + 1) // 2, 3), level


def known_contexts(seen, weights, counts, node, at, child, path, view, known, sites):
    """Contexts 16 to 23; `counts`: of the known children, `sites`: full and possible ones around the child."""
    g, fine, k, u, o = known
    window = sum(1 << bit_of_window(s) for s in STEPS if moved(at, s) in seen)
    w, s, here = weight(window & ~(1 << 21)), weights.get(at, 0), child + (g << 3)
    level, every, whole = min(s.bit_length(), 7), 0, 0
    for i in range(8):
        n = counts.get(child_at(node, i), 0)
        every, whole = every << 2 | min((n.bit_length() + 1) // 2, 3), whole + n
    n = counts.get(at, 0)
    own, of_all, is_expected = min(n.bit_length(), 15), min(whole.bit_length(), 15), int(level > 0)
    return (hashed(own + (level << 4) + (here << 8) + (min(k, 15) << 16) + (o << 24), 20),
            hashed(min(n, 127) + (min(s, 15) << 8), here + 21 * 2**32),
            hashed(path + (every << 8) + (fine << 24), 22),
            hashed(own + (view.band << 4) + (here << 8) + (is_expected << 16) + (o << 17) + (min(w, 7) << 20), 23),
            hashed(own + (min(w, 31) << 4) + (here << 9) + (min(u, 15) << 16), 24),
            hashed(sites & (FACES | EDGES), own + (child << 4) + 25 * 2**32),
            hashed(own + (view.height << 4) + (view.band << 12) + (here << 16) + (is_expected << 24), 26),
            hashed(own + (of_all << 4) + (here << 8) + (level << 16) + (min(k, 7) << 20), 27))


def neighbours(child):
    """Steps around a child, the bit of each, and the step from the child's parent to that of the neighbour."""
    at = child_at((0, 0, 0), child)
    return [(s, bit_of_window(s), tuple(a + b >> 1 for a, b in zip(at, s))) for s in AROUND]


NEIGHBOURS = [neighbours(child) for child in range(8)]


def code_occupancy(coder, mixer, header, block, level, node, places, children, found_before, seen, weights, counts):
    """`places`: nodes of the level and their order. `children`: those that exist so far. `seen`: those expected, with
    `weights` if these count. `counts`: of points known in children, if there are any."""
    below = block['depth'] - 1 - level
    g, fine = min(below, 5), min(below, 3)
    view = View(header, block, below, node)
    here = places[node]
    orders = {s: places.get(moved(node, s), -1) for s in STEPS}
    faces = sum((orders[s] >= 0) << i for i, s in enumerate(FACE_STEPS))
    m = sum(orders[s] >= 0 for s in AROUND)
    path, found = 1, []
    for child in range(8):
        bit = 1
        if child < 7 or found:
            at = child_at(node, child)
            full = possible = 0
            for step, bit_of_step, to_parent in NEIGHBOURS[child]:
                order = orders[to_parent]
                if order < 0:
                    continue
                other = moved(at, step)
                if order < here or (order == here and other in found_before):
                    full |= (other in children) << bit_of_step
                elif order > here:
                    possible |= 1 << bit_of_step
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
            second, third = min((m + 1) // 2, 13) + 14 * (o + 4 * view.distance), min(u // 2, 7)
            if seen:
                more, hint = expected_contexts(seen, node, at, child, path, view, (g, fine, k, u, o))
                if weights is not None:
                    last, hint, third = weighed_contexts(seen, weights, node, at, child, path, view, (g, fine, k, u, o))
                    more += last
                    if counts:
                        more += known_contexts(seen, weights, counts, node, at, child, path, view, (g, fine, k, u, o),
                                               full | possible)
                hashes, second = hashes + more, hint + 32 * (o + 4 * view.distance)
            bit = mixer.code(coder, hashes, (8 * g + child) * 8 + min((k + 1) // 2, 7), second,
                             child + 8 * min(k, 15) + 128 * third)
        path = path << 1 | bit
        at = child_at(node, child)
        found_before.add(at)
        if bit:
            found.append(at)
            children.add(at)
    return found


def code_halves(coder, mixer, places, halves, cube, expected, weights, counts):
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
        if expected:
            corners = [(q >> 2, q >> 1 & 1, q & 1) for q in range(1, 8)]
            c = sum(expected.get(moved(cube, s, 2 * e - 1), 0) >> (1 - e) & 1 for s in corners)
            y = sum(expected.get(moved(cube, s), 0) << (2 * i) for i, s in enumerate(FACE_STEPS))
            hint = expected.get(cube, 0) + (e << 2) + (min(c, 7) << 3)
            hashes += (hashed(hint, 6), hashed(hint + (y << 8), 7), hashed(hint + (a << 8) + (b << 12), 8))
            if weights is not None:
                own = weights.get(cube, (0, 0))
                both = own[0].bit_length() + (own[1].bit_length() << 4) + (e << 8)
                hashes += (hashed(both + (min(c, 7) << 9), 13),
                           hashed(both + (a << 9) + (b << 13) + ((even != 0) << 17), 14),
                           hashed(min(own[0], 31) + (min(own[1], 31) << 5) + (e << 10), 15))
                if counts:
                    known = counts.get(cube, (0, 0))
                    known = known[0].bit_length() + (known[1].bit_length() << 4) + (e << 8)
                    hashes += (hashed(known + (expected.get(cube, 0) << 9) + (min(c, 7) << 11), 30),
                               hashed(known + (a << 9) + (b << 13) + ((even != 0) << 17), 31),
                               hashed(known + (both << 9), 32), hashed(odd + (known << 9), 33))
        bit = mixer.code(coder, hashes, 14 * e + n, 16 * a + b, e + 2 * min(m, 31))
        result |= bit << e
        if e == 0 and not bit:
            return 2
    return result


def decode_block(header, block, data, expected):
    """Sites in order, and their counts. `expected`: as block_prediction gives it."""
    coder, bits = Coder(data), table_bits(block['cubes'])
    expected, weights, known = expected
    kind = 0 if not expected else 1 if weights is None else 3 if known else 2
    mixer, nodes = Mixer((8, 12, 16, 24)[kind], bits), [(0, 0, 0)]
    for level in range(block['depth']):
        below = block['depth'] - 1 - level
        seen = {tuple(a >> below for a in cube) for cube in expected}
        of_children, known_children = None if weights is None else {}, {}
        for of_cubes, sums in ((weights or {}, of_children), (known, known_children)):
            for cube, both in of_cubes.items():
                child = tuple(a >> below for a in cube)
                sums[child] = sums.get(child, 0) + sum(both)
        places = {node: i for i, node in enumerate(nodes)}
        children, before, following = set(), set(), []
        for node in nodes:
            following += code_occupancy(coder, mixer, header, block, level, node, places, children, before, seen,
                                        of_children, known_children)
        nodes = following
        require(len(nodes) <= block['cubes'], 'more cubes than promised')
    require(len(nodes) == block['cubes'], 'other cubes than promised')
    places, halves = {node: i for i, node in enumerate(nodes)}, []
    half_mixer = Mixer((5, 8, 11, 15)[kind], bits)
    for cube in nodes:
        halves.append(code_halves(coder, half_mixer, places, halves, cube, expected, weights, known)
                      if header['centred'] else 1)
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
    version = cursor.unsigned(1)
    require(version in (1, 2, 3), 'another version')
    kind = cursor.unsigned(1)
    require(version == 1 or kind >> 7, 'a version with predictions and none')
    header = {'version': version, 'mode': kind & 3, 'type': kind >> 2 & 3, 'centred': kind >> 4 & 1, 'rays': kind >> 5 & 1,
              'whole': kind >> 6 & 1}
    require(header['mode'] < 3 and header['type'] < 2, 'an unknown kind')
    for name, limit in (('per_metre', 2**28 - 1), ('spacing', 2**20), ('bound', 2**20), ('error', 2**20),
                        ('source', 2**28), ('points', 2**28), ('dropped', 2**28), ('verbatim', 2**28)):
        header[name] = cursor.varint(limit)
    require(header['per_metre'] and header['spacing'], 'a scale of 0')
    header['prediction'] = cursor.unsigned(4) if kind >> 7 else None
    header['blocks'] = []
    blocks = cursor.varint(2**24)
    require(header['prediction'] is None or 1 <= blocks <= 64, 'a prediction for too many blocks or none')
    for _ in range(blocks):
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


def decode(data, prediction=()):
    """Type, words and columns. `prediction`: points in units, and the weight of each."""
    header, cursor = read_header(data)
    foreseen = {}, {}
    if header['prediction'] is not None:
        weighed = header['version'] > 1
        require(any(not point[3] for point in prediction) == (header['version'] == 3), 'known points, or none')
        packed = b''.join(struct.pack('<3qB' if weighed else '<3q', *point[:3 + weighed]) for point in prediction)
        require(xxh3(packed) % 2**32 == header['prediction'], 'another prediction')
        foreseen = predicted_sites(prediction, header)

    def part(entry):
        taken = cursor.take(entry[0])
        require(xxh3(taken) % 2**32 == entry[1], 'a part is damaged')
        return taken

    sites, counts = [], []
    for block in header['blocks']:
        more, their = decode_block(header, block, part(block['part']), block_prediction(foreseen, header, block))
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
            coded, foreseen, prediction = scan.read_bytes(), scan.with_suffix('.prediction'), ()
            if foreseen.exists():
                form = '<3qB' if coded[0] > 1 else '<3q'
                prediction = [(*point[:3], *(point[3:] or (1,)))
                              for point in struct.iter_unpack(form, foreseen.read_bytes())]
            kind, words, columns = decode(coded, prediction)
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
