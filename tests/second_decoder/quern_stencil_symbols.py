"""Bits of stencil's model, distributions of residuals and the lanes that hold them (docs/format-stencil.md)."""
import struct
from bisect import bisect_right
from math import log2

from quern_bytes import require

ENDS = [1, 2, 3, 4, 6, 10, 16, 32]  # the exponents e of the shapes
TAIL_CHECK = 0x16AF7BCEF86DD11A
MAGNITUDE_LIMIT = 2**18 - 1


def floor2(value, n):
    return value >> n


def round2(value, n):
    return value + (1 << n >> 1) >> n


def unzigzag(v):
    return -(v + 1 >> 1) if v & 1 else v >> 1


class Bits:
    """Bit fields, from the least significant bit of each byte upwards."""

    def __init__(self, cursor):
        self.cursor, self.held, self.count = cursor, 0, 0

    def take(self, n):
        while self.count < n:
            self.held |= self.cursor.unsigned(1) << self.count
            self.count += 8
        value = self.held & (1 << n) - 1
        self.held >>= n
        self.count -= n
        return value

    def golomb(self, order):
        ones = 0
        while self.take(1):
            ones += 1
            require(ones <= 32, 'exponential Golomb code')
        low = ones + order  # w - 1, w being the bit width of value + 2^order
        return (1 << low | self.take(low)) - (1 << order)

    def zigzag(self, order):
        return unzigzag(self.golomb(order))


def make_tails():
    """For each shape the tail of its density at 321 points, in units of 2^-24."""
    tables, check = [], 0
    points = [2.0**(i / 16 - 7) for i in range(321)]
    for e in ENDS:
        def density(x, e=e):
            return (1 + x * x / (2 * e - 1))**-e

        sums, total, left = [], 0.0, 0.0
        for right in points:
            total += (right - left) / 6 * (density(left) + 4 * density((left + right) / 2) + density(right))
            sums.append(total)
            left = right
        tables.append([int(2**24 * (1 - s / total) + 0.5) for s in sums])
        for entry in tables[-1]:
            check = (check + entry) * 0x9E3779B97F4A7C15 % 2**64
    assert check == TAIL_CHECK
    return tables


TAILS = make_tails()
LOG2 = [int(4096 * log2(1 + i / 256)) for i in range(256)]


def fixed_log2(x):
    """log2 in units of 2^-12."""
    n = x.bit_length() - 1
    return 4096 * n + LOG2[(x << 8 >> n) & 0xFF]


def tail(shape, scale, magnitude):
    table = TAILS[shape]
    a = fixed_log2(2 * magnitude - 1) - 4096 - 512 * (scale - 32) + 7 * 4096
    if a >= 320 * 256:
        return 0
    if a >= 0:
        i, part = divmod(a, 256)
        return table[i] - ((table[i] - table[i + 1]) * part >> 8)
    q = -a // 4096
    return 2**24 if q > 24 else 2**24 - floor2(2**24 - table[0], q)


def open_bits(token):
    return 0 if token < 16 else (token - 16) // 4 + 2


def base_of(token):
    """The smallest magnitude of a token."""
    return token if token < 16 else (4 | (token - 16) % 4) << open_bits(token)


class Distribution:
    """Where the ranges of the tokens begin; the last ends at 2^15."""

    def __init__(self, bits, tokens, seen):
        self.begins = [0]
        if tokens > 1:
            zero = bits.take(15)
            require(1 <= zero <= 2**15 - tokens + 1, 'frequency of zero')
            shape, scale = (bits.take(3), bits.take(8)) if tokens > 2 else (0, 0)
            rest = 2**15 - zero - (tokens - 1)
            first = tail(shape, scale, 1) if tokens > 2 else 0
            for token in range(1, tokens):
                part = 0
                if token > 1:
                    part = rest * (first - tail(shape, scale, base_of(token))) // first if first else rest
                self.begins.append(zero + token - 1 + part)
            if tokens > 2:
                seen.add('stencil shape %d' % shape)
        if tokens <= 2:
            seen.add('stencil distribution of %d tokens' % tokens)
        self.begins.append(2**15)

    def token(self, slot):
        """The token whose range holds `slot`, where that begins and how long it is."""
        token = bisect_right(self.begins, slot) - 1
        return token, self.begins[token], self.begins[token + 1] - self.begins[token]


def read_distributions(bits, seen):
    """The distribution each of the 64 levels uses."""
    first, last = bits.take(6), bits.take(6)
    require(first <= last, 'levels of distributions')
    own = [None] * 64
    for level in range(first, last + 1):
        tokens = bits.take(7)
        require(tokens <= 120, 'number of tokens')
        if tokens:
            own[level] = Distribution(bits, tokens, seen)
    there = [level for level in range(64) if own[level]]
    require(there, 'no distribution')
    return [own[max((k for k in there if k <= level), default=there[0])] for level in range(64)]


def level_of(total):
    """The level of a context sum."""
    s = max(total & 0xFFFFFFFF, 2)
    n = s.bit_length() - 1
    return 2 * n + (s >> n - 1 & 1)


class Lane:
    def __init__(self, data):
        require(len(data) >= 4 and len(data) % 2 == 0, 'bytes of a lane')
        self.words = struct.unpack('<%dH' % (len(data) // 2), data)
        self.state = self.words[0] | self.words[1] << 16
        self.at = 2
        require(self.state >= 2**16, 'first state of a lane')

    def renormalize(self):
        if self.state < 2**16:
            require(self.at < len(self.words), 'a lane ends too early')
            self.state = self.state << 16 | self.words[self.at]
            self.at += 1

    def plain(self, count):
        value = self.state & (1 << count) - 1
        self.state >>= count
        self.renormalize()
        return value

    def residual(self, distribution):
        slot = self.state & 0x7FFF
        token, begin, frequency = distribution.token(slot)
        self.state = frequency * (self.state >> 15) + slot - begin
        self.renormalize()
        if token == 0:
            return 0
        count = open_bits(token) + 1
        value = self.plain(min(count, 16))
        if count > 16:
            value |= self.plain(count - 16) << 16
        magnitude = base_of(token) + (value >> 1)
        return -magnitude if value & 1 else magnitude

    def finish(self):
        require(self.at == len(self.words) and self.state == 2**16, 'end of a lane')


def read_lanes(cursor, lane_bits):
    """The lanes that fill the rest of `cursor`."""
    sizes = [2 * cursor.varint(2**31) for _ in range(2**lane_bits - 1)]
    lanes = [Lane(cursor.take(size)) for size in sizes]
    return lanes + [Lane(cursor.take(cursor.end - cursor.at))]
