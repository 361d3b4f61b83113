#!/usr/bin/env python3
"""A second decoder of quern streams, written from docs/format*.md alone: standard library only, slow, for small inputs.

usage: quern_decode.py FILE.qn                   prints dtype, shape and XXH3-64 of every stream's decoded bytes
       quern_decode.py --manifest FOLDER [...]   compares every golden stream of the folder with its manifest, and the
                                                 features seen with those the golden streams must cover
       quern_decode.py --must-fail FOLDER        every stream of the folder must be refused
       quern_decode.py --vectors DOCUMENT FOLDER the streams written out in a document must be those of the folder
"""
import json
import os
import sys

import quern_autoencoder
import quern_interp
import quern_lorenzo
import quern_lossless
import quern_mask
import quern_stencil
from quern_bytes import Cursor, Malformed, Unsupported, bound_xxh3, require, xxh3

MAGIC = bytes([0x89, 0x51, 0x52, 0x4E, 0x58, 0x0D, 0x0A, 0x0A])
END_MAGIC = bytes([0x51, 0x45, 0x4E, 0xA8])
DTYPES = {1: ('f16', 2), 2: ('bf16', 2), 3: ('f32', 4), 4: ('f64', 8), 8: ('i8', 1), 9: ('i16', 2), 10: ('i32', 4),
          11: ('i64', 8), 16: ('u8', 1), 17: ('u16', 2), 18: ('u32', 4), 19: ('u64', 8)}
LOSSLESS, ABS, REL, PWREL, PSNR, RATIO = range(6)
CODECS = {1: quern_lorenzo, 2: quern_lossless, 3: quern_stencil, 4: quern_interp, 5: quern_autoencoder}


class Header:
    """Chapter 3: every field of the header, checked."""

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
        features = at.varint(2**64 - 1)
        require(features & ~505 == 0, 'feature that must be understood')
        self.networks = features & 256 != 0
        self.edges = features & 128 != 0  # a codec's own
        self.parts = features & 64 != 0
        self.references = features & 32 != 0
        self.mask_levels = features & 16 != 0
        self.level_tables = features & 1 == 1
        at.varint(2**64 - 1)
        dtype = at.unsigned(1)
        require(dtype in DTYPES, 'dtype')
        self.dtype, self.width = DTYPES[dtype]
        rank = at.unsigned(1)
        require(rank <= 8, 'rank')
        self.shape = [at.varint(2**59) for _ in range(rank)]
        self.elems = product(self.shape)
        require(product(e for e in self.shape if e) <= 2**59, 'elements')
        self.read_bound(at)
        self.codec, self.codec_version = at.varint(0xFFFF), at.varint(0xFFFF)
        at.take(4)
        self.grid = [at.varint(2**59) for _ in range(3)]
        self.chunk = [at.varint(2**26) for _ in range(3)]
        require(product(self.grid) == self.elems, 'grid')
        require(all(1 <= c <= max(g, 1) for c, g in zip(self.chunk, self.grid)), 'chunk')
        require(product(self.chunk) <= 2**26, 'chunk elements')
        self.fills = [at.take(self.width) for _ in range(at.varint(8))]
        self.params = at.take(at.varint(2**20))
        packed = at.varint(2**22)
        if packed & 1:
            require(at.varint(2**20) > 0, 'metadata size')
        at.take(packed >> 1)
        require(at.done(), 'bytes left over in the header')

    def read_bound(self, at):
        flags = at.unsigned(1)
        requested, enforced = flags & 7, flags >> 3 & 7
        require(requested <= RATIO and enforced in (LOSSLESS, ABS, PWREL), 'kind of bound')
        floating = 'f' in self.dtype
        self.requested, self.enforced, value = requested, enforced, 0.0
        if requested != LOSSLESS:
            value = at.binary64()
            require(0 <= value < float('inf'), 'requested bound')
            require(requested != PWREL or value < 1 and floating, 'pwrel')
            require(requested != RATIO or value >= 1, 'ratio')
        if flags & 0x40:
            require(enforced != LOSSLESS, 'value of a lossless bound')
            value = at.binary64()
        elif enforced != LOSSLESS:
            require(requested == enforced, 'missing enforced bound')
        if enforced != LOSSLESS:
            require(0 < value < float('inf'), 'enforced bound')
        self.enforced_value = value
        if flags & 0x80:
            low, high = at.binary64(), at.binary64()
            require(-float('inf') < low <= high < float('inf'), 'range')


def product(numbers):
    result = 1
    for n in numbers:
        result *= n
    return result


def boxes(extents, size):
    """Boxes of `size` that tile `extents` in raster order, as (begin, extents); cut at the upper ends."""
    for z in range(0, extents[0], size[0]):
        for y in range(0, extents[1], size[1]):
            for x in range(0, extents[2], size[2]):
                begin = [z, y, x]
                yield begin, [min(s, e - b) for s, e, b in zip(size, extents, begin)]


def special_in(special, extents, begin, box):
    """Places in C order within a box of the segment that its mask names; None without a mask."""
    if special is None:
        return None
    within = set()
    for cell in special:
        x, rest = cell % extents[2], cell // extents[2]
        at = [rest // extents[1] - begin[0], rest % extents[1] - begin[1], x - begin[2]]
        if all(0 <= a < e for a, e in zip(at, box)):
            within.add((at[0] * box[1] + at[1]) * box[2] + at[2])
    return within


def segment_chunks(header):
    """Chapter 4: chunks of a full segment along each axis."""
    g = [-(-e // c) for e, c in zip(header.grid, header.chunk)]
    if g[1] * g[2] <= 64:
        chunks = [64 // max(g[1] * g[2], 1), g[1], g[2]]
    elif g[2] <= 64:
        chunks = [1, 64 // g[2], g[2]]
    else:
        chunks = [1, 1, 64]
    return [min(max(c, 1), max(n, 1)) for c, n in zip(chunks, g)]


class LevelTable:
    """Chapter 5.2. All values do not need it: what is wrong with it is noted, and nothing is refused."""

    def __init__(self, data):
        self.cursor, self.wrong = Cursor(data, 0, len(data)), None

    def follow(self, chunk, section_ends):
        """Compares the entry of the next chunk with it; `section_ends` of a chunk in levels."""
        if self.wrong is not None:
            return
        try:
            ends, at = [], 0
            for _ in range(self.cursor.varint(16)):
                more = self.cursor.varint(len(chunk))
                at += more
                require(more > 0 and at < len(chunk), 'beginnings that do not grow')
                ends.append(at)
            for end in ends or [len(chunk)]:
                require(self.cursor.unsigned(4) == xxh3(chunk[:end]) & 0xFFFFFFFF, 'check of a beginning')
            require(not ends or section_ends[-len(ends):] == ends, 'beginnings that are no sections')
        except (Malformed, TypeError) as why:
            self.wrong = str(why)

    def verdict(self):
        if self.wrong is None and not self.cursor.done():
            self.wrong = 'bytes left over'
        return 'level table' if self.wrong is None else 'level table wrong: ' + self.wrong


class StreamDecoder:
    def __init__(self, data, start, seen, last=None):
        self.data, self.seen = data, seen
        self.header = header = Header(data, start)
        self.start = start
        seen.add('dtype ' + header.dtype)
        seen.add('rank %d' % len(header.shape))
        seen.add('bound %d as %d' % (header.requested, header.enforced))
        seen.add('codec %d' % header.codec)
        self.codec = None
        require(not header.parts or header.codec == 3, 'parts of a codec without them')
        require(not header.edges or header.codec == 3, 'groups that are not linear of a codec without them')
        require(not header.level_tables or header.codec in (3, 4), 'level tables of a codec without levels')
        if header.codec != 0:
            require(header.codec in CODECS and header.codec_version == 1, 'codec')
            self.codec = CODECS[header.codec].Codec(header, seen)
            require(self.codec.grid == (header.grid, header.chunk), 'grid of the codec')
        self.reference = None
        if header.references:
            require(header.codec == 3, 'references of a codec without them')
            same = last is not None and (last.header.dtype, last.header.shape) == (header.dtype, header.shape)
            require(same and xxh3(last.values) == self.codec.reference, 'the array that the stream was predicted from')
            self.reference = last.values
        self.values = bytearray(header.elems * header.width)

    def put(self, begin, extents, elements):
        """Writes a box of the grid; elements are bytes in C order of the box."""
        grid, width = self.header.grid, self.header.width
        row = extents[2] * width
        at = 0
        for z in range(extents[0]):
            for y in range(extents[1]):
                flat = ((begin[0] + z) * grid[1] + begin[1] + y) * grid[2] + begin[2]
                self.values[flat * width:flat * width + row] = elements[at:at + row]
                at += row

    def reference_box(self, begin, extents):
        """The elements of a box of the grid in what the stream was predicted from; None without that."""
        if self.reference is None:
            return None
        grid, width, rows = self.header.grid, self.header.width, []
        for z in range(extents[0]):
            for y in range(extents[1]):
                flat = ((begin[0] + z) * grid[1] + begin[1] + y) * grid[2] + begin[2]
                rows.append(self.reference[flat * width:(flat + extents[2]) * width])
        return b''.join(rows)

    def segment(self, at, number, begin, extents):
        """Chapter 5. Returns the position after the segment."""
        header, data = self.header, self.data
        full = product(header.chunk) * header.width
        wide = 8 if 64 * full > 0xF0000000 else 4
        size = Cursor(data, at, len(data)).unsigned(wide)
        end = at + size
        require(end <= len(data), 'segment size')
        cursor = Cursor(data, at + wide, end)
        mask_size = cursor.varint(product(extents) * header.width)
        level_size = cursor.varint(9280) if header.level_tables else 0
        w = 2 if full <= 65535 else 4
        pieces = list(boxes(extents, header.chunk))
        table = [(cursor.unsigned(w), cursor.unsigned(2)) for _ in pieces]
        mask = cursor.take(mask_size)
        levels = LevelTable(cursor.take(level_size)) if level_size else None
        covered = data[at:cursor.at]
        require(cursor.unsigned(4) == bound_xxh3(header.checksum, number, covered) & 0xFFFFFFFF, 'head check')
        require(end - 8 >= cursor.at and int.from_bytes(data[end - 8:end], 'little') ==
                bound_xxh3(header.checksum, number, data[at:end - 8]), 'segment checksum')
        special = quern_mask.decode(mask, extents, header.width, self.seen, header.mask_levels) if mask_size else None
        for (stored, check), (offset, box) in zip(table, pieces):
            raw = product(box) * header.width
            is_raw = stored == 2**(8 * w) - 1
            require(is_raw or stored < raw, 'size of a chunk')
            chunk = cursor.take(raw if is_raw else stored)
            require(xxh3(chunk) & 0xFFFF == check, 'check of a chunk')
            if is_raw:
                self.seen.add('chunk raw')
                elements = chunk
            elif stored == 0:
                self.seen.add('chunk masked')
                elements = bytes(raw)
            else:
                require(self.codec is not None, 'coded chunk without a codec')
                self.seen.add('chunk coded')
                elements = self.coded(chunk, begin, extents, offset, box, special)
            if levels is not None and (is_raw or stored):
                levels.follow(chunk, None if is_raw else self.codec.section_ends)
            self.put([b + o for b, o in zip(begin, offset)], box, elements)
        require(cursor.at == end - 8, 'sizes of the chunks')
        if header.level_tables:
            self.seen.add('level table none' if levels is None else levels.verdict())
        if special is not None:
            self.overlay(special, begin, extents)
        return end

    def coded(self, chunk, begin, extents, offset, box, special):
        inside = special_in(special, extents, offset, box)
        if self.reference is None:
            return self.codec.chunk(chunk, box, inside)
        return self.codec.chunk(chunk, box, inside, self.reference_box([b + o for b, o in zip(begin, offset)], box))

    def overlay(self, special, begin, extents):
        """Chapter 5: special values are written over whatever the chunks gave. `special`: cell -> bits."""
        width, grid = self.header.width, self.header.grid
        for cell, bits in special.items():
            x, rest = cell % extents[2], cell // extents[2]
            z, y = rest // extents[1], rest % extents[1]
            flat = ((begin[0] + z) * grid[1] + begin[1] + y) * grid[2] + begin[2] + x
            self.values[flat * width:(flat + 1) * width] = bits.to_bytes(width, 'little')

    def run(self):
        """Decodes the stream and returns the position after it."""
        header = self.header
        at, sizes = header.end, []
        if header.elems:
            size = [c * n for c, n in zip(header.chunk, segment_chunks(header))]
            for number, (begin, extents) in enumerate(boxes(header.grid, size)):
                end = self.segment(at, number, begin, extents)
                sizes.append(end - at)
                at = end
        self.seen.add('segments %s' % ('none' if not sizes else 'one' if len(sizes) == 1 else 'several'))
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


def decode_file(data, seen):
    """All streams of a file as (dtype, shape, decoded bytes)."""
    at, arrays, decoder = 0, [], None
    while at < len(data) or not arrays:
        decoder = StreamDecoder(data, at, seen, decoder)
        at = decoder.run()
        arrays.append((decoder.header.dtype, decoder.header.shape, bytes(decoder.values)))
    return arrays


def required_features():
    """What the golden streams must cover between them."""
    names = {'dtype ' + name for name, _ in DTYPES.values()}
    names |= {'rank 0', 'rank 1', 'rank 2', 'rank 3', 'rank 8', 'codec 0', 'codec 1', 'codec 2', 'codec 3', 'codec 4',
              'codec 5'}
    names |= {'segments none', 'segments one', 'segments several', 'chunk raw', 'chunk masked', 'chunk coded',
              'level table none'}
    names |= {'bound %d as %d' % pair for pair in [(0, 0), (1, 1), (2, 1), (2, 0), (3, 3), (4, 1), (5, 1)]}
    return names | quern_lorenzo.FEATURES | quern_lossless.FEATURES | quern_mask.FEATURES | quern_stencil.FEATURES | \
        quern_interp.FEATURES | quern_autoencoder.FEATURES


def check_manifests(folders):
    entries = []
    for folder in folders:
        with open(os.path.join(folder, 'manifest.json'), encoding='utf-8') as file:
            entries += [(folder, entry) for entry in json.load(file)]
    seen, failures, skipped = set(), 0, 0
    for folder, entry in entries:
        with open(os.path.join(folder, entry['file']), 'rb') as file:
            data = file.read()
        wanted = [(s['dtype'], s['shape'], s['xxh3']) for s in entry['streams']]
        try:
            got = [(t, s, '%016x' % xxh3(v)) for t, s, v in decode_file(data, seen)]
        except Unsupported as why:
            skipped += 1
            if entry['reproducible']:
                failures += 1
                print('%s: %s' % (entry['file'], why))
            continue
        except Malformed as why:
            got = 'refused: %s' % why
        if got != wanted:
            failures += 1
            print('%s: expected %s, got %s' % (entry['file'], wanted, got))
    missing = sorted(required_features() - seen)
    for name in missing:
        print('no golden stream covers: ' + name)
    print('%d streams compared, %d skipped (zstd), %d failures, %d features seen, %d missing' %
          (len(entries) - skipped, skipped, failures, len(seen), len(missing)))
    return not failures and not missing


def check_must_fail(folder):
    accepted = 0
    names = sorted(n for n in os.listdir(folder) if n.endswith('.qn'))
    for name in names:
        with open(os.path.join(folder, name), 'rb') as file:
            data = file.read()
        try:
            decode_file(data, set())
        except Malformed:
            continue
        accepted += 1
        print('%s is accepted' % name)
    print('%d broken streams, %d accepted' % (len(names), accepted))
    return bool(names) and not accepted


def check_vectors(document, folder):
    """Headings name the streams; the first column of the tables below holds their bytes in hexadecimal."""
    vectors, name = {}, None
    with open(document, encoding='utf-8') as file:
        for line in file:
            if line.startswith('## '):
                name = line[3:].strip()
                vectors[name] = b''
            elif line.startswith('| `'):
                vectors[name] += bytes.fromhex(line.split('`')[1])
    wrong = 0
    for name, data in vectors.items():
        with open(os.path.join(folder, name), 'rb') as file:
            if file.read() != data:
                wrong += 1
                print('%s differs from the document' % name)
    print('%d test vectors, %d wrong' % (len(vectors), wrong))
    return bool(vectors) and not wrong


def main(arguments):
    if len(arguments) >= 2 and arguments[0] == '--manifest':
        return 0 if check_manifests(arguments[1:]) else 1
    if len(arguments) == 2 and arguments[0] == '--must-fail':
        return 0 if check_must_fail(arguments[1]) else 1
    if len(arguments) == 3 and arguments[0] == '--vectors':
        return 0 if check_vectors(arguments[1], arguments[2]) else 1
    if len(arguments) != 1:
        print(__doc__)
        return 2
    with open(arguments[0], 'rb') as file:
        data = file.read()
    seen = set()
    try:
        for dtype, shape, values in decode_file(data, seen):
            print(dtype, shape, '%016x' % xxh3(values))
    except Malformed as why:
        print('refused: %s' % why)
        return 1
    print(', '.join(sorted(seen)))
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
