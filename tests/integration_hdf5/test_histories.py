# Random histories of a dataset under the filter: partial writes, own values written again, reopening, appending, copies
# by h5repack, nccopy and cdo. One bound in all, however often a chunk is decoded and encoded again; and a value that
# nobody assigned anew comes back bit for bit from the first time on that it was read from the file.
# usage: test_histories.py PLUGIN_FOLDER [HISTORIES [FIRST_SEED]]
import os
import shutil
import subprocess
import sys
import tempfile

from plugin_harness import ABS, FILTER, PWREL, h5py, np, words

HISTORIES = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
FIRST = int(sys.argv[2]) if len(sys.argv) > 2 else 1
try:
    import netCDF4
except ImportError:
    netCDF4 = None

LONG = np.longdouble
FLOATS = ("f2", "f4", "f8", ">f4", ">f8")
INTEGERS = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", ">i2")


def run(*argv):
    done = subprocess.run([str(a) for a in argv], capture_output=True, timeout=120)
    if done.returncode != 0:
        raise AssertionError("%s: %s" % (argv, done.stderr.decode(errors="replace")))


def bits(array):
    native = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("=")))
    return native.view("u%d" % array.dtype.itemsize)


class History:
    """One dataset, what was assigned to it, and what was read of it after the file had been closed."""

    def __init__(self, seed, folder):
        self.rng = np.random.default_rng(seed)
        self.path = os.path.join(folder, "h%d.nc" % seed)
        self.kind = "netcdf" if netCDF4 is not None and seed % 5 == 0 else "h5py"
        rng = self.rng
        rank = int(rng.integers(1, 4))
        self.extent = tuple(int(n) for n in rng.integers(2, 14 if rank == 3 else 40, rank))
        self.chunk = tuple(int(rng.integers(1, n + (3 if i == 0 else 1))) for i, n in enumerate(self.extent))
        self.dtype = np.dtype(str(rng.choice(FLOATS if rng.random() < 0.7 else INTEGERS)))
        if self.kind == "netcdf":
            self.dtype = self.dtype.newbyteorder("=") if self.dtype.itemsize > 2 else np.dtype("f4")
        self.is_float = self.dtype.kind == "f"
        self.mode = PWREL if self.is_float and rng.random() < 0.2 else ABS
        self.bound = 10.0 ** rng.uniform(-5, 0) if self.mode == PWREL or self.is_float else float(rng.integers(1, 9))
        self.scale = 10.0 ** rng.uniform(-2, 4)
        if self.mode == ABS and self.is_float:
            self.bound *= self.scale * 0.1
        codecs = (0, 0, 1) if self.mode == PWREL or self.dtype.itemsize == 8 and not self.is_float else (0, 0, 1, 3)
        self.words = words(self.mode, self.bound, int(rng.choice(codecs)), int(rng.choice((0, 0, 2, 16))))
        self.fill = None if rng.random() < 0.5 else self.dtype.type(rng.choice((-99, 0, 120)) if self.dtype.kind != "u"
                                                                   else rng.choice((0, 120)))
        if self.kind == "netcdf" and self.fill is None:
            self.fill = self.dtype.type(100)
        self.cache = int(rng.choice((0, 1, 2000, 1 << 20)))
        default = self.dtype.type(0) if self.fill is None else self.fill
        self.truth = np.full(self.extent, default, self.dtype)
        self.seen = np.zeros(self.extent, self.dtype)
        self.fresh = np.ones(self.extent, bool)
        self.log = []

    def values(self, shape):
        rng = self.rng
        n = int(np.prod(shape))
        kind = rng.integers(4)
        walk = np.cumsum(rng.standard_normal(n)) if kind else rng.standard_normal(n)
        v = walk * self.scale * (0.1 if kind == 1 else 1)
        if kind == 3:
            v = np.round(v / self.scale) * self.scale  # repeated values
        if not self.is_float:
            info = np.iinfo(self.dtype)
            v = np.clip(np.round(v), info.min, info.max)
        with np.errstate(over="ignore"):
            v = v.reshape(shape).astype(self.dtype)
        flat = v.reshape(-1)
        if self.is_float:
            for special in (np.nan, np.inf, -np.inf, -0.0, 1e20 if self.dtype.itemsize > 2 else 6e4):
                if rng.random() < 0.3:
                    flat[rng.random(n) < 0.1] = special
        if self.fill is not None and rng.random() < 0.5:
            flat[rng.random(n) < 0.2] = self.fill
        return v

    def box(self):
        begin = [int(self.rng.integers(0, n)) for n in self.extent]
        return tuple(slice(b, int(self.rng.integers(b, n)) + 1) for b, n in zip(begin, self.extent))

    # -- the file through either library ------------------------------------------------------------------------------
    def create(self):
        if self.kind == "h5py":
            with h5py.File(self.path, "w") as f:
                f.create_dataset("x", self.extent, self.dtype, maxshape=(None,) + self.extent[1:], chunks=self.chunk,
                                 compression=FILTER, compression_opts=self.words, fillvalue=self.fill)
            return
        plain = self.path + ".plain"
        with netCDF4.Dataset(plain, "w") as f:
            for i, n in enumerate(self.extent):
                f.createDimension("d%d" % i, None if i == 0 else n)
            chunk = [min(c, n) if i else c for i, (c, n) in enumerate(zip(self.chunk, self.extent))]
            f.createVariable("x", self.dtype, ["d%d" % i for i in range(len(self.extent))], chunksizes=chunk,
                             fill_value=self.fill)
        w = list(self.words) + [0] * 10 + self.fill_words()
        w[0] |= 0x400
        run("nccopy", "-F", "x,%d,%s" % (FILTER, ",".join(map(str, w))), plain, self.path)
        os.remove(plain)
        with self.open() as (f, x):
            x[0:self.extent[0]] = self.truth

    def fill_words(self):
        pattern = int(bits(np.array([self.fill], self.dtype))[0])
        return [pattern >> 32, pattern & 0xFFFFFFFF]

    def open(self):
        history = self

        class Opened:
            def __enter__(self):
                if history.kind == "h5py":
                    self.file = h5py.File(history.path, "r+", rdcc_nbytes=history.cache)
                    return self.file, self.file["x"]
                self.file = netCDF4.Dataset(history.path, "a")
                x = self.file["x"]
                x.set_auto_maskandscale(False)
                x.set_var_chunk_cache(history.cache, 7, 0.75)
                return self.file, x

            def __exit__(self, *_):
                self.file.close()

        return Opened()

    # -- what happens to it -------------------------------------------------------------------------------------------
    def assign(self, x):
        box = self.box()
        v = self.values(tuple(s.stop - s.start for s in box))
        x[box] = v
        self.truth[box] = v
        self.fresh[box] = True

    def rewrite(self, x):
        box = self.box()
        x[box] = np.asarray(x[box])

    def append(self, x):
        more = int(self.rng.integers(1, 4))
        shape = (self.extent[0] + more,) + self.extent[1:]
        v = self.values((more,) + self.extent[1:])
        if self.kind == "h5py":
            x.resize(shape)
        for step in range(more):  # one by one, as models write
            x[self.extent[0] + step] = v[step]
        self.truth = np.concatenate([self.truth, v])
        self.seen = np.concatenate([self.seen, np.zeros_like(v)])
        self.fresh = np.concatenate([self.fresh, np.ones(v.shape, bool)])
        self.extent = shape

    def copy(self):
        other = self.path + ".copy"
        tools = [t for t in ("h5repack", "h5repack -l", "nccopy", "cdo") if shutil.which(t.split()[0])]
        if self.kind == "h5py":
            tools = [t for t in tools if t.startswith("h5repack")]
        if self.dtype.kind not in "f" or self.dtype.itemsize == 2 or len(self.extent) != 3:
            tools = [t for t in tools if t != "cdo"]
        if not tools:
            return
        tool = str(self.rng.choice(tools))
        self.log.append(tool)
        if tool == "h5repack":
            run("h5repack", self.path, other)
        elif tool == "h5repack -l":
            chunk = [int(self.rng.integers(1, n + 1)) for n in self.extent]
            run("h5repack", "-l", "x:CHUNK=" + "x".join(map(str, chunk)), self.path, other)
        elif tool == "nccopy":
            run("nccopy", self.path, other)
        else:
            # cdo writes the values it read into a file of its own, without the filter: back into ours by rewriting.
            run("cdo", "-s", "-f", "nc4", "copy", self.path, other)
            with netCDF4.Dataset(other) as f:
                f.set_auto_maskandscale(False)
                v = np.asarray(f["x"][...]).reshape(self.extent)
            os.remove(other)
            with self.open() as (_, x):
                x[0:self.extent[0]] = v
            return
        os.replace(other, self.path)

    def check(self):
        with h5py.File(self.path, "r") as f:
            back = f["x"][...]
        assert back.shape == self.truth.shape, (back.shape, self.truth.shape)
        x, r = self.truth[self.fresh], back[self.fresh]
        if self.is_float:
            exact = ~np.isfinite(x)
            if self.fill is not None:
                exact |= x == self.fill
            assert (bits(x[exact]) == bits(r[exact])).all(), "special values %s became %s" % (
                x[exact][bits(x[exact]) != bits(r[exact])][:3], r[exact][bits(x[exact]) != bits(r[exact])][:3])
            x, r = x[~exact], r[~exact]
            assert np.isfinite(r).all(), "a value is no longer finite"
        elif self.fill is not None:
            assert (r[x == self.fill] == self.fill).all(), "a fill value changed"
        error = np.abs(x.astype(LONG) - r.astype(LONG))
        allowed = LONG(self.bound) * (np.abs(x.astype(LONG)) if self.mode == PWREL else LONG(1))
        assert (error <= allowed).all(), "error %g x bound" % (error / np.maximum(allowed, LONG(1e-300))).max()
        old = ~self.fresh
        assert (bits(back[old]) == bits(self.seen[old])).all(), "a value that nobody assigned changed"
        self.seen[self.fresh] = back[self.fresh]
        self.fresh[...] = False

    def run(self):
        self.create()
        for _ in range(int(self.rng.integers(2, 7))):
            with self.open() as (f, x):
                for _ in range(int(self.rng.integers(1, 8))):
                    step = str(self.rng.choice(("assign", "assign", "rewrite", "append", "flush")))
                    self.log.append(step)
                    if step == "flush":
                        f.flush() if self.kind == "h5py" else f.sync()
                    else:
                        getattr(self, step)(x)
            self.log.append("reopen")
            self.check()
            if self.rng.random() < 0.12:
                self.copy()
                self.check()


def main():
    failed = 0
    with tempfile.TemporaryDirectory(prefix="quern-histories-") as folder:
        for seed in range(FIRST, FIRST + HISTORIES):
            history = History(seed, folder)
            try:
                history.run()
            except Exception as error:  # noqa: BLE001: whatever it is, the seed is told
                failed += 1
                print("seed %d, %s %s %s chunk %s words %s fill %s: %s: %s\n    %s" % (
                    seed, history.kind, history.dtype, history.extent, history.chunk, history.words, history.fill,
                    type(error).__name__, error, " ".join(history.log)), flush=True)
            for name in os.listdir(folder):
                os.remove(os.path.join(folder, name))
    print("%d histories, %d failed" % (HISTORIES, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
