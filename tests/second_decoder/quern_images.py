"""Range images and messages of bags, from docs/format-lidar.md, chapter 7, alone."""
import struct

from quern_bytes import Cursor, require
from quern_lidar_coding import quotient
from quern_predict import signed

NAN = 0x7FC00000


def read_sensor(data):
    cursor = Cursor(data, 0, len(data))
    require(cursor.unsigned(1) == 1, 'another version of a sensor')
    flags = cursor.unsigned(1)
    require(flags < 2, 'flags of a sensor')
    rows, columns = cursor.varint(1024), cursor.varint(8192)
    require(rows and columns, 'a sensor without pixels')
    out = {'destaggered': flags == 1, 'columns': columns, 'origin': [signed(cursor, 2**20) for _ in range(3)]}
    out['transform'] = [signed(cursor, 2**27 if i % 4 == 3 else 2**30) for i in range(12)]
    altitude, out['beams'] = 0, []
    for _ in range(rows):
        altitude += signed(cursor, 720000000)
        azimuth, shift = signed(cursor, 360000000), signed(cursor, columns)
        require(abs(altitude) <= 360000000, 'an altitude')
        out['beams'].append((altitude, azimuth, shift))
    require(cursor.done(), 'bytes after a sensor')
    return out


def sine_cosine(angle):
    quarters, rest = divmod(angle % 360000000, 90000000)
    small = min(rest, 90000000 - rest)
    x = (small * 76760392275 // 1000000) >> 12
    y = x * x >> 30

    def series(divisors):
        value = 1 << 30
        for d in divisors:
            value = (1 << 30) - quotient(y * value >> 30, d)
        return value
    sine, cosine = x * series((72, 42, 20, 6)) >> 30, series((90, 56, 30, 12, 2))
    if small != rest:
        sine, cosine = cosine, sine
    for _ in range(quarters):
        sine, cosine = cosine, -sine
    return sine, cosine


def project(sensor, ranges):
    """Bits of binary32 coordinates, three a pixel."""
    columns, (n, n_x, n_z), move = sensor['columns'], sensor['origin'], sensor['transform']
    require(len(ranges) == 4 * columns * len(sensor['beams']), 'another number of pixels')
    reaches = struct.unpack('<%dI' % (len(ranges) // 4), ranges)
    half = 1 << 29
    words = []
    for i, (altitude, azimuth, shift) in enumerate(sensor['beams']):
        sin_h, cos_h = sine_cosine(-azimuth)
        sin_p, cos_p = sine_cosine(altitude)
        for j in range(columns):
            reach = reaches[i * columns + j]
            require(reach <= 1048575, 'a range that is too far')
            if reach == 0:
                words += [NAN] * 3
                continue
            m = (j - shift) % columns if sensor['destaggered'] else j
            sin_e, cos_e = sine_cosine(360000000 - (720000000 * m + columns) // (2 * columns))
            k = 1000 * reach - n
            at = ((k * (((cos_e * cos_h - sin_e * sin_h) >> 30) * cos_p >> 30) + n_x * cos_e + half) >> 30,
                  (k * (((sin_e * cos_h + cos_e * sin_h) >> 30) * cos_p >> 30) + n_x * sin_e + half) >> 30,
                  ((k * sin_p + half) >> 30) + n_z)
            for row in range(0, 12, 4):
                micrometres = ((sum(move[row + axis] * at[axis] for axis in range(3)) + half) >> 30) + move[row + 3]
                words.append(struct.unpack('<I', struct.pack('<f', micrometres / 1e6))[0])
    return words


def read_layout(data):
    """No decoder of points needs what it says; it must be well formed."""
    cursor = Cursor(data, 0, len(data))
    require(cursor.unsigned(1) == 1 and cursor.unsigned(1) < 2, 'version or flags of a layout')
    for _ in ('topic', 'frame of coordinates'):
        cursor.take(cursor.varint(1024))
    signed(cursor, 2**62)
    cursor.varint(2**16)
    for _ in range(cursor.varint(67)):
        for _ in ('element', 'offset', 'count'):
            cursor.varint(2**64 - 1)
    require(cursor.done(), 'bytes after a layout')
