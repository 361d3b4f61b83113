"""Reading bytes within limits, and XXH3-64 (seed 0) from its published specification."""
import struct

M64 = 2**64 - 1


class Malformed(Exception):
    """The bytes break a rule of the format."""


class Unsupported(Malformed):
    """The bytes may be right, but need zstd, which this decoder does not have."""


def require(condition, what):
    if not condition:
        raise Malformed(what)


class Cursor:
    """A position in data[at:end] that never leaves it."""

    def __init__(self, data, at, end):
        self.data, self.at, self.end = data, at, end

    def take(self, count):
        require(0 <= count <= self.end - self.at, 'the data ends too early')
        self.at += count
        return bytes(self.data[self.at - count:self.at])

    def unsigned(self, width):
        return int.from_bytes(self.take(width), 'little')

    def binary64(self):
        return struct.unpack('<d', self.take(8))[0]

    def varint(self, limit):
        value = 0
        for shift in range(0, 70, 7):
            byte = self.unsigned(1)
            require(shift < 63 or byte <= 1, 'varint of more than 64 bits')
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                require(byte or not shift, 'varint longer than necessary')
                require(value <= limit, 'varint above its limit')
                return value
        raise Malformed('varint of more than ten bytes')

    def done(self):
        return self.at == self.end


SECRET = bytes.fromhex(
    'b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221b8084674'
    'f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8a8fa763fe39c343f'
    'f9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d3165526'
    '29d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e')
P32 = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)
P64 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)


def word(data, at, width=8):
    return int.from_bytes(data[at:at + width], 'little')


def fold(a, b):
    p = a * b
    return (p ^ p >> 64) & M64


def avalanche(h):
    h ^= h >> 37
    h = h * 0x165667919E3779F9 & M64
    return h ^ h >> 32


def avalanche_xxh64(h):
    h ^= h >> 33
    h = h * P64[1] & M64
    h ^= h >> 29
    h = h * P64[2] & M64
    return h ^ h >> 32


def rotate(v, r):
    return (v << r | v >> 64 - r) & M64


def xxh3_short(data):
    """At most 16 bytes."""
    n = len(data)
    if n == 0:
        return avalanche_xxh64(word(SECRET, 56) ^ word(SECRET, 64))
    if n < 4:
        combined = data[0] << 16 | data[n >> 1] << 24 | data[n - 1] | n << 8
        return avalanche_xxh64(combined ^ (word(SECRET, 0, 4) ^ word(SECRET, 4, 4)))
    if n <= 8:
        keyed = (word(data, n - 4, 4) + (word(data, 0, 4) << 32)) ^ (word(SECRET, 8) ^ word(SECRET, 16))
        h = keyed ^ rotate(keyed, 49) ^ rotate(keyed, 24)
        h = h * 0x9FB21C651E98DF25 & M64
        h ^= (h >> 35) + n
        h = h * 0x9FB21C651E98DF25 & M64
        return h ^ h >> 28
    low = word(data, 0) ^ (word(SECRET, 24) ^ word(SECRET, 32))
    high = word(data, n - 8) ^ (word(SECRET, 40) ^ word(SECRET, 48))
    swapped = int.from_bytes(low.to_bytes(8, 'little'), 'big')
    return avalanche(n + swapped + high + fold(low, high) & M64)


def mix16(data, at, secret):
    return fold(word(data, at) ^ word(SECRET, secret), word(data, at + 8) ^ word(SECRET, secret + 8))


def xxh3_medium(data):
    """17 to 240 bytes."""
    n = len(data)
    acc = n * P64[0]
    if n <= 128:
        for i in range((n - 1) // 32 + 1):
            acc += mix16(data, 16 * i, 32 * i) + mix16(data, n - 16 * (i + 1), 32 * i + 16)
        return avalanche(acc & M64)
    for i in range(8):
        acc += mix16(data, 16 * i, 16 * i)
    acc = avalanche(acc & M64)
    for i in range(8, n // 16):
        acc += mix16(data, 16 * i, 16 * (i - 8) + 3)
    acc += mix16(data, n - 16, 136 - 17)
    return avalanche(acc & M64)


def accumulate(acc, data, at, secret):
    for i, value in enumerate(struct.unpack_from('<8Q', data, at)):
        key = value ^ word(SECRET, secret + 8 * i)
        acc[i ^ 1] = acc[i ^ 1] + value & M64
        acc[i] = acc[i] + (key & 0xFFFFFFFF) * (key >> 32) & M64


def xxh3_long(data):
    n = len(data)
    acc = [P32[2], P64[0], P64[1], P64[2], P64[3], P32[1], P64[4], P32[0]]
    stripes = (len(SECRET) - 64) // 8
    for stripe in range((n - 1) // 64):
        within = stripe % stripes
        accumulate(acc, data, 64 * stripe, 8 * within)
        if within == stripes - 1:
            for i in range(8):
                v = acc[i] ^ acc[i] >> 47 ^ word(SECRET, len(SECRET) - 64 + 8 * i)
                acc[i] = v * P32[0] & M64
    accumulate(acc, data, n - 64, len(SECRET) - 64 - 7)
    result = n * P64[0]
    for i in range(4):
        result += fold(acc[2 * i] ^ word(SECRET, 11 + 16 * i), acc[2 * i + 1] ^ word(SECRET, 19 + 16 * i))
    return avalanche(result & M64)


def xxh3(data):
    data = bytes(data)
    return xxh3_short(data) if len(data) <= 16 else xxh3_medium(data) if len(data) <= 240 else xxh3_long(data)


def bound_xxh3(a, n, data):
    return xxh3(struct.pack('<QQ', a, n) + bytes(data))
