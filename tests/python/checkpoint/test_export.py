"""pyquern.checkpoint.export: tied weights, views, types, and models that Hugging Face's own code loads."""
import json
import os
import unittest
from unittest import mock

import numpy as np
from support import StoreTest

import pyquern as quern
from pyquern._checkpoint import store as _store
from pyquern._tensors import source_of


def have(name):
    try:
        __import__(name)
    except ImportError:
        return False
    return True


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    metadata = header.pop("__metadata__")
    return {name: (e["dtype"], e["shape"], data[8 + size:][e["data_offsets"][0]:e["data_offsets"][1]])
            for name, e in header.items()}, metadata


class Export(StoreTest):
    def setUp(self):
        super().setUp()
        self.out = os.path.join(os.path.dirname(self.store), "out")
        self.file = os.path.join(self.out, "model.safetensors")

    def test_the_model_of_a_state_dict(self):
        weight = np.arange(12, dtype=np.float32).reshape(3, 4)
        state = {"model": {"embed.weight": weight, "head.weight": weight, "first": weight[:1], "turned": weight.T,
                           "bias": np.ones(3, np.float32), "other": np.ones(3, np.float32)},
                 "optimizer": {"state": {0: {"exp_avg": weight * 2}}}, "step": 4}
        quern.checkpoint.save(self.store, state, step=4)
        done = quern.checkpoint.export(self.store, self.out)
        self.assertEqual((done.step, done.files, done.tensors, done.tied, done.inexact), (4, 1, 5, 1, 0))
        model, metadata = read(self.file)
        self.assertEqual(metadata, {"format": "pt", "head.weight": "embed.weight"})
        self.assertEqual({name: e[:2] for name, e in model.items()},
                         {"embed.weight": ("F32", [3, 4]), "first": ("F32", [1, 4]), "turned": ("F32", [4, 3]),
                          "bias": ("F32", [3]), "other": ("F32", [3])})
        for name, (_, _, data) in model.items():
            self.assertEqual(data, np.ascontiguousarray(state["model"][name]).tobytes())

    def test_second_names_count_when_they_alone_are_chosen(self):
        weight = np.arange(12, dtype=np.float32)
        quern.checkpoint.save(self.store, {"average": {"w": weight}, "model": {"w": weight}}, step=1)
        quern.checkpoint.export(self.store, self.out, only="model.*", strip_prefix="model.", dtype="bf16")
        model, _ = read(self.file)
        self.assertEqual(list(model), ["w"])
        self.assertEqual(model["w"][2], (weight.view(np.uint32) >> 16).astype(np.uint16).tobytes())

    def test_texts_that_no_weight_needs_do_not_matter(self):
        texts = ["\ud800", "a\udc00\ud83d", "\\ud800", "\U0001f600"]
        state = {"model": {"w": np.ones(3, np.float32)}, "notes": texts}
        quern.checkpoint.save(self.store, state, step=1)
        self.assertEqual(quern.checkpoint.load(self.store)["notes"], texts)
        self.assertEqual(quern.checkpoint.export(self.store, self.out).tensors, 1)
        self.assertEqual(list(read(self.file)[0]), ["w"])

    def test_negative_numbers_are_names(self):
        quern.checkpoint.save(self.store, {-1: np.ones(3, np.float32), -2: np.zeros(3, np.float32)}, step=1)
        self.assertEqual(quern.checkpoint.export(self.store, self.out).tensors, 2)
        self.assertEqual(list(read(self.file)[0]), ["-1", "-2"])

    def test_arguments(self):
        quern.checkpoint.save(self.store, {"w": np.zeros(100, np.float32), "v": np.ones(100)}, step=1)
        seen = []
        done = quern.checkpoint.export(self.store, self.out, step=1, shard_size="0.5KB",
                                       progress=lambda at, total: seen.append((at, total)))
        self.assertEqual((done.files, seen[-1]), (3, (1200, 1200)))
        with self.assertRaisesRegex(quern.checkpoint.Error, "replace=True"):
            quern.checkpoint.export(self.store, self.out)
        self.assertEqual(quern.checkpoint.export(self.store, self.out, replace=True, shard_size=10**9).files, 1)
        self.assertEqual(os.listdir(self.out), ["model.safetensors"])
        with self.assertRaises(quern.checkpoint.Error):
            quern.checkpoint.export(self.store, self.out, replace=True, progress=lambda at, total: False)
        with self.assertRaises(ZeroDivisionError):
            quern.checkpoint.export(self.store, self.out, replace=True, progress=lambda at, total: 1 / 0)
        for words in ({"dtype": "int8"}, {"shard_size": "much"}, {"shard_size": 0}):
            with self.assertRaises(ValueError):
                quern.checkpoint.export(self.store, self.out, replace=True, **words)
        with self.assertRaises(TypeError):
            quern.checkpoint.export(self.store, self.out, only=[3])
        self.assertEqual(os.listdir(self.out), ["model.safetensors"])


class Pieces(StoreTest):
    def test_pieces_are_joined(self):
        whole = np.arange(24, dtype=np.float32).reshape(6, 4)
        with quern.checkpoint.Store(self.store, write=True) as store, store.begin(1) as writer:
            for begin, end in ((2, 6), (0, 2)):
                writer.add("model.w", source_of(whole[begin:end], "w"), piece=((6, 4), (begin, 0)))
            writer.publish()
        out = os.path.join(os.path.dirname(self.store), "out")
        done = quern.checkpoint.export(self.store, out, only=["model.*"], strip_prefix=["model."])
        self.assertEqual(done.tensors, 1)
        self.assertEqual(read(os.path.join(out, "model.safetensors"))[0], {"w": ("F32", [6, 4], whole.tobytes())})


class TypesOfFiles(StoreTest):
    def test_types_that_only_files_have_are_read(self):
        values = np.arange(48, dtype=np.float32).reshape(6, 8)
        numbers = {"c64": 28, "c128": 29, "e8m0": 27}
        given = {"c64": values.view(np.complex64), "c128": values.astype(np.float64).view(np.complex128),
                 "e8m0": np.arange(9, dtype=np.uint8)}
        with mock.patch.dict(_store.NUMBERS, numbers), quern.checkpoint.Store(self.store, write=True) as store:
            with store.begin(1) as writer:
                for name, array in given.items():
                    source = source_of(array.view(np.uint8), name)
                    source.dtype, source.shape = name, array.shape
                    writer.add(name, source)
                writer.publish()
        with quern.checkpoint.open(self.store) as saved:
            for name in ("c64", "c128"):
                self.assertEqual(saved[name].shape, (6, 4))
                self.assertEqual(saved[name].numpy().dtype, given[name].dtype)
                np.testing.assert_array_equal(saved[name].numpy(), given[name])
                np.testing.assert_array_equal(saved[name][2:4], given[name][2:4])
            self.assertEqual(saved["e8m0"].dtype, "float8_e8m0fnu")
            self.assertEqual(np.asarray(saved["e8m0"].numpy()).view(np.uint8).tolist(), list(range(9)))


@unittest.skipUnless(have("torch"), "no torch here")
class ExportTorch(StoreTest):
    def setUp(self):
        super().setUp()
        self.out = os.path.join(os.path.dirname(self.store), "out")

    def load(self):
        if not have("safetensors"):
            self.skipTest("no safetensors here")
        from safetensors.torch import load_file
        return load_file(os.path.join(self.out, "model.safetensors"))

    def test_types_that_stores_keep_under_others(self):
        import torch
        state = {"c": torch.randn(3, 4, dtype=torch.complex64), "deep": torch.randn(1, 2, 1, 2, 1, 2, 1, 2, 3),
                 "bf": torch.randn(5).bfloat16(), "f8": torch.randn(6).to(torch.float8_e5m2)}
        quern.checkpoint.save(self.store, {"model": state}, step=1)
        quern.checkpoint.export(self.store, self.out)
        loaded = self.load()
        self.assertEqual(set(loaded), set(state))
        for name, value in state.items():
            self.assertEqual(loaded[name].dtype, value.dtype)
            self.assertTrue(torch.equal(loaded[name].contiguous().view(torch.uint8), value.contiguous().view(torch.uint8)))

    def test_tensors_of_many_axes_are_rounded_too(self):
        import torch
        deep = torch.randn(1, 2, 1, 2, 1, 2, 1, 2, 3)
        quern.checkpoint.save(self.store, {"model": {"deep": deep}}, step=1)
        quern.checkpoint.export(self.store, self.out, dtype="f16")
        self.assertTrue(torch.equal(self.load()["deep"], deep.half()))

    def test_rounding_is_pytorch_s(self):
        import torch
        bits = torch.randint(-2**31, 2**31, (200000,), dtype=torch.int64).to(torch.int32)
        single = bits.view(torch.float32)
        double = torch.randn(20000, dtype=torch.float64) * torch.exp(torch.randn(20000, dtype=torch.float64) * 9)
        quern.checkpoint.save(self.store, {"model": {"s": single, "d": double}}, step=1)
        for dtype in (torch.bfloat16, torch.float16, torch.float32):
            quern.checkpoint.export(self.store, self.out, dtype=dtype, replace=True)
            loaded = self.load()
            self.assertEqual({v.dtype for v in loaded.values()}, {dtype})
            wanted = single.to(dtype)
            self.assertTrue(torch.equal(loaded["s"].isnan(), single.isnan()))
            held = ~single.isnan()
            self.assertTrue(torch.equal(loaded["s"][held], wanted[held]))
            if dtype == torch.float32:
                self.assertTrue(torch.equal(loaded["d"], double.to(dtype)))

    def from_pretrained(self, model, cls, shard_size="5GB"):
        import torch
        state = {"model": model.state_dict(), "optimizer": torch.optim.AdamW(model.parameters()).state_dict()}
        quern.checkpoint.save(self.store, state, step=1)
        done = quern.checkpoint.export(self.store, self.out, shard_size=shard_size)
        model.config.save_pretrained(self.out)
        found, told = cls.from_pretrained(self.out, output_loading_info=True)
        self.assertFalse(told["missing_keys"] or told["unexpected_keys"] or told["mismatched_keys"], told)
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(found.state_dict().values(), model.state_dict().values())))
        return done, found

    @unittest.skipUnless(have("transformers"), "no transformers here")
    def test_a_llama_in_shards(self):
        from transformers import AutoModelForCausalLM, LlamaConfig
        config = LlamaConfig(vocab_size=128, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
                             num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=False)
        done, _ = self.from_pretrained(AutoModelForCausalLM.from_config(config), AutoModelForCausalLM, "20KB")
        self.assertGreater(done.files, 3)
        self.assertEqual(done.tied, 0)

    @unittest.skipUnless(have("transformers"), "no transformers here")
    def test_a_gpt2_whose_head_is_tied(self):
        from transformers import AutoModelForCausalLM, GPT2Config
        config = GPT2Config(vocab_size=128, n_positions=16, n_embd=32, n_layer=2, n_head=2, bos_token_id=1,
                            eos_token_id=2)
        done, model = self.from_pretrained(AutoModelForCausalLM.from_config(config), AutoModelForCausalLM)
        self.assertEqual((done.files, done.tied), (1, 1))
        self.assertIs(model.lm_head.weight, model.transformer.wte.weight)


if __name__ == "__main__":
    unittest.main()
