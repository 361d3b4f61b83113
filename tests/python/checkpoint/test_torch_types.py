"""Tensors of PyTorch and arrays of ml_dtypes of every type, layout and class: each comes back bit for bit as what it was."""
import sys
import unittest
import warnings

from support import StoreTest, import_or_skip

np = import_or_skip("numpy")
torch = import_or_skip("torch")
import pyquern as quern  # noqa: E402

warnings.filterwarnings("ignore", message=".*(experimental|deprecated|beta state|prototype).*")
try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None
DTYPES = sorted({str(value).partition(".")[2]: value for value in vars(torch).values() if isinstance(value, torch.dtype)}.items())


def bits(tensor):
    """The values as bytes."""
    if tensor.element_size() == 1:
        tensor = tensor.view(torch.uint8)  # PyTorch can copy that
    return tensor.contiguous().view(-1).view(torch.uint8).numpy().tobytes()


def filled(dtype, shape, seed):
    """A tensor with random bits: also those that no arithmetic gives."""
    count = torch.empty(shape, dtype=dtype).untyped_storage().nbytes()
    generator = torch.Generator().manual_seed(seed)
    room = torch.randint(0, 2 if dtype == torch.bool else 256, (count,), dtype=torch.uint8, generator=generator)
    return room.view(dtype).view(shape)


def same(a, b):
    return type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape and bits(a) == bits(b)


class Torch(StoreTest):
    step = 0

    def back(self, value, **options):
        self.step += 1
        quern.checkpoint.save(self.store, value, step=self.step, **options)
        return quern.checkpoint.load(self.store, step=self.step)

    def test_every_dtype_bit_for_bit(self):
        state = {}
        for seed, (name, dtype) in enumerate(DTYPES):
            if name.startswith("q"):
                continue
            for shape in ((5, 6), (), (0, 3), (1,), (2,) * 9):
                state[f"{name} {shape}"] = filled(dtype, shape, seed)
            if dtype.itemsize == 1:
                state[name + " strided"] = filled(dtype, (5, 6), seed).view(torch.uint8).t()[1:].view(dtype)
        self.assertGreater(len(state), 100)
        for preset in ("exact", "archive"):
            back = self.back(state)
            for name, value in state.items():
                self.assertTrue(same(value, back[name]), (preset, name))
        with quern.checkpoint.open(self.store) as saved:
            lazy = saved["complex64 (5, 6)"]
            self.assertEqual((lazy.dtype, lazy.shape, lazy.nbytes), ("complex64", (5, 6), 240))
            for name in ("complex64 (5, 6)", "complex128 (5, 6)", "float8_e5m2fnuz (5, 6)", "int64 (5, 6)", "uint3 (5, 6)"):
                if name in saved:
                    self.assertTrue(same(saved[name][1:3], state[name][1:3]), name)
                    self.assertEqual(bits(saved[name][:, 4]), bits(state[name].view(torch.uint8).view(5, 6, -1)[:, 4]), name)
            high = state["float32 " + str((2,) * 9)]
            self.assertTrue(same(saved["float32 " + str((2,) * 9)][1, ..., 0], high[1, ..., 0]))
            as_numpy = saved["complex64 (5, 6)"].numpy()
            self.assertEqual((as_numpy.dtype, as_numpy.tobytes()), (np.dtype("complex64"), bits(state["complex64 (5, 6)"])))
            with self.assertRaises(BufferError):
                saved["complex64 (5, 6)"].__dlpack__()

    def test_large_complex_weights_are_never_lossy(self):
        state = {"model": {"weight": filled(torch.complex64, (100, 100), 1), "real": torch.randn(100, 100)}}
        self.assertTrue(same(self.back(state, preset="archive")["model"]["weight"], state["model"]["weight"]))
        names = {tensor.name: tensor.lossless for tensor in quern.checkpoint.info(self.store).tensors}
        self.assertEqual(names, {"model.weight": True, "model.real": False})

    def test_conjugates_and_negatives(self):
        z = torch.randn(4, 5, dtype=torch.complex64)
        state = {"z": z, "conj": z.conj(), "imag": z.conj().imag, "real": torch.view_as_real(z)}
        back = self.back(state)
        for name, value in state.items():
            self.assertTrue(torch.equal(back[name], value.resolve_conj().resolve_neg()), name)

    def test_parameters_and_gradients(self):
        state = {"p": torch.nn.Parameter(torch.randn(3)), "frozen": torch.nn.Parameter(torch.ones(2), requires_grad=False),
                 "leaf": torch.ones(2, requires_grad=True), "plain": torch.ones(2)}
        if hasattr(torch.nn, "Buffer"):
            state["buffer"] = torch.nn.Buffer(torch.ones(1))
        state["detached"] = state["p"].detach()
        back = self.back(state)
        for name, value in state.items():
            self.assertIs(type(back[name]), type(value), name)
            self.assertEqual(back[name].requires_grad, value.requires_grad, name)
            self.assertTrue(torch.equal(back[name], value), name)
        self.assertEqual(back["detached"].data_ptr(), back["p"].data_ptr())
        as_numpy = quern.checkpoint.load(self.store, framework="numpy")
        self.assertIsInstance(as_numpy["p"], np.ndarray)

    def test_sparse_tensors(self):
        dense = torch.tensor([[0, 1.5, 0, 2], [0, 0, 0, 0], [3, 0, float("nan"), 0], [0, 4, 0, 0]])
        coo = torch.sparse_coo_tensor(torch.tensor([[0, 0, 2], [1, 1, 0]]), torch.tensor([1., 2., 3.]), (4, 4))
        hybrid = torch.sparse_coo_tensor(torch.tensor([[2, 0]]), torch.randn(2, 3), (5, 3)).coalesce()
        state = {"coo": coo, "hybrid": hybrid, "empty": torch.sparse_coo_tensor(size=(3, 4)), "csr": dense.to_sparse_csr(),
                 "csc": dense.to_sparse_csc(), "bsr": dense.to_sparse_bsr((2, 2)), "bsc": dense.to_sparse_bsc((2, 2)),
                 "half": dense.bfloat16().to_sparse_coo(), "grad": dense.to_sparse_coo().requires_grad_()}
        for preset in ("exact", "archive"):
            back = self.back(state, preset=preset)
            for name, value in state.items():
                found = back[name]
                self.assertEqual((found.layout, found.dtype, found.shape), (value.layout, value.dtype, value.shape), name)
                self.assertEqual(found.requires_grad, value.requires_grad)
                if value.layout == torch.sparse_coo:
                    self.assertEqual(found.is_coalesced(), value.is_coalesced(), name)
                    self.assertTrue(torch.equal(found._indices(), value._indices()), name)
                    self.assertTrue(same(found.detach()._values(), value.detach()._values()), name)
                else:
                    self.assertTrue(same(found.values(), value.values()), name)
        from_numpy = quern.checkpoint.load(self.store, framework="numpy")
        self.assertEqual(from_numpy["csr"].layout, torch.sparse_csr)

    def test_quantized_tensors(self):
        if not hasattr(torch, "quantize_per_tensor"):
            self.skipTest("this PyTorch has no quantized tensors any more")
        values = torch.randn(4, 6)
        state = {dtype: torch.quantize_per_tensor(values, 0.1, 3, getattr(torch, dtype)) for dtype in ("quint8", "qint32")}
        state["channels"] = torch.quantize_per_channel(values, torch.rand(4) + 0.01, torch.arange(4), 0, torch.qint8)
        back = self.back(state)
        for name, value in state.items():
            self.assertEqual((back[name].dtype, back[name].qscheme()), (value.dtype, value.qscheme()), name)
            self.assertTrue(torch.equal(back[name].int_repr(), value.int_repr()), name)
            self.assertTrue(torch.equal(back[name].dequantize(), value.dequantize()), name)

    def test_objects_of_torch(self):
        state = {"dtype": torch.float8_e4m3fn, "bf16": torch.bfloat16, "device": torch.device("cuda", 1), "layout": torch.sparse_csr,
                 "format": torch.channels_last, "size": torch.Size([2, 3]), "at": {torch.float32: 1, torch.Size([1]): 2}}
        back = self.back(state)
        self.assertEqual(back, state)
        self.assertIs(type(back["size"]), torch.Size)
        module = torch.nn.BatchNorm1d(3).state_dict()
        self.assertEqual(self.back(module)._metadata, module._metadata)
        for value in (torch.Generator(), torch.return_types.max((torch.ones(1), torch.ones(1)))):
            with self.assertRaises(TypeError) as caught:
                self.back({"x": value})
            self.assertIn("register", str(caught.exception))

    def test_wrappers_are_kept_by_their_parts(self):
        lowbit = sys.modules.get("torchao.optim.subclass_8bit")
        if lowbit is None:
            try:
                import torchao.optim.subclass_8bit as lowbit
            except ImportError as problem:
                self.skipTest(f"no torchao here ({problem})")
        state = lowbit.OptimState8bit.zeros((4, 256), signed=True)
        state.copy_(torch.randn(4, 256))
        back = self.back({"state": {"0": {"exp_avg": state}}}, preset="archive")["state"]["0"]["exp_avg"]
        self.assertIs(type(back), lowbit.OptimState8bit)
        self.assertTrue(torch.equal(back.dequantize(), state.dequantize()))


class Views(StoreTest):
    def back(self, state, framework=None):
        saved = quern.checkpoint.save(self.store, state, step=len(quern.checkpoint.ls(self.store)) if self.any_saved else 0)
        self.any_saved = True
        return saved, quern.checkpoint.load(self.store, framework=framework)

    any_saved = False

    def test_views_of_one_memory_keep_sharing(self):
        w = torch.randn(60, 100)
        state = {"rows": w[3:9], "w": w, "t": w.t(), "flat": w.view(-1), "column": w[:, 7], "p": torch.nn.Parameter(w[1])}
        saved, back = self.back(state)
        self.assertEqual((saved.tensors, saved.raw_bytes), (1, w.numel() * 4))
        for name, value in state.items():
            self.assertTrue(torch.equal(back[name], value), name)
            self.assertEqual(back[name].stride(), value.stride(), name)
        with torch.no_grad():
            back["w"].fill_(7)
        self.assertTrue(all(bool((value == 7).all()) for value in back.values()))
        with quern.checkpoint.open(self.store) as opened:
            self.assertEqual(sorted(opened.other_names()), ["column", "flat", "p", "rows", "t"])
            self.assertTrue(torch.equal(opened["rows"][1:3, 5], w[4:6, 5]))
            self.assertEqual(opened["t"].shape, (100, 60))
        self.assertTrue(torch.equal(quern.checkpoint.load(self.store, names=["t"])["t"], w.t()))

    def test_parts_that_overlap_are_stored_once(self):
        w = torch.randn(1000)
        saved, back = self.back({"model": {"a": w[:700], "b": w[300:]}})
        self.assertEqual((saved.tensors, saved.raw_bytes), (1, 4000))
        back = back["model"]
        self.assertTrue(torch.equal(back["a"], w[:700]) and torch.equal(back["b"], w[300:]))
        back["a"][300] = 5
        self.assertEqual(back["b"][0].item(), 5)
        with quern.checkpoint.open(self.store) as opened:
            self.assertTrue(torch.equal(opened["model.a"].torch(), w[:700]))
            self.assertTrue(torch.equal(opened["model.b"][:5], w[300:305]))

    def test_what_would_be_larger_is_saved_one_by_one(self):
        w = torch.randn(100, 1000)
        state = {"x": w[0], "y": w[99], "first": w[:, 0], "second": w[:2, 1]}
        saved, back = self.back(state)
        self.assertEqual(saved.raw_bytes, sum(value.numel() * 4 for value in state.values()))
        self.assertTrue(all(torch.equal(back[name], value) for name, value in state.items()))

    def test_parts_that_do_not_overlap_have_their_own_names(self):
        flat = torch.randn(5000)
        state = {"weight": flat[:4000].view(40, 100), "bias": flat[4000:]}
        self.back(state)
        self.assertEqual([(t.name, t.shape) for t in quern.checkpoint.info(self.store).tensors],
                         [("weight", (40, 100)), ("bias", (1000,))])

    def test_views_of_numpy(self):
        w = np.arange(24, dtype=">i4").reshape(4, 6)
        state = {"w": w, "reversed": w[::-1, 2], "t": w.T, "slice": w[1:3, ::2]}
        saved, back = self.back(state)
        self.assertEqual(saved.tensors, 1)
        for name, value in state.items():
            self.assertEqual((back[name].dtype, back[name].strides), (value.dtype, value.strides), name)
            self.assertTrue(np.array_equal(back[name], value), name)
        back["w"][1, 2] = -1
        self.assertEqual((back["t"][2, 1], back["reversed"][2], back["slice"][0, 1]), (-1, -1, -1))
        saved, back = self.back(state, "torch")
        self.assertEqual(back["w"].tolist(), w.tolist())
        self.assertEqual(back["t"].tolist(), w.T.tolist())
        self.assertEqual((type(back["reversed"]), back["reversed"].tolist()), (torch.Tensor, w[::-1, 2].tolist()))

    def test_tied_tensors_are_one_object(self):
        w = torch.randn(5, 5)
        _, back = self.back({"a": w, "b": w, "c": w.detach()})
        self.assertIs(back["a"], back["b"])
        self.assertIs(back["a"], back["c"])


class Numpy(StoreTest):
    def test_every_type_of_numpy(self):
        state = {}
        for text in ("c8", "c16", ">c8", "g", "G", ">f8", ">u2", "M8[ns]", ">M8[25s]", "m8[D]", "S5", "U3", ">U3", "V7", "S0", "?",
                     "f2", "i8,S3", "f4,(2,3)>i2", "c8,?"):
            dtype = np.dtype(text)
            for shape in ((3, 4), (), (0, 2), (2,) * 10):
                count = int(np.prod(shape)) * dtype.itemsize
                raw = np.random.default_rng(1).integers(0, 2, count, dtype=np.uint8)
                state[f"{text} {shape}"] = np.ndarray(shape, dtype, raw.tobytes())
        state["scalar"] = np.datetime64("2026-01-01")
        state["text"] = np.str_("abc")
        state["record"] = state["i8,S3 (3, 4)"][1, 2]
        state["aligned"] = np.zeros(2, np.dtype("u1,f8", align=True))
        quern.checkpoint.save(self.store, state, step=1)
        back = quern.checkpoint.load(self.store)
        for name, value in state.items():
            self.assertIs(type(back[name]), type(value), name)
            self.assertEqual((back[name].dtype, back[name].shape), (value.dtype, value.shape), name)
            self.assertEqual(back[name].tobytes(), value.tobytes(), name)

    @unittest.skipIf(ml_dtypes is None, "no ml_dtypes here")
    def test_every_type_of_ml_dtypes(self):
        kinds = [kind for kind in vars(ml_dtypes).values() if isinstance(kind, type) and issubclass(kind, np.generic)]
        self.assertGreater(len(kinds), 10)
        state = {}
        for kind in kinds:
            dtype = np.dtype(kind)
            raw = np.random.default_rng(1).integers(0, 256, 12 * dtype.itemsize, dtype=np.uint8)
            state[dtype.name] = raw.view(dtype).reshape(3, 4)
            state[dtype.name + " scalar"] = state[dtype.name][0, 0]
        quern.checkpoint.save(self.store, state, step=1)
        back = quern.checkpoint.load(self.store)
        for name, value in state.items():
            self.assertIs(type(back[name]), type(value), name)
            self.assertEqual((back[name].dtype, back[name].shape), (value.dtype, value.shape), name)
            self.assertEqual(back[name].tobytes(), value.tobytes(), name)


if __name__ == "__main__":
    unittest.main()
