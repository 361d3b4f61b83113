# Every C and C++ block of the public headers, README and docs compiles and links; whole programs also run.
import os
import subprocess
import sys
import tempfile
import unittest

import blocks

ROOT, LIBRARIES = "", []

C_MAIN = "int main(void) {\n%s\nreturn 0;\n}\n"

# What stands around a block, by file and by its place among that file's blocks: None where it is a whole program.
# A block that is not listed fails the test: it needs its surroundings, or to be whole.
AROUND = {
    ("libcompress/include/quern/quern.h", 0): None,
    ("libcompress/include/quern/quern.hpp", 0):
        "#include <quern/quern.hpp>\n"
        "int main() { std::vector<float> values(64 * 128 * 128), back(values.size());\n%s\nreturn 0; }\n",
    ("checkpoint/include/quern/checkpoint.h", 0):
        "#include <stdio.h>\n#include <quern/checkpoint.h>\n"
        "int main(void) {\n"
        "quern_checkpoint_store_desc desc = QUERN_CHECKPOINT_STORE_DESC_INIT; desc.mode = QUERN_CHECKPOINT_WRITE;\n"
        "quern_checkpoint_save_desc save = QUERN_CHECKPOINT_SAVE_DESC_INIT; save.step = 500;\n"
        "float values[6] = {0}; quern_checkpoint_tensor tensor = QUERN_CHECKPOINT_TENSOR_INIT;\n"
        "tensor.name = \"w\"; tensor.dtype = QUERN_F32; tensor.rank = 1; tensor.extents[0] = 6; tensor.data = values;\n"
        "%s\nquern_checkpoint_store_close(store); return 0;\n}\n",
    ("checkpoint/include/quern/checkpoint_engine.h", 0):
        "#include <math.h>\n#include <quern/checkpoint_engine.h>\n"
        "int main(void) {\n"
        "quern_checkpoint_save_desc desc = QUERN_CHECKPOINT_SAVE_DESC_INIT; desc.step = 500;\n"
        "float values[6] = {0}; quern_checkpoint_tensor tensor = QUERN_CHECKPOINT_TENSOR_INIT;\n"
        "tensor.name = \"w\"; tensor.dtype = QUERN_F32; tensor.rank = 1; tensor.extents[0] = 6; tensor.data = values;\n"
        "%s\nreturn 0;\n}\n",
    ("README.md", 0):
        "#include <stdio.h>\n#include <quern/quern.h>\n"
        "static float values[64 * 128 * 128]; static unsigned char bytes[sizeof values + sizeof values / 1000 + 4096];\n"
        "int main(void) {\n"
        "const uint64_t shape[] = {64, 128, 128}; uint64_t room, size;\n"
        "quern_context* context; quern_params* params; quern_array field;\n"
        "quern_params_create(&params);\n%s\nquern_params_destroy(params); quern_context_destroy(context);\n"
        "return room > sizeof bytes; }\n",
    ("README.md", 1):
        "#include <quern/quern.hpp>\n"
        "int main() { std::vector<float> values(64 * 128 * 128), back(values.size());\n%s\nreturn 0; }\n",
    ("README.md", 2):
        "#include <quern/quern.h>\n"
        "void example(quern_context* context, quern_params* params, quern_array field, void* workspace, void* stream,\n"
        "             uint64_t room, uint64_t* size, void* cuda_stream);\n"
        "void example(quern_context* context, quern_params* params, quern_array field, void* workspace, void* stream,\n"
        "             uint64_t room, uint64_t* size, void* cuda_stream) {\n"
        "quern_plan* plan; uint64_t needed;\n%s\n}\nint main(void) { return 0; }\n",
    ("docs/gpu.md", 0):
        "#include <stdio.h>\n#include <quern/quern.h>\n"
        "void example(const quern_params* params, const quern_array array, void* stream, uint64_t capacity);\n"
        "void example(const quern_params* params, const quern_array array, void* stream, uint64_t capacity) {\n"
        "uint64_t size; quern_report report = QUERN_REPORT_INIT;\n%s\n}\nint main(void) { return 0; }\n",
    ("docs/gpu.md", 1):
        "#include <stdio.h>\n#include <quern/quern.h>\n"
        "void example(quern_context* context, quern_params* params, void* device_values, void* workspace, void* stream,\n"
        "             uint64_t* size, uint64_t host_size, void* cuda_stream);\n"
        "void example(quern_context* context, quern_params* params, void* device_values, void* workspace, void* stream,\n"
        "             uint64_t* size, uint64_t host_size, void* cuda_stream) {\n%s\n}\nint main(void) { return 0; }\n",
    ("docs/gpu.md", 2):
        "#include <quern/quern.h>\n"
        "void example(quern_context* context, quern_plan* plan, void* const* arrays, uint32_t count, void* workspace,\n"
        "             void* const* streams, const uint64_t* capacities, uint64_t* sizes, quern_status* statuses,\n"
        "             void* cuda_stream);\n"
        "void example(quern_context* context, quern_plan* plan, void* const* arrays, uint32_t count, void* workspace,\n"
        "             void* const* streams, const uint64_t* capacities, uint64_t* sizes, quern_status* statuses,\n"
        "             void* cuda_stream) { uint64_t needed;\n%s\n}\nint main(void) { return 0; }\n",
    ("docs/estimate.md", 0):
        "#include <stdio.h>\n#include <quern/quern.h>\n"
        "static float values[64 * 128 * 128];\n"
        "int main(void) {\n"
        "const uint64_t shape[] = {64, 128, 128}; quern_context* context; quern_array field;\n"
        "quern_context_create(NULL, &context); quern_array_init(&field, QUERN_F32, 3, shape, values);\n"
        "%s\nquern_context_destroy(context); return count == 0; }\n",
    ("docs/estimate.md", 1):
        "#include <quern/quern.h>\n"
        "static float values[64 * 128 * 128];\n"
        "int main(void) {\n"
        "const uint64_t shape[] = {64, 128, 128}; quern_context* context; quern_params* params; quern_array field;\n"
        "quern_context_create(NULL, &context); quern_params_create(&params);\n"
        "quern_array_init(&field, QUERN_F32, 3, shape, values);\n"
        "%s\nquern_params_destroy(params); quern_context_destroy(context); return 0; }\n",
    ("docs/learned.md", 0):
        "#include <quern/quern.h>\n"
        "void example(const void* model_file, uint64_t model_bytes);\n"
        "void example(const void* model_file, uint64_t model_bytes) {\n"
        "quern_context* context; quern_params* params; char id[QUERN_MODEL_ID_SIZE];\n"
        "quern_context_create(NULL, &context); quern_params_create(&params);\n"
        "%s\nquern_params_destroy(params); quern_context_destroy(context); }\nint main(void) { return 0; }\n",
    ("docs/hdf5.md", 0):
        "#include <netcdf.h>\n#include <netcdf_filter.h>\n#include <quern/hdf5.h>\n"
        "void example(hid_t dcpl, int file, int variable);\n"
        "void example(hid_t dcpl, int file, int variable) {\n%s\n}\n",
}
# Blocks that only compile: they need a device, or a library that is not linked here.
NOT_RUN = {("README.md", 2), ("docs/gpu.md", 0), ("docs/gpu.md", 1), ("docs/gpu.md", 2), ("docs/hdf5.md", 0)}
NOT_LINKED = {("docs/hdf5.md", 0): "needs the filter's library and netCDF's"}

HEADERS = ("libcompress/include/quern/quern.h", "libcompress/include/quern/quern.hpp",
           "bindings/hdf5/include/quern/hdf5.h", "checkpoint/include/quern/checkpoint.h",
           "checkpoint/include/quern/checkpoint_engine.h")


def documents():
    names = ["README.md"]
    names += sorted("docs/" + name for name in os.listdir(os.path.join(ROOT, "docs")) if name.endswith(".md"))
    return names


def all_blocks():
    """((file, place), block) of every C and C++ block."""
    for name in HEADERS + tuple(documents()):
        with open(os.path.join(ROOT, name), encoding="utf-8") as file:
            text = file.read()
        found = blocks.commented(name, text) if name in HEADERS else blocks.fenced(name, text)
        code = [block for block in found if block.language in ("c", "cpp", "c++")]
        for place, block in enumerate(code):
            yield (name, place), block


def have_header(name):
    flags = hdf5_flags()
    return subprocess.run([os.environ.get("CC", "cc"), *flags, "-E", "-x", "c", "-", "-o", os.devnull],
                          input=f"#include <{name}>\n", text=True, stderr=subprocess.DEVNULL).returncode == 0


def hdf5_flags():
    return [f"-I{folder}" for folder in ("/usr/include/hdf5/serial",) if os.path.isdir(folder)]


class Code(unittest.TestCase):
    def compile(self, key, block, folder):
        around = AROUND[key]
        # The line of the document in the compiler's messages.
        text = f'#line {block.line} "{block.path}"\n{block.text}'
        source = text if around is None else around % text
        is_c = block.language == "c"
        path = os.path.join(folder, "block.c" if is_c else "block.cpp")
        with open(path, "w", encoding="utf-8") as file:
            file.write(source)
        compiler = os.environ.get("CC", "cc") if is_c else os.environ.get("CXX", "c++")
        program = os.path.join(folder, "block")
        words = [compiler, "-std=c99" if is_c else "-std=c++17", "-Wall", "-Wextra", "-pedantic", "-Werror",
                 "-Wno-unused-parameter", "-Wno-unused-variable", "-Wno-unused-but-set-variable", path, "-o", program]
        words += [f"-I{os.path.join(ROOT, part)}" for part in
                  ("libcompress/include", "checkpoint/include", "bindings/hdf5/include")]
        words += hdf5_flags()
        if key in NOT_LINKED:
            words.append("-c")
        else:
            words += LIBRARIES + [f"-Wl,-rpath,{os.path.dirname(library)}" for library in LIBRARIES]
        done = subprocess.run(words, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, f"{block.path}:{block.line}\n{done.stderr}")
        return program

    def test_every_block_compiles_links_and_runs(self):
        seen = set()
        for key, block in all_blocks():
            with self.subTest(file=block.path, line=block.line):
                self.assertIn(key, AROUND, "a block that this test does not know: say what stands around it")
                seen.add(key)
                if key[0] == "docs/hdf5.md" and not (have_header("hdf5.h") and have_header("netcdf_filter.h")):
                    print("not compiled:", block.path, block.line, "no headers of HDF5 or netCDF here")
                    continue
                if key[0].startswith("checkpoint/") and not any("checkpoint" in library for library in LIBRARIES):
                    print("not compiled:", block.path, block.line, "this build has no libquern-checkpoint")
                    continue
                with tempfile.TemporaryDirectory() as folder:
                    program = self.compile(key, block, folder)
                    if key in NOT_RUN:
                        continue
                    done = subprocess.run([program], cwd=folder, capture_output=True, text=True, timeout=60)
                    self.assertEqual((done.returncode, done.stderr), (0, ""), (block.path, block.line, done.stdout))
        self.assertEqual(seen, set(AROUND), "blocks that are gone")

    def test_a_wrong_block_is_noticed(self):
        block = blocks.Block("x", 1, "c", "#include <quern/quern.h>\nint main(void) { return quern_compress(0); }\n")
        AROUND[("x", 0)] = None
        try:
            with tempfile.TemporaryDirectory() as folder, self.assertRaises(AssertionError):
                self.compile(("x", 0), block, folder)
        finally:
            del AROUND[("x", 0)]


if __name__ == "__main__":
    ROOT = os.path.abspath(sys.argv[1])
    LIBRARIES = [os.path.abspath(path) for path in sys.argv[2:]]
    unittest.main(argv=sys.argv[:1])
