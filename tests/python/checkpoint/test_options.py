"""Arguments of a save beside the values: policy, roles, replay, tags, presets."""
import json
import os
import pathlib
import unittest
import unittest.mock

from support import StoreTest, import_or_skip

np = import_or_skip("numpy")
import pyquern as quern  # noqa: E402


def weights(seed=1, scale=0.02):
    return (np.random.default_rng(seed).standard_normal((100, 100)) * scale).astype(np.float32)


class Options(StoreTest):
    def lossless(self):
        return {tensor.name: tensor.lossless for tensor in quern.checkpoint.info(self.store).tensors}

    def test_what_stays_by_number_step_and_metric(self):
        for step, loss in ((100, 3.0), (200, 1.5), (300, 2.0), (400, 2.5), (500, 2.25), (600, 9.0)):
            quern.checkpoint.save(self.store, {"w": weights(step)}, step=step, tags={"loss": loss})
        with quern.checkpoint.Store(self.store, write=True) as store:
            planned = store.retain(keep=1, keep_every=400, best=1, metric="loss", dry_run=True)
            self.assertEqual(len(store.steps()), 6)
            self.assertEqual(store.retain(keep=1, keep_every=400, best=1, metric="loss"), planned)
            self.assertEqual(planned[0], 3)
            self.assertEqual(store.history(), [200, 400, 600])
            store.retain(best=1, metric="loss", mode="max")
            self.assertEqual(store.history(), [600])
            for arguments, error in (({}, quern.Error), ({"best": 1}, quern.Error), ({"best": 1, "metric": "none"}, quern.Error),
                                     ({"keep": 1, "mode": "most"}, ValueError)):
                with self.assertRaises(error):
                    store.retain(**arguments)
        self.assertEqual(quern.checkpoint.ls(self.store), [600])

    def test_a_policy_is_a_dict_a_text_or_a_file(self):
        rules = {"rules": [{"name": "model.a*", "mode": "exact"}, {"name": "*", "min_elements": 5000, "mode": "ebq", "bound": 1e-3}]}
        path = pathlib.Path(self.store + ".json")
        path.write_text(json.dumps(rules))
        state = {"model": {"a": weights(1), "b": weights(2)}, "other": weights(3)}
        for step, policy in enumerate((rules, json.dumps(rules), path, str(path))):
            saved = quern.checkpoint.save(self.store, state, step=step, policy=policy)
            self.assertEqual(self.lossless(), {"model.a": True, "model.b": False, "other": False})
            self.assertEqual(saved.lossy, 2)
        self.assertEqual(quern.checkpoint.save(self.store, state, step=9).lossy, 0)
        for policy, error, words in (({"rules": [{"mode": "dense"}]}, quern.Error, "rule 1"), ("{", quern.Error, "policy"),
                                     (3, TypeError, "policy"), (self.store + "none", FileNotFoundError, "none")):
            with self.assertRaises(error) as caught:
                quern.checkpoint.save(self.store, state, step=10, policy=policy)
            self.assertIn(words, str(caught.exception))

    def test_roles_come_from_the_caller(self):
        state = {"model": {"w": weights(1)}, "ema": {"w": weights(2)}}
        quern.checkpoint.save(self.store, state, step=1, preset="balanced")
        self.assertEqual(self.lossless(), {"model.w": False, "ema.w": True})
        with self.assertLogs("quern", "INFO") as logged:
            saved = quern.checkpoint.save(self.store, state, step=2, preset="balanced", roles={"ema.*": "param", "model.*": "other"})
        self.assertEqual(self.lossless(), {"model.w": True, "ema.w": False})
        self.assertEqual(saved.lossy, 1)
        self.assertTrue(any("lossy" in line for line in logged.output), logged.output)
        quern.checkpoint.save(self.store, state, step=3, preset="balanced", roles={"ema.*": "param"},
                              policy={"roles": [{"name": "*", "role": "other"}]})
        self.assertEqual(self.lossless(), {"model.w": True, "ema.w": False})
        for wrong in (["ema.*"], {"ema.*": 3}):
            with self.assertRaises(TypeError):
                quern.checkpoint.save(self.store, state, step=4, roles=wrong)

    def test_views_are_never_weights(self):
        z = weights(1) + 1j * weights(2)
        state = {"model": {"w": z, "when": np.arange(10000).astype("M8[s]").reshape(100, 100)}}
        quern.checkpoint.save(self.store, state, step=1, preset="archive")
        back = quern.checkpoint.load(self.store)["model"]
        self.assertEqual(back["w"].tobytes(), z.tobytes())
        self.assertEqual(back["when"].tobytes(), state["model"]["when"].tobytes())

    def test_tags_come_back(self):
        tags = {"loss": 2.75, "epoch": 3, "note": "f\u00fcr \"dich\"", "small": np.float32(0.1), "none": float("nan")}
        quern.checkpoint.save(self.store, {"w": weights()}, step=1, tags=tags)
        quern.checkpoint.save(self.store, {"w": weights()}, step=2)
        found = quern.checkpoint.info(self.store, 1).tags
        self.assertEqual(found, {"loss": "2.75", "epoch": "3", "note": tags["note"], "small": repr(float(np.float32(0.1))), "none": "nan"})
        self.assertEqual(quern.checkpoint.info(self.store, 2).tags, {})
        for wrong, error in (({"a": [1]}, TypeError), ({1: "a"}, TypeError), ({"a": "x\0y"}, ValueError), ({"a": True}, TypeError),
                             ({"": "x"}, quern.Error)):
            with self.assertRaises(error, msg=wrong):
                quern.checkpoint.save(self.store, {}, step=3, tags=wrong)
        self.assertEqual(quern.checkpoint.ls(self.store), [1, 2])

    def test_replay_is_handed_on(self):
        rule = {"optimizer": "adamw", "order": "fused", "betas": [0.9, 0.95], "eps": 1e-8, "lr": 7e-4, "weight_decay": 0.1}
        quern.checkpoint.save(self.store, {"w": weights()}, step=1, replay=rule)
        for wrong, error in (({"optimizer": "none"}, quern.Error), ({key: rule[key] for key in rule if key != "lr"}, quern.Error),
                             (5, TypeError)):
            with self.assertRaises(error) as caught:
                quern.checkpoint.save(self.store, {"w": weights()}, step=2, base=1, replay=wrong)
            self.assertIn("replay", str(caught.exception))

    def test_a_base_that_does_not_fit_is_no_base(self):
        quern.checkpoint.save(self.store, {"w": weights(), "v": weights(2)}, step=1)
        with self.assertLogs("quern", "INFO") as logged:
            quern.checkpoint.save(self.store, {"w": weights()[:50], "new": weights(4)}, step=2, base=1)
            quern.checkpoint.save(self.store, {"w": weights()}, step=3, base=77)
        self.assertIn("shape is not that of the base", logged.output[0])
        self.assertEqual(quern.checkpoint.load(self.store, step=2)["w"].tobytes(), weights()[:50].tobytes())
        for wrong in ("oldest", 2**64 - 2, -1):
            with self.assertRaises(ValueError):
                quern.checkpoint.save(self.store, {}, step=4, base=wrong)

    def test_element_types_of_files_are_read_as_what_they_are(self):
        # As a safetensors file with C64 is saved by the command: the library's type 28, which this package never writes.
        from pyquern._checkpoint import store as _store
        from pyquern._checkpoint.flatten import Flattened

        z = (weights(1) + 1j * weights(2)).astype(np.complex64)
        source = Flattened({"z": z}).tensors["z"]
        source.dtype, source.shape = "c64", z.shape
        with unittest.mock.patch.dict(_store.NUMBERS, {"c64": 28}):
            with quern.checkpoint.Store(self.store, write=True) as store, store.begin(1) as writer:
                writer.add("z", source)
                writer.publish()
        self.assertEqual(quern.checkpoint.load(self.store)["z"].tobytes(), z.tobytes())
        room = {"z": np.zeros_like(z)}
        quern.checkpoint.load_into(self.store, room)
        self.assertEqual(room["z"].tobytes(), z.tobytes())
        with quern.checkpoint.open(self.store) as saved:
            self.assertEqual((saved["z"].dtype, saved["z"].shape), ("complex64", z.shape))
            self.assertEqual(saved["z"][3:5, 7].tobytes(), z[3:5, 7].tobytes())

    def test_history_is_the_order_of_saves(self):
        for step in (1, 2, 3):
            quern.checkpoint.save(self.store, {"step": step}, step=step)
        quern.checkpoint.save(self.store, {"step": "again"}, step=2, replace=True)
        with quern.checkpoint.Store(self.store) as store:
            self.assertEqual((store.steps(), store.history()), ([1, 2, 3], [1, 3, 2]))
            self.assertIn(store.newest_base(), (1, 2, 3))
        self.assertEqual(quern.checkpoint.load(self.store), {"step": "again"})
        self.assertEqual(quern.checkpoint.load(self.store, step=2), {"step": "again"})
        self.assertEqual(len(os.listdir(self.store + "/manifests")), 3)


if __name__ == "__main__":
    unittest.main()
