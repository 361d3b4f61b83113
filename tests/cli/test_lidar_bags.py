# quern lidar with bags of ROS 2: MCAP files and SQLite databases that this file writes byte by byte, those that other
# programs wrote, what does not fit together, and files for other programs: read by mcap and mcap_ros2 where they are.
import os
import shutil
import sqlite3
import struct
import unittest

import harness
from harness import CliTest, read_bytes

try:
    from mcap.reader import make_reader
    from mcap_ros2.decoder import DecoderFactory
except ImportError:
    make_reader = None

GOLDEN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "golden", "bags")
# Of the build that is tested.
HAVE_LZ4 = os.environ.get("QUERN_HAVE_LZ4", "1") == "1"
HAVE_SQLITE = os.environ.get("QUERN_HAVE_SQLITE", "1") == "1"
needs_sqlite = unittest.skipUnless(HAVE_SQLITE, "quern was built without SQLite")
CLOUD = "sensor_msgs/msg/PointCloud2"
SECOND = 10 ** 9
STAMP = 1700000000 * SECOND + 250
MAGIC = b"\x89MCAP0\r\n"


def text(value):
    return struct.pack("<I", len(value)) + value.encode()


def record(opcode, content):
    return struct.pack("<BQ", opcode, len(content)) + content


def chunk(records, packing="", size=None, crc=0, packed=None):
    packed = records if packed is None else packed
    return record(6, struct.pack("<QQQI", 0, 0, len(records) if size is None else size, crc) + text(packing) +
                  struct.pack("<Q", len(packed)) + packed)


def mcap(channels, messages, end=True, chunks=True):
    """`channels`: (topic, type); `messages`: (channel, time, data)."""
    out = b""
    for number, (topic, kind) in enumerate(channels):
        out += record(3, struct.pack("<H", number + 1) + text(kind) + text("ros2msg") + struct.pack("<I", 0))
        out += record(4, struct.pack("<HH", number, number + 1) + text(topic) + text("cdr") + struct.pack("<I", 0))
    for sequence, (channel, time, data) in enumerate(messages):
        out += record(5, struct.pack("<HIQQ", channel, sequence, time, time) + data)
    out = MAGIC + record(1, text("ros2") + text("")) + (chunk(out) if chunks else out)
    return out + (record(15, struct.pack("<I", 0)) + record(2, bytes(20)) + MAGIC if end else b"")


class Message:
    """A PointCloud2 message; members are changed to what does not fit."""

    def __init__(self, points, stamp=STAMP, height=1, fields=None, order="<"):
        self.stamp, self.height, self.width, self.order = stamp, height, len(points) // height, order
        self.fields = fields or [("x", 0, 7), ("y", 4, 7), ("z", 8, 7), ("ring", 12, 4)]
        self.step = 16
        self.data = b"".join(struct.pack(order + "fffHxx", *point) for point in points)
        self.row = self.width * self.step

    def bytes(self):
        out = bytearray(b"\0\1\0\0" if self.order == "<" else b"\0\0\0\0")

        def number(*values):
            out.extend(bytes(-len(out) % 4))
            out.extend(struct.pack(self.order + "I" * len(values), *values))

        def words(value):
            number(len(value) + 1)
            out.extend(value.encode() + b"\0")

        number(self.stamp // SECOND, self.stamp % SECOND)
        words("velodyne")
        number(self.height, self.width, len(self.fields))
        for name, offset, kind in self.fields:
            words(name)
            number(offset)
            out.append(kind)
            number(1)
        out.append(self.order == ">")
        number(self.step, self.row, len(self.data))
        out.extend(self.data)
        out.append(1)
        return bytes(out)


def points(count, seed=0):
    return [(i * 0.25, seed + i % 7, -1.5 + i % 3, i % 16) for i in range(count)]


def pcd_points(data):
    head, _, rest = data.partition(b"DATA binary\n")
    assert b"FIELDS x y z ring\nSIZE 4 4 4 2\n" in head, head
    return [struct.unpack_from("<fffH", rest, at) for at in range(0, len(rest), 14)]


class Bags(CliTest):
    def bag(self, messages, name="run.mcap", topic="/points", **options):
        channels = [(topic, CLOUD), ("/chatter", "std_msgs/msg/String")]
        every = [(0, STAMP + 7 + i, m.bytes() if isinstance(m, Message) else m) for i, m in enumerate(messages)]
        return self.write(name, mcap(channels, every + [(1, STAMP, b"\0\1\0\0\3\0\0\0hi\0")], **options))

    def drive(self, bag, *words, name="d.qnl"):
        self.ok("lidar", "compress", bag, "-o", self.path(name), "-f", *words)
        return self.path(name)

    def test_scans_stamps_and_columns_come_back(self):
        bag = self.bag([Message(points(40, i), STAMP + i * SECOND) for i in range(3)])
        result = self.ok("lidar", "compress", bag, "-o", self.path("d.qnl"))
        self.assertIn("other topics were left out (/chatter, 1 messages)", result.stderr.decode())
        told = self.json(self.ok("lidar", "info", self.path("d.qnl"), "--json"))
        self.assertEqual([f["time_ns"] for f in told["each"]], [STAMP + i * SECOND for i in range(3)])
        self.assertEqual([f["name"] for f in told["each"]], ["000000", "000001", "000002"])
        self.assertEqual(told["each"][0]["columns"], [{"name": "ring", "dtype": "u16"}])
        self.assertEqual(told["each"][0]["format"], "PointCloud2")
        self.ok("lidar", "verify", self.path("d.qnl"), "--original", bag)
        self.ok("lidar", "decompress", self.path("d.qnl"), "-o", self.path("back"))
        for i in range(3):
            self.assertEqual(pcd_points(read_bytes(self.path("back/00000%d.pcd" % i))), points(40, i))

    def test_a_bag_comes_back_as_messages(self):
        messages = [Message(points(40, i), STAMP + i * SECOND) for i in range(3)]
        bag = self.bag(messages)
        self.ok("lidar", "decompress", self.drive(bag), "-o", self.path("back.mcap"))
        self.ok("lidar", "decompress", self.drive(self.path("back.mcap"), name="again.qnl"), "-o",
                self.path("again.mcap"))
        self.assertEqual(read_bytes(self.path("back.mcap")), read_bytes(self.path("again.mcap")))
        self.assertEqual(read_bytes(self.path("d.qnl")), read_bytes(self.path("again.qnl")))
        told = self.json(self.ok("lidar", "info", self.path("back.mcap"), "--json"))
        self.assertTrue(told["whole"])
        self.assertEqual([(t["name"], t["type"], t["messages"]) for t in told["topics"]], [("/points", CLOUD, 3)])
        piped = self.ok("lidar", "decompress", self.path("d.qnl"), "--format", "mcap", "-o", "-").stdout
        self.assertEqual(piped, read_bytes(self.path("back.mcap")))
        self.refused(1, "a bag is one file", "lidar", "decompress", self.path("d.qnl"), "--format", "mcap", "-o",
                     self.folder.name)

    @unittest.skipUnless(make_reader, "the package mcap-ros2-support is not here")
    def test_other_programs_read_the_bag(self):
        messages = [Message(points(40, i), STAMP + i * SECOND) for i in range(3)]
        self.ok("lidar", "decompress", self.drive(self.bag(messages)), "-o", self.path("back.mcap"))
        with open(self.path("back.mcap"), "rb") as file:
            reader = make_reader(file, validate_crcs=True, decoder_factories=[DecoderFactory()])
            self.assertEqual(reader.get_summary().statistics.message_count, 3)
            found = list(reader.iter_decoded_messages())
        self.assertEqual(len(found), 3)
        for made, (schema, channel, message, cloud) in zip(messages, found):
            self.assertEqual((schema.name, channel.topic), (CLOUD, "/points"))
            self.assertEqual(bytes(cloud.data), made.data)
            self.assertEqual(cloud.header.stamp.sec * SECOND + cloud.header.stamp.nanosec, made.stamp)
            self.assertEqual(cloud.header.frame_id, "velodyne")
            self.assertEqual([(f.name, f.offset, f.datatype) for f in cloud.fields], made.fields)
        self.assertEqual(found[1][2].log_time, STAMP + 8)

    def test_rows_and_byte_orders(self):
        made = points(40)
        for order in "<>":
            message = Message(made, height=4, order=order)
            message.row += 24
            rows = [message.data[i * 160:(i + 1) * 160] for i in range(4)]
            message.data = b"".join(row + b"\xee" * 24 for row in rows)
            self.ok("lidar", "decompress", self.drive(self.bag([message])), "-o", self.path("one.pcd"), "-f")
            self.assertEqual(pcd_points(read_bytes(self.path("one.pcd"))), made)
            self.assertIn(b"WIDTH 10\nHEIGHT 4\n", read_bytes(self.path("one.pcd")))

    def test_many_bags_are_read_one_after_another(self):
        messages = [Message(points(40, i), STAMP + i * SECOND) for i in range(12)]
        paths = [self.bag(messages[3 * i:3 * i + 3], "part%d.mcap" % i) for i in range(4)]
        self.ok("lidar", "compress", *paths, "-q", "-o", self.path("parts.qnl"), "--threads", "4")
        told = self.json(self.ok("lidar", "info", self.path("parts.qnl"), "--json"))
        self.assertEqual([f["time_ns"] for f in told["each"]], [m.stamp for m in messages])
        self.ok("lidar", "verify", self.path("parts.qnl"), "--original", self.bag(messages))
        self.ok("lidar", "verify", self.path("parts.qnl"), *(word for path in paths for word in ("--original", path)))

    def make_tables(self, base):
        base.execute("CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL, "
                     "serialization_format TEXT NOT NULL, offered_qos_profiles TEXT NOT NULL)")
        base.execute("CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER NOT NULL, "
                     "timestamp INTEGER NOT NULL, data BLOB NOT NULL)")
        base.execute("INSERT INTO topics VALUES(1, '/points', ?, 'cdr', '')", (CLOUD,))
        base.execute("INSERT INTO topics VALUES(2, '/tf', 'tf2_msgs/msg/TFMessage', 'cdr', '')")
        base.commit()

    @needs_sqlite
    def test_databases_and_folders(self):
        messages = [Message(points(40, i), STAMP + i * SECOND) for i in range(4)]
        folder = self.path("bag")
        os.mkdir(folder)
        for part in range(2):
            base = sqlite3.connect(os.path.join(folder, "bag_%d.db3" % part))
            base.execute("PRAGMA journal_mode=WAL" if part == 0 else "PRAGMA page_size=1024")
            self.make_tables(base)
            for i in (2 * part + 1, 2 * part):
                base.execute("INSERT INTO messages(topic_id, timestamp, data) VALUES(1, ?, ?)",
                             (STAMP + 7 + i, messages[i].bytes()))
            base.commit()
            base.close()
        with open(os.path.join(folder, "metadata.yaml"), "w", encoding="utf-8") as file:
            file.write("rosbag2_bagfile_information:\n  relative_file_paths:\n    - bag_0.db3\n    - bag_1.db3\n"
                       "  version: 8\n")
        self.drive(folder, name="base.qnl")
        self.drive(self.bag(messages), name="mcap.qnl")
        self.assertEqual(read_bytes(self.path("base.qnl")), read_bytes(self.path("mcap.qnl")))
        os.remove(os.path.join(folder, "bag_1.db3"))
        self.refused(2, "bag_1.db3", "lidar", "compress", folder, "-o", self.path("x.qnl"))

    @unittest.skipUnless(HAVE_LZ4 or HAVE_SQLITE, "quern was built without lz4 and SQLite")
    def test_files_of_other_programs(self):
        for name in ["lz4.mcap"] * HAVE_LZ4 + ["rosbag2"] * HAVE_SQLITE:
            self.drive(os.path.join(GOLDEN, name), "--max-error", "2cm", name="g.qnl")
            self.drive(os.path.join(GOLDEN, "zstd.mcap"), "--max-error", "2cm", name="zstd.qnl")
            self.assertEqual(read_bytes(self.path("g.qnl")), read_bytes(self.path("zstd.qnl")))
            self.ok("lidar", "verify", self.path("g.qnl"), "--original", os.path.join(GOLDEN, name))

    def test_topics(self):
        channels = [("/left", CLOUD), ("/right", CLOUD), ("/tf", "tf2_msgs/msg/TFMessage")]
        bag = self.write("two.mcap", mcap(channels, [(0, 1, Message(points(40)).bytes()),
                                                     (1, 2, Message(points(50)).bytes())]))
        words = ("lidar", "compress", bag, "-o", self.path("d.qnl"))
        self.refused(1, "choose one with --topic: /left (1 messages), /right (1 messages)", *words)
        self.refused(1, "has no such topic", *words, "--topic", "/tf")
        self.refused(1, "the name of the topic is empty", *words, "--topic", "")
        told = self.json(self.ok(*words, "--topic", "/right", "--json"))
        self.assertEqual((told["frames"], told["points"]), (1, 50))
        self.ok("lidar", "decompress", self.path("d.qnl"), "-o", self.path("back.mcap"))
        told = self.json(self.ok("lidar", "info", self.path("back.mcap"), "--json"))
        self.assertEqual(told["topics"][0]["name"], "/right")
        none = self.write("none.mcap", mcap(channels[2:], []))
        self.refused(2, "has no topic of sensor_msgs/msg/PointCloud2 messages; its topics: /tf", "lidar", "compress",
                     none, "-o", self.path("n.qnl"))
        self.refused(2, "the topic has no messages", "lidar", "compress", self.write("e.mcap", mcap(channels[:1], [])),
                     "-o", self.path("n.qnl"))

    def test_scans_of_other_files_become_a_bag(self):
        cloud = self.write("a.bin", struct.pack("<400f", *([1.0, 2.0, 3.0, 0.5] * 100)))
        self.drive(cloud, "--columns", "4")
        result = self.ok("lidar", "decompress", self.path("d.qnl"), "-o", self.path("a.mcap"), "--topic", "/mine")
        self.assertIn("1 frames have no time; their stamps are 0.1 s apart", result.stderr.decode())
        told = self.json(self.ok("lidar", "info", self.path("a.mcap"), "--json"))["topics"][0]
        self.assertEqual((told["name"], told["first_points"]), ("/mine", 100))
        compared = self.json(self.ok("lidar", "compare", self.path("a.mcap"), self.path("d.qnl"), "--json"))
        self.assertEqual(compared["max_error"], 0)

    def test_works_that_read_scans(self):
        bag = self.bag([Message(points(60, i)) for i in range(2)])
        told = self.ok("lidar", "bench", bag, "--max-error", "5cm", "--repeats", "1", "--json").stdout.decode()
        self.assertEqual(len(told.splitlines()), 2)
        self.assertIn("topic /points: message 1", told)
        self.refused(1, "has 2 scans; choose one with --frame", "lidar", "compare", bag, bag)
        self.refused(1, "there is no scan 2", "lidar", "compare", bag, bag, "--frame", "2")
        self.ok("lidar", "compare", bag, bag, "--frame", "1")
        text_ = self.ok("lidar", "info", bag).stdout.decode()
        self.assertIn("the first: 60 points, x:f32 y:f32 z:f32 ring:u16", text_)

    def test_modes_and_attributes(self):
        bag = self.bag([Message(points(200, i)) for i in range(2)])
        self.drive(bag, "--max-error", "15cm", "--no-attributes")
        self.ok("lidar", "decompress", self.path("d.qnl"), "-o", self.path("back.mcap"))
        told = self.json(self.ok("lidar", "info", self.path("back.mcap"), "--json"))["topics"][0]
        self.assertEqual([f["name"] for f in told["first_fields"]], ["x", "y", "z"])
        self.assertEqual(told["name"], "/points")
        self.ok("lidar", "verify", self.path("d.qnl"), "--original", bag)

    def test_odd_scans(self):
        nan = float("nan")
        other = Message(points(30), fields=[("x", 0, 7), ("y", 4, 7), ("z", 8, 7)])
        empty = Message([])
        bare = Message([], fields=[("x", 0, 7)])
        bare.fields, bare.step = [], 0
        odd = Message([(nan, 1, 2, 3), (1, float("inf"), 2, 3), (1, 2, 3, 4)])
        bag = self.bag([Message(points(40)), other, empty, bare, odd])
        self.ok("lidar", "decompress", self.drive(bag), "-o", self.path("back"))
        self.ok("lidar", "verify", self.path("d.qnl"), "--original", bag)
        self.assertEqual(pcd_points(read_bytes(self.path("back/000002.pcd"))), [])
        told = self.json(self.ok("lidar", "info", self.path("d.qnl"), "--json"))
        self.assertEqual([f["points"] for f in told["each"]], [40, 30, 0, 0, 3])
        self.assertEqual([len(f["columns"]) for f in told["each"]], [1, 0, 1, 0, 1])
        result = self.ok("lidar", "compress", bag, "-o", self.path("s.qnl"), "--max-error", "15cm")
        self.assertIn("topic /points: message 4: 2 points with NaN or infinity were dropped", result.stderr.decode())

    def test_a_crash_leaves_what_is_whole(self):
        bag = self.bag([Message(points(40, i)) for i in range(3)], chunks=False)
        whole = read_bytes(bag)
        cut = self.write("cut.mcap", whole[:whole.rindex(b"\x05" + struct.pack("<Q", 22 + 11)) - 100])
        result = self.ok("lidar", "compress", cut, "-o", self.path("d.qnl"))
        self.assertIn("cut.mcap: the file has no end, as after a crash", result.stderr.decode())
        self.assertEqual(self.json(self.ok("lidar", "info", self.path("d.qnl"), "--json"))["frames"], 2)
        self.assertFalse(self.json(self.ok("lidar", "info", cut, "--json"))["whole"])

    def test_messages_that_do_not_fit(self):
        def bad(part, **members):
            message = Message(points(40))
            for name, value in members.items():
                setattr(message, name, value)
            bag = self.bag([Message(points(40)), message])
            self.refused(2, "run.mcap: topic /points: message 1: " + part, "lidar", "compress", bag, "-q", "-o",
                         self.path("d.qnl"))
        bad("field 3 of the message does not fit into the 13 bytes of a point", step=13)
        bad("the message has 640 bytes of points, fewer than its 41 points need", width=41)
        bad("a row of the message has 5 bytes", height=2, width=20, row=5)
        bad("the points have no fields x, y and z", fields=[("x", 0, 7)])
        bad("x, y and z must all be 32-bit", fields=[("x", 0, 5), ("y", 4, 5), ("z", 8, 5)])
        bad("field 0 of the message has the unknown type 77", fields=[("x", 0, 77)])
        bad("the name of field 0 of the message is no plain text", fields=[("a\nb", 0, 7)])
        for data, part in ((b"\0\1", "shorter than its head"), (Message(points(9)).bytes()[:-20], "shorter than its"),
                           (b"\0\3\0\0" + bytes(60), "representation 3")):
            self.refused(2, part, "lidar", "compress", self.bag([data]), "-q", "-o", self.path("d.qnl"))
        self.assertEqual(self.files(), ["run.mcap"])

    def test_hostile_files(self):
        head = MAGIC + record(1, text("ros2") + text(""))
        tail = record(15, bytes(4)) + record(2, bytes(20)) + MAGIC
        schema = record(3, struct.pack("<H", 1) + text(CLOUD) + text("ros2msg") + bytes(4))
        channel = record(4, struct.pack("<HH", 0, 1) + text("/points") + text("cdr") + bytes(4))
        good = schema + channel + record(5, struct.pack("<HIQQ", 0, 0, 1, 1) + Message(points(3)).bytes())
        cases = [
            (chunk(good, size=1 << 62), "above the limit", 5),
            (chunk(good, "zstd", size=1 << 20, packed=b"\x28\xb5\x2f\xfd" + bytes(9)), "end early", 2),
            (chunk(good, "lz4", size=1 << 25, packed=b"\x04\x22\x4d\x18" + bytes(9)), "cannot unpack to its size", 2),
            (chunk(good, "xz"), "packed by something else", 2),
            (chunk(good, crc=1), "its checksum differs", 2),
            (chunk(good[:-3], size=len(good) - 3), "longer than the chunk", 2),
            (chunk(chunk(good)), "has a chunk in it", 2),
            (record(6, b"123"), "shorter than its fields", 2),
            (channel, "has a schema that is not there", 2),
            (schema + schema.replace(b"Cloud2", b"Cloud3"), "the number of another schema", 2),
            (good + channel.replace(b"/p", b"/q"), "the number of another channel", 2),
            (record(5, bytes(30)), "has a channel that is not there", 2),
            (schema + channel + record(5, b"\0\0"), "shorter than its fields", 2),
            (record(3, struct.pack("<HI", 1, 0xFFFFFFFF)), "shorter than its fields", 2),
        ]
        for body, part, code in cases:
            bag = self.write("h.mcap", head + body + tail)
            self.refused(code, part, "lidar", "compress", bag, "-q", "--memory", "256M", "-o", self.path("d.qnl"))
        for name, data in (("a.mcap", b""), ("a.db3", b"x" * 200)):
            self.refused(2, "neither an MCAP file nor", "lidar", "compress", self.write(name, data), "-o",
                         self.path("d.qnl"))

    @needs_sqlite
    def test_hostile_databases(self):
        self.refused(2, "no bag of rosbag2", "lidar", "compress",
                     self.write("a.db3", b"SQLite format 3\0" + bytes(300)), "-o", self.path("d.qnl"))
        base = sqlite3.connect(self.path("view.db3"))
        base.execute("CREATE TABLE topics(id, name, type, serialization_format)")
        base.execute("CREATE VIEW messages AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n FROM r) "
                     "SELECT n AS id, 1 AS topic_id, n AS timestamp, n AS data FROM r")
        base.commit()
        base.close()
        self.refused(2, "no bag of rosbag2", "lidar", "compress", self.path("view.db3"), "-o", self.path("d.qnl"))
        for name, topics, rows, part in (
                ("grown.db3", "topics(id, type, serialization_format, n TEXT, name TEXT GENERATED ALWAYS AS "
                 "(printf('%.*c', 50000000, 'a') || id) VIRTUAL)",
                 "topics(id, type, serialization_format) VALUES(1, 'x', 'cdr')", "no bag of rosbag2"),
                ("long.db3", "topics(id, name, type, serialization_format)",
                 "topics VALUES(1, printf('%.*c', 5000, 'a'), 'x', 'cdr')", "more than 1024 bytes"),
                ("many.db3", "topics(id, name, type, serialization_format)",
                 "topics WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5000) "
                 "SELECT n, 't' || n, 'x', 'cdr' FROM r", "more than 4096 topics")):
            base = sqlite3.connect(self.path(name))
            base.execute("CREATE TABLE " + topics)
            base.execute("CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id, timestamp, data)")
            base.execute("INSERT INTO " + rows)
            base.commit()
            base.close()
            self.refused(2, part, "lidar", "compress", self.path(name), "-o", self.path("d.qnl"))

    @needs_sqlite
    def test_a_log_of_writes_is_part_of_the_bag(self):
        base = sqlite3.connect(self.path("live.db3"))
        base.execute("PRAGMA journal_mode=WAL")
        base.execute("PRAGMA wal_autocheckpoint=0")
        self.make_tables(base)
        base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        for i in range(2):
            base.execute("INSERT INTO messages(topic_id, timestamp, data) VALUES(1, ?, ?)",
                         (STAMP + i, Message(points(40, i)).bytes()))
            base.commit()
        # As after a crash: both files, and nobody who has them open.
        os.mkdir(self.path("copy"))
        for name in ("live.db3", "live.db3-wal"):
            shutil.copy(self.path(name), self.path("copy"))
        base.close()
        bag = os.path.join(self.path("copy"), "live.db3")
        os.chmod(bag, 0o444)
        told = self.json(self.ok("lidar", "compress", bag, "-o", self.path("d.qnl"), "-f", "-q", "--json"))
        self.assertEqual(told["frames"], 2)
        # A link in place of a file keeps SQLite from what it needs to read the log, as a folder does that cannot be
        # written.
        for name in os.listdir(self.path("copy")):
            if name.endswith("-shm"):
                os.remove(os.path.join(self.path("copy"), name))
        os.symlink("nowhere", bag + "-shm")
        self.refused(2, "copy the bag with its -wal", "lidar", "compress", bag, "-o", self.path("d.qnl"), "-f")
        os.remove(bag + "-wal")
        self.refused(2, "the topic has no messages", "lidar", "compress", bag, "-o", self.path("d.qnl"), "-f", "-q")

    @needs_sqlite
    def test_a_bag_that_is_being_written(self):
        base = sqlite3.connect(self.path("busy.db3"))
        self.make_tables(base)
        base.commit()
        base.execute("BEGIN EXCLUSIVE")
        self.refused(2, "another program writes the bag", "lidar", "compress", self.path("busy.db3"), "-o",
                     self.path("d.qnl"))
        base.close()

    def test_metadata_that_leads_elsewhere(self):
        folder = self.path("bag")
        shutil.copytree(os.path.join(GOLDEN, "rosbag2"), folder)
        with open(os.path.join(folder, "metadata.yaml"), "w", encoding="utf-8") as file:
            file.write("relative_file_paths:\n  - ../bag_0.db3\n")
        self.refused(2, "names a file that is not in the bag's folder", "lidar", "compress", folder, "-o",
                     self.path("d.qnl"))


if __name__ == "__main__":
    harness.main()
