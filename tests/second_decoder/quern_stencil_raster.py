"""Chunks of stencil in raster order (docs/format-stencil.md, mode 2)."""
from quern_bytes import require
from quern_stencil_symbols import MAGNITUDE_LIMIT, level_of, read_distributions, round2

MEAN = 1  # as the plane of a tap; the others are 0, -1, -2, -3

ROW = [(0, 0, -1), (0, 0, -2), (0, 0, -3)]
MEAN_TAPS = [(MEAN, r, c) for r, c in
             [(0, 0), (0, -1), (0, 1), (-1, 0), (1, 0), (-1, -1), (-1, 1), (1, -1), (1, 1)]]
TAPS = {
    'line': [(0, 0, -c) for c in range(1, 9)],
    'rows': ROW + [(-1, 0, c) for c in (0, -1, 1, -2, 2, -3, 3)] + [(-2, 0, c) for c in (0, -1, 1, -2, 2)] + [(-3, 0, 0)],
    'planes': ROW + [(0, -1, c) for c in (0, -1, 1, -2, 2)] + [(0, -2, c) for c in (0, -1, 1)] +
              [(-1, r, c) for r, c in [(0, 0), (0, -1), (0, 1), (-1, 0), (1, 0), (-1, -1), (-1, 1), (1, -1), (1, 1),
                                       (0, -2), (0, 2), (-2, 0), (2, 0)]] +
              [(-2, r, c) for r, c in [(0, 0), (0, -1), (0, 1), (-1, 0), (1, 0)]] + [(-3, 0, 0)],
}
CONTEXT_TAPS = {
    'line': [(0, 0, -1), (0, 0, -2)],
    'rows': [(0, 0, -1), (0, 0, -2), (-1, 0, 0), (-1, 0, -1), (-1, 0, 1), (-1, 0, 2), (-1, 0, -2), (-2, 0, 0), (-3, 0, 0)],
    'planes': [(0, 0, -1), (0, 0, -2), (0, -1, 0), (0, -1, -1), (0, -1, 1), (0, -1, 2), (0, -2, 0), (-1, 0, 0),
               (-1, 0, 1), (-1, 0, -1), (-1, 1, 0), (-1, -1, 0), (-2, 0, 0), (-1, 1, 1)],
}
CLASSES = {'line': [1], 'rows': [1, 3, 5], 'planes': range(6)}

FEATURES = {'stencil raster ' + shape for shape in TAPS} | {'stencil mean of planes', 'stencil weights of another class',
                                                            'stencil weights of no class', 'stencil stored weights'}


class Model:
    """What a chunk stores in front of its exceptions: weights of each class of rows, contexts, distributions."""

    def __init__(self, bits, head, extents, masked, seen):
        self.planes, self.rows, self.columns = extents
        self.shape = 'planes' if self.rows > 1 else 'rows' if self.planes > 1 else 'line'
        seen.add('stencil raster ' + self.shape)
        self.fraction = head.fraction
        self.lane_bits = bits.take(3)
        require(self.lane_bits <= 5 and 2**self.lane_bits <= self.planes * self.rows, 'lane bits')
        self.mean = bits.take(1)
        require(not self.mean or self.planes >= 8, 'mean of too few planes')
        require(bits.take(1) == masked, 'masked')
        if self.mean:
            seen.add('stencil mean of planes')
        stored = {c: self.read_weights(bits, c) for c in CLASSES[self.shape] if bits.take(1)}
        self.weights = {c: stored[c] if c in stored else self.other_weights(c, stored, seen)
                        for c in CLASSES[self.shape]}
        if stored:
            seen.add('stencil stored weights')
        self.context = [(tap, bits.golomb(5)) for tap in CONTEXT_TAPS[self.shape]]
        self.constant = bits.golomb(5)
        require(max([w for _, w in self.context] + [self.constant]) <= 4095, 'weight of a context')
        self.distributions = read_distributions(bits, seen)

    def taps(self, row_class):
        """The taps that rows of a class have."""
        plane, first_row = row_class // 2, row_class % 2 == 0
        taps = list(TAPS[self.shape])
        if self.mean:
            taps += [t for t in MEAN_TAPS if self.shape == 'planes' or t[1] == 0]
        if plane < 2:
            taps = [t for t in taps if t[0] != MEAN and t[0] >= -plane]
        return [t for t in taps if not first_row or t[1] >= 0]

    def read_weights(self, bits, row_class):
        order = bits.take(4)
        weights = [(tap, bits.zigzag(order)) for tap in self.taps(row_class)]
        require(sum(abs(w) for _, w in weights) <= 2**(self.fraction + 4), 'sum of weights')
        return weights

    def other_weights(self, row_class, stored, seen):
        """The weights of a class without stored ones."""
        if row_class in (2, 3) and row_class + 2 in stored:
            seen.add('stencil weights of another class')
            sums = dict.fromkeys(self.taps(row_class), 0)
            for (plane, row, column), weight in stored[row_class + 2]:
                sums[(0 if plane == 0 else -1, row, column)] += weight
            return list(sums.items())
        seen.add('stencil weights of no class')
        weights = []
        for tap in self.taps(row_class):
            if all(offset in (0, -1) for offset in tap):
                weights.append((tap, (-1)**(-sum(tap) + 1) * 2**self.fraction))
        return weights


class Walk:
    """X and residuals of a chunk's elements in C order."""

    def __init__(self, model, head):
        self.m, self.head = model, head
        n = model.planes * model.rows * model.columns
        self.x, self.magnitude = [0] * n, [0] * n
        self.means = None  # of the planes before the current one, from plane 1 on

    def mean(self, plane):
        """M of a plane from that of the plane before."""
        size = self.m.rows * self.m.columns
        before = self.x[(plane - 1) * size:plane * size]
        if plane == 1:
            self.means = before
            return
        factor = max(48, 256 // plane)
        for i, x in enumerate(before):
            whole, part = divmod((x - self.means[i]) * factor, 256)
            self.means[i] += whole + (1 if part > 128 or part == 128 and whole & 1 else 0)

    def value(self, tap, plane, row, column):
        """X at a tap of an element of (plane, row)."""
        m = self.m
        dp, r, c = tap[0], row + tap[1], column + tap[2]
        own = dp == 0 and tap[1] == 0
        if own and c < 0:
            if row > 0:
                return self.x[(plane * m.rows + row - 1) * m.columns]
            return self.x[(plane - 1) * m.rows * m.columns] if plane > 0 else 0
        r, c = min(max(r, 0), m.rows - 1), min(max(c, 0), m.columns - 1)
        if dp == MEAN:
            return self.means[r * m.columns + c]
        return self.x[(max(plane + dp, 0) * m.rows + r) * m.columns + c]

    def residual_sum(self, plane, row, column):
        m, total = self.m, self.m.constant
        for (dp, dr, dc), weight in m.context:
            p, r, c = plane + dp, row + dr, column + dc
            if p >= 0 and 0 <= r < m.rows and 0 <= c < m.columns:
                total += weight * self.magnitude[(p * m.rows + r) * m.columns + c]
        return total

    def run(self, lanes, special):
        m, i = self.m, 0
        for plane in range(m.planes):
            if m.mean and plane > 0:
                self.mean(plane)
            for row in range(m.rows):
                lane = lanes[(plane * m.rows + row) % len(lanes)]
                weights = m.weights[2 * min(plane, 2) + (0 if row == 0 and m.rows > 1 else 1)]
                for column in range(m.columns):
                    if i in special:
                        self.x[i] = self.value((0, 0, -1), plane, row, column)
                    else:
                        level = level_of(self.residual_sum(plane, row, column))
                        residual = lane.residual(m.distributions[level])
                        p = sum(w * self.value(tap, plane, row, column) for tap, w in weights if w)
                        self.x[i] = round2(p, m.fraction) + (residual << self.head.value_bits)
                        self.magnitude[i] = min(abs(residual), MAGNITUDE_LIMIT)
                    i += 1
        for lane in lanes:
            lane.finish()
        return self.x
