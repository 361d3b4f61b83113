#!/usr/bin/env python3
# Tests of scripts/check_kernel_budgets.py that need no CUDA compiler: the parsers and every kind of complaint.
import pathlib
import struct
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import check_kernel_budgets as budgets  # noqa: E402

PTXAS = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z1aPf' for 'sm_90'
ptxas info    : Function properties for _Z1aPf
    16 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 4096 bytes smem
ptxas info    : Compiling entry function '_Z1bPf' for 'sm_90'
ptxas info    : Function properties for _Z1bPf
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers
"""
FIGURES = {"registers": 40, "shared_bytes": 4096, "stack_bytes": 0, "spill_bytes": 0, "code_bytes": 1024}
BUDGET = {"registers": 40, "shared_bytes": 4096, "code_bytes": 1024}


def elf_with_section(name, size):
    """A 64-bit image with a null section, one of the given name and size, and the table of names."""
    names = b"\0" + name + b"\0.names\0"
    header = bytearray(64)
    header[:6] = b"\x7fELF\x02\x01"
    struct.pack_into("<Q", header, 0x28, 64 + len(names))
    struct.pack_into("<HHH", header, 0x3A, 64, 3, 2)

    def section(name_at, offset, length):
        return struct.pack("<IIQQQQIIQQ", name_at, 1, 0, 0, offset, length, 0, 0, 0, 0)

    return bytes(header) + names + section(0, 0, 0) + section(1, 64, size) + section(2 + len(name), 64, len(names))


class Parsers(unittest.TestCase):
    def test_ptxas_two_kernels_all_figures(self):
        self.assertEqual(budgets.parse_ptxas(PTXAS), {"90": {
            "_Z1aPf": {"registers": 40, "shared_bytes": 4096, "stack_bytes": 16, "spill_bytes": 12},
            "_Z1bPf": {"registers": 8, "shared_bytes": 0, "stack_bytes": 0, "spill_bytes": 0}}})

    def test_ptxas_two_architectures_apart(self):
        images = budgets.parse_ptxas(PTXAS + PTXAS.replace("sm_90", "sm_120").replace("40 registers", "48 registers"))
        self.assertEqual({arch: kernels["_Z1aPf"]["registers"] for arch, kernels in images.items()}, {"90": 40, "120": 48})

    def test_elf_code_section_size_by_name(self):
        self.assertEqual(budgets.code_sizes(elf_with_section(b".text._Z1aPf", 640)), {"_Z1aPf": 640})

    def test_elf_other_bytes_refused(self):
        with self.assertRaises(ValueError):
            budgets.code_sizes(b"\x7fELF\x01\x01" + bytes(64))

    def test_kept_images_read_where_every_architecture_is(self):
        with tempfile.TemporaryDirectory() as build:
            for name, archs in (("whole", ("80", "90")), ("half", ("90",))):
                kept = pathlib.Path(build) / "kernels" / f"{name}.cu.o.kept"
                kept.mkdir(parents=True)
                (kept / "source").write_text(f"/tree/{name}.cu\n")
                (kept / "assembler.log").write_text("".join(PTXAS.replace("sm_90", f"sm_{arch}") for arch in archs))
                for arch in archs:
                    (kept / f"{name}.compute_{arch}.sm_{arch}.cubin").write_bytes(elf_with_section(b".text._Z1aPf", 640))
            found = budgets.read_kept(build, ["80", "90"])
        self.assertEqual([str(source) for source in found], ["/tree/whole.cu"])
        self.assertEqual(found[pathlib.Path("/tree/whole.cu")]["80"]["a"], {
            "registers": 40, "shared_bytes": 4096, "stack_bytes": 16, "spill_bytes": 12, "code_bytes": 640})

    def test_signature_stripped_to_name(self):
        cases = {
            "void quern::scale<float, 32>(float*, unsigned long)": "quern::scale<float, 32>",
            "void quern::(anonymous namespace)::scale<float, 32>(float*)": "quern::(anonymous namespace)::scale<float, 32>",
            "quern::plain(int)": "quern::plain",
            "void f<(quern::DType)3>(void (*)(int))": "f<(quern::DType)3>",
        }
        for demangled, name in cases.items():
            self.assertEqual(budgets.strip_signature(demangled), name)


class Complaints(unittest.TestCase):
    def complaints(self, budget, figures=None, kernel="k<float>"):
        return budgets.check_budgets(budget, {"90": {kernel: figures or FIGURES}})

    def test_within_budget_nothing(self):
        self.assertEqual(self.complaints({"k<*>": BUDGET}), [])

    def test_each_figure_above_is_named(self):
        for key in budgets.REQUIRED + ("spill_bytes", "stack_bytes"):
            found = self.complaints({"k<float>": BUDGET}, {**FIGURES, key: FIGURES[key] + 1})
            self.assertEqual(len(found), 1)
            self.assertIn(key, found[0])

    def test_kernel_without_budget(self):
        self.assertIn("has no budget", self.complaints({})[0])

    def test_two_budgets_for_one_kernel(self):
        self.assertIn("several budgets", self.complaints({"k<*>": BUDGET, "k<float>": BUDGET})[0])

    def test_budget_without_kernel(self):
        self.assertIn("names no kernel", self.complaints({"k<*>": BUDGET, "gone": BUDGET})[0])

    def test_budget_misses_required_number(self):
        self.assertTrue(any("does not name registers" in c
                            for c in self.complaints({"k<*>": {"shared_bytes": 4096, "code_bytes": 1024}})))

    def test_budget_with_unknown_number(self):
        self.assertIn("no budget can allow", self.complaints({"k<*>": {**BUDGET, "regs": 1}})[0])

    def test_spills_cannot_be_allowed(self):
        found = self.complaints({"k<*>": {**BUDGET, "spill_bytes": 8}}, {**FIGURES, "spill_bytes": 8})
        self.assertTrue(any("no budget can allow" in c for c in found))
        self.assertTrue(any("must be 0" in c for c in found))

    def test_stack_needs_a_reason(self):
        figures = {**FIGURES, "stack_bytes": 8}
        self.assertIn("does not say why", self.complaints({"k<*>": {**BUDGET, "stack_bytes": 8}}, figures)[0])
        allowed = {**BUDGET, "stack_bytes": 8, "why": "one thread of one CTA"}
        self.assertEqual(self.complaints({"k<*>": allowed}, figures), [])
        self.assertIn("above its budget 8", self.complaints({"k<*>": allowed}, {**FIGURES, "stack_bytes": 16})[0])

    def test_number_by_architecture(self):
        by_arch = {**BUDGET, "registers": {"90": 39, "default": 64}}
        self.assertIn("above its budget 39", self.complaints({"k<*>": by_arch})[0])
        self.assertEqual(budgets.check_budgets({"k<*>": by_arch}, {"80": {"k<float>": FIGURES}}), [])

    def test_proposal_is_met_by_what_it_was_made_from(self):
        measured = {"80": {"k<float>": FIGURES}, "90": {"k<float>": {**FIGURES, "registers": 50}}}
        self.assertEqual(budgets.check_budgets(budgets.propose(measured)["kernels"], measured), [])


if __name__ == "__main__":
    unittest.main()
