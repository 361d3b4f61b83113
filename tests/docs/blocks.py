# Finds what documents show: fenced blocks of Markdown, .nf blocks of manuals, and indented code in header comments.
import collections
import re

Block = collections.namedtuple("Block", "path line language text")


def fenced(path, text):
    """Blocks between lines of ```; the language may be empty."""
    out, begin, language, lines = [], None, "", []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            if begin is None:
                begin, language, lines = number + 1, line[3:].strip(), []
            else:
                out.append(Block(path, begin, language, "\n".join(lines) + "\n"))
                begin = None
        elif begin is not None:
            lines.append(line)
    if begin is not None:
        raise ValueError(f"{path}: the block of line {begin} does not end")
    return out


def manual(path, text):
    """Blocks between .nf and .fi, as a reader sees them."""
    out, begin, lines = [], None, []
    for number, line in enumerate(text.splitlines(), 1):
        if line == ".nf":
            begin, lines = number + 1, []
        elif line == ".fi":
            out.append(Block(path, begin, "sh", "\n".join(lines) + "\n"))
            begin = None
        elif begin is not None:
            lines.append(line.replace("\\-", "-").replace("\\e", "\\"))
    return out


def commented(path, text):
    """Code in comments of a header: lines that stand three columns behind the comment's own sign."""
    out, begin, lines = [], None, []

    def finish():
        nonlocal begin
        if begin is not None:
            out.append(Block(path, begin, "cpp" if path.endswith(".hpp") else "c", "\n".join(lines).rstrip() + "\n"))
        begin = None

    for number, line in enumerate(text.splitlines(), 1):
        inside = re.match(r"\s*(?:\*|//)(?:   (.*))?$", line)
        code = inside.group(1) or "" if inside else None
        if code is None:
            finish()
        elif begin is not None:
            lines.append(code)
        elif re.match(r"\S", code):
            begin, lines = number, [code]
    finish()
    return out
