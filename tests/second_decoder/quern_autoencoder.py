"""Codec 5, autoencoder (docs/format-autoencoder.md)."""
from math import prod

from quern_bytes import Cursor, require
from quern_network import BlockModel, places
from quern_stencil import Scale
from quern_stencil_symbols import Bits, level_of, read_distributions, read_lanes

RAW, CONSTANT, BLOCKS = range(3)
PLANE, LORENZO, NETWORK = 1, 2, 3
FEATURES = {'autoencoder ' + what for what in
            ('constant chunk', 'constant', 'plane', 'lorenzo', 'principal components', 'convolutions', 'exceptions',
             'mask', 'no residuals', 'smaller blocks')}


def cut(v):
    """To 53 bits, two's complement."""
    return (v + 2**52) % 2**53 - 2**52


class Head(Scale):
    def __init__(self, bits):
        super().__init__(bits)
        self.unit = self.step / 256
        self.masked, self.residuals = bits.take(1), bits.take(1)
        used = [bits.take(1) for _ in range(4)]
        self.steps = [0] * 4
        if any(used):
            self.multiplier, self.shift = bits.take(31), bits.take(6)
            require(1 <= self.shift <= 62, 'shift of networks')
            self.steps = [bits.take(15) if u else 0 for u in used]
            require(all(s or not u for s, u in zip(self.steps, used)), 'steps of latents')


class Codec:
    def __init__(self, header, seen):
        self.dtype, self.width, self.seen = header.dtype, header.width, seen
        require(self.dtype not in ('i64', 'u64') and header.enforced == 1, 'element type or bound')
        at = Cursor(header.params, 0, len(header.params))
        logs = [at.unsigned(1) for _ in range(3)]
        require(sum(logs) <= 12, 'size of blocks')
        self.block = [2**log for log in logs]
        place = at.unsigned(1)
        require(place in (0, 2), 'a model that is not in the stream')
        self.model = BlockModel(at.take(at.end - at.at)) if place == 2 else None
        require(at.done() and (self.model is None or self.model.block == self.block and self.model.is_half),
                'parameters')
        shape = [1, 1, 1] + list(header.shape)
        grid = [prod(shape[:-2]), shape[-2], shape[-1]]
        chunk = [max(n, 1) for n in grid]
        while prod(chunk) > 2**20:
            blocks = [-(-n // b) for n, b in zip(chunk, self.block)]
            axis = blocks.index(max(blocks))
            if blocks[axis] == 1:
                break
            chunk[axis] = (blocks[axis] + 1) // 2 * self.block[axis]
        self.grid = grid, chunk

    def chunk(self, data, extents, special):
        """Elements of a chunk as bytes; `special`: places of special elements, None for no mask."""
        cursor = Cursor(data, 0, len(data))
        mode = cursor.unsigned(1)
        require(mode <= BLOCKS, 'mode')
        if mode == RAW:
            require(len(data) == 1 + prod(extents) * self.width, 'size of a raw chunk')
            return data[1:]
        if mode == CONSTANT:
            require(len(data) == 1 + self.width, 'size of a constant chunk')
            self.seen.add('autoencoder constant chunk')
            return data[1:] * prod(extents)
        return self.blocks(cursor, extents, special)

    def blocks(self, cursor, extents, special):
        bits = Bits(cursor)
        self.head = head = Head(bits)
        require(bool(head.masked) == (special is not None), 'mask')
        self.number_distributions = read_distributions(bits, set())
        lane_bits = 0
        if head.residuals:
            lane_bits = bits.take(3)
            require(lane_bits <= 5, 'streams')
            self.residual_distributions = read_distributions(bits, set())
        exceptions, next_cell = {}, 0
        for _ in range(cursor.varint(prod(extents))):
            next_cell += cursor.varint(prod(extents))
            require(next_cell < prod(extents), 'place of an exception')
            exceptions[next_cell] = cursor.take(self.width)
            next_cell += 1
        if exceptions:
            self.seen.add('autoencoder exceptions')
        if special is not None:
            self.seen.add('autoencoder mask')
        numbers = cursor.take(cursor.varint(len(cursor.data)))
        self.numbers = read_lanes(Cursor(numbers, 0, len(numbers)), 0)[0]
        lanes = read_lanes(cursor, lane_bits) if head.residuals else []
        require(cursor.done(), 'bytes left over')
        if not head.residuals:
            self.seen.add('autoencoder no residuals')
        self.values, self.magnitudes = {}, {}
        self.special = special or set()
        self.extents = extents
        history = [LORENZO, 0, 0]  # method, level, mean
        coded = 0
        for corner in places([-(-n // b) for n, b in zip(extents, self.block)]):
            begin = [c * b for c, b in zip(corner, self.block)]
            size = [min(b, n - f) for b, n, f in zip(self.block, extents, begin)]
            if size != self.block:
                self.seen.add('autoencoder smaller blocks')
            predicted = self.read_numbers(history)
            lane = None
            if history[1]:
                require(lanes, 'residuals of a block')
                lane = lanes[coded % len(lanes)]
                coded += 1
            self.rebuild(begin, size, predicted, history[1], lane)
        self.numbers.finish()
        for lane in lanes:
            lane.finish()
        out = bytearray()
        for cell, at in enumerate(places(extents)):
            out += exceptions[cell] if cell in exceptions else head.element(self.values[at], self.dtype, self.width)
        return bytes(out)

    def number(self, place):
        return self.numbers.residual(self.number_distributions[place])

    def read_numbers(self, history):
        """A function of a place in the block; None for Lorenzo."""
        history[0] += self.number(2 + history[0])
        history[1] += self.number(9)
        method, level, _ = history
        require(0 <= method <= 6 and 0 <= level <= 40, 'method or level')
        if method == LORENZO:
            self.seen.add('autoencoder lorenzo')
            return None
        history[2] = cut(history[2] + self.number(0))
        mean = history[2] * 64
        if method < NETWORK:
            slopes = [self.number(1) if method == PLANE and e > 1 else 0 for e in self.block]
            self.seen.add('autoencoder plane' if method == PLANE else 'autoencoder constant')
            return lambda at: cut(mean + sum(
                (s * (2 * i - (e - 1)) * 256 + 2 * e) // (4 * e) if s else 0
                for s, i, e in zip(slopes, at, self.block)))
        network = method - NETWORK
        step = self.head.steps[network]
        require(step and self.model and network < len(self.model.decoders), 'a network that there is not')
        decoder = self.model.decoders[network]
        count = decoder.input.size
        latents = [self.number(10 + 13 * network + 13 * i // count) for i in range(count)]
        out = decoder.run([max(-32767, min(32767, latent * step)) for latent in latents])
        self.seen.add('autoencoder convolutions' if len(decoder.layers) > 1 else 'autoencoder principal components')
        head = self.head
        return lambda at: cut(mean + (
            (out[(at[0] * self.block[1] + at[1]) * self.block[2] + at[2]] * head.multiplier
             + 2**(head.shift - 1)) >> head.shift))

    def rebuild(self, begin, size, predicted, level, lane):
        value = lambda z, y, x: self.values.get((z, y, x), 0)
        size_of = lambda z, y, x: self.magnitudes.get((z, y, x), 0)
        for place in places(size):
            z, y, x = at = tuple(b + p for b, p in zip(begin, place))
            if (z * self.extents[1] + y) * self.extents[2] + x in self.special:
                self.values[at] = value(z, y, x - 1)
                continue
            if predicted is None:
                p = cut(value(z, y, x - 1) + value(z, y - 1, x) + value(z - 1, y, x) - value(z, y - 1, x - 1)
                        - value(z - 1, y, x - 1) - value(z - 1, y - 1, x) + value(z - 1, y - 1, x - 1))
            else:
                p = predicted(place)
            code = 0
            if level:
                near = size_of(z, y, x - 1) + size_of(z, y - 1, x) + size_of(z - 1, y, x)
                far = size_of(z, y - 1, x - 1) + size_of(z - 1, y, x - 1) + size_of(z - 1, y - 1, x)
                total = 2**min(level + 2, 28) + 200 * near + 80 * far
                code = lane.residual(self.residual_distributions[level_of(total)])
                self.magnitudes[at] = min(abs(code), 2**18 - 1)
            self.values[at] = cut(p + 256 * code)
