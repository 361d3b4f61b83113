"""Networks of whole numbers, models for blocks and for levels (docs/format-model.md, chapters 2 to 4)."""
import hashlib

from quern_bytes import Cursor, require

MAGIC = bytes([0x8B]) + b'QMD\r\n\x1a\n'
DENSE, CONVOLUTION, DEPTH_TO_SPACE, SPACE_TO_DEPTH, ADD, CONCATENATE = range(6)


def limited(v, bits):
    limit = 2**(bits - 1) - 1
    return max(-limit, min(limit, v))


def places(extents):
    return [(z, y, x) for z in range(extents[0]) for y in range(extents[1]) for x in range(extents[2])]


class Tensor:
    """Numbers by (place, channel); `values` in their order in memory."""

    def __init__(self, extents, channels, bits, values=None):
        self.extents, self.channels, self.bits, self.values = extents, channels, bits, values
        self.size = extents[0] * extents[1] * extents[2] * channels
        require(0 < self.size <= 2**20 and 8 <= bits <= 16, 'size or bits of a tensor')

    def at(self, z, y, x, c):
        z, y, x = (max(0, min(n - 1, i)) for i, n in zip((z, y, x), self.extents))
        return self.values[((z * self.extents[1] + y) * self.extents[2] + x) * self.channels + c]


class Layer:
    def __init__(self, cursor, before):
        """`before`: tensors without values, the last of which is the input."""
        last = before[-1]
        self.kind = cursor.unsigned(1)
        require(self.kind <= CONCATENATE, 'kind of a layer')
        extents, channels, bits = list(last.extents), last.channels, last.bits
        if self.kind <= CONVOLUTION:
            self.activation, bits, self.shift = (cursor.unsigned(1) for _ in range(3))
            require(self.activation <= 2 and 1 <= self.shift <= 62, 'activation or shift')
        if self.kind == DENSE:
            extents, channels = [cursor.varint(2**20) for _ in range(3)], cursor.varint(2**20)
            columns = last.size
        elif self.kind == CONVOLUTION:
            self.width, self.step = ([cursor.unsigned(1) for _ in range(3)] for _ in range(2))
            require(all(w in (1, 3) for w in self.width) and all(s in (1, 2) for s in self.step), 'width or step')
            channels = cursor.varint(2**20)
            extents = [(n - 1) // s + 1 for n, s in zip(extents, self.step)]
            columns = self.width[0] * self.width[1] * self.width[2] * last.channels
        elif self.kind <= SPACE_TO_DEPTH:
            self.factor = [cursor.unsigned(1) for _ in range(3)]
            require(all(f in (1, 2) for f in self.factor), 'factor')
            group = self.factor[0] * self.factor[1] * self.factor[2]
            if self.kind == DEPTH_TO_SPACE:
                require(channels % group == 0, 'channels that move')
                extents, channels = [n * f for n, f in zip(extents, self.factor)], channels // group
            else:
                require(all(n % f == 0 for n, f in zip(extents, self.factor)), 'places that move')
                extents, channels = [n // f for n, f in zip(extents, self.factor)], channels * group
        else:
            if self.kind == ADD:
                bits = cursor.unsigned(1)
            self.other = cursor.varint(64)
            require(self.other < len(before), 'a layer that reads what comes later')
            other = before[self.other]
            require(other.extents == last.extents, 'shapes of two tensors')
            if self.kind == ADD:
                require(other.channels == channels, 'shapes of two tensors')
            else:
                channels, bits = channels + other.channels, max(bits, other.bits)
        self.out = Tensor(extents, channels, bits)
        if self.kind <= CONVOLUTION:
            self.read_rows(cursor, self.out.size if self.kind == DENSE else channels, columns, last.bits)

    def read_rows(self, cursor, rows, columns, in_bits):
        folded = [cursor.varint(2**32 - 2) for _ in range(rows)]
        self.bias = [-(b + 1 >> 1) if b & 1 else b >> 1 for b in folded]
        self.multipliers = [cursor.varint(2**31 - 1) for _ in range(rows)]
        weights = [w - 256 if w > 127 else w for w in cursor.take(rows * columns)]
        self.rows = [weights[r * columns:(r + 1) * columns] for r in range(rows)]
        for row, bias in zip(self.rows, self.bias):
            require(abs(bias) + sum(map(abs, row)) * (2**(in_bits - 1) - 1) < 2**31, 'a sum that could overflow')

    def finish(self, row, total):
        v = (total * self.multipliers[row] + 2**(self.shift - 1)) >> self.shift
        v = v if self.activation == 0 else max(v, 0) if self.activation == 1 else max(v, v // 8)
        return limited(v, self.out.bits)

    def run(self, tensors):
        x, out = tensors[-1], self.out
        values = []
        if self.kind == DENSE:
            values = [self.finish(r, b + sum(w * v for w, v in zip(row, x.values)))
                      for r, (row, b) in enumerate(zip(self.rows, self.bias))]
        elif self.kind == CONVOLUTION:
            for p in places(out.extents):
                seen = [x.at(*(i * s + t - w // 2 for i, s, t, w in zip(p, self.step, tap, self.width)), c)
                        for tap in places(self.width) for c in range(x.channels)]
                values += [self.finish(r, b + sum(w * v for w, v in zip(row, seen)))
                           for r, (row, b) in enumerate(zip(self.rows, self.bias))]
        elif self.kind == DEPTH_TO_SPACE:
            f = self.factor
            for z, y, q in places(out.extents):
                group = (z % f[0] * f[1] + y % f[1]) * f[2] + q % f[2]
                values += [x.at(z // f[0], y // f[1], q // f[2], group * out.channels + c)
                           for c in range(out.channels)]
        elif self.kind == SPACE_TO_DEPTH:
            f = self.factor
            for z, y, q in places(out.extents):
                values += [x.at(z * f[0] + i, y * f[1] + j, q * f[2] + k, c)
                           for i, j, k in places(f) for c in range(x.channels)]
        elif self.kind == ADD:
            values = [limited(a + b, out.bits) for a, b in zip(x.values, tensors[self.other].values)]
        else:
            for p in places(out.extents):
                values += [x.at(*p, c) for c in range(x.channels)]
                values += [tensors[self.other].at(*p, c) for c in range(tensors[self.other].channels)]
        return Tensor(out.extents, out.channels, out.bits, values)


class Network:
    def __init__(self, cursor):
        extents, channels = [cursor.varint(2**20) for _ in range(3)], cursor.varint(2**20)
        tensors = [Tensor(extents, channels, cursor.unsigned(1))]
        self.input = tensors[0]
        self.layers = []
        for _ in range(cursor.varint(64)):
            self.layers.append(Layer(cursor, tensors))
            tensors.append(self.layers[-1].out)
        require(self.layers, 'a network without layers')
        self.size = tensors[-1].size
        self.numbers = sum(t.size for t in tensors)
        self.products = sum(len(layer.rows) * len(layer.rows[0]) * (len(places(layer.out.extents))
                                                                    if layer.kind == CONVOLUTION else 1)
                            for layer in self.layers if layer.kind <= CONVOLUTION)

    def run(self, values):
        first = self.input
        tensors = [Tensor(first.extents, first.channels, first.bits, [limited(v, first.bits) for v in values])]
        for layer in self.layers:
            tensors.append(layer.run(tensors))
        return tensors[-1].values


def open_model(data, kind):
    require(data[:8] == MAGIC and len(data) > 44, 'magic of a model')
    require(hashlib.sha256(data[:-32]).digest() == data[-32:], 'seal of a model')
    cursor = Cursor(data, 8, len(data) - 32)
    require([cursor.unsigned(2) for _ in range(3)] == [3, kind, 1], 'version, kind or semantics of a model')
    return cursor


class LevelModel:
    """A network for some of the classes of the finest level."""

    def __init__(self, data):
        cursor = open_model(data, 3)
        self.axes = cursor.unsigned(1)
        require(self.axes in (2, 3), 'axes of a model')
        self.is_half = not cursor.take(cursor.varint(2**24))
        self.classes = {}
        for cls in range(1, 2**self.axes):
            present = cursor.unsigned(1)
            require(present <= 1, 'flag of a network')
            if present:
                self.classes[cls] = network = Network(cursor)
                require(network.input.extents == [1, 1, 1] and 3 <= network.input.channels <= 65, 'inputs of a network')
                require(network.size == 1, 'outputs of a network')
                require(all(layer.kind == CONVOLUTION and layer.width == layer.step == [1, 1, 1]
                            for layer in network.layers), 'layers of a network')
                require(network.products <= 2**13 and network.numbers <= 2**9, 'size of a network')
        require(self.classes and cursor.done(), 'end of a model')


class BlockModel:
    def __init__(self, data):
        cursor = open_model(data, 2)
        self.block = [cursor.unsigned(1) for _ in range(3)]
        elems = self.block[0] * self.block[1] * self.block[2]
        require(all(n and not n & n - 1 for n in self.block) and elems <= 4096, 'blocks of a model')
        require(cursor.unsigned(1) <= 14, 'unit bits')
        # A half that decodes has neither record nor encoders.
        self.is_half = not cursor.take(cursor.varint(2**24))
        self.decoders = []
        for _ in range(cursor.varint(4)):
            require(cursor.unsigned(1) in (1, 2), 'kind of a predictor')
            networks = []
            if cursor.unsigned(1):
                networks.append(Network(cursor))
                self.is_half = False
            networks.append(Network(cursor))
            self.decoders.append(networks[-1])
            require(self.decoders[-1].size == elems and self.decoders[-1].input.size <= 256, 'shape of a decoder')
            for network in networks:
                require(network.numbers <= 64 * (elems + networks[-1].input.size), 'numbers of a network')
                require(network.products <= 2**16 * elems, 'products of a network')
        require(self.decoders and cursor.done(), 'end of a model')
