#!/usr/bin/env python3
# Compiles every CUDA kernel for every supported architecture and holds what the assembler reports (registers, spills,
# stack, shared memory, code size) against the budgets in kernels/budgets.json. Needs nvcc and no device.
"""usage: check_kernel_budgets.py [--arch 80,90,100,120] [--jobs N] [--built FOLDER] [--report FILE.json] [--propose] [SOURCE.cu ...]

--built FOLDER: a build whose CUDA compiler ran under keep_kernel_images.sh; what it kept is read, and only sources of which
it kept nothing are compiled here.

Fails when a kernel spills registers or has a stack that nothing excuses, when it breaks its budget, when it has no budget or more than one,
and when a budget names no kernel.
Exits 77 (skipped) when there is no nvcc.

budgets.json: {"kernels": {"PATTERN": {"registers": 64, "shared_bytes": 0, "code_bytes": 9000, ...}}}
PATTERN is a shell pattern over the kernel's demangled name without its parameters. Every budget names registers,
shared_bytes and code_bytes. There is no allowance for spills, and one for a stack only with a reason: stack_bytes and
"why". A number may be replaced by an object with one number per architecture and "default".
"""
import argparse
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FLAGS = ["-std=c++20", "-O3", "--expt-relaxed-constexpr", "-fmad=false", "-Werror=all-warnings",
         "-Xcompiler=-ffp-contract=off", f"-I{ROOT}", f"-I{ROOT / 'libcompress' / 'include'}"]
FOLDERS = ("kernels", "libcompress", "codecs")
REQUIRED = ("registers", "shared_bytes", "code_bytes")
# Architecture -> the one whose intermediate code it is assembled from, where that is not its own (cmake/cuda.cmake).
ASSEMBLED_FROM = {"120": "100"}
SKIPPED = 77


def find_nvcc():
    """nvcc on PATH, under CUDA_HOME, or where the toolkit installs itself; None when there is none."""
    candidates = [shutil.which("nvcc")]
    if os.environ.get("CUDA_HOME"):
        candidates.append(os.path.join(os.environ["CUDA_HOME"], "bin", "nvcc"))
    candidates.append("/usr/local/cuda/bin/nvcc")
    return next((c for c in candidates if c and os.access(c, os.X_OK)), None)


def parse_ptxas(text):
    """Architecture -> mangled kernel name -> registers, shared, stack and spill bytes, from the assembler's verbose output."""
    images, kernels, entry, current = {}, {}, None, None
    for line in text.splitlines():
        if m := re.search(r"Compiling entry function '([^']+)' for 'sm_(\d+)'", line):
            entry, kernels = m[1], images.setdefault(m[2], {})
            kernels[entry] = {"registers": 0, "shared_bytes": 0, "stack_bytes": 0, "spill_bytes": 0}
        elif m := re.search(r"Function properties for '?([^\s']+)", line):
            current = m[1]
        elif m := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            # Device functions that were not inlined count against the kernel they are reported with.
            target = kernels.get(current) or kernels.get(entry)
            if target is not None:
                target["stack_bytes"] = max(target["stack_bytes"], int(m[1]))
                target["spill_bytes"] += int(m[2]) + int(m[3])
        elif entry and (m := re.search(r"Used (\d+) registers", line)):
            kernels[entry]["registers"] = int(m[1])
            if s := re.search(r"(\d+)(?:\+\d+)? bytes smem", line):
                kernels[entry]["shared_bytes"] = int(s[1])
    return images


def code_sizes(cubin):
    """Mangled kernel name -> bytes of its code section in a 64-bit little-endian ELF image."""
    if cubin[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a 64-bit little-endian ELF image")
    table, = struct.unpack_from("<Q", cubin, 0x28)
    entry_size, count, names_index = struct.unpack_from("<HHH", cubin, 0x3A)
    sections = [struct.unpack_from("<IIQQQQ", cubin, table + i * entry_size) for i in range(count)]
    names_at = sections[names_index][4]
    sizes = {}
    for name_offset, _, _, _, _, size in sections:
        start = names_at + name_offset
        name = cubin[start:cubin.index(b"\0", start)].decode()
        if name.startswith(".text."):
            sizes[name[len(".text."):]] = size
    return sizes


def short_names(mangled):
    """Demangled names without return type and parameters: `quern::f<float, 2>`."""
    if not mangled:
        return {}
    out = subprocess.run(["c++filt"], input="\n".join(mangled), capture_output=True, text=True, check=True).stdout
    return dict(zip(mangled, (strip_signature(line) for line in out.splitlines())))


def strip_signature(demangled):
    """Drops the parameter list (the last parenthesis group outside template brackets) and a leading return type."""
    depth, end = 0, len(demangled)
    for i, c in enumerate(demangled):
        depth += (c == "<") - (c == ">")
        if c == "(" and depth == 0 and not demangled.startswith("(anonymous namespace)", i):
            end = i
            break
    name = demangled[:end].strip()
    depth, start = 0, 0
    for i, c in enumerate(name):
        depth += (c in "<(") - (c in ">)")
        if c == " " and depth == 0:
            start = i + 1
    return name[start:]


def measure(nvcc, source, arch, folder):
    """Compiles one file for one architecture; returns (kernels, error text)."""
    image = pathlib.Path(folder) / f"{source.stem}.{abs(hash(str(source)))}.sm_{arch}.cubin"
    run = subprocess.run([nvcc, *FLAGS, f"-gencode=arch=compute_{ASSEMBLED_FROM.get(arch, arch)},code=sm_{arch}", "-cubin", "-Xptxas", "-v", "-o", str(image), str(source)],
                         capture_output=True, text=True)
    log = run.stdout + run.stderr
    if run.returncode != 0:
        return {}, log
    return with_code_sizes(parse_ptxas(log).get(arch, {}), image), ""


def with_code_sizes(kernels, image):
    """Short kernel name -> figures, those of the assembler and the size of the code in the image."""
    sizes = code_sizes(image.read_bytes())
    for name, figures in kernels.items():
        figures["code_bytes"] = sizes.get(name, 0)
    names = short_names(list(kernels))
    return {names[name]: figures for name, figures in kernels.items()}


def read_kept(folder, archs):
    """Source -> architecture -> short kernel name -> figures, of the sources that a build kept for all of `archs`."""
    kept = {}
    for named in pathlib.Path(folder).rglob("*.kept/source"):
        images = {m[1]: image for image in named.parent.glob("*.cubin") if (m := re.search(r"\.sm_(\d+)\.cubin$", image.name))}
        if not all(arch in images for arch in archs):
            continue
        said = parse_ptxas((named.parent / "assembler.log").read_text())
        kept[pathlib.Path(named.read_text().strip())] = {
            arch: with_code_sizes(said.get(arch, {}), images[arch]) for arch in archs}
    return kept


def limit_of(budget, key, arch):
    """The number that holds on `arch`; 0 where the budget names none."""
    value = budget.get(key, 0)
    if isinstance(value, dict):
        value = value.get(arch, value.get("default"))
    return value


def check_budgets(budgets, measured):
    """`measured`: arch -> kernel -> figures. Returns the list of complaints, empty when all is well."""
    complaints, used = [], set()
    for pattern, budget in budgets.items():
        for key in REQUIRED:
            if key not in budget:
                complaints.append(f"budget '{pattern}' does not name {key}")
        for key in budget:
            if key not in (*REQUIRED, "stack_bytes", "why"):
                complaints.append(f"budget '{pattern}' names '{key}', which no budget can allow")
        if "stack_bytes" in budget and not budget.get("why"):
            complaints.append(f"budget '{pattern}' allows a stack and does not say why")
    for arch, kernels in sorted(measured.items(), key=lambda item: int(item[0])):
        for kernel, figures in sorted(kernels.items()):
            if figures["spill_bytes"]:
                complaints.append(f"sm_{arch} {kernel}: spill_bytes is {figures['spill_bytes']} and must be 0")
            matching = [p for p in budgets if fnmatch.fnmatchcase(kernel, p.replace("[", "[[]"))]
            used.update(matching)
            if len(matching) != 1:
                what = "has no budget" if not matching else f"has several budgets: {', '.join(matching)}"
                complaints.append(f"sm_{arch} {kernel}: {what}")
                continue
            for key in (*REQUIRED, "stack_bytes"):
                limit = limit_of(budgets[matching[0]], key, arch)
                if limit is None:
                    complaints.append(f"sm_{arch} {kernel}: budget has no {key} for this architecture and no default")
                elif figures[key] > limit:
                    complaints.append(f"sm_{arch} {kernel}: {key} {figures[key]} is above its budget {limit}")
    for pattern in budgets:
        if pattern not in used:
            complaints.append(f"budget '{pattern}' names no kernel")
    return complaints


def propose(measured):
    """Budgets that what was measured just meets, code size rounded up by a tenth."""
    kernels = {}
    for figures_of in measured.values():
        for kernel, figures in figures_of.items():
            entry = kernels.setdefault(kernel, dict.fromkeys(REQUIRED, 0))
            for key in REQUIRED:
                entry[key] = max(entry[key], figures[key])
    for entry in kernels.values():
        entry["code_bytes"] = -(-entry["code_bytes"] * 11 // 10 // 128) * 128
    return {"kernels": dict(sorted(kernels.items()))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="*", type=pathlib.Path)
    parser.add_argument("--arch", default="80,90,100,120")
    parser.add_argument("--budgets", type=pathlib.Path, default=ROOT / "kernels" / "budgets.json")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--built", type=pathlib.Path, help="a build that kept its kernel images")
    parser.add_argument("--report", type=pathlib.Path, help="write what was measured as JSON")
    parser.add_argument("--propose", action="store_true", help="print budgets that the present kernels meet, and stop")
    args = parser.parse_args()

    nvcc = find_nvcc()
    if nvcc is None:
        print("SKIP: no nvcc on this machine, the CUDA kernels were not compiled")
        return SKIPPED
    sources = args.sources or sorted(s for folder in FOLDERS for s in (ROOT / folder).rglob("*.cu"))
    if not sources and not args.budgets.exists():
        print("SKIP: this tree has no CUDA kernels (no .cu file and no budgets)")
        return SKIPPED
    archs = args.arch.split(",")
    measured, broken = {arch: {} for arch in archs}, []

    def take(arch, kernels):
        for kernel, figures in kernels.items():
            have = measured[arch].setdefault(kernel, figures)
            measured[arch][kernel] = {key: max(have[key], figures[key]) for key in figures}

    kept = read_kept(args.built, archs) if args.built else {}
    for source in sources:
        for arch, kernels in kept.get(source.resolve(), {}).items():
            take(arch, kernels)
    compiled = [s for s in sources if s.resolve() not in kept]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        jobs = {pool.submit(measure, nvcc, s.resolve(), a, folder): (s, a) for s in compiled for a in archs}
        for job in concurrent.futures.as_completed(jobs):
            source, arch = jobs[job]
            kernels, error = job.result()
            if error:
                broken.append(f"{source} does not compile for sm_{arch}:\n{error}")
            take(arch, kernels)
    if args.propose and not broken:
        print(json.dumps(propose(measured), indent=2))
        return 0
    for arch in archs:
        for kernel, f in sorted(measured[arch].items()):
            print(f"sm_{arch:4s} {f['registers']:4d} regs {f['shared_bytes']:7d} B shared {f['stack_bytes']:5d} B stack "
                  f"{f['spill_bytes']:5d} B spilled {f['code_bytes']:7d} B code  {kernel}")
    if args.report:
        args.report.write_text(json.dumps(measured, indent=1) + "\n")
    budgets = json.loads(args.budgets.read_text())["kernels"] if args.budgets.exists() else {}
    complaints = broken + check_budgets(budgets, measured)
    for complaint in complaints:
        print(f"error: {complaint}", file=sys.stderr)
    if args.built:
        print(f"of {len(sources)} files, {len(sources) - len(compiled)} as the build compiled them")
    print(f"{len(sources)} files, {sum(len(k) for k in measured.values())} kernel images, {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
