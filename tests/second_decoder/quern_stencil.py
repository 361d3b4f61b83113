"""Codec 3, stencil (docs/format-stencil.md): parameters, modes of chunks, and what the orders share."""
import copy
import struct
from math import prod

import quern_stencil_levels
import quern_stencil_raster
import quern_stencil_wavelet
from quern_bytes import Cursor, require, xxh3
from quern_lorenzo import binary32, float_bits
from quern_network import LevelModel
from quern_stencil_symbols import Bits, ENDS, read_lanes

RAW, CONSTANT, RASTER, LEVELS, WAVELET, LATTICE, PREQUANTIZED, DIFFERENCES, BESIDE, EDGES = range(10)
MODES = {RASTER: 'raster', LEVELS: 'levels', WAVELET: 'wavelet', EDGES: 'levels with edges'}
PLAIN_MODES = 'raster', 'levels', 'wavelet'

FEATURES = {'stencil constant chunk', 'stencil several chunks', 'stencil order 0', 'stencil order 1', 'stencil order 2',
            'stencil order 3', 'stencil split axis'}
FEATURES |= {'stencil %s %s' % (mode, what) for mode in PLAIN_MODES for what in
             ('mask', 'exceptions', 'exceptions one after another', 'one lane', 'several lanes')}
FEATURES |= {'stencil %s levels with edges' % what for what in ('lattice in', 'prequantized in')}
FEATURES |= {'stencil levels with edges mask', 'stencil network beside edges'}
FEATURES |= {'stencil lattice in ' + mode for mode in PLAIN_MODES}
FEATURES |= {'stencil prequantized in ' + mode for mode in PLAIN_MODES}
FEATURES |= {'stencil prequantized ' + what for what in ('exceptions', 'f16', 'f32', 'f64', 'i16', 'u8')}
FEATURES |= {'stencil differences in ' + mode for mode in ('raster', 'wavelet')}
FEATURES |= {'stencil model in the stream'}
FEATURES |= {'stencil differences exceptions', 'stencil beside mask', 'stencil alone beside a reference'}
FEATURES |= {'stencil parts', 'stencil parts mask', 'stencil parts plain', 'stencil parts plain part beside a mask',
             'stencil parts inner chunk masked', 'stencil parts beside a reference'}
FEATURES |= {'stencil shape %d' % k for k in range(len(ENDS))}
FEATURES |= {'stencil distribution of %d tokens' % t for t in (1, 2)}
FEATURES |= {'stencil on ' + t for t in ('f16', 'bf16', 'f32', 'f64', 'i8', 'i16', 'i32', 'u8', 'u16', 'u32')}
FEATURES |= quern_stencil_raster.FEATURES | quern_stencil_levels.FEATURES | quern_stencil_wavelet.FEATURES


class Scale:
    """Base and step of a chunk: what its integers stand for."""

    def __init__(self, bits):
        self.base, self.step = (struct.unpack('<d', bytes(4) + struct.pack('<I', bits.take(32)))[0] for _ in range(2))
        require(abs(self.base) < float('inf') and 0 < self.step < float('inf'), 'base or step')
        self.unit = self.step

    def element(self, x, dtype, width):
        value = x * self.unit + self.base
        if 'f' in dtype:
            return float_bits(value, dtype).to_bytes(width, 'little')
        low, high = (0, 2**(8 * width) - 1) if dtype[0] == 'u' else (-2**(8 * width - 1), 2**(8 * width - 1) - 1)
        whole = low if value <= low else high if value >= high else round(value)
        return whole.to_bytes(width, 'little', signed=low < 0)


class Head(Scale):
    """What the models of predicted chunks begin with."""

    def __init__(self, bits):
        super().__init__(bits)
        self.value_bits = bits.take(4)
        require(self.value_bits <= 10, 'fraction bits of values')
        self.fraction = bits.take(4) + 8
        require(self.fraction <= 16, 'fraction bits of weights')
        self.unit = self.step / 2**self.value_bits


def read_reference(at):
    """The hash of the values that the stream was predicted from."""
    require(at.unsigned(1) > 0, 'depth of a reference')
    return at.unsigned(8)


def read_model(at, seen):
    """The model of super-resolution that the stream holds."""
    require(at.unsigned(1) == 0, 'mark of a model')
    require(at.unsigned(1) == 2, 'place of a model')  # outside: nobody gives this decoder a model
    seen.add('stencil model in the stream')
    model = LevelModel(at.take(at.end - at.at))
    require(model.is_half, 'a model in a stream that has more than what decodes')
    return model


def Codec(header, seen):
    """The codec with a header's parameters."""
    require(header.dtype not in ('i64', 'u64'), 'element type')
    at = Cursor(header.params, 0, len(header.params))
    if header.parts:
        require(not header.edges, 'groups that are not linear in parts')
        return PartedCodec(header, at, seen)
    first, second = at.unsigned(1), at.unsigned(1)
    order = at.unsigned(1) if not at.done() else 0
    edges = order in (5, 6) and (len(header.params) == 3 or header.params[3] == 0)
    order -= 4 if edges else 0
    require(edges == header.edges, 'groups that are not linear')
    model = read_model(at, seen) if len(header.params) > 3 and header.params[3] == 0 else None
    reference = read_reference(at) if len(header.params) > 3 and model is None else None
    require((reference is not None) == header.references, 'reference')
    require((model is not None) == header.networks, 'model')
    require(order or len(header.params) in (2, 12), 'order 0')
    require(order == 1 or model is None, 'networks for chunks that are not in levels')
    require(at.done(), 'parameters')
    codec = LayoutCodec(header, header.shape, (first, second, order), reference, seen)
    codec.model = model
    codec.edges = edges
    require(not header.level_tables or codec.levels() > 0, 'level tables without levels')
    return codec


class PartedCodec:
    """An array in parts, each of which has a codec of its own."""

    def __init__(self, header, at, seen):
        self.width, self.seen = header.width, seen
        self.section_ends = None
        shape = header.shape
        require(len(shape) >= 2 and at.unsigned(1) == 255, 'parts')
        self.slices = at.varint(shape[0])
        count = at.varint(min(4096, shape[0]))
        require(self.slices > 0 and count > 0, 'slices or parts')
        listed = []
        for _ in range(count):
            slices = at.varint(shape[0])
            require(slices > 0, 'part without slices')
            listed.append((slices, (at.unsigned(1), at.unsigned(1), at.unsigned(1))))
        self.reference = read_reference(at) if not at.done() else None
        require(at.done() and (self.reference is not None) == header.references, 'reference')
        require(not header.level_tables, 'level tables of parts')
        self.parts, begin = [], 0
        for slices, layout in listed:
            require(begin // self.slices == (begin + slices - 1) // self.slices, 'part of two chunks')
            own = ([slices] if slices > 1 else []) + shape[1:]
            codec = LayoutCodec(header, own, layout, self.reference, seen)
            self.parts.append((begin, slices, codec))
            begin += slices
        require(begin == shape[0], 'slices of all parts')
        grid = [shape[0], prod(shape[1:-1]), shape[-1]]
        self.grid = grid, [self.slices] + [max(extent, 1) for extent in grid[1:]]
        seen.add('stencil parts')

    def chunk(self, data, extents, special, reference=None):
        cursor = Cursor(data, 0, len(data))
        first = cursor.varint(len(self.parts) - 1)
        begin = self.parts[first][0]
        require(begin % self.slices == 0, 'first part of a chunk')
        parts = [part for part in self.parts[first:] if part[0] + part[1] <= begin + extents[0]]
        require(sum(part[1] for part in parts) == extents[0], 'parts of a chunk')
        sizes = [[cursor.unsigned(4) for _ in codec.inner_boxes()] for _, _, codec in parts]
        slice_elems = extents[1] * extents[2]
        out = bytearray(prod(extents) * self.width)
        for (part_begin, slices, codec), own in zip(parts, sizes):
            offset, elems = (part_begin - begin) * slice_elems, slices * slice_elems
            inside = {i - offset for i in special or () if offset <= i < offset + elems}
            for (place, box), size in zip(codec.inner_boxes(), own):
                cells = self.cells(codec.grid[0], place, box)
                marks = {i for i, cell in enumerate(cells) if cell in inside} if inside else None
                inner = cursor.take(size)
                if size == 0:
                    require(marks is not None and len(marks) == len(cells), 'inner chunk without bytes')
                    self.seen.add('stencil parts inner chunk masked')
                    continue
                given = None
                if reference is not None:
                    given = b''.join(reference[(offset + c) * self.width:(offset + c + 1) * self.width] for c in cells)
                    self.seen.add('stencil parts beside a reference')
                elements = codec.chunk(inner, box, marks, given)
                for i, cell in enumerate(cells):
                    at = (offset + cell) * self.width
                    out[at:at + self.width] = elements[i * self.width:(i + 1) * self.width]
            self.seen.add('stencil parts mask' if inside else 'stencil parts plain part beside a mask'
                          if special is not None else 'stencil parts plain')
        require(cursor.done(), 'bytes left over in a chunk')
        return bytes(out)

    @staticmethod
    def cells(grid, place, box):
        """Places of a box in its part, in C order."""
        return [((place[0] + z) * grid[1] + place[1] + y) * grid[2] + place[2] + x
                for z in range(box[0]) for y in range(box[1]) for x in range(box[2])]


class LayoutCodec:
    """An array, or a part of one, in one layout."""

    def __init__(self, header, shape, layout, reference, seen):
        self.dtype, self.width, self.seen = header.dtype, header.width, seen
        first, second, self.order = layout
        require(first <= second <= len(shape), 'merged axes')
        self.edges = False  # whether chunks may have groups that are not linear
        require(self.order <= 3, 'order')
        self.reference, self.model = reference, None
        self.section_ends = None  # of the chunk decoded last, if it is in levels
        groups = self.groups = [shape[:first], shape[first:second], shape[second:]]
        grid = [prod(group) for group in groups]
        chunk = [max(extent, 1) for extent in grid]
        several = [axis for axis in range(3) if len(groups[axis]) >= 2]
        inner = (several[0], groups[several[0]][-1]) if several else (0, 0)  # axis of the grid, extent
        while self.too_large(chunk):
            axis = chunk.index(max(chunk))
            half = -(-chunk[axis] // 2)
            unit = self.unit(grid, axis, half, inner) if self.order in (1, 2) else 1
            chunk[axis] = -(-half // unit) * unit
        self.grid = grid, chunk
        self.split = None
        if (self.order or self.reference is not None) and inner[1] >= 8 and chunk[inner[0]] % inner[1] == 0:
            self.split = inner
            seen.add('stencil split axis')
        seen.add('stencil order %d' % self.order)
        if chunk != grid:
            seen.add('stencil several chunks')
        seen.add('stencil on ' + self.dtype)

    def unit(self, grid, axis, half, inner):
        """What a chunk's extent in levels is a multiple of."""
        if axis == inner[0] and 8 <= inner[1] <= half:
            return inner[1]
        long_axes = [a for a in range(3) if grid[a] > 1]
        return 1 if self.order == 2 and long_axes[:1] == [axis] and len(long_axes) > 1 else 32

    def inner_boxes(self):
        """Begin and extents of each chunk, in C order."""
        grid, chunk = self.grid
        return [([z, y, x], [min(c, g - b) for c, g, b in zip(chunk, grid, (z, y, x))])
                for z in range(0, grid[0], chunk[0]) for y in range(0, grid[1], chunk[1])
                for x in range(0, grid[2], chunk[2])]

    def levels(self):
        """The number of coarse levels of the array."""
        groups = self.groups
        if self.order not in (1, 2) or self.reference is not None:
            return 0
        grid, chunk = self.grid
        axes = []  # extents in the array and in a chunk, extents of the array's axes
        for axis in range(3):
            if self.split and self.split[0] == axis:
                inner = self.split[1]
                axes.append((grid[axis] // inner, chunk[axis] // inner, groups[axis][:-1]))
                axes.append((inner, inner, [inner]))
            else:
                axes.append((grid[axis], chunk[axis], groups[axis]))
        axes = [a for a in axes if a[1] > 1]
        if self.order == 2 and len(axes) > 1:
            axes = axes[1:]
        levels = max([(whole - 1).bit_length() for whole, _, _ in axes], default=0)
        for whole, part, merged in axes:
            merged = [e for e in merged if e > 1]
            for extent in [part] * (whole > part) + merged[-1:] * (len(merged) > 1):
                levels = min(levels, (extent & -extent).bit_length() - 1)
        return levels

    @staticmethod
    def layers(extents):
        """Planes, rows and columns of a chunk."""
        return list(extents) if extents[0] > 1 else [extents[1], 1, extents[2]]

    def too_large(self, chunk):
        _, rows, columns = self.layers(chunk)
        padded = (rows + 4 if rows > 1 else 1) * (-(-(columns + 32) // 8) * 8)
        return prod(chunk) > (2**18 if chunk[0] == chunk[1] == 1 else 2**21) or padded > 2**19

    def chunk(self, data, extents, special, reference=None):
        """The elements of a chunk. `special`: which of them the mask names, None without a mask. `reference`: those of
        what the stream was predicted from."""
        n = prod(extents)
        cursor = Cursor(data, 0, len(data))
        self.section_ends = None
        mode = cursor.unsigned(1)
        if mode == LATTICE:
            return self.on_lattice(cursor, extents, special)
        if mode == PREQUANTIZED:
            return self.prequantized(cursor, extents, special)
        if mode in (DIFFERENCES, BESIDE):
            require(reference is not None, 'a chunk without its reference')
            require(cursor.unsigned(4) == xxh3(reference) & 0xFFFFFFFF, 'another reference')
            numbers = [self.number(reference[i:i + self.width]) for i in range(0, len(reference), self.width)]
            decode = self.differences if mode == DIFFERENCES else self.beside
            return decode(cursor, extents, special, numbers)
        if reference is not None:
            self.seen.add('stencil alone beside a reference')
        require(mode <= RASTER or mode == LEVELS and self.order in (1, 2) or mode == WAVELET and self.order == 3 or
                mode == EDGES and self.edges, 'mode')
        if mode in (RAW, CONSTANT):
            elements = cursor.take(n * self.width if mode == RAW else self.width)
            require(cursor.done(), 'bytes left over in a chunk')
            if mode == CONSTANT:
                self.seen.add('stencil constant chunk')
            return elements if mode == RAW else elements * n
        bits = Bits(cursor)
        head = Scale(bits) if mode == WAVELET else Head(bits)
        masked = 0 if special is None else 1
        if mode == RASTER:
            model = quern_stencil_raster.Model(bits, head, self.layers(extents), masked, self.seen)
        elif mode in (LEVELS, EDGES):
            model = quern_stencil_levels.Model(bits, head, self.axes(extents), self.order == 2, masked, self.seen,
                                                networks=self.model, edges=mode == EDGES)
        else:
            model = quern_stencil_wavelet.Model(bits, self.axes(extents), masked, self.seen)
            if self.split:
                self.seen.add('stencil wavelet split axis')
        name = 'stencil %s ' % MODES[mode]
        exceptions = self.read_exceptions(cursor, n, name)
        if masked:
            self.seen.add(name + 'mask')
        if mode in (LEVELS, EDGES):
            walk = quern_stencil_levels.Walk(model, head)
            values = walk.run(cursor, special or ())
            self.section_ends = walk.section_ends
        else:
            lane_bits = model.lane_bits if mode == RASTER else cursor.unsigned(1)
            require(lane_bits <= 5, 'lane bits')
            lanes = read_lanes(cursor, lane_bits)
            self.seen.add(name + ('several lanes' if len(lanes) > 1 else 'one lane'))
            if mode == RASTER:
                values = quern_stencil_raster.Walk(model, head).run(lanes, special or ())
            else:
                values = quern_stencil_wavelet.Walk(model, lanes, special or ()).run()
        elements = [head.element(x, self.dtype, self.width) for x in values]
        for i, element in exceptions:
            elements[i] = element
        return b''.join(elements)

    def number(self, element):
        """An element as a binary64 number."""
        if self.dtype == 'bf16':
            return struct.unpack('<f', bytes(2) + element)[0]
        if 'f' in self.dtype:
            return struct.unpack({2: '<e', 4: '<f', 8: '<d'}[self.width], element)[0]
        return float(int.from_bytes(element, 'little', signed=self.dtype[0] == 'i'))

    def differences(self, cursor, extents, special, reference):
        """The reference and what elements differ by from it."""
        require(self.dtype in ('f32', 'f64'), 'differences of this type')
        exceptions = self.read_exceptions(cursor, prod(extents), 'stencil differences ')
        rest = cursor.take(cursor.end - cursor.at)
        require(rest and rest[0] <= LATTICE, 'differences without a chunk of them')
        stored = self.chunk(rest, extents, special)
        self.seen.add('stencil differences in ' + MODES.get(rest[0], 'another mode'))
        elements = []
        for i, base in enumerate(reference):
            base = base if abs(base) < float('inf') else 0.0
            sum_of_both = base + self.number(stored[i * self.width:(i + 1) * self.width]) + 0.0
            elements.append(float_bits(sum_of_both, self.dtype).to_bytes(self.width, 'little'))
        for i, element in exceptions:
            elements[i] = element
        return b''.join(elements)

    def beside(self, cursor, extents, special, reference):
        """In levels, behind the reference as a plane of its own."""
        axes = self.axes(extents)
        if len(axes) > 3:
            axes = [extent for extent in extents if extent > 1]
        bits = Bits(cursor)
        head = Head(bits)
        masked = 0 if special is None else 1
        model = quern_stencil_levels.Model(bits, head, [2] + axes, True, masked, self.seen, 1)
        exceptions = self.read_exceptions(cursor, prod(extents), 'stencil beside ')
        if masked:
            self.seen.add('stencil beside mask')
        walk = quern_stencil_levels.Walk(model, head)
        walk.set_reference(reference)
        elements = [head.element(x, self.dtype, self.width) for x in walk.run(cursor, special or ())]
        for i, element in exceptions:
            elements[i] = element
        return b''.join(elements)

    def on_lattice(self, cursor, extents, special):
        """The elements behind the integers of a chunk on a lattice."""
        require(self.dtype in ('f32', 'f64'), 'a lattice of this type')
        origin, spacing = cursor.binary64(), cursor.binary64()
        require(abs(origin) < float('inf') and 0 < spacing < float('inf'), 'lattice')
        integers = copy.copy(self)
        integers.dtype, integers.width = 'i32', 4
        head, rest = cursor.at, cursor.take(cursor.end - cursor.at)
        require(rest and rest[0] != LATTICE, 'a lattice without a chunk of integers')
        numbers = integers.chunk(rest, extents, special)
        if integers.section_ends is not None:
            self.section_ends = [head + end for end in integers.section_ends]
        self.seen.add('stencil lattice in ' + MODES.get(rest[0], 'another mode'))
        values = (n * spacing + origin for n, in struct.iter_unpack('<i', numbers))
        return b''.join(float_bits(value, self.dtype).to_bytes(self.width, 'little') for value in values)

    def prequantized(self, cursor, extents, special):
        """The elements that codes stand for, and those that have none."""
        n = prod(extents)
        if 'f' in self.dtype:
            step = cursor.binary64()
            require(0 < step < float('inf') and (self.dtype == 'f64' or binary32(step) == step), 'step')
        else:
            half = cursor.varint(2**31 - 1)
        exceptions = []
        i = -1
        for _ in range(cursor.varint(n)):
            i += 1 + cursor.varint(n)
            require(i < n, 'place of an exception')
            exceptions.append((i, cursor.take(self.width)))
        codes = copy.copy(self)
        codes.dtype, codes.width = 'i32', 4
        rest = cursor.take(cursor.end - cursor.at)
        require(rest and (rest[0] < LATTICE or rest[0] == EDGES), 'prequantized elements without a chunk of codes')
        numbers = [code for code, in struct.iter_unpack('<i', codes.chunk(rest, extents, special))]
        self.seen.add('stencil prequantized in ' + MODES.get(rest[0], 'another mode'))
        self.seen.add('stencil prequantized ' + self.dtype)
        if exceptions:
            self.seen.add('stencil prequantized exceptions')
        if self.dtype == 'f64':
            elements = [float_bits(float(code) * step, 'f64') for code in numbers]
        elif 'f' in self.dtype:
            elements = [float_bits(binary32(binary32(float(code)) * step), self.dtype) for code in numbers]
        else:
            bits = 8 * self.width
            low, high = (0, 2**bits - 1) if self.dtype[0] == 'u' else (-2**(bits - 1), 2**(bits - 1) - 1)
            codes = [code & 0xFFFFFFFF for code in numbers] if self.dtype[0] == 'u' else numbers
            elements = [min(max(code * (2 * half + 1), low), high) & 2**bits - 1 for code in codes]
        elements = [e.to_bytes(self.width, 'little') for e in elements]
        for i, element in exceptions:
            elements[i] = element
        return b''.join(elements)

    def axes(self, extents):
        """The axes of a chunk in levels or as a wavelet."""
        axes = list(extents)
        if self.split:
            axis, inner = self.split
            require(axes[axis] % inner == 0, 'split axis')
            axes[axis:axis + 1] = [axes[axis] // inner, inner]
        return [extent for extent in axes if extent > 1] or [1]

    def read_exceptions(self, cursor, n, name):
        exceptions, i = [], -1
        for _ in range(cursor.varint(n)):
            i += 1 + cursor.varint(n)
            require(i < n, 'place of an exception')
            exceptions.append((i, cursor.take(self.width)))
        if exceptions:
            self.seen.add(name + ('exceptions one after another' if len(exceptions) > 1 else 'exceptions'))
            self.seen.add(name + 'exceptions')
        return exceptions
