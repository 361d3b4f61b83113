#!/usr/bin/env python3
"""A second decoder of streams of records, written from docs/format.md and docs/format-records.md alone.

usage: quern_records.py FILE.qn              prints sections and XXH3-64 of what each decodes to
       quern_records.py --manifest FOLDER    compares every golden stream of the folder with its manifest
       quern_records.py --must-fail FOLDER   every stream of the folder must be refused
"""
import json
import os
import struct
import sys

import quern_packing
from quern_bytes import Cursor, Malformed, Unsupported, bound_xxh3, require, xxh3
from quern_decode import DTYPES, END_MAGIC, MAGIC, PSNR, Header

CODECS = {0xF001: quern_packing}
RAW = 0xFFFFFFFF
FEATURES = {'form values', 'form bytes', 'part raw', 'part coded', 'section ends early', 'frames', 'codec 0',
            'segments none', 'segments several', 'string empty', 'metadata'}


class Section:
    """One section of the header. Its bound is read as that of an array."""

    def __init__(self, at, items):
        form = at.unsigned(1)
        require(form in (1, 2), 'form of a section')
        self.is_string = form == 2
        name = at.take(at.varint(255))
        try:
            self.name = name.decode('utf-8')
        except UnicodeDecodeError as why:
            raise Malformed('name of a section: %s' % why) from None
        require(name and not any(ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 for c in self.name), 'name of a section')
        self.tag = at.varint(0xFFFF)
        self.dtype, self.width, self.enforced, self.bound = 'bytes', 1, 0, 0.0
        self.items = self.item_elems = 0
        if self.is_string:
            return
        dtype = at.unsigned(1)
        require(dtype in DTYPES, 'dtype')
        self.dtype, self.width = DTYPES[dtype]
        self.items, self.item_elems = at.varint(2**59), at.varint(2**59)
        require(self.items <= items, 'items of a section')
        require(self.item_elems > 0 and self.items * self.item_elems * self.width <= 2**62, 'elements of an item')
        bounds = Header.__new__(Header)
        bounds.dtype = self.dtype
        bounds.read_bound(at)
        require(bounds.requested < PSNR, 'kind of bound')
        self.enforced, self.bound = bounds.enforced, bounds.enforced_value

    def part_items(self, segment, per_segment):
        return max(0, min(self.items - segment * per_segment, per_segment))


class RecordHeader:
    def __init__(self, data, start):
        require(data[start:start + 8] == MAGIC, 'magic')
        size = Cursor(data, start + 8, len(data)).unsigned(4)
        require(20 <= size <= 2 * 2**20 + 1024 and start + size <= len(data), 'header size')
        self.end = start + size
        body = data[start:self.end - 8]
        self.checksum = int.from_bytes(data[self.end - 8:self.end], 'little')
        require(xxh3(body) == self.checksum, 'header checksum')
        at = Cursor(body, 12, len(body))
        require((at.unsigned(1), at.unsigned(1)) == (0, 1), 'version')
        require(at.varint(2**64 - 1) == 2, 'features that must be understood')
        at.varint(2**64 - 1)
        at.take(4)
        self.items, self.per_segment = at.varint(2**59), at.varint(2**32)
        require(self.per_segment > 0, 'items of a segment')
        self.frames = [at.varint(2**59) for _ in range(at.varint(2**16))]
        require(not self.frames or sum(self.frames) == self.items, 'frames')
        self.codec, self.codec_version = at.varint(0xFFFF), at.varint(0xFFFF)
        count = at.varint(1024)
        require(count > 0, 'sections')
        self.sections = [Section(at, self.items) for _ in range(count)]
        require(len({s.name for s in self.sections}) == count, 'names of sections')
        for section in self.sections:
            most = min(section.items, self.per_segment) * section.item_elems * section.width
            require(most <= 2**31, 'bytes of a part')
        self.params = at.take(at.varint(2**20))
        packed = at.varint(2**22)
        if packed & 1:
            require(at.varint(2**20) > 0, 'metadata size')
        self.metadata_bytes = len(at.take(packed >> 1))
        require(at.done(), 'bytes left over in the header')


class RecordDecoder:
    def __init__(self, data, start, seen):
        self.data, self.start, self.seen = data, start, seen
        self.header = header = RecordHeader(data, start)
        self.codec = None
        if header.codec:
            if header.codec not in CODECS:
                raise Unsupported('codec %d' % header.codec)
            self.codec = CODECS[header.codec].Codec(header, seen)
        else:
            seen.add('codec 0')
            require(header.codec_version == 1 and not header.params, 'codec 0')
        if header.frames:
            seen.add('frames')
        if header.metadata_bytes:
            seen.add('metadata')
        # Values as bytes; strings as a list.
        self.values = [[] if s.is_string else bytearray() for s in header.sections]

    def part(self, index, cursor, entry):
        length, stored, check = entry
        section, seen = self.header.sections[index], self.seen
        is_raw = stored == RAW
        require(is_raw or 0 < stored < length, 'stored size of a part')
        data = cursor.take(length if is_raw else stored)
        require(xxh3(data) & 0xFFFFFFFF == check, 'check of a part')
        seen.add('part raw' if is_raw else 'part coded')
        if not is_raw:
            require(self.codec is not None, 'coded part without a codec')
            data = self.codec.part(section, index, data, length)
        if section.is_string:
            seen.add('form bytes')
            if not length:
                seen.add('string empty')
            self.values[index].append(data)
        else:
            seen.add('form values')
            self.values[index] += data

    def segment(self, at, number):
        """Returns the position after the segment."""
        header, data = self.header, self.data
        size = Cursor(data, at, len(data)).unsigned(8)
        end = at + size
        require(end <= len(data), 'segment size')
        cursor, table = Cursor(data, at + 8, end), []
        for index, section in enumerate(header.sections):
            items = section.part_items(number, header.per_segment)
            if not section.is_string and not items:
                self.seen.add('section ends early')
                continue
            length = items * section.item_elems * section.width
            if section.is_string:
                length = cursor.unsigned(4)
                require(length <= 2**30, 'length of a string')
            table.append((index, (length, cursor.unsigned(4), cursor.unsigned(4))))
        covered = data[at:cursor.at]
        require(cursor.unsigned(4) == bound_xxh3(header.checksum, number, covered) & 0xFFFFFFFF, 'head check')
        require(end - 8 >= cursor.at and int.from_bytes(data[end - 8:end], 'little') ==
                bound_xxh3(header.checksum, number, data[at:end - 8]), 'segment checksum')
        for index, entry in table:
            self.part(index, cursor, entry)
        require(cursor.at == end - 8, 'sizes of the parts')
        return end

    def run(self):
        header = self.header
        at, sizes = header.end, []
        for number in range(-(-header.items // header.per_segment)):
            end = self.segment(at, number)
            sizes.append(end - at)
            at = end
        self.seen.add('segments none' if not sizes else 'segments one' if len(sizes) == 1 else 'segments several')
        index = at
        cursor = Cursor(self.data, at, len(self.data))
        require([cursor.varint(2**64 - 1) for _ in sizes] == sizes, 'index')
        index_size = cursor.at - index
        require(cursor.unsigned(8) == index_size, 'index size')
        require(cursor.unsigned(8) == cursor.at + 8 - self.start, 'stream size')
        covered = self.data[index:cursor.at]
        require(cursor.unsigned(4) == bound_xxh3(header.checksum, len(sizes), covered) & 0xFFFFFFFF, 'trailer check')
        require(cursor.take(4) == END_MAGIC, 'trailer magic')
        return cursor.at


def decode(data, seen):
    decoder = RecordDecoder(data, 0, seen)
    require(decoder.run() == len(data), 'bytes after the stream')
    sections = []
    for section, values in zip(decoder.header.sections, decoder.values):
        content = values
        if section.is_string:
            content = b''.join(struct.pack('<Q', len(text)) + text for text in values)
        sections.append({'name': section.name, 'dtype': section.dtype, 'items': section.items,
                         'item_elems': section.item_elems, 'xxh3': '%016x' % xxh3(content)})
    return decoder.header, sections


def check_manifest(folder):
    with open(os.path.join(folder, 'manifest.json'), encoding='utf-8') as file:
        entries = json.load(file)
    seen, failures = set(), 0
    for entry in entries:
        with open(os.path.join(folder, entry['file']), 'rb') as file:
            data = file.read()
        try:
            header, sections = decode(data, seen)
            got = [header.items, header.frames, sections]
        except Malformed as why:
            got = 'refused: %s' % why
        if got != [entry['items'], entry['frames'], entry['sections']]:
            failures += 1
            print('%s: expected %s, got %s' % (entry['file'], entry, got))
    missing = sorted((FEATURES | quern_packing.FEATURES) - seen)
    for name in missing:
        print('no golden stream covers: ' + name)
    print('%d streams of records compared, %d failures, %d features missing' % (len(entries), failures, len(missing)))
    return bool(entries) and not failures and not missing


def check_must_fail(folder):
    names = sorted(n for n in os.listdir(folder) if n.endswith('.qn'))
    accepted = 0
    for name in names:
        with open(os.path.join(folder, name), 'rb') as file:
            data = file.read()
        try:
            decode(data, set())
        except Malformed:
            continue
        accepted += 1
        print('%s is accepted' % name)
    print('%d broken streams of records, %d accepted' % (len(names), accepted))
    return bool(names) and not accepted


def main(arguments):
    if len(arguments) == 2 and arguments[0] == '--manifest':
        return 0 if check_manifest(arguments[1]) else 1
    if len(arguments) == 2 and arguments[0] == '--must-fail':
        return 0 if check_must_fail(arguments[1]) else 1
    if len(arguments) != 1:
        print(__doc__)
        return 2
    with open(arguments[0], 'rb') as file:
        data = file.read()
    try:
        header, sections = decode(data, set())
    except Malformed as why:
        print('refused: %s' % why)
        return 1
    print(header.items, 'items')
    for section in sections:
        print(section)
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
