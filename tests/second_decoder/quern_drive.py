#!/usr/bin/env python3
"""Second decoder of drives, from docs/format-lidar.md, docs/format-history.md and docs/format-records.md alone.

usage: quern_drive.py FOLDER      decodes every NAME.qnl and compares with NAME.points; the folder `history` predicts
"""
import math
import pathlib
import struct
import sys

import quern_history
import quern_images
import quern_lidar
import quern_predict
from quern_bytes import Cursor, Malformed, require
from quern_records import RecordDecoder

SECTIONS = [('lidar.frame', 1), ('lidar.scan', 2)]
F32, SCALED, GRID, REMAINDERS, PROJECTED = range(5)
MESSAGE, IMAGE = 6, 7
U32 = 18
DTYPE_WIDTHS = {1: 2, 2: 2, 3: 4, 4: 8, 8: 1, 9: 2, 10: 4, 11: 8, 16: 1, 17: 2, 18: 4, 19: 8}


def read_text(cursor, limit):
    try:
        text = cursor.take(cursor.varint(limit)).decode('utf-8')
    except UnicodeDecodeError as why:
        raise Malformed('a name: %s' % why) from None
    require(not any(ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 for c in text), 'a control character in a name')
    return text


def read_description(data):
    cursor = Cursor(data, 0, len(data))
    version = cursor.unsigned(1)
    require(version in (1, 2, 3, 4), 'another version')
    flags, kind, form = cursor.unsigned(1), cursor.unsigned(1), cursor.unsigned(1)
    require(flags < 128 and version == 1 + (flags > 1) + (flags > 15) + (flags > 63) and kind < 5 and form < 8,
            'unknown flags, kind or format')
    frame = {'kind': kind, 'name': read_text(cursor, 200)}
    name = frame['name']
    require(name and not name.startswith('.') and '/' not in name and '\\' not in name, 'a name that is no file\'s')
    if flags & 1:
        frame['time'] = struct.unpack('<q', cursor.take(8))[0]
    cursor.varint(2**62)
    frame['rows'] = cursor.varint(2**32)
    if kind in (SCALED, GRID):
        scales, offsets = [cursor.binary64() for _ in range(3)], [cursor.binary64() for _ in range(3)]
        require(all(map(math.isfinite, scales + offsets)) and all(scales), 'scales and offsets')
        frame['scales'], frame['offsets'] = scales, offsets
    frame['columns'] = []
    for _ in range(cursor.varint(64)):
        column = read_text(cursor, 255), cursor.unsigned(1)
        require(column[1] in DTYPE_WIDTHS, 'the type of a column')
        frame['columns'].append(column)
    frame['header'] = cursor.take(cursor.varint(2**24))
    if kind == PROJECTED:
        frame['sensor'] = quern_images.read_sensor(frame['header'])
        require(frame['columns'] and frame['columns'][0][1] == U32, 'an image without ranges')
    if form == MESSAGE and frame['header']:
        quern_images.read_layout(frame['header'])
    frame['pose'] = quern_predict.read_pose(cursor) if flags & 2 else None
    frame['rays'] = quern_predict.read_rays(cursor) if flags & 4 else None
    frame['epoch'] = quern_history.read_hash(cursor) if flags & 16 else None
    frame['key'] = cursor.varint(64) if flags & 40 else 0
    frame['reach'] = cursor.varint(8) if flags & 32 else None
    frame['references'] = quern_predict.read_references(cursor, frame['key']) if flags & 8 else []
    frame['known'] = bool(flags & 64)
    require(frame['pose'] or not is_predicted(frame), 'a prediction without a pose')
    require(is_predicted(frame) or not frame['known'], 'known points without a prediction')
    require(cursor.done(), 'bytes after the description')
    return frame


def is_predicted(frame):
    return frame['references'] or frame['reach'] is not None


def widened(word):
    """binary64 bits of a binary32 pattern; NaN keeps its payload."""
    if word & 0x7FFFFFFF > 0x7F800000:
        return (word >> 31) << 63 | 0x7FF << 52 | (word & 0x7FFFFF) << 29
    return struct.unpack('<Q', struct.pack('<d', struct.unpack('<f', struct.pack('<I', word))[0]))[0]


def prediction_of(frames, frame, history):
    """From the frames before this one, and from a history."""
    if not is_predicted(frame):
        return ()
    require(frame['key'] <= len(frames), 'a key frame before the drive')
    key = len(frames) - frame['key']
    first = frames[key] if frame['key'] else frame
    require(first['rays'], 'a key frame without rays')
    before = []
    for distance in frame['references']:
        index = len(frames) - distance
        other = frames[index]
        require(other['pose'] and other['kind'] in (F32, PROJECTED), 'a reference without a pose')
        require(not is_predicted(other) or index - other['key'] == key, 'a reference of another key frame')
        points = quern_predict.unit_points(other['words'])
        before.append((other['pose'], points, points))
    if frame['reach'] is not None:
        require(first['epoch'] and history, 'a key frame without an epoch, or no history')
        before += history.tiles_around(first['epoch'], frame['pose'], frame['reach'])
    return quern_predict.predict(first['rays'], frame['pose'], before, frame['known'])


def decode_frame(description, scan, frames, history):
    """What NAME.points has of the frame; `frames` are those before it, and it joins them."""
    frame = read_description(description)
    header, _ = quern_lidar.read_header(scan)
    kind, words, columns = quern_lidar.decode(scan, prediction_of(frames, frame, history))
    if frame['kind'] == PROJECTED:
        require(header['mode'] == 2 and not any(words) and columns, 'an image that is no image')
        words = quern_images.project(frame['sensor'], columns[0])
        require(frame['rows'] == len(frame['sensor']['beams']), 'the rows of an image')
    frame['words'] = words
    frames.append(frame)
    points = len(words) // 3
    require(kind == (1 if frame['kind'] in (SCALED, GRID) else 0), 'another type of coordinates')
    require(frame['kind'] != REMAINDERS or header['mode'] == 2, 'remainders without mode exact')
    require(not frame['rows'] or header['mode'] and points % frame['rows'] == 0, 'rows')
    widths = [DTYPE_WIDTHS[dtype] for _, dtype in frame['columns']] + [8] * (3 * (frame['kind'] == REMAINDERS))
    require(widths == [width for width, _ in header['columns']], 'widths of columns')
    numbers = struct.pack('<%dI' % len(words), *words)
    if frame['kind'] == REMAINDERS:
        rests = [struct.unpack('<%dQ' % points, column) for column in columns[-3:]]
        numbers = b''.join(struct.pack('<Q', (widened(word) + rests[i % 3][i // 3]) % 2**64)
                           for i, word in enumerate(words))
    name = frame['name'].encode()
    out = bytes([len(name)]) + name + bytes([{F32: 0, PROJECTED: 0, SCALED: 1, GRID: 1, REMAINDERS: 2}[frame['kind']]])
    out += struct.pack('<I', points) + numbers
    for (column, dtype), values in zip(frame['columns'], columns):
        text = column.encode()
        out += bytes([len(text)]) + text + bytes([dtype]) + values
    return out


def decode(data, history):
    records = RecordDecoder(data, 0, set())
    require(records.run() == len(data), 'bytes after the stream')
    header = records.header
    require([(s.name, s.tag) for s in header.sections] == SECTIONS and all(s.is_string for s in header.sections) and
            header.per_segment == 1 and header.items > 0, 'these records are no drive')
    frames = []
    return [decode_frame(description, scan, frames, history) for description, scan in zip(*records.values)]


def main():
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    drives = sorted(pathlib.Path(sys.argv[1]).glob('*.qnl'))
    stored = pathlib.Path(sys.argv[1]) / 'history'
    history = quern_history.History(stored) if stored.exists() else None
    failed, frames = 0 if drives else 1, 0
    for drive in drives:
        try:
            got = decode(drive.read_bytes(), history)
            frames += len(got)
            problem = '' if b''.join(got) == drive.with_suffix('.points').read_bytes() else 'decodes to something else'
        except Malformed as error:
            problem = str(error)
        if problem:
            print(f'{drive.name}: {problem}')
            failed += 1
    print(f'{len(drives)} drives, {frames} frames, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
