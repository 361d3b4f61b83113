"""Histories of drives, from docs/format-history.md alone. Hashes are names here: they are not computed."""
import itertools
import pathlib

from quern_bytes import Cursor, require, xxh3
from quern_lidar_coding import unzigzag

TILE = 320000
MAGIC = {name: bytes.fromhex('9b51%s0d0a1a0a' % code)
         for name, code in (('history', '4843'), ('epoch', '4845'), ('segment', '4853'), ('end', '485a'))}


def morton(cube):
    return sum((cube[axis] >> n & 1) << 3 * n + 2 - axis for n in range(21) for axis in range(3))


def read_hash(cursor):
    return '%016x%016x' % (cursor.unsigned(8), cursor.unsigned(8))


def start(data, kind):
    cursor = Cursor(data, 0, len(data))
    require(cursor.take(8) == MAGIC[kind] and cursor.unsigned(2) == 1, 'magic or version of a ' + kind)
    return cursor


def read_index(data):
    """Bytes of each part of a segment."""
    start(data, 'segment')
    end = Cursor(data, len(data) - 24, len(data))
    size, check = end.unsigned(8), end.unsigned(8)
    require(end.take(8) == MAGIC['end'], 'the end of a segment')
    index = Cursor(data, len(data) - 24 - size, len(data) - 24)
    require(xxh3(data[index.at:index.end]) == check, 'the index of a segment')
    parts = {}
    while not index.done():
        name, offset, count = read_hash(index), index.unsigned(8), index.unsigned(8)
        parts[name] = data[offset:offset + count]
    return parts


def read_cells(data, side):
    """Places of cells in their tile, as numbers of cells on each axis."""
    cursor, cells, following = Cursor(data, 0, len(data)), [], 0
    for _ in range(cursor.varint(len(data))):
        key = following + cursor.varint(2**62)
        cell = [sum((key >> 3 * n + 2 - axis & 1) << n for n in range(21)) for axis in range(3)]
        require(max(cell) < TILE // side, 'a cell outside its tile')
        cells.append(cell)
        following = key + 1
    require(cursor.done(), 'bytes after the cells')
    return cells


def read_epoch(data, side):
    """Names of the parts of each tile, and how many cells they have."""
    cursor = start(data, 'epoch')
    number = cursor.varint(10**12 - 1)
    read_hash(cursor)
    require(number > 0 and cursor.varint(2**32 - 1) == side, 'number or cells of an epoch')
    cursor.varint(2**32 - 1)
    tiles = {}
    for _ in range(cursor.varint(len(data))):
        key = tuple(unzigzag(cursor.varint(2 * 3435972)) for _ in range(3))
        require(not tiles or key > max(tiles), 'tiles that do not rise')
        cursor.varint(number)
        tiles[key] = []
        for _ in range(cursor.varint(8)):
            name, cells = read_hash(cursor), cursor.varint(2**32)
            cursor.varint(2**32 - 1)
            require(all(name != other for other, _ in tiles[key]), 'a part twice in a tile')
            tiles[key].append((name, cells))
        require(tiles[key], 'a tile without parts')
    require(cursor.done(), 'bytes after the tiles')
    return tiles


class History:
    def __init__(self, folder):
        folder = pathlib.Path(folder)
        data = (folder / 'history').read_bytes()
        cursor = start(data, 'history')
        require(cursor.unsigned(1) <= 1, 'the kind of a history')
        self.side = cursor.unsigned(4)
        cursor.take(8)
        require(cursor.unsigned(8) == xxh3(data[:-8]) and cursor.done(), 'the check of a history')
        require(50 <= self.side <= 40000 and TILE % self.side == 0, 'the side of a cell')
        self.epochs = {path.name[13:]: path for path in (folder / 'epochs').iterdir()}
        self.parts = {}
        for path in (folder / 'segments').iterdir():
            self.parts.update(read_index(path.read_bytes()))

    def tiles_around(self, root, pose, reach):
        """Of each tile a pose, points, and known points, as a frame that predicts has them."""
        require(root in self.epochs, 'an epoch that is not there')
        tiles = read_epoch(self.epochs[root].read_bytes(), self.side)
        middle = [t // TILE for t in pose[1]]
        for key in itertools.product(*(range(m - reach, m + reach + 1) for m in middle)):
            points, seen, cubes = [], set(), set()
            for name, count in tiles.get(key, ()):
                require(name in self.parts, 'a part that is not there')
                cells = read_cells(self.parts[name], self.side)
                require(len(cells) == count, 'cells of a part')
                require(seen.isdisjoint(map(tuple, cells)), 'a cell in two parts of a tile')
                seen.update(map(tuple, cells))
                points += [[at * self.side + self.side // 2 for at in cell] for cell in cells]
            side = self.side
            while side < 800:
                side *= 2
            cubes.update(tuple(at // side for at in point) for point in points)
            known = [[at * side + side // 2 for at in cube] for cube in sorted(cubes, key=morton)]
            yield ((2**20, 0, 0, 0), [at * TILE for at in key]), points, known
