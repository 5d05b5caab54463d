#!/usr/bin/env python3
"""The proof of the README must itself fail where something is broken: pages with one fault each."""

import json
import os
import socket
import sys
import tempfile
import tomllib
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

from proof import blocks, commands, links  # noqa: E402

# Stands for cargo: `run --release` serves until SIGINT, well or badly as KIND says; `ok` and a check succeed, all else fails.
CARGO = """#!/usr/bin/env python3
import http.server, os, signal, sys
kind = os.environ.get("KIND", "good")
if "--quiet" in sys.argv:
    sys.exit(65 if kind == "refuses" else 0)
if sys.argv[1:] == ["ok"]:
    sys.exit(0)
if sys.argv[1:3] != ["run", "--release"]:
    sys.exit(64)
if kind == "broken":
    sys.exit(3)
if kind == "silent":
    signal.pause()
signal.signal(signal.SIGINT, lambda *_: os._exit(130 if kind == "rude" else 0))
http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), http.server.BaseHTTPRequestHandler).serve_forever()
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Commands(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        (self.folder / "cargo").write_text(CARGO)
        (self.folder / "cargo").chmod(0o755)
        self.port = free_port()

    def prove(self, *parts, kind="good", **settings):
        environment = {
            **os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}", "PORT": str(self.port), "KIND": kind,
            "PYTHONUNBUFFERED": "1",
        }
        settings = {"patience": 20, **settings}
        with commands.Page("\n".join(parts), self.folder, environment, port=self.port, **settings) as page:
            page.prove()
        self.assertFalse(commands.listening(self.port))
        return [command for _, command in page.times]

    def fails(self, why, *parts, **settings):
        with self.assertRaisesRegex(commands.Failed, why):
            self.prove(*parts, **settings)
        self.assertFalse(commands.listening(self.port), "a server was left behind")

    def test_a_page_that_holds(self):
        ran = self.prove(
            "```sh\nexport A=7    # holds on\ncargo run --release -- serve --x    # a comment\n```",
            "```python\nimport os, urllib.request, urllib.error\ntry: urllib.request.urlopen(f'http://127.0.0.1:{os.environ[\"PORT\"]}')\n"
            "except urllib.error.HTTPError: print(os.environ['A'])\n```",
            "```output\n7\n```", "```text\n-->\n```", "```toml\n[[rule]]\n```",
            "```sh\ncargo ok\ncargo test  # not here\necho a \\\n  > b; test -s b\n```", elsewhere=("cargo test",))
        self.assertEqual(len(ran), 6)

    def test_a_block_in_a_list(self):
        ran = self.prove("1. Do:\n\n   ```sh\n   echo a; \\\n     echo b\n   ```\n\n   ```output\n   a\n   b\n   ```")
        self.assertEqual(len(ran), 1)
        found, _ = blocks.split("   ```python\n   if 1:\n       x\n\n  y\n   ```")
        self.assertEqual(found[0].text, "if 1:\n    x\n\ny\n")

    def test_a_command_that_fails(self):
        self.fails("exited with 64", "```sh\ncargo nonsense\n```")
        self.fails("line 3: .*exited with 1", "\n", "```sh\nfalse\n```")

    def test_a_step_that_ci_does_not_run(self):
        self.fails("exited with 64", "```sh\ncargo test\n```", elsewhere=("cargo test --workspace",))

    def test_a_block_of_an_unknown_kind(self):
        self.fails("prove a block of 'ruby'", "```ruby\n```")
        self.fails("no language", "```\nls\n```")

    def test_a_snippet_that_fails(self):
        serve = "```sh\ncargo run --release\n```"
        self.fails("exited with 1", serve, "```python\n1 / 0\n```")
        self.fails("no server", "```python\nprint()\n```")
        self.fails("no server", serve, "```sh\ncargo ok\n```", "```js\n```")

    def test_rules_that_are_refused(self):
        for table in ("[[rule]]", "[[automatic]]", "[[client]]", "[fence]", "[limits]"):
            self.fails("config check.* exited with 65", f"```toml\n{table}\n```", kind="refuses")
        rules = "```toml\n[[rule]]\n```"
        self.assertEqual(self.prove(rules, "```ruby\n```", only="toml"), [commands.RULES.format("block.toml")])
        self.fails("cargo tree.* exited with 65", "```toml\n[dependencies]\n```", kind="refuses")
        self.fails("simulate.* exited with 65", "```toml\n[client]\nattempts = 1\n[[table]]\n```", kind="refuses")

    def test_every_table_of_the_rules_is_known(self):
        docs = commands.SCHEMA_OF_RULES.parent
        scenario = json.loads((docs / "scenario.schema.json").read_text())["properties"]
        for page in sorted(docs.rglob("*.md")):
            for block in blocks.split(page.read_text())[0]:
                if block.language == "toml" and not commands.of_rules(block.text) and "dependencies" not in tomllib.loads(block.text):
                    self.assertLessEqual(set(tomllib.loads(block.text)), set(scenario), f"{page}:{block.line}")

    def test_another_output_than_shown(self):
        self.fails("was printed", "```sh\necho 8\n```", "```output\n7\n```")

    def test_a_server_that_does_not_answer(self):
        self.fails("did not answer", "```sh\ncargo run --release\n```", kind="silent", patience=1)

    def test_a_server_that_ends(self):
        self.fails("ended with 3 and never answered", "```sh\ncargo run --release\n```", kind="broken")

    def test_a_server_that_does_not_end_well(self):
        self.fails("exited with 130", "```sh\ncargo run --release\n```", kind="rude")

    def test_a_port_that_is_taken(self):
        with socket.create_server(("127.0.0.1", self.port)):
            with self.assertRaisesRegex(commands.Failed, "taken"):
                self.prove("```sh\ncargo run --release\n```")

    def test_a_short_form_that_the_page_does_not_name(self):
        page = "```sh\ncargo slow\n```"
        self.fails("no longer names", page, short={"cargo slow": "--quick"})
        self.fails("exited with 64", page, "`--quick`", short={"cargo slow": "--quick"})


class Pages(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        (self.folder / "there.md").write_text("# One thing\n## `a` & B_c\n# One thing\n```sh\n# no heading\n```\n")

    def faults(self, text):
        (self.folder / "page.md").write_text(text)
        return links.check(self.folder, [self.folder / "page.md"])

    def test_links_that_hold(self):
        count, faults = self.faults(
            "[a](there.md) ![b](there.md#one-thing) [`c`](there.md#a--b_c)\n[d](#e) [x](there.md#one-thing-1)\n# E\n"
            "[out](https://example.org/x) `[code](nowhere)`\n```text\n[code](nowhere)\n```\n[r]: there.md\n")
        self.assertEqual((count, faults), (6, []))

    def test_links_that_do_not(self):
        for broken in ("[a](gone.md)", "![a](gone.svg)", "[a](there.md#two)", "[a](#two)", "[a](../out.md)", "[r]: gone.md",
                       '<img src="gone.png">', "[a](there.md#no-heading)", "[`a`](gone.md)"):
            count, faults = self.faults("\n" + broken)
            self.assertEqual((count, len(faults)), (1, 1), broken)
            self.assertTrue(faults[0].startswith("page.md:2: "), faults)

    def test_a_page_that_its_index_leaves_out(self):
        (self.folder / "page.md").write_text("[there](there.md#one-thing)")
        self.assertEqual(links.unlisted(self.folder / "page.md"), [])
        (self.folder / "left-out.md").write_text("")
        self.assertEqual(links.unlisted(self.folder / "page.md"), ["left-out.md"])

    def test_a_block_without_end(self):
        with self.assertRaises(blocks.Unclosed):
            blocks.split("a\n```sh\nls\n")


if __name__ == "__main__":
    unittest.main()
