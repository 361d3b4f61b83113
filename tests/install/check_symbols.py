"""Compares what libquern.so exports with what quern.h declares, and looks at what it wants from others."""
import argparse
import os
import re
import subprocess
import sys

# What any C++ library of GCC's needs, and the loader.
SYSTEM = re.compile(r"^(libc|libm|libstdc\+\+|libgcc_s|libpthread|ld-linux[\w-]*)\.so\.\d+$")
ZSTD = re.compile(r"^libzstd\.so\.\d+$")
SYSTEM_VERSIONS = re.compile(r"@(GLIBC|GLIBCXX|CXXABI|GCC)_")
# Weak references that stay open in every shared object: start files, transactional memory, and zstd's tracing hooks.
WEAK = re.compile(r"^(__gmon_start__|_ITM_\w+|ZSTD_trace_\w+|__cxa_\w+|pthread_\w+)$")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def declared(header):
    """Names of the functions that a header declares with QUERN_API."""
    text = re.sub(r"/\*.*?\*/", " ", open(header, encoding="utf-8").read(), flags=re.S)
    text = re.sub(r"^[ \t]*#.*(\\\n.*)*$", " ", text, flags=re.M)
    names = set()
    for declaration in re.findall(r"\bQUERN_API\b([^;]*);", text):
        match = re.search(r"(\w+)\s*\(", declaration)
        if not match:
            raise SystemExit(f"{header}: QUERN_API{declaration}; declares no function that this script understands")
        names.add(match[1])
    return names


def exported(nm, library):
    """Defined dynamic symbols as {name: version}; the symbol that stands for a version itself is left out."""
    symbols = {}
    for line in run(nm, "-D", "--defined-only", library).splitlines():
        _, kind, name = line.split()
        if kind != "A":
            base, _, version = name.partition("@@")
            symbols[base] = version
    return symbols


def problems_of(arguments):
    problems = []
    header_name, map_name = " and ".join(map(os.path.basename, arguments.header)), arguments.map
    functions, symbols = set().union(*map(declared, arguments.header)), exported(arguments.nm, arguments.library)
    if len(functions) < 5:
        problems.append(f"only {len(functions)} declarations were found in {header_name}")
    for name in sorted(functions - symbols.keys()):
        problems.append(f"{name}: declared in {header_name} and not exported; add it to {map_name}")
    for name in sorted(symbols.keys() - functions):
        problems.append(f"{name}: exported and not declared in {header_name}; take it out of {map_name}")
    for name, version in symbols.items():
        if not version.startswith("QUERN_"):
            problems.append(f"{name}: has version '{version}' instead of one of {map_name}")

    also_library, also_symbol = re.compile(arguments.also_library), re.compile(arguments.also_symbol)
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run(arguments.readelf, "-dW", arguments.library))
    for library in needed:
        if not SYSTEM.match(library) and not ZSTD.match(library) and not also_library.match(library):
            problems.append(f"the library needs {library}; it may need the C and C++ libraries, and zstd, alone")
    zstd_is_shared = any(ZSTD.match(library) for library in needed)
    for line in run(arguments.nm, "-D", "--undefined-only", arguments.library).splitlines():
        kind, name = line.split()
        base = name.partition("@")[0]
        if SYSTEM_VERSIONS.search(name) or (kind in "wv" and WEAK.match(base)) or also_symbol.match(base):
            continue
        if not (zstd_is_shared and base.startswith("ZSTD_")):
            problems.append(f"{name}: undefined, and no part of the C and C++ libraries")
    return problems, functions, needed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", required=True)
    parser.add_argument("--header", required=True, action="append", help="may be given again")
    parser.add_argument("--map", default="libcompress/capi/libquern.map", help="the version script, for messages")
    nothing = "(?!)"
    parser.add_argument("--also-library", default=nothing, help="regular expression: what it may need besides")
    parser.add_argument("--also-symbol", default=nothing, help="regular expression: symbols it may want from there")
    parser.add_argument("--nm", default="nm")
    parser.add_argument("--readelf", default="readelf")
    problems, functions, needed = problems_of(parser.parse_args())
    for problem in problems:
        print(problem)
    print(f"{len(functions)} functions declared, {len(problems)} problems; needs {' '.join(needed)}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
