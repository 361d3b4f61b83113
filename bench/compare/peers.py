# The compressors under comparison. Each takes an array and an absolute bound and gives back bytes, reconstruction and times;
# all run on one thread, in memory as far as they can.
import ctypes
import ctypes.util
import json
import pathlib
import subprocess
import tempfile
import time

import numpy as np

QUERN_TYPES = {"float16": "f16", "float32": "f32", "float64": "f64", "int8": "i8", "int16": "i16", "int32": "i32",
               "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64"}


class Unfit(Exception):
    """The compressor does not take such arrays; the reason is the message."""


class Measured:
    """One compression and decompression."""

    def __init__(self, size, back, compress_seconds, decompress_seconds):
        self.size = size
        self.back = back
        self.compress_seconds = compress_seconds
        self.decompress_seconds = decompress_seconds


def timed(function):
    start = time.perf_counter()
    result = function()
    return result, time.perf_counter() - start


class Quern:
    """The command; its own codec times, which leave file reading and writing out."""

    lossless = False

    def __init__(self, command, codec, extra=()):
        self.command = command
        self.codec = codec
        self.extra = list(extra)
        self.name = f"quern {codec}"
        self.lossless = codec == "lossless"

    def version(self):
        return self._run("--version", parse=False).strip()

    def _run(self, *arguments, parse=True):
        run = subprocess.run([self.command, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if run.returncode != 0:
            raise RuntimeError(run.stderr.strip() or f"exit status {run.returncode}")
        return json.loads(run.stdout) if parse else run.stdout

    def run(self, array, bound):
        dtype = QUERN_TYPES[array.dtype.name]
        with tempfile.TemporaryDirectory() as folder:
            raw, stream, back = (str(pathlib.Path(folder) / name) for name in ("x.raw", "x.qn", "y.raw"))
            array.tofile(raw)
            request = ["--lossless"] if self.lossless else ["--abs", repr(float(bound))]
            shape = "x".join(map(str, array.shape))
            packed = self._run("compress", "-t", dtype, "-s", shape, *request, "--codec", self.codec, *self.extra,
                               "-T", "1", "--json", "-f", "-o", stream, raw)
            unpacked = self._run("decompress", "-T", "1", "--json", "-f", "-o", back, stream)
            size = pathlib.Path(stream).stat().st_size
            return Measured(size, np.fromfile(back, dtype=array.dtype).reshape(array.shape), packed["seconds"],
                            unpacked["seconds"])


class Zstd:
    """Debian's libzstd on the raw bytes: what no error bound at all would give."""

    lossless = True

    def __init__(self, level=3):
        path = ctypes.util.find_library("zstd")
        if path is None:
            raise Unfit("libzstd is not installed")
        self.lib = ctypes.CDLL(path)
        for name in ("ZSTD_compressBound", "ZSTD_compress", "ZSTD_decompress"):
            getattr(self.lib, name).restype = ctypes.c_size_t
        self.lib.ZSTD_versionString.restype = ctypes.c_char_p
        self.level = level
        self.name = f"zstd -{level}"

    def version(self):
        return "zstd " + self.lib.ZSTD_versionString().decode()

    def run(self, array, bound):
        source = np.ascontiguousarray(array)
        room = np.empty(self.lib.ZSTD_compressBound(ctypes.c_size_t(source.nbytes)), np.uint8)
        back = np.empty_like(source)
        size, packing = timed(lambda: self.lib.ZSTD_compress(
            ctypes.c_void_p(room.ctypes.data), ctypes.c_size_t(room.nbytes), ctypes.c_void_p(source.ctypes.data),
            ctypes.c_size_t(source.nbytes), ctypes.c_int(self.level)))
        if self.lib.ZSTD_isError(ctypes.c_size_t(size)):
            raise RuntimeError("ZSTD_compress failed")
        _, unpacking = timed(lambda: self.lib.ZSTD_decompress(
            ctypes.c_void_p(back.ctypes.data), ctypes.c_size_t(back.nbytes), ctypes.c_void_p(room.ctypes.data),
            ctypes.c_size_t(size)))
        return Measured(size, back, packing, unpacking)


class Zfp:
    """Debian's libzfp in fixed-accuracy mode."""

    name = "zfp"
    lossless = False
    TYPES = {"int32": 1, "int64": 2, "float32": 3, "float64": 4}

    def __init__(self):
        path = ctypes.util.find_library("zfp")
        if path is None:
            raise Unfit("libzfp is not installed")
        self.lib = ctypes.CDLL(path)
        for name in ("stream_open", "zfp_stream_open", "zfp_field_1d", "zfp_field_2d", "zfp_field_3d", "zfp_field_4d"):
            getattr(self.lib, name).restype = ctypes.c_void_p
        for name in ("zfp_stream_maximum_size", "zfp_compress", "zfp_decompress"):
            getattr(self.lib, name).restype = ctypes.c_size_t
        self.lib.zfp_stream_set_accuracy.restype = ctypes.c_double

    def version(self):
        return ctypes.string_at(ctypes.c_char_p.in_dll(self.lib, "zfp_version_string")).decode().strip()

    def _field(self, array):
        extents = [ctypes.c_size_t(n) for n in reversed(array.shape)]
        make = getattr(self.lib, f"zfp_field_{array.ndim}d")
        return ctypes.c_void_p(make(ctypes.c_void_p(array.ctypes.data), ctypes.c_int(self.TYPES[array.dtype.name]), *extents))

    def run(self, array, bound):
        if array.dtype.name not in self.TYPES or array.dtype.kind != "f" or not 1 <= array.ndim <= 4:
            raise Unfit("zfp's accuracy mode takes f32 and f64 in 1 to 4 dimensions")
        lib, source = self.lib, np.ascontiguousarray(array)
        field, zfp = self._field(source), ctypes.c_void_p(lib.zfp_stream_open(None))
        lib.zfp_stream_set_accuracy(zfp, ctypes.c_double(bound))
        room = np.empty(lib.zfp_stream_maximum_size(zfp, field), np.uint8)
        bits = ctypes.c_void_p(lib.stream_open(ctypes.c_void_p(room.ctypes.data), ctypes.c_size_t(room.nbytes)))
        lib.zfp_stream_set_bit_stream(zfp, bits)
        lib.zfp_stream_rewind(zfp)
        size, packing = timed(lambda: lib.zfp_compress(zfp, field))
        back = np.empty_like(source)
        target = self._field(back)
        lib.zfp_stream_rewind(zfp)
        read, unpacking = timed(lambda: lib.zfp_decompress(zfp, target))
        for release, handle in ((lib.zfp_field_free, field), (lib.zfp_field_free, target), (lib.zfp_stream_close, zfp),
                                (lib.stream_close, bits)):
            release(handle)
        if size == 0 or read == 0:
            raise RuntimeError("zfp refused the array")
        return Measured(size, back, packing, unpacking)


class Hdf5Filter:
    """A filter of the hdf5plugin package over an HDF5 file in memory, the array as one chunk; times include HDF5's copies."""

    def __init__(self, name, make_filter, lossless=False, types=("float32", "float64"), ranks=(1, 2, 3, 4)):
        self.name = name
        self.make_filter = make_filter
        self.lossless = lossless
        self.types = types
        self.ranks = ranks

    def version(self):
        import hdf5plugin
        return f"{self.name} in hdf5plugin {hdf5plugin.version}"

    def run(self, array, bound):
        import h5py
        if array.ndim not in self.ranks or (not self.lossless and array.dtype.name not in self.types):
            raise Unfit(f"{self.name} was not made for {array.dtype.name} of rank {array.ndim}")
        with h5py.File("memory.h5", "w", driver="core", backing_store=False) as file:
            def write():
                data = file.create_dataset("x", data=array, chunks=array.shape, **self.make_filter(bound))
                file.flush()
                return data
            data, packing = timed(write)
            size = data.id.get_storage_size()
            # A handle of its own, so that the chunk is not served from the cache of the one that wrote it.
            del data
            back, unpacking = timed(lambda: file["x"][...])
        return Measured(size, back, packing, unpacking)


def hdf5_filters():
    """SZ3, SPERR and Blosc2, when hdf5plugin is installed."""
    try:
        import hdf5plugin
    except ImportError:
        return []
    return [
        Hdf5Filter("SZ3", lambda bound: hdf5plugin.SZ3(absolute=bound)),
        Hdf5Filter("SPERR", lambda bound: hdf5plugin.Sperr(absolute=bound), ranks=(2, 3)),
        Hdf5Filter("Blosc2 zstd", lambda bound: hdf5plugin.Blosc2(cname="zstd", clevel=5, filters=hdf5plugin.Blosc2.SHUFFLE),
                   lossless=True),
    ]


def all_peers():
    """Every peer that is installed, and what is missing."""
    found, missing = [], []
    for make in (Zstd, Zfp):
        try:
            found.append(make())
        except Unfit as reason:
            missing.append(str(reason))
    filters = hdf5_filters()
    if not filters:
        missing.append("hdf5plugin is not installed: no SZ3, SPERR, Blosc2")
    return found + filters, missing
