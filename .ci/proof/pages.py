"""Sizes of the documentation's pages, and what may lead into the journal. The rules:

- all pages outside the journal together, and each page, have a bound of words;
- lines and cells of tables have a bound, too;
- the README says what is most important in its first words, before the heading "more";
- only the journal's own index leads into the journal, and it lists each page of it.
"""

import re
from itertools import zip_longest
from pathlib import Path
from urllib.parse import unquote

from . import blocks, links

JOURNAL = "docs/journal"
WORDS_IN_ALL, WORDS_OF_A_PAGE, WORDS_OF_A_CELL, WORDS_BEFORE_MORE = 50_000, 2_000, 25, 700
COLUMNS = 100
MORE = re.compile(r"^#+\s+more\b", re.IGNORECASE | re.MULTILINE)
CELL = re.compile(r"(?<!\\)\|")


def words(text):
    """What stands between blanks and holds a letter or a digit: the bars of tables and dashes are no words."""
    return sum(any(map(str.isalnum, word)) for word in text.split())


def in_journal(name):
    return name.startswith(JOURNAL + "/")


def too_wide(line):
    """Whether a line has more columns than it may, and could be broken. An address cannot be, nor can a row of a table."""
    if len(line) <= COLUMNS or line.lstrip().startswith("|"):
        return False
    longest = max(line.split(), key=len)
    return "://" not in longest and len(longest) < COLUMNS


def lines_and_cells(name, text):
    """The faults of the lines of a page."""
    _, prose = blocks.split(text)
    for number, (line, said) in enumerate(zip_longest(text.splitlines(), prose.splitlines(), fillvalue=""), 1):
        if too_wide(line):
            yield f"{name}:{number}: {len(line)} columns, at most {COLUMNS}"
        if said.lstrip().startswith("|"):
            most = max(words(cell) for cell in CELL.split(said))
            if most > WORDS_OF_A_CELL:
                yield f"{name}:{number}: a cell of {most} words, at most {WORDS_OF_A_CELL}"


def into_the_journal(root, name, text):
    """The links of a page that lead into the journal."""
    _, prose = blocks.split(text)
    for target, line in links.targets(prose):
        path = unquote(target.partition("#")[0])
        if not path or re.match(r"[a-z][a-z0-9+.-]*:", path):
            continue
        file = (root / name).parent.joinpath(path).resolve()
        if file == root / JOURNAL or file.is_relative_to(root / JOURNAL):
            yield f"{name}:{line}: {target}: only {JOURNAL}/README.md leads into the journal"


def check(root, names, *, in_all=WORDS_IN_ALL, of_a_page=WORDS_OF_A_PAGE, before_more=WORDS_BEFORE_MORE):
    """How many words the pages have, the largest page with its words, and what is wrong, each in one line."""
    root, counted, faults = Path(root).resolve(), {}, []
    for name in sorted(names):
        text = (root / name).read_text()
        if name != f"{JOURNAL}/README.md":
            faults += into_the_journal(root, name, text)
        if in_journal(name):
            continue
        counted[name] = words(text)
        if counted[name] > of_a_page:
            faults.append(f"{name}: {counted[name]} words, at most {of_a_page}")
        faults += lines_and_cells(name, text)
        if name == "README.md":
            more = MORE.search(text)
            first = words(text[:more.start()] if more else text)
            if first > before_more:
                faults.append(f"{name}: {first} words before \"more\", at most {before_more}")
    index = root / JOURNAL / "README.md"
    if index.exists():
        faults += [f"{JOURNAL}/README.md: {name} is not listed" for name in links.unlisted(index)]
    total = sum(counted.values())
    if total > in_all:
        faults.append(f"{total} words outside {JOURNAL}, at most {in_all}")
    largest = max(counted, key=counted.get, default=None)
    return total, largest, counted.get(largest, 0), faults
