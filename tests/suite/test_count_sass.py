#!/usr/bin/env python3
# Tests of scripts/count_sass.py that need no CUDA compiler: the parser, loops, paths and complaints.
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import count_sass  # noqa: E402

# A loop over L_1 to the last branch: two ways to its middle, an inner loop of one store, and a way out.
LISTING = """\t.section\t.text._Z1aPf,"ax",@progbits
.text._Z1aPf:
        /*0000*/                   S2R R0, SR_LANEID ;
.L_1:
        /*0010*/                   LDS R1, [R0] ;
        /*0020*/               @P0 BRA `(.L_2) ;
        /*0030*/                   IADD3 R1, R1, 0x1, RZ ;
        /*0040*/                   FMUL R1, R1, R2 ;
        /*0050*/                   BRA `(.L_3) ;
.L_2:
        /*0060*/                   LDS.128 R4, [R0] ;
        /*0070*/                   IADD3 R1, R1, R4, RZ ;
        /*0080*/                   IADD3 R1, R1, R5, RZ ;
        /*0090*/                   IADD3 R1, R1, R6, RZ ;
.L_3:
        /*00a0*/                   STG.E desc[UR4][R8.64], R1 ;
        /*00b0*/               @P1 BRA `(.L_3) ;
        /*00c0*/              @!P2 EXIT ;
        /*00d0*/                   BRA `(.L_1) ;
.L_4:
        /*00e0*/                   BRA `(.L_4);
\t.section\t.nv.info,"",@"SHT_CUDA_INFO"
        /*00f0*/                   NOP ;
"""


def opcodes(path):
    return [x.opcode for x in path]


class Paths(unittest.TestCase):
    def setUp(self):
        self.graph = count_sass.Graph(*count_sass.parse_functions(LISTING)["_Z1aPf"])

    def test_listing_instructions_of_the_kernel_alone(self):
        instructions, labels = count_sass.parse_functions(LISTING)["_Z1aPf"]
        self.assertEqual(len(instructions), 15)
        self.assertEqual(labels[".L_3"], 10)
        self.assertEqual(instructions[2].predicate, "@P0")

    def test_main_loop_the_one_with_most_instructions(self):
        head, body = self.graph.main_loop()
        self.assertEqual(head, 1)
        self.assertNotIn(0, body)

    def test_loop_shortest_way_without_wishes(self):
        path = count_sass.shortest_path(self.graph, {}, False)
        self.assertEqual(opcodes(path), ["LDS", "BRA", "IADD3", "FMUL", "BRA", "STG.E", "BRA", "EXIT", "BRA"])

    def test_loop_longer_way_where_an_opcode_is_asked_for(self):
        path = count_sass.shortest_path(self.graph, {r"LDS\.128": 1}, False)
        self.assertEqual(opcodes(path)[2:6], ["LDS.128", "IADD3", "IADD3", "IADD3"])

    def test_inner_loop_counted_as_often_as_asked_for(self):
        path = count_sass.shortest_path(self.graph, {"STG.E": 3}, False)
        self.assertEqual(opcodes(path).count("STG.E"), 3)

    def test_wishes_in_order_one_after_the_other(self):
        path = count_sass.shortest_path(self.graph, [{r"LDS\.128": 1, "IADD3": 3}, {"STG.E": 2}], False)
        self.assertEqual(opcodes(path).count("STG.E"), 2)
        self.assertIn("LDS.128", opcodes(path))

    def test_wishes_in_the_wrong_order_no_way(self):
        self.assertIsNone(count_sass.shortest_path(self.graph, [{"STG.E": 1}, {"FMUL": 1}], False))

    def test_whole_kernel_from_entry_to_exit(self):
        path = count_sass.shortest_path(self.graph, {}, True)
        self.assertEqual((path[0].opcode, path[-1].opcode), ("S2R", "EXIT"))

    def test_no_way_issues_what_is_not_there(self):
        self.assertIsNone(count_sass.shortest_path(self.graph, {"DADD": 1}, False))

    def test_counts_by_pipe_an_element(self):
        total, pipes = count_sass.count_path(count_sass.shortest_path(self.graph, {}, False), 2)
        self.assertEqual(total, 4.5)
        self.assertEqual(pipes, {"alu": 0.5, "control": 2.5, "fma": 0.5, "memory": 1.0})

    def test_pipes_by_opcode(self):
        named = {opcode: count_sass.pipe_of(opcode) for opcode in ("IADD3.X", "IMAD.WIDE.U32", "I2F.S8", "UIADD3", "S2UR")}
        self.assertEqual(list(named.values()), ["alu", "fma", "xu", "uniform", "uniform"])


class Complaints(unittest.TestCase):
    BUDGET = {"kernel": "f", "instructions": 4.5, "pipes": {"alu": 2}}

    def test_within_none(self):
        self.assertEqual(count_sass.check_path(self.BUDGET, 4.5, {"alu": 2.0}), [])

    def test_above_one_each(self):
        self.assertEqual(len(count_sass.check_path(self.BUDGET, 4.6, {"alu": 2.1})), 2)


if __name__ == "__main__":
    unittest.main()
