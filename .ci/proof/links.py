"""Links of Markdown files: whether the file is there, and the heading that an anchor names.

Addresses on the network are not opened.
"""

import re
from pathlib import Path
from urllib.parse import unquote

from . import blocks

CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)", re.DOTALL)
INLINE = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^\s()<>]*(?:\([^\s()]*\)[^\s()<>]*)*)>?(?:\s+\"[^\"]*\")?\s*\)")
REFERENCE = re.compile(r"^ {0,3}\[[^\]]+\]:\s*<?(\S+?)>?(?:\s|$)", re.MULTILINE)
HTML = re.compile(r"<(?:a|img)\b[^>]*\b(?:href|src)=\"([^\"]*)\"")
HEADING = re.compile(r"^ {0,3}#{1,6}\s+(.*?)\s*#*$")
NAMED = re.compile(r"<a\b[^>]*\b(?:id|name)=\"([^\"]*)\"")


def targets(prose):
    """What links lead to, with the line of each."""
    # A link's text may be code; a link in code is none. Lengths stay, so that lines can be counted.
    plain = CODE.sub(lambda code: re.sub(r"[^\n]", "x", code[0]), prose)
    for pattern in (INLINE, REFERENCE, HTML):
        for match in pattern.finditer(plain):
            yield match[1], plain.count("\n", 0, match.start()) + 1


def anchors(markdown):
    """The anchors that a page shows for its headings, as GitHub makes them."""
    _, prose = blocks.split(markdown)
    found, seen = set(NAMED.findall(prose)), {}
    for line in prose.splitlines():
        if not (match := HEADING.match(line)):
            continue
        words = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", match[1])
        slug = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        count = seen.get(slug, 0)
        seen[slug] = count + 1
        found.add(f"{slug}-{count}" if count else slug)
    return found


def unlisted(index):
    """The pages beside an index that it does not link to."""
    index = Path(index)
    _, prose = blocks.split(index.read_text())
    listed = {target.partition("#")[0] for target, _ in targets(prose)}
    return sorted(page.name for page in index.parent.glob("*.md") if page != index and page.name not in listed)


def check(root, pages):
    """How many links these pages have within `root`, and what is wrong with them, each in one line."""
    root, count, faults = Path(root).resolve(), 0, []
    for page in pages:
        page = Path(page).resolve()
        _, prose = blocks.split(page.read_text())
        for target, line in targets(prose):
            if re.match(r"[a-z][a-z0-9+.-]*:", target):
                continue
            count += 1
            path, _, anchor = target.partition("#")
            file = (page.parent / unquote(path)).resolve() if path else page
            where = f"{page.relative_to(root)}:{line}: {target}"
            if not file.is_relative_to(root) or not file.exists():
                faults.append(f"{where}: there is no such file")
            elif anchor and (file.suffix != ".md" or unquote(anchor) not in anchors(file.read_text())):
                faults.append(f"{where}: {file.relative_to(root)} has no such heading")
    return count, faults
