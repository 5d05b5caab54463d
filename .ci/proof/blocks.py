"""Fenced blocks of a Markdown file, and its text without them.

Not here: what a block means (commands.py), where links lead (links.py).
"""

import re
from dataclasses import dataclass

FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})\s*([^`]*)$")


@dataclass(frozen=True)
class Block:
    """What stands between two fences. `line` is the first fence's, from 1."""

    language: str
    text: str
    line: int


class Unclosed(Exception):
    """A fence without its end."""


def split(markdown):
    """The blocks, and the text with its blocks emptied: lines keep their numbers."""
    blocks, prose = [], []
    fence = language = start = None
    indent = 0
    inside = []
    for number, line in enumerate(markdown.splitlines(), 1):
        match = FENCE.match(line)
        if fence is None and match:
            fence, language, start, inside = match[1], match[2].strip(), number, []
            indent = len(line) - len(line.lstrip(" "))
            prose.append("")
        elif fence is None:
            prose.append(line)
        else:
            prose.append("")
            if match and match[1].startswith(fence) and not match[2].strip():
                blocks.append(Block(language, "\n".join(inside) + "\n", start))
                fence = None
            else:
                # As Markdown has it: a block in a list is as far to the left as its fence.
                inside.append(line[min(indent, len(line) - len(line.lstrip(" "))):])
    if fence is not None:
        raise Unclosed(f"line {start}: the block has no end")
    return blocks, "\n".join(prose)
