#!/usr/bin/env python3
# Counts the machine instructions that the main loop of a CUDA kernel issues for an element, by pipe of the
# multiprocessor, and holds them against the budgets in kernels/budgets.json. Needs nvcc and nvdisasm and no device.
"""usage: count_sass.py [--budgets FILE.json] [--show] [KERNEL ...]
       count_sass.py --cubin FILE.cubin --kernel KERNEL --elements 32 [--through OPCODE=COUNT|then ...] [--whole] [--show]

First form: every path that kernels/budgets.json names under "paths" (or those of the kernels named). Second form: one
kernel of a compiled image (nvcc -cubin), to find out what a budget should say.

A path is the shortest one, in instructions issued by a warp, from the head of the kernel's main loop to the next pass
(--whole, "whole": from the kernel's entry to its end), among those that issue the opcodes of "through" at least as
often as it says. Opcodes are regular expressions for the whole opcode: "STG.E(\\.EF)?.128". Name there what sets the
wanted way apart from shortcuts: its stores, its loads from shared memory, its shuffles. A list of such objects in
"through" (--through then, between two) is gone through in order: what one asks for is issued before the blocks that
count for the next. It takes far less time than one object that asks for everything. Inner loops count as often as
"through" makes the path pass them. Of two ways that lanes take apart from each other only the shorter one counts:
write such choices as predicated instructions. --show prints the path.

"elements" is the number of elements that a lane has when the path ends. Main loop: the one with the most instructions.

budgets.json: {"paths": [{"kernel": NAME, "source": FILE.cu, "arch": "90", "elements": 32,
                          "through": {"STG.E.128": 8}, "instructions": 22.0, "pipes": {"alu": 12.5}}]}
"instructions" and the optional "pipes" are limits of instructions an element. KERNEL is the demangled name without its
parameters, as check_kernel_budgets.py prints it. Add a path with a limit of 0, read what the script prints, and round up.

nvdisasm is looked for in $NVDISASM, on PATH, beside nvcc and in Python's site-packages (Triton brings one).
Exits 77 (skipped) when there is no nvcc or no nvdisasm.
"""
import argparse
import collections
import heapq
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile

import check_kernel_budgets as kernel_budgets

ROOT = kernel_budgets.ROOT
SKIPPED = kernel_budgets.SKIPPED
LINE = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/\s+(?:\{\s*)?(@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)\s*([^;]*);")
LABEL = re.compile(r"`\((\.L_[\w]+)\)")
# Where an opcode, up to its first dot, is executed on sm_80 and later. U...: the pipe of values that a warp has once.
PIPES = {
    "alu": "IADD3 VIADD LOP3 LOP PLOP3 SHF SHL SHR PRMT LEA ISETP SEL FSEL FSETP FMNMX VIMNMX VIMNMX3 IMNMX BMSK SGXT P2R "
           "R2P IABS VABSDIFF VABSDIFF4 MOV I2FP CS2R FCHK",
    "fma": "FADD FMUL FFMA IMAD HADD2 HMUL2 HFMA2 HSET2 HSETP2 IDP IDP4A",
    "fp64": "DADD DMUL DFMA DSETP",
    "xu": "I2F F2I F2F FRND MUFU POPC FLO BREV I2I",
    "memory": "LDS STS LDG STG LDL STL LD ST LDGSTS LDSM STSM ATOM ATOMG ATOMS RED SHFL MATCH REDUX CCTL CCTLL LDC LDGDEPBAR "
              "SYNCS UBLKCP UTMALDG UTMASTG",
    "control": "BRA BRX BSSY BSYNC BMOV BREAK EXIT RET CALL WARPSYNC BAR YIELD NANOSLEEP DEPBAR NOP VOTE VOTEU MEMBAR "
               "ERRBAR JMP JMX KILL S2R",
}
PIPE_OF = {opcode: pipe for pipe, opcodes in PIPES.items() for opcode in opcodes.split()}

Instruction = collections.namedtuple("Instruction", "address predicate opcode operands")


def find_nvdisasm():
    nvcc = kernel_budgets.find_nvcc()
    candidates = [os.environ.get("NVDISASM"), shutil.which("nvdisasm")]
    if nvcc:
        candidates.append(str(pathlib.Path(os.path.realpath(nvcc)).parent / "nvdisasm"))
    site = pathlib.Path(sysconfig.get_paths()["purelib"])
    candidates += [str(p) for p in site.glob("triton/backends/nvidia/bin/nvdisasm")]
    candidates += [str(p) for p in site.glob("nvidia/*/bin/nvdisasm")]
    return next((c for c in candidates if c and os.access(c, os.X_OK)), None)


def parse_functions(text):
    """Mangled kernel name -> (instructions in order, label -> index of the instruction behind it), from nvdisasm -c."""
    functions, instructions, labels = {}, None, None
    for line in text.splitlines():
        if m := re.match(r"\.text\.(\S+):", line):
            instructions, labels = [], {}
            functions[m[1]] = (instructions, labels)
        elif re.match(r"\s*\.section\b", line):
            instructions = None
        elif instructions is not None:
            if m := re.match(r"(\.L_\w+):", line):
                labels[m[1]] = len(instructions)
            elif m := LINE.match(line):
                instructions.append(Instruction(int(m[1], 16), (m[2] or "").strip(), m[3], m[4].strip()))
    return functions


def pipe_of(opcode):
    base = opcode.split(".")[0]
    if base in PIPE_OF:
        return PIPE_OF[base]
    return "uniform" if base[0] == "U" or base in ("R2UR", "S2UR") else "other"


class Graph:
    """Basic blocks of a kernel: first instruction -> (last instruction + 1, blocks that may follow)."""

    def __init__(self, instructions, labels):
        self.instructions = instructions
        ends = {i + 1 for i, x in enumerate(instructions) if x.opcode.split(".")[0] in ("BRA", "BRX", "EXIT", "RET", "JMP")}
        starts = sorted(({0} | set(labels.values()) | ends) & set(range(len(instructions))))
        self.blocks = {}
        for begin, end in zip(starts, starts[1:] + [len(instructions)]):
            self.blocks[begin] = (end, self.after(instructions[end - 1], end, labels))
        self.ends = {b for b, (end, _) in self.blocks.items() if self.leaves(instructions[end - 1])}

    def after(self, last, end, labels):
        """Blocks that may follow an instruction."""
        base = last.opcode.split(".")[0]
        targets = [labels[t] for t in LABEL.findall(last.operands) if t in labels]
        below = [end] if end < len(self.instructions) else []
        if base in ("EXIT", "RET"):
            return below if last.predicate else []
        if base in ("BRA", "JMP"):
            always = not last.predicate and LABEL.sub("", last.operands).strip(" ,") == ""
            return targets if always else targets + below
        if base == "BRX":
            named = re.search(r"BRANCH_TARGETS ([^*\"]+)", last.operands)
            return sorted({labels[t.strip()] for t in named[1].split(",") if t.strip() in labels}) if named else []
        return below

    @staticmethod
    def leaves(last):
        return last.opcode.split(".")[0] == "EXIT"

    def order(self):
        """Blocks that can be reached, each after those that lead to it, but for loops."""
        seen, out, stack = {0}, [], [(0, iter(self.blocks[0][1]))]
        while stack:
            block, rest = stack[-1]
            follower = next(rest, None)
            if follower is None:
                out.append(block)
                stack.pop()
            elif follower not in seen:
                seen.add(follower)
                stack.append((follower, iter(self.blocks[follower][1])))
        return out[::-1]

    def dominators(self):
        """Block -> the block that all ways to it pass last (Cooper, Harvey and Kennedy 2001)."""
        order = self.order()
        place = {b: i for i, b in enumerate(order)}
        before = collections.defaultdict(list)
        for b in order:
            for f in self.blocks[b][1]:
                before[f].append(b)
        immediate, changed = {order[0]: order[0]}, True
        while changed:
            changed = False
            for b in order[1:]:
                new = None
                for p in before[b]:
                    if p not in immediate:
                        continue
                    a = p
                    while new is not None and a != new:
                        while place[a] > place[new]:
                            a = immediate[a]
                        while place[new] > place[a]:
                            new = immediate[new]
                    new = a
                if immediate.get(b) != new:
                    immediate[b], changed = new, True
        return immediate, before

    def main_loop(self):
        """(head, blocks) of the loop with the most instructions; None when there is none."""
        immediate, before = self.dominators()

        def dominates(a, b):
            while b != a and b != immediate[b]:
                b = immediate[b]
            return a == b

        loops = collections.defaultdict(set)
        for b in immediate:
            for head in self.blocks[b][1]:
                if head in immediate and dominates(head, b):
                    body, stack = loops[head], [b]
                    body.add(head)
                    while stack:
                        x = stack.pop()
                        if x not in body:
                            body.add(x)
                            stack.extend(p for p in before[x] if p in immediate)
        if not loops:
            return None
        return max(loops.items(), key=lambda item: sum(self.blocks[b][0] - b for b in item[1]))


def stages_of(through):
    """What a path has to issue, in order."""
    return through if isinstance(through, list) else [through]


def shortest_path(graph, through, whole):
    """Instructions of the shortest path that issues what `through` asks for; None when there is no such path."""
    stages = [[(re.compile(opcode), count) for opcode, count in stage.items()] for stage in stages_of(through)]
    if whole:
        head, body = 0, set(graph.blocks)
    else:
        loop = graph.main_loop()
        if loop is None:
            return None
        head, body = loop
    issues = {b: [tuple(sum(p.fullmatch(x.opcode) is not None for x in graph.instructions[b:graph.blocks[b][0]])
                        for p, _ in wanted) for wanted in stages] for b in body}

    def arrive(block, progress):
        """The block with the stage that is gone through then, and what it has issued."""
        stage, counts = progress
        if stage < len(stages):
            wanted = stages[stage]
            counts = tuple(min(c + n, most) for c, n, (_, most) in zip(counts, issues[block][stage], wanted))
            if all(c == most for c, (_, most) in zip(counts, wanted)):
                stage += 1
                counts = tuple(0 for _ in stages[stage]) if stage < len(stages) else ()
        return block, (stage, counts)

    done = (len(stages), ())
    start = arrive(head, (0, tuple(0 for _ in stages[0])))
    length, came_from = {start: graph.blocks[head][0] - head}, {}
    queue = [(length[start], start)]
    while queue:
        n, state = heapq.heappop(queue)
        if n > length[state]:
            continue
        block, progress = state
        followers = graph.blocks[block][1]
        if progress == done and (block in graph.ends if whole else head in followers):
            blocks = [block]
            while state in came_from:
                state = came_from[state]
                blocks.append(state[0])
            return [x for b in reversed(blocks) for x in graph.instructions[b:graph.blocks[b][0]]]
        for f in followers:
            if f not in body or (f == head and not whole):
                continue
            new = arrive(f, progress)
            if n + graph.blocks[f][0] - f < length.get(new, sys.maxsize):
                length[new], came_from[new] = n + graph.blocks[f][0] - f, state
                heapq.heappush(queue, (length[new], new))
    return None


def count_path(path, elements):
    """Instructions an element: all, and by pipe."""
    pipes = collections.Counter(pipe_of(x.opcode) for x in path)
    return len(path) / elements, {pipe: n / elements for pipe, n in sorted(pipes.items())}


def find_path(disassembly, kernel, through, whole):
    """The path through a kernel named without its parameters; an error text instead."""
    functions = parse_functions(disassembly)
    names = {short: mangled for mangled, short in kernel_budgets.short_names(list(functions)).items()}
    if kernel not in names:
        return None, f"{kernel}: there is no such kernel"
    path = shortest_path(Graph(*functions[names[kernel]]), through, whole)
    return path, "" if path else f"{kernel}: no path issues {through}"


def disassemble(nvdisasm, cubin):
    return subprocess.run([nvdisasm, "-c", str(cubin)], capture_output=True, text=True, check=True).stdout


def compile_image(nvcc, source, arch, folder):
    image = pathlib.Path(folder) / f"{pathlib.Path(source).stem}.sm_{arch}.cubin"
    target = f"-gencode=arch=compute_{kernel_budgets.ASSEMBLED_FROM.get(arch, arch)},code=sm_{arch}"
    run = subprocess.run([nvcc, *kernel_budgets.FLAGS, target, "-cubin", "-o", str(image), str(ROOT / source)],
                         capture_output=True, text=True)
    return image, "" if run.returncode == 0 else run.stdout + run.stderr


def check_path(budget, instructions, pipes):
    """Complaints about a path that breaks its budget."""
    kernel = budget["kernel"]
    complaints = []
    if instructions > budget["instructions"]:
        complaints.append(f"{kernel}: {instructions:.2f} instructions an element, the budget is {budget['instructions']}")
    for pipe, limit in budget.get("pipes", {}).items():
        if pipes.get(pipe, 0) > limit:
            complaints.append(f"{kernel}: {pipes[pipe]:.2f} of {pipe} an element, the budget is {limit}")
    return complaints


def print_path(kernel, path, elements, show):
    instructions, pipes = count_path(path, elements)
    if show:
        for x in path:
            print(f"  {x.address:05x}  {pipe_of(x.opcode):8s} {x.predicate:6s} {x.opcode} {x.operands}")
    print(f"{instructions:6.2f} instructions an element ({len(path)} for {elements}): "
          + ", ".join(f"{pipe} {n:.2f}" for pipe, n in pipes.items()) + f"  {kernel}")
    return instructions, pipes


def check_budgets(paths, nvcc, nvdisasm, show):
    complaints, images = [], {}
    with tempfile.TemporaryDirectory() as folder:
        for budget in paths:
            key = (budget["source"], budget["arch"])
            if key not in images:
                image, error = compile_image(nvcc, *key, folder)
                images[key] = ("", error) if error else (disassemble(nvdisasm, image), "")
            text, error = images[key]
            path = None
            if not error:
                path, error = find_path(text, budget["kernel"], budget["through"], budget.get("whole", False))
            complaints += [error] if error else check_path(
                budget, *print_path(budget["kernel"], path, budget["elements"], show))
    return complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*")
    parser.add_argument("--budgets", type=pathlib.Path, default=ROOT / "kernels" / "budgets.json")
    parser.add_argument("--cubin", type=pathlib.Path)
    parser.add_argument("--kernel")
    parser.add_argument("--elements", type=int, default=32)
    parser.add_argument("--through", action="append", default=[], metavar="OPCODE=COUNT|then")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--show", action="store_true")
    args = parser.parse_args()

    nvcc, nvdisasm = kernel_budgets.find_nvcc(), find_nvdisasm()
    if nvdisasm is None or (nvcc is None and args.cubin is None):
        print("SKIP: no nvcc or no nvdisasm on this machine, no instructions were counted")
        return SKIPPED
    if args.cubin:
        through = [{}]
        for text in args.through:
            if text == "then":
                through.append({})
                continue
            opcode, count = text.rsplit("=", 1)
            through[-1][opcode] = int(count)
        path, error = find_path(disassemble(nvdisasm, args.cubin), args.kernel, through, args.whole)
        complaints = [error] if error else []
        if path:
            print_path(args.kernel, path, args.elements, args.show)
    else:
        paths = json.loads(args.budgets.read_text()).get("paths", [])
        paths = [p for p in paths if not args.kernels or p["kernel"] in args.kernels]
        complaints = check_budgets(paths, nvcc, nvdisasm, args.show)
        print(f"{len(paths)} paths, {len(complaints)} complaints")
    for complaint in complaints:
        print(f"error: {complaint}", file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
