"""Predictions of the frames of a drive, from docs/format-lidar.md, chapter 8, alone."""
import math
import struct

from quern_bytes import require
from quern_lidar_coding import quotient, unzigzag
from quern_lidar_rays import ONE, turn

MOST = 2**21


def signed(cursor, most):
    return unzigzag(cursor.varint(2 * most))


def read_pose(cursor):
    quaternion = [signed(cursor, 2**20) for _ in range(4)]
    require(any(quaternion), 'a pose without a rotation')
    return quaternion, [signed(cursor, 2**40) for _ in range(3)]


def steps_of(step):
    """Directions of 0, 1, 2, ... steps."""
    table = [(ONE, 0)]
    while len(table) < 8192:
        after = turn(table[-1], step)
        if after[1] <= 0:
            break
        table.append(after)
    return table


def read_rays(cursor):
    step = cursor.unsigned(4), cursor.unsigned(4)
    require(step[0] <= ONE and ONE >> 10 <= step[1] <= ONE, 'the step of the azimuth')
    rings, slope = [], 0
    for i in range(cursor.varint(256)):
        more = signed(cursor, 2**21)
        require(i == 0 or more > 0, 'slopes that do not rise')
        slope += more
        require(abs(slope) <= 2**20, 'a ring that is too steep')
        rings.append((slope, signed(cursor, 2**20)))
    table = steps_of(step)
    require(rings and (2 * len(table) - 1) * len(rings) <= 2**20, 'no rays or too many')
    return table, rings


def read_references(cursor, key):
    references = []
    for _ in range(cursor.varint(8)):
        distance = cursor.varint(min(key, 8))
        require(distance > (references[-1] if references else 0), 'references that do not rise')
        references.append(distance)
    require(references, 'a prediction without references')
    return references


def matrix(quaternion):
    w, x, y, z = quaternion
    norm = w * w + x * x + y * y + z * z
    rows = ((w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)),
            (2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)),
            (2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z))
    return [[quotient((entry >> 1) * 2**20, (norm + 1) >> 1) for entry in row] for row in rows]


def unit_points(words):
    numbers = struct.unpack('<%df' % len(words), struct.pack('<%dI' % len(words), *words))
    points = []
    for i in range(0, len(numbers), 3):
        units = [10000 * n for n in numbers[i:i + 3]]
        if all(abs(u) < MOST for u in units):
            points.append(tuple(math.floor(u + 0.5) for u in units))
    return points


def moved(points, origin, target):
    """From the coordinates of one pose to those of another."""
    there, back = matrix(origin[0]), matrix(target[0])
    shift = [a - b for a, b in zip(origin[1], target[1])]
    for point in points:
        at = [(sum(m * p for m, p in zip(row, point)) + 2**19 >> 20) + s for row, s in zip(there, shift)]
        if any(abs(a) > 4 * MOST for a in at):
            continue
        end = [sum(back[row][axis] * at[row] for row in range(3)) + 2**19 >> 20 for axis in range(3)]
        if all(abs(a) <= MOST for a in end):
            yield end


def nearest_column(table, x, y):
    up, below, above = abs(y), 0, len(table)
    while above - below > 1:
        middle = (below + above) // 2
        if table[middle][0] * up - table[middle][1] * x >= 0:
            below = middle
        else:
            above = middle
    if above < len(table) and table[above][1] * x - table[above][0] * up < table[below][0] * up - table[below][1] * x:
        below = above
    return -below if y < 0 else below


def predict(rays, pose, frames, knows):
    """`frames`: of each a pose, points and known points. Points seen, ring after ring, and the weight of each; with
    `knows` also the known ones, whose weight is 0."""
    table, rings = rays
    hits, known = {}, []
    for origin, points, known_there in frames:
        if knows:
            known += [(*point, 0) for point in moved(known_there, origin, pose)]
        for x, y, z in moved(points, origin, pose):
            r = math.isqrt(x * x + y * y)
            if not 10000 <= r <= MOST:
                continue
            below, above = 0, len(rings)
            while above - below > 1:
                middle = (below + above) // 2
                if rings[middle][1] + (rings[middle][0] * r >> 16) <= z:
                    below = middle
                else:
                    above = middle

            def off(ring):
                return abs(z - rings[ring][1] - (rings[ring][0] * r >> 16))

            if above < len(rings) and off(above) < off(below):
                below = above
            miss = (off(below) << 16) // r
            above = z > rings[below][1] + (rings[below][0] * r >> 16)
            lower = min(below, len(rings) - 2) if above else max(below, 1) - 1
            if miss > max(230, (rings[lower + 1][0] - rings[lower][0]) // 2 if len(rings) > 1 else 0):
                continue
            ray = below, nearest_column(table, x, y)
            both = hits.setdefault(ray, [None, None])
            hit = miss + 8 * (r**3).bit_length(), r, x, y, off(below)
            both[above] = hit if both[above] is None else min(both[above], hit)
    points = []
    for (ring, _), (lower, upper) in sorted(hits.items(), key=lambda item: item[0]):
        seen, certainty = [hit[1:4] for hit in (lower, upper) if hit], 1
        if len(seen) == 2:
            apart, step = lower[4] + upper[4], abs(lower[1] - upper[1])
            if apart > 0 and step <= min(20000, 32 * apart + 2000):
                seen, certainty = [[quotient(a * upper[4] + b * lower[4], apart) for a, b in zip(*seen)]], 3
        points += [(x, y, rings[ring][1] + (rings[ring][0] * r >> 16), certainty) for r, x, y in seen]
    return points + known
