# quern h5 pack and unpack leave alone what nobody named: a file with every kind of object, link, attribute and storage
# comes through, stored chunk bytes included. h5py and h5diff compare, not quern.
# usage: test_copy.py PLUGIN_FOLDER QUERN
import ctypes
import os
import sys
import unittest

from plugin_harness import PluginTest, field, h5py, needs, np

if len(sys.argv) < 2:
    sys.exit("usage: test_copy.py PLUGIN_FOLDER QUERN [unittest options]")
QUERN = os.path.abspath(sys.argv.pop(1))

USER_BLOCK = bytes(range(256)) * 2
POINT = np.dtype([("x", "<f4"), ("id", "<i4")])


def raw_dataset(group, name, shape, dtype, change, data=None):
    """A dataset whose creation list `change` fills in."""
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    change(dcpl)
    space = h5py.h5s.create_simple(shape)
    made = h5py.h5d.create(group.id, name.encode(), h5py.h5t.py_create(np.dtype(dtype), logical=1), space, dcpl)
    if data is not None:
        made.write(h5py.h5s.ALL, h5py.h5s.ALL, np.ascontiguousarray(data, dtype))
    return h5py.Dataset(made)


def add_storage(f, folder):
    """Every layout, allocation and filter."""
    data = field((20, 30, 40))
    g = f.create_group("storage", track_order=True)
    g.create_dataset("deflate", data=data, chunks=(5, 30, 40), compression="gzip", shuffle=True)
    g.create_dataset("checksum", data=data, chunks=(5, 30, 40), fletcher32=True)
    g.create_dataset("digits", data=data, chunks=(20, 30, 40), scaleoffset=2)
    g.create_dataset("unknown_filter", data=data, chunks=(7, 11, 13), compression="lzf")  # quern does not have it
    if h5py.h5z.filter_avail(h5py.h5z.FILTER_SZIP):
        g.create_dataset("szip", data=data, chunks=(10, 30, 40), compression="szip")
    g.create_dataset("contiguous", data=data.astype("f8"))
    g.create_dataset("big_endian", data=data.astype(">f4"), chunks=(4, 30, 40))
    raw_dataset(g, "compact", (25,), "f8", lambda p: p.set_layout(h5py.h5d.COMPACT), np.arange(25.0))
    raw_dataset(g, "early", (40, 50), "f4",
                lambda p: (p.set_chunk((10, 50)), p.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)), data[0, :, :].repeat(2)[:2000])
    external = os.path.join(folder, "external.bin")
    data[0].astype("f4").tofile(external)
    raw_dataset(g, "external", (30, 40), "f4", lambda p: p.set_external(external.encode(), 0, 4800))
    if f.libver[1] not in ("earliest", "v108"):
        layout = h5py.VirtualLayout((2, 20, 30, 40), "f4")
        layout[0] = h5py.VirtualSource(".", "/storage/deflate", data.shape)
        layout[1] = h5py.VirtualSource("other.h5", "/x", data.shape)
        g.create_virtual_dataset("virtual", layout, fillvalue=-1)
    sparse = g.create_dataset("sparse", (100, 100), "f4", maxshape=(None, None), chunks=(10, 10), fillvalue=np.float32(7))
    sparse[35:37, 41:44] = 1.5
    g.create_dataset("nothing_yet", (0, 12), "f4", maxshape=(None, 12), chunks=(16, 12))
    g.create_dataset("null", data=h5py.Empty("f4"))
    g["single"] = 3.25
    g["single_text"] = "one"


def add_kinds(f):
    """Every class of type."""
    g = f.create_group("kinds")
    g["bytes"] = np.arange(300, dtype="u1")
    g["long"] = np.arange(800)
    g["flags"] = np.array([True, False] * 40)
    g["colours"] = np.array([0, 1, 1, 2], dtype=h5py.enum_dtype({"RED": 0, "GREEN": 1, "BLUE": 2}, basetype="i2"))
    g["fixed_texts"] = np.array([b"north", b"south"])
    g.create_dataset("texts", data=["grün", "", "a longer text " * 20], dtype=h5py.string_dtype())
    g.create_dataset("packed_texts", data=["a", "bb"] * 500, dtype=h5py.string_dtype(), chunks=(100,), compression="gzip")
    ragged = g.create_dataset("ragged", (4,), dtype=h5py.vlen_dtype("i4"))
    for i in range(4):
        ragged[i] = np.arange(i * 3)
    g["opaque"] = np.array([b"ab\0c", b"wxyz"], dtype="V4")
    mixed = np.dtype([("a", "f4"), ("n", "i2"), ("label", h5py.string_dtype()), ("m", "f8", (2, 3))])
    rows = np.zeros(6, mixed)
    rows["a"], rows["n"], rows["label"], rows["m"] = np.arange(6), 3, "row", 2.5
    g.create_dataset("records", data=rows, dtype=mixed)
    g["complex"] = np.exp(1j * np.arange(20))
    g["half"] = np.arange(50, dtype="f2")


def add_references(f):
    g = f.create_group("references")
    target = f["storage/deflate"]
    region = target.regionref[2:5, :, 7]
    g.create_dataset("objects", data=np.array([target.ref, f["kinds"].ref, h5py.Reference()], dtype=h5py.ref_dtype),
                     dtype=h5py.ref_dtype)
    regions = g.create_dataset("regions", (3,), dtype=h5py.regionref_dtype)
    regions[0], regions[1] = region, f["kinds/long"].regionref[10:20]
    pair = np.dtype([("what", h5py.ref_dtype), ("axis", "i4")])
    rows = np.zeros(3, pair)
    for i in range(3):
        rows[i] = (f["storage/contiguous"].ref, i)
    g.create_dataset("records", data=rows, dtype=pair, chunks=(2,), compression="gzip")
    g.attrs.create("object", target.ref, dtype=h5py.ref_dtype)
    g.attrs.create("region", region, dtype=h5py.regionref_dtype)
    g.attrs.create("itself", g.ref, dtype=h5py.ref_dtype)
    scale = g.create_dataset("x", data=np.linspace(0, 1, 40))
    scale.make_scale("x")
    for name in ("storage/deflate", "storage/contiguous"):
        f[name].dims[2].attach_scale(scale)
        f[name].dims[2].label = "axis"


def add_types_and_links(f):
    f["types/point"] = POINT
    f["types/point"].attrs["unit"] = "m"
    f["types/same"] = POINT        # equal, but another object
    points = np.zeros(30, POINT)
    points["x"], points["id"] = np.arange(30) / 4, np.arange(30)
    for name, named in (("first", "point"), ("second", "point"), ("third", "same")):
        f.create_dataset("shared/" + name, data=points, dtype=f["types/" + named], chunks=(8,), compression="gzip")
    f["shared"].attrs.create("corner", points[3], dtype=f["types/point"])
    f.create_dataset("before", data=points, dtype=f["types/same"])     # its link comes before other uses
    f["soft"] = h5py.SoftLink("/storage/deflate")
    f["dangling"] = h5py.SoftLink("/no/such/place")
    f["outside"] = h5py.ExternalLink("other.h5", "/x")
    f["hard"] = f["storage/contiguous"]
    f["storage/loop"] = f["/"]
    f["grün"] = np.arange(4)
    deep = f.create_group("deep")
    for _ in range(300):
        deep = deep.create_group("d")
    deep["bottom"] = np.arange(6)
    many = f.create_group("many", track_order=True)
    for i in range(40):
        many["z%d" % (40 - i)] = i


def add_attributes(f):
    g = f["kinds"]
    g.attrs["texts"] = ["one", "two"]
    g.attrs["fixed"] = np.array([b"a", b"bc"])
    g.attrs["nothing"] = h5py.Empty("f8")
    g.attrs["none_of_them"] = np.zeros((0,), "i4")
    g.attrs["table"] = np.arange(12.0).reshape(3, 4)
    g.attrs.create("point", (1.5, 2), dtype=POINT)
    d = f["storage/contiguous"]
    for i in range(20):
        d.attrs["attribute %d" % (20 - i)] = i
    h5py.h5o.set_comment(d.id, b"a comment on a dataset")
    h5py.h5o.set_comment(f["kinds"].id, b"a comment on a group")


def every_kind(folder, **options):
    """The file; `options` are h5py.File's."""
    path = os.path.join(folder, "all.h5")
    with h5py.File(os.path.join(folder, "other.h5"), "w") as f:
        f["x"] = field((20, 30, 40))
    with h5py.File(path, "w", **options) as f:
        f.attrs["title"] = "every kind"
        add_storage(f, folder)
        add_kinds(f)
        add_references(f)
        add_types_and_links(f)
        add_attributes(f)
    if "userblock_size" in options:
        with open(path, "r+b") as f:
            f.write(USER_BLOCK)
    return path


def names_of(f):
    """Every hard link's path that is met first, without recursion into what was met."""
    seen, out, todo = set(), [], [("/", f["/"])]
    while todo:
        path, group = todo.pop()
        for name in group:
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                continue
            child = group[name]
            key = h5py.h5o.get_info(child.id).addr
            if key in seen:
                continue
            seen.add(key)
            out.append(path + name)
            if isinstance(child, h5py.Group):
                todo.append((path + name + "/", child))
    return out


def target_name(f, reference):
    return h5py.h5r.get_name(reference, f.id) if reference else None


def comparable(f, value):
    """References by what they lead to, all else as it is."""
    if isinstance(value, h5py.RegionReference):
        if not value:
            return None
        space = h5py.h5r.get_region(value, f.id)
        return target_name(f, value), space.get_select_npoints(), space.get_select_bounds()
    if isinstance(value, h5py.Reference):
        return target_name(f, value)
    if isinstance(value, h5py.Empty):
        return "empty", value.dtype
    if isinstance(value, np.ndarray) and value.dtype.kind == "O":
        return [comparable(f, v) for v in value.ravel()]
    if isinstance(value, (np.ndarray, np.void)) and value.dtype.names:
        if value.shape:
            return [comparable(f, v) for v in value.ravel()]
        return [comparable(f, value[n]) for n in value.dtype.names]
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.tobytes()
    return value if not isinstance(value, np.generic) else value.tobytes()


def chunks_of(dataset):
    out = {}
    for i in range(dataset.id.get_num_chunks()):
        info = dataset.id.get_chunk_info(i)
        mask, data = dataset.id.read_direct_chunk(info.chunk_offset)
        out[info.chunk_offset] = (mask, data)
    return out


def is_movable(dtype):
    if dtype.names:
        return all(is_movable(dtype[n]) for n in dtype.names)
    return dtype.kind != "O"


class CopyTest(PluginTest):
    lossy = False

    def assert_attributes(self, a, b, x, y, extra=()):
        self.assertEqual(list(x.attrs), [n for n in y.attrs if n not in extra], x.name)
        for name in x.attrs:
            with self.subTest(object=x.name, attribute=name):
                self.assertEqual(comparable(a, x.attrs[name]), comparable(b, y.attrs[name]))
                p, q = h5py.h5a.open(x.id, name.encode()), h5py.h5a.open(y.id, name.encode())
                self.assertTrue(p.get_type().equal(q.get_type()))
                self.assertEqual(p.get_space().get_simple_extent_type(), q.get_space().get_simple_extent_type())

    def assert_dataset(self, a, b, x, y):
        with self.subTest(dataset=x.name):
            self.assertTrue(x.id.get_create_plist().equal(y.id.get_create_plist()), "creation properties")
            self.assertTrue(x.id.get_type().equal(y.id.get_type()))
            self.assertEqual((x.shape, x.maxshape), (y.shape, y.maxshape))
            if x.chunks and is_movable(x.dtype):
                self.assertEqual(chunks_of(x), chunks_of(y))
            # What a virtual dataset shows is what the packed one holds.
            if x.shape is not None and not (x.is_virtual and self.lossy):
                self.assertEqual(comparable(a, x[()]), comparable(b, y[()]))

    def assert_same_links(self, x, y):
        self.assertEqual(list(x), list(y), x.name)
        for name in x:
            p, q = x.get(name, getlink=True), y.get(name, getlink=True)
            self.assertEqual(type(p), type(q))
            for part in ("path", "filename"):
                self.assertEqual(getattr(p, part, None), getattr(q, part, None))

    def assert_equal_files(self, source, copy, changed=(), extra=()):
        with h5py.File(source, "r") as a, h5py.File(copy, "r") as b:
            names = names_of(a)
            self.assertEqual(names, names_of(b))
            self.assertGreater(len(names), 60)
            for name in ["/"] + names:
                x, y = a[name], b[name]
                self.assertEqual(h5py.h5o.get_info(x.id).rc, h5py.h5o.get_info(y.id).rc, name + ": links to it")
                self.assert_attributes(a, b, x, y, extra if name in changed else ())
                if isinstance(x, h5py.Group):
                    self.assert_same_links(x, y)
                    p, q = x.id.get_create_plist(), y.id.get_create_plist()
                    self.assertEqual(p.get_link_creation_order(), q.get_link_creation_order(), name)
                    self.assertEqual(p.get_attr_creation_order(), q.get_attr_creation_order(), name)
                elif isinstance(x, h5py.Dataset) and name not in changed:
                    self.assert_dataset(a, b, x, y)

    def assert_shared_types(self, path):
        with h5py.File(path, "r") as f:
            at = {name: h5py.h5o.get_info(f["types/" + name].id).addr for name in ("point", "same")}
            used = {n: h5py.h5o.get_info(f[n].id.get_type()).addr
                    for n in ("shared/first", "shared/second", "shared/third", "before")}
            corner = h5py.h5a.open(f["shared"].id, b"corner").get_type()
            self.assertEqual(h5py.h5o.get_info(corner).addr, at["point"])
        self.assertEqual(used, {"shared/first": at["point"], "shared/second": at["point"], "shared/third": at["same"],
                                "before": at["same"]})

    RECORD = ("lossy_compression", "lossy_compression_bound_kind", "lossy_compression_bound",
              "lossy_compression_requested", "lossy_compression_software")

    def pack_one(self, source):
        self.lossy = True
        self.ok(QUERN, "h5", "pack", "--abs", "0.01", "--dataset", "storage/deflate", source, "-o", self.path("p.h5"))
        return self.path("p.h5")

    def test_PackOneOfEveryKind_AllElseIsTheSameBytes(self):
        source = every_kind(self.folder, track_order=True, userblock_size=512)
        with open(source, "rb") as f:
            before = f.read()
        packed = self.pack_one(source)
        self.assert_equal_files(source, packed, ("/storage/deflate",), self.RECORD)
        self.assert_shared_types(packed)
        with open(packed, "rb") as f:
            self.assertEqual(f.read(512), USER_BLOCK)
        with open(source, "rb") as f:
            self.assertEqual(f.read(), before, "the input is only read")
        with h5py.File(source, "r") as a, h5py.File(packed, "r") as b:
            self.assert_within(b["storage/deflate"][...], a["storage/deflate"][...], 0.01)
            self.assertEqual(b["storage/deflate"], b[b["references/objects"][0]])
            self.assertEqual(b["storage/deflate"].dims[2][0], b["references/x"])
            region = b["references/regions"][0]
            self.assertEqual(b[region].shape, (20, 30, 40))
            self.assertEqual(b[region][region].size, 3 * 30)

    @needs("h5dump")
    def test_Comments_ComeThrough(self):
        packed = self.pack_one(every_kind(self.folder))
        self.assertIn('COMMENT "a comment on a dataset"', self.ok("h5dump", "-H", "-d", "/storage/contiguous", packed))
        self.assertIn('COMMENT "a comment on a group"', self.ok("h5dump", "-H", "-g", "/kinds", packed))

    def test_PackThenUnpack_EqualByOwnLookAndByH5diff(self):
        source = every_kind(self.folder)
        self.ok(QUERN, "h5", "pack", "--lossless", "--dataset", "storage/deflate", "--dataset", "/hard", source, "-o",
                self.path("p.h5"))
        self.ok(QUERN, "h5", "unpack", self.path("p.h5"), "-o", self.path("u.h5"))
        self.assert_equal_files(source, self.path("u.h5"), ("/storage/deflate", "/hard", "/storage/contiguous"))
        with h5py.File(source, "r") as a, h5py.File(self.path("u.h5"), "r") as u:
            for name in ("storage/deflate", "hard"):
                self.assertEqual(a[name][...].tobytes(), u[name][...].tobytes())
                self.assertEqual(u[name]._filters, {})
            self.assertEqual(u["hard"], u["storage/contiguous"])

    @needs("h5diff")
    def test_PackThenUnpack_H5diffFindsNothing(self):
        source = every_kind(self.folder, libver="latest")
        self.ok(QUERN, "h5", "pack", "--lossless", "--dataset", "storage/contiguous", source, "-o", self.path("p.h5"))
        self.ok(QUERN, "h5", "unpack", self.path("p.h5"), "-o", self.path("u.h5"))
        self.assert_equal_files(source, self.path("u.h5"), ("/hard", "/storage/contiguous"))
        for copy in ("p.h5", "u.h5"):
            self.ok("h5diff", "--exclude-path", "/storage/unknown_filter", source, self.path(copy))

    def test_OldAndNewFormats_ComeThrough(self):
        for version in (("earliest", "v108"), ("v108", "v108"), ("v110", "v110")):
            with self.subTest(version=version):
                source = every_kind(self.folder, libver=version)
                os.path.exists(self.path("p.h5")) and os.remove(self.path("p.h5"))
                self.assert_equal_files(source, self.pack_one(source), ("/storage/deflate",), self.RECORD)

    def test_DeepAndWideFile_IsCopiedWithoutRecursion(self):
        with h5py.File(self.path("deep.h5"), "w") as f:
            group = f
            for _ in range(800):
                group = group.create_group("g")
            group["x"] = np.arange(3)
            group["up"] = f["/g"]
            f["field"] = field((40, 50))
        self.ok(QUERN, "h5", "pack", "--abs", "0.1", self.path("deep.h5"), "-o", self.path("p.h5"))
        with h5py.File(self.path("p.h5"), "r") as f:
            group = f
            for _ in range(800):
                group = group["g"]
            self.assertEqual(list(group["x"]), [0, 1, 2])
            self.assertEqual(group["up"], f["/g"])


TRAVERSE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_char_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_size_t,
                            ctypes.c_int64, ctypes.c_int64)
QUERY = ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p,
                         ctypes.c_size_t)


class LinkClass(ctypes.Structure):
    """H5L_class_t."""
    _fields_ = [("version", ctypes.c_int), ("id", ctypes.c_int), ("comment", ctypes.c_char_p),
                ("create", ctypes.c_void_p), ("move", ctypes.c_void_p), ("copy", ctypes.c_void_p),
                ("traverse", TRAVERSE), ("delete", ctypes.c_void_p), ("query", QUERY)]


def hdf5_library():
    """The HDF5 that h5py has loaded, or None."""
    with open("/proc/self/maps") as maps:
        names = sorted({line.split()[-1] for line in maps if "libhdf5" in line and "_hl" not in line})
    return ctypes.CDLL(names[0]) if len(names) == 1 else None


class UserDefinedLinkTest(PluginTest):
    """Links of a class that quern has never heard of."""
    CLASS = 187

    def setUp(self):
        super().setUp()
        self.hdf5 = hdf5_library()
        if self.hdf5 is None or h5py.version.hdf5_version_tuple[:2] != (1, 10):
            self.skipTest("SKIP: needs one HDF5 1.10 in this process")

        def query(_name, data, size, out, room):
            if out:
                ctypes.memmove(out, data, min(size, room))
            return size

        self.link_class = LinkClass(0, self.CLASS, b"test", None, None, None, TRAVERSE(lambda *_: -1), None, QUERY(query))
        self.assertGreaterEqual(self.hdf5.H5Lregister(ctypes.byref(self.link_class)), 0)
        self.addCleanup(self.hdf5.H5Lunregister, self.CLASS)

    def link_value(self, path):
        with h5py.File(path, "r") as f:
            out = ctypes.create_string_buffer(16)
            rc = self.hdf5.H5Lget_val(ctypes.c_int64(f.id.id), b"mine", out, ctypes.c_size_t(16), ctypes.c_int64(0))
            self.assertGreaterEqual(rc, 0)
            return out.raw

    def test_UserDefinedLink_KeepsItsData(self):
        value = bytes(range(1, 11))
        with h5py.File(self.path("in.h5"), "w") as f:
            f["field"] = field((40, 50))
            rc = self.hdf5.H5Lcreate_ud(ctypes.c_int64(f.id.id), b"mine", self.CLASS, value, ctypes.c_size_t(len(value)),
                                        ctypes.c_int64(0), ctypes.c_int64(0))
            self.assertGreaterEqual(rc, 0)
        self.ok(QUERN, "h5", "pack", "--abs", "0.1", self.path("in.h5"), "-o", self.path("p.h5"))
        self.ok(QUERN, "h5", "unpack", self.path("p.h5"), "-o", self.path("u.h5"))
        for name in ("in.h5", "p.h5", "u.h5"):
            self.assertEqual(self.link_value(self.path(name))[:10], value)


if __name__ == "__main__":
    unittest.main()
