"""Rays of coded scans in the order of the scan; docs/format-lidar.md, chapter 5."""
import math

from quern_bytes import Cursor, require
from quern_lidar_coding import Coder, Mixer, Number, clamp, hashed, quotient, table_bits, unzigzag

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
