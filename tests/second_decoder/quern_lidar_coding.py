"""Decisions of coded scans: range coder, counters, mixing, numbers; docs/format-lidar.md, chapter 2."""
from quern_bytes import M64, require


def quotient(a, b):
    """Division towards zero."""
    return a // b if (a >= 0) == (b >= 0) else -(-a // b)


def clamp(value, low, high):
    return max(low, min(high, value))


def unzigzag(n):
    return n >> 1 if n % 2 == 0 else -(n >> 1) - 1


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
                weight = weights[i] + (((2 * value * step >> 16) + 1) >> 1)
                weights[i] = 30000 if weight > 30000 else -30000 if weight < -30000 else weight
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
