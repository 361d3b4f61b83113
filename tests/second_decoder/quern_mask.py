"""The mask section of a segment (docs/format-mask.md)."""
import quern_mask_levels
from quern_bytes import Malformed, require

VERBATIM = -1  # the class V, wherever classes are compared
MIXED = -2     # the state of a block of several classes

FEATURES = {'mask', 'mask one special', 'mask several specials', 'mask verbatim', 'mask plane same', 'mask distance 2',
            'mask block copied', 'mask mixed block', 'mask choice from a list', 'mask choice by number',
            'mask view', 'mask view short plane', 'mask view of none'} | quern_mask_levels.FEATURES
VIEW_MARK = 0xF8


class RangeDecoder:
    def __init__(self, data):
        self.data, self.at = data, 0
        self.range, self.code = 2**32 - 1, 0
        for _ in range(4):
            self.code = self.code << 8 | self.byte()
        require(self.code < self.range, 'first code of a mask')
        self.models = {}

    def byte(self):
        self.at += 1
        require(self.at <= len(self.data) + 3, 'mask is truncated')
        return self.data[self.at - 1] if self.at <= len(self.data) else 0

    def normalize(self):
        while self.range < 2**24:
            self.code = (self.code << 8 | self.byte()) & 0xFFFFFFFF
            self.range <<= 8

    def bit(self, model):
        p, age = self.models.get(model, (32768, 0))
        bound = (self.range >> 15) * (32 + (p * 32704 >> 16))
        rate = 131072 // (2 * age + 3)
        if self.code < bound:
            bit, self.range = 0, bound
            p += (65535 - p) * rate >> 16
        else:
            bit = 1
            self.code -= bound
            self.range -= bound
            p -= p * rate >> 16
        self.models[model] = p, min(age + 1, 39)
        self.normalize()
        return bit

    def direct(self, count):
        self.range >>= count
        value = self.code // self.range
        require(value < 2**count, 'number in a mask')
        self.code -= value * self.range
        self.normalize()
        return value

    def finish(self):
        require(self.at == len(self.data) + 3, 'bytes left over in a mask')


def kind(state):
    return 2 if state == MIXED else 0 if state == 0 else 1


def view_number(data, at):
    value = 0
    for k in range(7):
        require(at < len(data), 'view of a mask ends early')
        value |= (data[at] & 0x7F) << 7 * k
        at += 1
        if data[at - 1] < 0x80:
            require(data[at - 1] != 0 or k == 0, 'number in a view that is too long')
            return value, at
    raise Malformed('number in a view of a mask')


def read_view(data, extents, seen):
    """Section 9: the bytes behind the view, rows of a plane, columns."""
    n0, n1, n2 = extents
    if not data or data[0] != VIEW_MARK:
        seen.add('mask view of none')
        return data, n1, n2
    cells = n0 * n1 * n2
    cuts, at = view_number(data, 1)
    rows, at = view_number(data, at)
    require(cuts >= 1 and n2 % cuts == 0, 'columns of a view')
    columns = n2 // cuts
    require(at < len(data), 'view without a mask')
    least = 1 if data[at] == quern_mask_levels.MARK else 8
    require(columns >= 8 and rows >= least and rows <= cells // columns, 'view of a mask')
    require((rows, columns) != (n1, n2), 'view that is the box')
    if least == 8:
        seen.add('mask view')
    return data[at:], rows, columns


class Walk:
    """Sections 2 to 6: the classes of all cells, plane after plane."""

    def __init__(self, data, cells, rows, columns, width, seen):
        require(not data or data[0] < VIEW_MARK, 'mark of a mask')
        self.cells, self.plane_rows, self.n2 = cells, rows, columns
        self.n1 = self.plane_rows
        self.n0 = -(-self.cells // (self.n1 * self.n2))
        self.seen = seen
        self.d = d = RangeDecoder(data)
        count = d.direct(5)
        self.verbatim = d.direct(1)
        require(count <= 30 and count + self.verbatim >= 1, 'number of special values')
        self.distance = d.direct(6) + 1
        self.specials = []
        for _ in range(count):
            value = 0
            for _ in range(width):
                value = value << 8 | d.direct(8)
            self.specials.append(value)
        self.classes = [0] + list(range(1, count + 1)) + [VERBATIM] * self.verbatim
        self.number_bits = (len(self.classes) - 1).bit_length()
        least = lambda n: 64 if n >= 64 else 1 << (n - 1).bit_length()
        h = min(8, least(self.n1))
        self.columns = min(64 // h, least(self.n2))
        self.rows = min(64 // self.columns, least(self.n1))
        self.planes = []
        seen.add('mask')
        seen.add('mask one special' if count == 1 else 'mask several specials' if count else 'mask without specials')

    def choice(self, name, entries, excluded):
        done = []
        for k, entry in enumerate(entries):
            if entry in (excluded, MIXED) or entry in done:
                continue
            if self.d.bit(('hit', name, k, 0 if entry == 0 else 1)) == 0:
                self.seen.add('mask choice from a list')
                return entry
            done.append(entry)
        node = 1
        for _ in range(self.number_bits):
            node = 2 * node + self.d.bit(('tree', name, node))
        number = node - 2**self.number_bits
        require(number < len(self.classes), 'class of a mask')
        self.seen.add('mask choice by number')
        return self.classes[number]

    def run(self):
        last_same = 0
        for i in range(self.n0):
            self.n1 = min(self.plane_rows, self.cells // self.n2 - i * self.plane_rows)
            if self.n1 < self.plane_rows:
                self.seen.add('mask view short plane')
            reference = None
            if i > 0:
                reference = self.planes[i - self.distance if i >= self.distance else i - 1]
                if self.distance == 2 and i >= 2:
                    self.seen.add('mask distance 2')
                last_same = self.d.bit(('plane_same', last_same))
                if last_same:
                    self.seen.add('mask plane same')
                    self.planes.append(reference[:self.n1])
                    continue
            self.plane(reference)
        return self.planes

    def block_cells(self, by, bx):
        for y in range(by * self.rows, min((by + 1) * self.rows, self.n1)):
            for x in range(bx * self.columns, min((bx + 1) * self.columns, self.n2)):
                yield y, x

    def plane(self, reference):
        cells = [[0] * self.n2 for _ in range(self.n1)]
        self.planes.append(cells)
        down, across = -(-self.n1 // self.rows), -(-self.n2 // self.columns)
        states = [[MIXED] * across for _ in range(down)]
        copied = [[1] * across for _ in range(down)]
        for by in range(down):
            for bx in range(across):
                self.block(by, bx, cells, reference, states, copied)
        for y in range(self.n1):
            by = y // self.rows
            for bx in range(across):
                if states[by][bx] != MIXED or copied[by][bx]:
                    continue
                self.seen.add('mask mixed block')
                for x in range(bx * self.columns, min((bx + 1) * self.columns, self.n2)):
                    cells[y][x] = self.cell(cells, reference, y, x)

    def block(self, by, bx, cells, reference, states, copied):
        left = states[by][bx - 1] if bx else MIXED
        above = states[by - 1][bx] if by else MIXED
        copied[by][bx] = 0
        if reference is not None:
            there = {reference[y][x] for y, x in self.block_cells(by, bx)}
            state = there.pop() if len(there) == 1 else MIXED
            model = ('block_same', kind(state), copied[by][bx - 1] if bx else 1, copied[by - 1][bx] if by else 1)
            if self.d.bit(model):
                self.seen.add('mask block copied')
                for y, x in self.block_cells(by, bx):
                    cells[y][x] = reference[y][x]
                states[by][bx], copied[by][bx] = state, 1
                return
        if self.d.bit(('block_mixed', 0 if reference is None else 1, kind(left), kind(above))):
            states[by][bx] = MIXED
            return
        states[by][bx] = state = self.choice('block', [left, above], MIXED)
        for y, x in self.block_cells(by, bx):
            cells[y][x] = state

    def cell(self, cells, reference, y, x):
        def c(v, u):
            if v < 0:
                return 0
            if u < 0:
                return c(v - 1, 0)
            return cells[v][min(u, self.n2 - 1)]

        def r(v, u):
            return reference[min(max(v, 0), self.n1 - 1)][min(max(u, 0), self.n2 - 1)]

        w = c(y, x - 1)
        if reference is None:
            around = [c(y - 1, x), c(y - 1, x - 1), c(y - 1, x + 1), c(y, x - 2), c(y - 2, x), c(y - 1, x + 2),
                      c(y - 2, x + 1), c(y - 2, x - 1)]
            entries = [w, c(y - 1, x), c(y - 1, x + 1), c(y - 1, x - 1)]
        else:
            around = [c(y - 1, x), c(y - 1, x - 1), c(y - 1, x + 1), c(y - 2, x), r(y, x - 1), r(y, x), r(y, x + 1),
                      r(y + 1, x)]
            entries = [w, r(y, x), c(y - 1, x), c(y - 1, x + 1), r(y, x + 1), r(y + 1, x)]
        context = 0
        for neighbour in around:
            context = 2 * context + (neighbour == w)
        group = 2 if w == VERBATIM else min(w, 2)
        if self.d.bit(('cell2' if reference is None else 'cell3', group, context)) == 0:
            return w
        if len(self.classes) == 2:
            return self.classes[1] if w == self.classes[0] else self.classes[0]
        return self.choice('cell', entries, w)


def decode(data, extents, width, seen, may_be_levels):
    """Special cells of a segment: C order index -> bits."""
    cells = extents[0] * extents[1] * extents[2]
    coded, rows, columns = read_view(data, extents, seen)
    if may_be_levels and coded and coded[0] == quern_mask_levels.MARK:
        return quern_mask_levels.decode(coded, cells, rows, columns, len(coded) < len(data), width, seen)
    walk = Walk(coded, cells, rows, columns, width, seen)
    planes = walk.run()
    special, verbatim = {}, []
    cell = 0
    for plane in planes:
        for row in plane:
            for c in row:
                if c == VERBATIM:
                    verbatim.append(cell)
                elif c:
                    special[cell] = walk.specials[c - 1]
                cell += 1
    if walk.verbatim:
        require(verbatim, 'a mask without the verbatim cells it announces')
        seen.add('mask verbatim')
    before = 0
    for cell in verbatim:
        value = 0
        for j in reversed(range(width)):
            value = value << 8 | (walk.d.direct(8) if walk.d.bit(('changed', j)) else before >> 8 * j & 0xFF)
        special[cell] = before = value
    walk.d.finish()
    if not special:
        raise Malformed('a mask without special cells')
    return special
