"""Masks coded by levels (docs/format-mask.md, section 10)."""
import os
import re

from quern_bytes import Malformed, require

FEATURES = {'mask levels', 'mask levels view', 'mask levels rows as planes', 'mask levels reference',
            'mask levels plane same', 'mask levels distance', 'mask levels classes', 'mask levels verbatim',
            'mask levels surprise', 'mask levels rim'}
MARK = 0xF9
PHASES = [((0, 1), [(0, -1), (0, 1), (-2, -1), (-2, 1), (2, -1), (2, 1), (0, -3), (0, 3)]),
          ((1, 0), [(-1, 0), (1, 0), (-1, -1), (-1, 1), (1, -1), (1, 1), (-3, 0), (3, 0)]),
          ((1, 1), [(0, -1), (0, 1), (-1, 0), (1, 0), (-1, -1), (-1, 1), (1, -1), (1, 1)])]


def read_constants():
    path = os.path.join(os.path.dirname(__file__), '../../kernels/mask/levels/constants.h')
    with open(path, encoding='utf-8') as file:
        return [(int(z), int(o)) for z, o in re.findall(r'\{(\d+), (\d+)\}', file.read())]


CONSTANTS = read_constants()


class Tables:
    def __init__(self):
        self.counts = [list(pair) for pair in CONSTANTS]
        self.fine = {}

    def probability(self, context, fine):
        z, o = self.counts[context]
        p = min(max((4096 * o + (z + o) // 2) // (z + o), 1), 4095)
        if fine is None:
            return p
        z, o = self.fine.get(fine, (0, 0))
        return min(max((4096 * o + 96 * p) // (z + o + 96), 1), 4095)

    def learn(self, symbols):
        added = {}
        for context, fine, symbol in symbols:
            added.setdefault((0, context), [0, 0])[symbol] += 16
            if fine is not None:
                added.setdefault((1, fine), [0, 0])[symbol] += 16
        for (is_fine, context), (z, o) in added.items():
            before = self.fine.get(context, (0, 0)) if is_fine else self.counts[context]
            z, o = before[0] + z, before[1] + o
            while z + o > 4080:
                z, o = z - z // 2, o - o // 2
            if is_fine:
                self.fine[context] = z, o
            else:
                self.counts[context] = [z, o]


class Lanes:
    """Interleaved rANS: symbols of lists, in batches."""

    def __init__(self, lanes, groups):
        self.groups = [iter(group) for group in groups]
        self.states = []
        for lane in range(lanes):
            high = self.word(lane)
            self.states.append(high << 16 | self.word(lane))
        require(all(x >= 2**16 for x in self.states), 'state of a lane')
        self.done = 0

    def word(self, lane):
        try:
            return next(self.groups[lane // 32])
        except StopIteration:
            raise Malformed('words of a mask') from None

    def code(self, tables, contexts):
        """Symbols of a list of (context, fine context or None)."""
        out = []
        while len(out) < len(contexts):
            size = max(64, min(2048, self.done // 64 // 32 * 32))
            batch = contexts[len(out):len(out) + size]
            chances = [tables.probability(c, f) for c, f in batch]
            symbols = []
            for i, p in enumerate(chances):
                lane = i % len(self.states)
                x = self.states[lane]
                v = x % 4096
                symbol = 1 if v >= 4096 - p else 0
                frequency, start = (p, 4096 - p) if symbol else (4096 - p, 0)
                x = frequency * (x // 4096) + v - start
                if x < 2**16:
                    x = x << 16 | self.word(lane)
                self.states[lane] = x
                symbols.append(symbol)
            tables.learn([(c, f, s) for (c, f), s in zip(batch, symbols)])
            self.done += len(batch)
            out += symbols
        return out

    def finish(self):
        require(all(x == 2**16 for x in self.states), 'last states of a mask')
        require(all(next(group, None) is None for group in self.groups), 'words left over in a mask')


class Plane:
    """One plane of cells; `among`: those that are coded."""

    def __init__(self, lanes, tables, rows, cols, reference, among, seen):
        self.lanes, self.tables, self.rows, self.cols, self.seen = lanes, tables, rows, cols, seen
        self.reference, self.among = reference, among
        self.bits = [[0] * cols for _ in range(rows)]

    def is_coded(self, y, x):
        return self.among is None or self.among[y][x]

    def run(self):
        base = 1
        while -(-self.rows // base) * -(-self.cols // base) > 16:
            base *= 2
        if self.reference is not None:
            base = min(base, 8)
        self.code_base(base)
        s = base // 2
        while s:
            for phase in range(3):
                self.code_phase(phase, s)
            s //= 2
        return self.bits

    def equal_around(self, y, x):
        r = self.reference
        near = [r[min(max(y + i, 0), self.rows - 1)][min(max(x + j, 0), self.cols - 1)]
                for i in (-1, 0, 1) for j in (-1, 0, 1)]
        return near.count(r[y][x]) - 1

    def code_base(self, base):
        cells = [(y, x) for y in range(0, self.rows, base) for x in range(0, self.cols, base) if self.is_coded(y, x)]
        if self.reference is None:
            for (y, x), symbol in zip(cells, self.lanes.code(self.tables, [(2, None)] * len(cells))):
                self.bits[y][x] = symbol
            return
        contexts = [(3 + self.reference[y][x] * 9 + self.equal_around(y, x), None) for y, x in cells]
        for (y, x), symbol in zip(cells, self.lanes.code(self.tables, contexts)):
            self.bits[y][x] = symbol ^ self.reference[y][x]

    def place(self, y, x, s):
        """Where a neighbour is, or None."""
        def moved(at, extent):
            for _ in range(2):
                at += 2 * s if at < 0 else 0
            for _ in range(2):
                at -= 2 * s if at >= extent else 0
            return at
        v, u = moved(y, self.rows), moved(x, self.cols)
        inside = 0 <= v < self.rows and 0 <= u < self.cols
        return (v, u) if inside and self.is_coded(v, u) else None

    def code_phase(self, phase, s):
        (y0, x0), neighbours = PHASES[phase]
        distance = 0 if s == 1 else 1 if s == 2 else 2
        loud, quiet = [], [[] for _ in range(5)]
        for y in range(y0 * s, self.rows, 2 * s):
            for x in range(x0 * s, self.cols, 2 * s):
                if self.is_coded(y, x):
                    self.sort_cell(phase, distance, y, x, [self.place(y + dy * s, x + dx * s, s)
                                                           for dy, dx in neighbours], loud, quiet)
        symbols = self.lanes.code(self.tables, [item[:2] for item in loud])
        for (_, _, y, x, expected), symbol in zip(loud, symbols):
            self.bits[y][x] = symbol ^ expected
        for number, cells in enumerate(quiet):
            if cells:
                self.code_quiet(phase, distance, number, cells)

    def sort_cell(self, phase, distance, y, x, places, loud, quiet):
        first = next((self.bits[p[0]][p[1]] for p in places if p is not None), 0)
        n = [first if p is None else self.bits[p[0]][p[1]] for p in places]
        if self.reference is None:
            f = sum((n[i] != n[0]) << i - 1 for i in range(1, 8))
            if f == 0:
                quiet[0].append((y, x, n[0]))
            else:
                loud.append((21 + (3 * distance + phase) * 128 + f, None, y, x, n[0]))
            return
        r, e = self.reference[y][x], self.equal_around(y, x)
        d = sum(p is not None and self.reference[p[0]][p[1]] != v
                for p, v in list(zip(places, n))[:8 if phase == 2 else 6])
        if e == 8 and d == 0:
            quiet[(1 if len(set(n)) == 1 else 3) + r].append((y, x, r))
            return
        alike = [v == r for v in n]
        near = sum(alike[:4]) if phase == 2 else 2 * sum(alike[:2])
        more = sum(alike[4:8] if phase == 2 else alike[2:6])
        g = 0 if more <= 1 else 1 if more <= 3 else 2
        d = d if d <= 1 else 2 if d <= 3 else 3
        e7, e4 = max(e - 2, 0), 0 if e <= 4 else 1 if e <= 6 else e - 5
        coarse = 1248 + (((4 * (phase == 2) + e4) * 4 + d) * 5 + near) * 2 + r
        fine = (((((3 * (distance > 0) + phase) * 7 + e7) * 4 + d) * 5 + near) * 3 + g) * 2 + r
        loud.append((coarse, fine, y, x, r))

    def code_quiet(self, phase, distance, number, cells):
        groups = [cells[i:i + 1024] for i in range(0, len(cells), 1024)]
        flags = self.lanes.code(self.tables, [(1173 + number * 3 + distance, None)] * len(groups))
        words = [group[i:i + 32] for group, flag in zip(groups, flags) if flag for i in range(0, len(group), 32)]
        flags = self.lanes.code(self.tables, [(1188 + number * 3 + distance, None)] * len(words))
        listed = [cell for word, flag in zip(words, flags) if flag for cell in word]
        context = 1203 + (3 * distance + phase) * 5 + number
        symbols = dict(zip(listed, self.lanes.code(self.tables, [(context, None)] * len(listed))))
        if listed:
            self.seen.add('mask levels surprise')
        for cell in cells:
            y, x, expected = cell
            self.bits[y][x] = expected ^ symbols.get(cell, 0)


def read_head(data, several, width):
    at = 1

    def take(count):
        nonlocal at
        require(at + count <= len(data), 'mask ends early')
        at += count
        return data[at - count:at]

    def number(most):
        value = 0
        for k in range(9):
            byte = take(1)[0]
            value |= (byte & 0x7F) << 7 * k
            if byte < 0x80:
                require((byte != 0 or k == 0) and value <= most, 'number in a mask')
                return value
        raise Malformed('number in a mask')

    flags, shift = take(1)[0], take(1)[0]
    count, has_verbatim, beside_rim = flags & 31, flags >> 5 & 1, flags >> 6 & 1
    require(flags < 128 and count <= 30 and count + has_verbatim >= 1 + beside_rim, 'special values of a mask')
    require(shift <= 6, 'lanes of a mask')
    distance = number(64) if several else 1
    require(distance >= 1, 'distance of planes')
    specials = [int.from_bytes(take(width), 'little') for _ in range(count)]
    lanes = 4 << shift
    sizes = [number(2**48) for _ in range(-(-lanes // 32))]
    groups = []
    for size in sizes:
        words = take(2 * size)
        groups.append([words[2 * i] | words[2 * i + 1] << 8 for i in range(size)])
    return specials, has_verbatim, beside_rim, distance, Lanes(lanes, groups), data[at:]


def positions(lanes, cells, rows, cols, distance, seen):
    """Rows of bits of all planes."""
    count = -(-cells // (rows * cols))
    height = [min(rows, cells // cols - i * rows) for i in range(count)]
    tables, differs = Tables(), [1]
    for i in range(1, count):
        differs += lanes.code(tables, [(0 if i == 1 else differs[-1], None)])
    planes = []
    for i in range(count):
        reference = planes[i - distance if i >= distance else i - 1][:height[i]] if i else None
        if i and not differs[i]:
            seen.add('mask levels plane same')
            planes.append(reference)
            continue
        if i:
            seen.add('mask levels reference')
        planes.append(Plane(lanes, tables, height[i], cols, reference, None, seen).run())
    return [row for plane in planes for row in plane]


def rim(masked):
    """1 for masked cells next to one that is not."""
    rows, cols = len(masked), len(masked[0])
    return [[int(masked[y][x] and not all(masked[min(max(y + i, 0), rows - 1)][min(max(x + j, 0), cols - 1)]
                                          for i in (-1, 0, 1) for j in (-1, 0, 1)))
             for x in range(cols)] for y in range(rows)]


def decode(data, cells, rows, cols, is_view, width, seen):
    """Special cells of a segment: C order index -> bits. `data`: from the mark on."""
    several = cells > rows * cols
    specials, has_verbatim, beside_rim, distance, lanes, rest = read_head(data, several, width)
    seen.add('mask levels')
    if is_view:
        seen.add('mask levels rows as planes' if rows == 1 else 'mask levels view')
    if distance > 1:
        seen.add('mask levels distance')
    masked = positions(lanes, cells, rows, cols, distance, seen)
    classes = len(specials) + has_verbatim
    numbers = [[0] * cols for _ in masked]
    for j in range((classes - 1).bit_length()):
        seen.add('mask levels classes')
        if j == 0 and beside_rim:
            seen.add('mask levels rim')
            bits = Plane(lanes, Tables(), len(masked), cols, rim(masked), None, seen).run()
        else:
            bits = Plane(lanes, Tables(), len(masked), cols, None, masked, seen).run()
        for row, more in zip(numbers, bits):
            for x, bit in enumerate(more):
                row[x] |= bit << j
    lanes.finish()
    special = {}
    for cell, (bit, number) in enumerate((b, n) for r, s in zip(masked, numbers) for b, n in zip(r, s)):
        if not bit:
            continue
        require(number < classes, 'class of a mask')
        if number < len(specials):
            special[cell] = specials[number]
            continue
        seen.add('mask levels verbatim')
        require(len(rest) >= width, 'verbatim cells of a mask')
        special[cell], rest = int.from_bytes(rest[:width], 'little'), rest[width:]
        has_verbatim = 2
    require(has_verbatim != 1, 'a mask without the verbatim cells it announces')
    require(not rest, 'bytes after a mask')
    require(special, 'a mask without special cells')
    return special
