#!/usr/bin/env python3
"""Wraps Markdown at 120 columns: paragraphs and list items, and of those only the ones with a line that is longer.

Left as they are: code blocks, tables, headings, HTML, quotes, link definitions, and blocks with hard line breaks.
The words of a file are the same before and after, in the same order; a file in which they are not is not written.

  scripts/wrap_markdown.py [FILE...]            wraps the files, or all tracked Markdown
  scripts/wrap_markdown.py --check [FILE...]    names the lines that are too long and could be wrapped; exit status 1
"""
import re
import subprocess
import sys

WIDTH = 120
ITEM = re.compile(r"^(\s*)([-*+]|\d+[.)])(\s+)(?=\S)")
# What a continuation line must not begin with, because Markdown would read it as something else.
STARTS_BLOCK = re.compile(r"^([-*+]|\d+[.)]|#{1,6}|>|=+|-+|\|.*|```.*|~~~.*|<.*)$")
OTHER = re.compile(r"^\s*(#|\||>|<|\[[^\]]+\]:|={3,}\s*$|-{3,}\s*$|\*{3,}\s*$)")
FENCE = re.compile(r"^\s*(```|~~~)")


def pieces(text):
    """Words of the text; a code span or a link of at most half a line is one piece, so that no line breaks in it."""
    words, out, held = text.split(), [], []
    for word in words:
        held.append(word)
        joined = " ".join(held)
        if joined.count("`") % 2 == 0 and joined.count("[") == joined.count("]"):
            out.append(joined)
            held = []
        elif len(joined) > WIDTH // 2:  # a lone backtick or bracket, or a span too long to keep whole
            out.extend(held)
            held = []
    return out + held


def fill(text, first, rest):
    """Lines of the text: the first after the prefix `first`, the others after `rest`."""
    lines, line = [], first
    empty = True
    for piece in pieces(text):
        fits = len(line) + (0 if empty else 1) + len(piece) <= WIDTH
        if empty or fits or STARTS_BLOCK.match(piece.split(" ")[0]):
            line += piece if empty else " " + piece
        else:
            lines.append(line)
            line = rest + piece
        empty = False
    # A piece that may not begin a line was put behind the end of one: take its predecessor to the next line, too.
    lines.append(line)
    return [fixed for line in lines for fixed in (shorten(line, rest) if len(line) > WIDTH else [line])]


def shorten(line, rest):
    """Cuts a line that is too long at an earlier place where the rest may begin a line; as it is if there is none."""
    words = line.strip().split(" ")
    indent = line[:len(line) - len(line.lstrip())]
    for cut in range(len(words) - 1, 0, -1):
        head = indent + " ".join(words[:cut])
        inside_code = " ".join(words[:cut]).count("`") % 2
        if len(head) <= WIDTH and not inside_code and not STARTS_BLOCK.match(words[cut]):
            return [head] + shorten(rest + " ".join(words[cut:]), rest)
    return [line]


def wrap(text):
    source, out, at = text.split("\n"), [], 0
    after_blank = True
    while at < len(source):
        line = source[at]
        if FENCE.match(line):
            sign = line.strip()[:3]
            out.append(line)
            at += 1
            while at < len(source):
                out.append(source[at])
                at += 1
                if source[at - 1].strip().startswith(sign):
                    break
            after_blank = True
            continue
        item = ITEM.match(line)
        is_code = after_blank and not item and line.startswith("    ") and not inside_list(out)
        if not line.strip() or OTHER.match(line) or is_code:
            out.append(line)
            at += 1
            after_blank = not line.strip() or (is_code and after_blank)
            continue
        block = [line]
        at += 1
        while at < len(source):
            following = source[at]
            if not following.strip() or FENCE.match(following) or OTHER.match(following) or ITEM.match(following):
                break
            block.append(following)
            at += 1
        out.extend(wrapped(block, item))
        after_blank = False
    return "\n".join(out)


def inside_list(lines):
    """Whether the last text before belongs to a list item: then indentation is that of the item, not of code."""
    for line in reversed(lines):
        if ITEM.match(line):
            return True
        if line.strip() and not line.startswith(" "):
            return False
    return False


def wrapped(block, item):
    hard_breaks = any(line.endswith(("  ", "\\")) for line in block)
    if hard_breaks or all(len(line) <= WIDTH for line in block):
        return block
    first = item.group(0) if item else re.match(r"^\s*", block[0]).group(0)
    rest = " " * len(first)
    text = " ".join([block[0][len(first):].strip()] + [line.strip() for line in block[1:]])
    return fill(text, first, rest)


def main(arguments):
    check = "--check" in arguments
    names = [name for name in arguments if name != "--check"]
    if not names:
        names = subprocess.check_output(["git", "ls-files", "*.md"], text=True).split()
    code = 0
    for name in names:
        with open(name, encoding="utf-8") as file:
            before = file.read()
        after = wrap(before)
        if after.split() != before.split():
            print(f"{name}: wrapping would change words: left as it is", file=sys.stderr)
            code = 1
        elif after != before and check:
            first = next(n for n, (a, b) in enumerate(zip(before.split("\n"), after.split("\n")), 1) if a != b)
            print(f"{name}:{first}: longer than {WIDTH} columns: scripts/wrap_markdown.py {name}")
            code = 1
        elif after != before:
            with open(name, "w", encoding="utf-8") as file:
                file.write(after)
            print(name)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
