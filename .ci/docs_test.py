#!/usr/bin/env python3
"""What holds pages to their sizes must itself fail where one is too large: pages with one fault each."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

from proof import pages, versions  # noqa: E402


class Sizes(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def faults(self, files, **bounds):
        for name, text in files.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(text)
        return pages.check(self.folder, files, **bounds)[3]

    def one(self, why, files, **bounds):
        found = self.faults(files, **bounds)
        self.assertEqual(len(found), 1, found)
        self.assertRegex(found[0], why)

    def test_pages_that_hold(self):
        row = "| " + "word " * 25 + "| " + "x" * 120 + " |"
        address = "[a](https://example.org/" + "x" * 100 + ")"
        page = f"# A\n{'w ' * 50}\n{row}\n- {address}\n[b](there.md#b)\n```sh\n| {'x ' * 30}|\n```\n"
        self.assertEqual(self.faults({"docs/a.md": page, "docs/there.md": "# B\n"}), [])

    def test_what_is_a_word(self):
        self.assertEqual(pages.words("| a - b | `--c` |\n|---|---|\n- 1, … \u2265 2 [d](e.md)"), 6)

    def test_too_many_words_in_all(self):
        self.one("6 words outside docs/journal, at most 5", {"a.md": "a b c", "docs/b.md": "d e f"}, in_all=5)

    def test_a_page_of_too_many_words(self):
        self.one("^docs/b.md: 4 words, at most 3", {"a.md": "a b c", "docs/b.md": "a b c d"}, of_a_page=3)

    def test_the_journal_is_not_counted(self):
        files = {"docs/journal/README.md": "[a](a.md)", "docs/journal/a.md": "w " * 5000 + "\n" + "| " + "w " * 50 + "|"}
        self.assertEqual(self.faults(files, in_all=5), [])

    def test_a_readme_that_comes_to_the_point_late(self):
        self.one('4 words before "more"', {"README.md": "a b c d\n## More of it\ne f"}, before_more=3)
        self.one('5 words before "more"', {"README.md": "a b c d\n## Else"}, before_more=3)
        self.assertEqual(self.faults({"README.md": "a b c\n## More\n" + "w\n" * 99}, before_more=3), [])

    def test_a_line_that_is_too_wide(self):
        self.one("^a.md:2: 101 columns", {"a.md": "x\n" + "w " * 50 + "w\n"})
        self.one("^a.md:2: 104 columns", {"a.md": "```sh\n" + "word " * 20 + "word\n```\n"})
        self.one("^a.md:1: ", {"a.md": "w " * 50 + "[b](a.md)"})

    def test_a_cell_of_too_many_words(self):
        self.one("^a.md:3: a cell of 26 words", {"a.md": "| a |\n|---|\n| b | " + "word " * 26 + "|\n"})
        self.assertEqual(self.faults({"a.md": "| " + "word " * 20 + "\\| " + "word " * 4 + "|\n"}), [])

    def test_a_link_into_the_journal(self):
        journal = {"docs/journal/README.md": "[a](a.md) [b](b.md)", "docs/journal/a.md": "", "docs/journal/b.md": ""}
        self.assertEqual(self.faults(journal), [])
        for name, link in (("a.md", "docs/journal/a.md"), ("docs/c.md", "journal/README.md"), ("docs/c.md", "journal"),
                           ("docs/develop/c.md", "../journal/a.md#x"), ("docs/journal/a.md", "b.md")):
            self.one("only docs/journal/README.md leads", journal | {name: f"[x]({link})"})

    def test_a_page_that_the_journal_does_not_list(self):
        self.one("b.md is not listed", {"docs/journal/README.md": "[a](a.md)", "docs/journal/a.md": "", "docs/journal/b.md": ""})


class Versions(unittest.TestCase):
    FILES = {
        "Cargo.toml": '[workspace.package]\nversion = "1.2.0"\n[workspace.dependencies]\nheatsink-env = { path = "a", version = "1.2.0" }\n',
        "Cargo.lock": '[[package]]\nname = "some-crate"\nversion = "0.3.1"\n',
        "clients/python/requirements.txt": "PyName[extra]==6.1\n",
        "clients/python/traces/requirements.txt": "",
        "packaging/wheel/pyproject.toml": '[build-system]\nrequires = ["builds==1.16.0"]\n',
        "packaging/wheel/requirements.txt": "builds==1.16.0\n",
        "packaging/wheel/tests/requirements.txt": "PyName==6.1\n",
        "clients/js/package-lock.json": '{ "packages": { "": {}, "node_modules/@a/Db": { "version": "3.0.0" } } }',
        "docs/reference/tested-with.md": "| s | some-crate 0.3.1 |\n| PyName | 6.1 | x |\n| @a/db, more | 3.0.0 |\n| else (Java) | 9 |\n",
        "packaging/kubernetes/a/kustomization.yaml": '    newTag: "1.2.0"\n',
        "a.md": "heatsink-linux-x64-1.2.0.tgz heatsink_1.2.0_amd64.deb",
    }

    def faults(self, files):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
                (Path(folder) / name).write_text(text)
            return versions.check(folder, [name for name in files if name.endswith(".md")])

    def test_versions_that_hold(self):
        self.assertEqual(self.faults(self.FILES), [])

    def test_one_that_differs(self):
        for name, old, new in (("Cargo.toml", '"a", version = "1.2.0', '"a", version = "1.1.0'), ("a.md", "x64-1.2.0", "x64-1.1.0"),
                               ("packaging/kubernetes/a/kustomization.yaml", "1.2.0", "1.1.0"), ("Cargo.lock", "0.3.1", "0.3.2"),
                               ("packaging/wheel/tests/requirements.txt", "6.1", "6.2"), ("packaging/wheel/pyproject.toml", "1.16", "1.17"),
                               ("docs/reference/tested-with.md", "6.1", "6.0"), ("clients/js/package-lock.json", "3.0.0", "3.0.1")):
            with self.subTest(name):
                found = self.faults(self.FILES | {name: self.FILES[name].replace(old, new)})
                self.assertEqual(len(found), 1, found)

    def test_a_page_that_names_nothing_locked(self):
        self.assertEqual(len(self.faults(self.FILES | {"docs/reference/tested-with.md": "| else | 9 |"})), 1)


if __name__ == "__main__":
    unittest.main()
