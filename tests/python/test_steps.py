"""Time steps: sessions, files of steps, what is missing or damaged, references by hash; effort=."""
import io
import json
import os
import pickle
import tempfile
import threading
import unittest
import unittest.mock
import warnings

import numpy as np
import pyquern as quern
from pyquern._chunk_config import make_config
from pyquern._errors import error_of

BOUND = 0.01
WAYS = {"abs": BOUND, "codec": "stencil"}


def moving(count):
    """Rough values that move by one place a step along the last axis, and change a little."""
    rough = np.random.default_rng(1).random((10, 18, 40)).astype("f4")
    return [np.ascontiguousarray(np.roll(rough, i, axis=2)[:, :, :24] + np.float32(0.002 * i)) for i in range(count)]


def contents(path):
    with open(path, "rb") as file:
        return file.read()


class StepsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "run.qn")
        self.steps = moving(7)

    def streams(self, **arguments):
        session = quern.Session(**arguments)
        return [session.compress(step, **WAYS) for step in self.steps]

    def assert_within(self, decoded, step):
        self.assertLessEqual(np.abs(decoded.astype("f8") - self.steps[step]).max(), BOUND)


class Sessions(StepsTest):
    def test_steps_come_back_and_are_smaller_than_alone(self):
        streams, reader = self.streams(key_every=4), quern.Session()
        self.assertEqual([quern.info(stream).steps_to_key for stream in streams], [0, 1, 2, 3, 0, 1, 2])
        for step, stream in enumerate(streams):
            self.assert_within(reader.decompress(stream), step)
        out = np.empty_like(self.steps[0])
        self.assertIs(quern.Session().decompress(streams[4], out=out), out)
        self.assert_within(out, 4)
        self.assertLess(sum(map(len, streams)), 0.8 * sum(len(quern.compress(step, **WAYS)) for step in self.steps))

    def test_a_reference_is_named_by_its_hash(self):
        streams = self.streams()
        first = quern.decompress(streams[0])
        name = quern.info(streams[1]).reference
        self.assertEqual(name, quern.hash_values(first))
        self.assertIsNone(quern.info(streams[0]).reference)
        self.assert_within(quern.decompress(streams[1], reference=first), 1)
        for call in (lambda: quern.decompress(streams[1]), lambda: quern.decompress(streams[1], reference=self.steps[0]),
                     lambda: quern.Session().decompress(streams[1])):
            with self.assertRaisesRegex(quern.MissingReference, name) as caught:
                call()
        self.assertIsInstance(caught.exception, LookupError)
        self.assertEqual(pickle.loads(pickle.dumps(caught.exception)).name, "reference_missing")
        with self.assertRaises(TypeError):
            quern.decompress(streams[1], reference=first, region=(slice(0, 2),))

    def test_what_is_wrong(self):
        quern.Session(key_every=np.int64(4))
        for wrong in (0, 257, True, 2.5):
            with self.assertRaises(ValueError):
                quern.Session(key_every=wrong)
        session = quern.Session()
        with self.assertRaises(TypeError):
            session.compress(self.steps[0])
        session.compress(self.steps[0], **WAYS)
        with self.assertRaises(quern.InvalidArgument):
            session.compress(self.steps[1], abs=-1)
        self.assertEqual(len({len(session.compress(step, **WAYS)) for step in self.steps[:1]}), 1)


    def test_a_step_that_nobody_got_predicts_nothing(self):
        def interrupt(_stream):
            raise KeyboardInterrupt

        session = quern.Session()
        session.compress(self.steps[0], **WAYS)
        with unittest.mock.patch("pyquern._steps.bytes", interrupt, create=True), self.assertRaises(KeyboardInterrupt):
            session.compress(self.steps[1], **WAYS)
        stream = session.compress(self.steps[2], **WAYS)
        self.assertEqual(quern.info(stream).steps_to_key, 0)
        self.assert_within(quern.decompress(stream), 2)

    def test_a_call_that_uses_its_own_session_is_told(self):
        session = quern.Session()
        for step in self.steps[:2]:
            with self.assertRaisesRegex(RuntimeError, "use another one"):
                session.compress(step, **WAYS, progress=lambda done, total: session.compress(step, **WAYS))
        self.assert_within(quern.decompress(session.compress(self.steps[2], **WAYS)), 2)

    def test_the_same_step_is_read_in_a_second_try(self):
        streams, reader = self.streams(), quern.Session()
        reader.decompress(streams[0])
        with self.assertRaises(quern.CorruptStream):
            reader.decompress(streams[1][:-9])
        self.assert_within(reader.decompress(streams[1]), 1)


class Files(StepsTest):
    def test_calls_one_after_another_make_the_same_file(self):
        reports = quern.append(self.path, *self.steps, **WAYS, key_every=4)
        self.assertEqual(sum(report.output_bytes for report in reports), os.path.getsize(self.path))
        whole = contents(self.path)
        self.assertEqual(whole, b"".join(self.streams(key_every=4)))
        os.unlink(self.path)
        for step in self.steps:
            quern.append(self.path, step, **WAYS, key_every=4, threads=2)
        self.assertEqual(contents(self.path), whole)
        self.assertEqual(os.listdir(os.path.dirname(self.path)), ["run.qn"])

    def test_steps_boxes_and_runs(self):
        quern.append(self.path, *self.steps, **WAYS, key_every=4)
        with quern.open_steps(self.path) as steps:
            self.assertEqual((len(steps), steps.shape, steps.dtype), (7, (10, 18, 24), np.float32))
            for step, values in enumerate(steps):
                self.assert_within(values, step)
                np.testing.assert_array_equal(steps[step], values)
                np.testing.assert_array_equal(steps[step, 2:4, :, 5], values[2:4, :, 5])
                self.assertEqual(steps.info(step).steps_to_key, step % 4)
                np.testing.assert_array_equal(quern.Session().decompress(steps.stream(step)) if step % 4 == 0 else values, values)
            np.testing.assert_array_equal(steps[5:1:-2], np.stack([steps[5], steps[3]]))
            self.assertEqual(steps[3:3].shape, (0, 10, 18, 24))
            np.testing.assert_array_equal(steps[-1], steps[6])
            np.testing.assert_array_equal(pickle.loads(pickle.dumps(steps))[2], steps[2])
            for wrong, kind in ((7, IndexError), ("1", TypeError), (1.0, TypeError)):
                with self.assertRaises(kind):
                    steps[wrong]
        with self.assertRaises(ValueError):
            steps[0]
        with open(self.path, "rb") as file:
            self.assert_within(quern.open_steps(io.BytesIO(file.read()))[6], 6)

    def test_a_box_reads_no_more_than_its_chain(self):
        quern.append(self.path, *self.steps, **WAYS, key_every=3)
        read = []

        class Counting(io.BytesIO):
            def read(self, size=-1):
                read.append((self.tell(), size))
                return super().read(size)

        with open(self.path, "rb") as file:
            steps = quern.open_steps(Counting(file.read()))
        for step in range(7):
            steps.info(step)
        read.clear()
        steps[5, 0:2]
        key = steps._spans[3][0]
        self.assertTrue(read and all(key <= offset and offset + size <= steps._spans[6][0] for offset, size in read))

    def test_a_slice_with_steps_decodes_what_it_needs(self):
        quern.append(self.path, *self.steps, **WAYS, key_every=3)
        steps, read = quern.open_steps(self.path), []
        self.addCleanup(steps.close)
        stream = steps.stream
        with unittest.mock.patch.object(steps, "stream", lambda step: read.append(step) or stream(step)):
            taken = steps[::3]
            self.assertEqual(read, [0, 3, 6])
            read.clear()
            steps[4:0:-3]
            self.assertEqual(read, [0, 1, 3, 4])
        np.testing.assert_array_equal(taken, np.stack([steps[0], steps[3], steps[6]]))

    def test_a_memory_limit_counts_the_new_array(self):
        stream = quern.compress(self.steps[0], **WAYS)

        def least(call):
            """The smallest limit under which the call ends well."""
            refused, enough = 0, 1 << 26
            while enough - refused > 1:
                limit = (refused + enough) // 2
                try:
                    self.assert_within(call(limit), 0)
                    enough = limit
                except quern.OutOfMemory:
                    refused = limit
            return enough

        alike = least(lambda limit: quern.decompress(stream, memory_limit=limit))
        self.assertEqual(alike, least(lambda limit: quern.Session().decompress(stream, memory_limit=limit)))

    def test_short_reads_are_gone_on_with(self):
        quern.append(self.path, *self.steps[:2], **WAYS)

        class Short(io.BytesIO):
            def read(self, size=-1):
                return super().read(min(size, 1000) if size >= 0 else size)

        whole, steps = contents(self.path), quern.open_steps(Short(contents(self.path)))
        self.assertEqual(steps.stream(0) + steps.stream(1), whole)

    def test_a_last_step_whose_model_or_codec_is_missing_is_gone_on_behind(self):
        quern.append(self.path, self.steps[0], **WAYS)
        for number, status in enumerate((41, 43), start=1):
            problem = error_of(status, "there is no such")
            with unittest.mock.patch.object(quern.Steps, "__getitem__", side_effect=problem), \
                    self.assertWarnsRegex(RuntimeWarning, "key step.*there is no such"):
                quern.append(self.path, self.steps[number], **WAYS)
        with quern.open_steps(self.path) as steps:
            self.assertEqual([steps.info(step).steps_to_key for step in range(3)], [0, 0, 0])
            self.assert_within(steps[2], 2)

    def test_steps_that_nothing_is_predicted_from_are_not_decoded(self):
        streams = self.streams()
        with open(self.path, "wb") as file:
            damaged = bytearray(streams[0])
            damaged[len(damaged) // 2] ^= 0x20
            file.write(damaged)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            quern.append(self.path, self.steps[1], lossless=True)
        np.testing.assert_array_equal(quern.open_steps(self.path)[1], self.steps[1])

    def test_what_is_lost_is_named_and_ends_at_the_next_key_step(self):
        streams = self.streams(key_every=4)
        with open(self.path, "wb") as file:
            file.write(b"".join(streams[1:]))
        steps = quern.open_steps(self.path)
        for step in (0, 2):
            with self.assertRaisesRegex(quern.MissingReference, steps.info(step).reference):
                steps[step]
        self.assert_within(steps[3], 4)
        altered = bytearray(b"".join(streams))
        altered[len(streams[0]) + len(streams[1]) // 2] ^= 0x20
        steps = quern.open_steps(io.BytesIO(bytes(altered)))
        self.assert_within(steps[0], 0)
        for step in (1, 2, 3):
            with self.assertRaises(quern.Error):
                steps[step]
        self.assert_within(steps[5], 5)
        # Of another run that was decoded to other values.
        other = quern.Session()
        foreign = [other.compress(step, abs=BOUND / 2, codec="stencil") for step in self.steps[:2]]
        mixed = quern.open_steps(io.BytesIO(b"".join((*streams[:1], foreign[1], streams[2]))))
        with self.assertRaises(quern.MissingReference):
            mixed[2]

    def test_a_damaged_last_step_is_gone_on_behind(self):
        streams = self.streams()
        with open(self.path, "wb") as file:
            damaged = bytearray(streams[1])
            damaged[len(damaged) // 2] ^= 0x20
            file.write(streams[0] + damaged)
        before = contents(self.path)
        with self.assertWarnsRegex(RuntimeWarning, "key step"):
            quern.append(self.path, self.steps[2], **WAYS)
        self.assertEqual(contents(self.path)[:len(before)], before)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            quern.append(self.path, self.steps[3], **WAYS)
        steps = quern.open_steps(self.path)
        self.assertEqual([steps.info(step).steps_to_key for step in range(4)], [0, 1, 0, 1])
        self.assert_within(steps[3], 3)

    def test_what_cannot_be_appended_changes_nothing(self):
        quern.append(self.path, self.steps[0], **WAYS)
        before = contents(self.path)
        for call in (lambda: quern.append(self.path, self.steps[1][:5], **WAYS), lambda: quern.append(self.path, **WAYS),
                     lambda: quern.append(self.path, self.steps[1], self.steps[2].astype("f8"), **WAYS),
                     lambda: quern.append(self.path, self.steps[1]), lambda: quern.append(self.path, self.steps[1], abs=-1),
                     lambda: quern.append(os.path.dirname(self.path), self.steps[1], **WAYS)):
            with self.assertRaises((ValueError, TypeError, OSError)):
                call()
        self.assertEqual(contents(self.path), before)
        for bytes_there in (b"", b"no stream at all"):
            with open(self.path, "wb") as file:
                file.write(bytes_there)
            for call in (lambda: quern.append(self.path, self.steps[1], **WAYS), lambda: quern.open_steps(self.path)):
                with self.assertRaises(quern.CorruptStream):
                    call()
            self.assertEqual(contents(self.path), bytes_there)
        self.assertEqual(os.listdir(os.path.dirname(self.path)), ["run.qn"])

    def test_two_writers_at_once_lose_nothing_in_silence(self):
        quern.append(self.path, self.steps[0], **WAYS)

        def meanwhile(_done, _total):
            if not meanwhile.there:
                meanwhile.there = True
                worker = threading.Thread(target=quern.append, args=(self.path, self.steps[1]), kwargs=WAYS)
                worker.start()
                worker.join()

        meanwhile.there = False
        with self.assertRaisesRegex(OSError, "meanwhile"):
            quern.append(self.path, self.steps[2], **WAYS, progress=meanwhile)
        steps = quern.open_steps(self.path)
        self.assertEqual(len(steps), 2)
        self.assert_within(steps[1], 1)

    def test_links_and_modes_stay(self):
        quern.append(self.path, self.steps[0], **WAYS)
        os.chmod(self.path, 0o640)
        link = self.path + ".link"
        os.symlink("run.qn", link)
        quern.append(link, self.steps[1], **WAYS)
        self.assertTrue(os.path.islink(link))
        self.assertEqual(os.stat(self.path).st_mode & 0o777, 0o640)
        self.assertEqual(len(quern.open_steps(self.path)), 2)


class Effort(unittest.TestCase):
    FIELD = np.cumsum(np.random.default_rng(3).normal(size=(40, 64, 64)), axis=0).astype("f4")

    def test_it_reaches_the_library(self):
        usual = quern.compress(self.FIELD, abs=0.1, codec="stencil")
        self.assertEqual(usual, quern.compress(self.FIELD, abs=0.1, codec="stencil", effort=6))
        least = quern.compress(self.FIELD, abs=0.1, codec="stencil", effort=1)
        self.assertEqual(least, quern.compress(self.FIELD, abs=0.1, codec="stencil", goal="speed"))
        self.assertNotEqual(usual, least)
        self.assertEqual(least, quern.Session().compress(self.FIELD, abs=0.1, codec="stencil", effort=np.int64(1)))

    def test_configurations_of_chunks_hold_it_as_json_has_it(self):
        config = make_config(abs=0.1, pwrel=None, rel=None, lossless=False, codec="auto", goal="ratio", fill=None, effort=np.int64(3))
        self.assertEqual(json.loads(json.dumps(config.to_json()))["effort"], 3)

    def test_what_is_no_effort(self):
        for wrong in (0, 10, True, 2.0, "6"):
            with self.assertRaisesRegex(ValueError, "from 1"):
                quern.compress(self.FIELD, abs=0.1, effort=wrong)
        with self.assertRaisesRegex(ValueError, "speed"):
            quern.compress(self.FIELD, abs=0.1, goal="speed", effort=2)


if __name__ == "__main__":
    unittest.main()
