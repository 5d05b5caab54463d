"""Holds logical.py against the table of vectors."""

import base64
import contextlib
import copy
import io
import json
import sys
import textwrap
import unittest
from pathlib import Path

import logical
from logical import Logical, Rule, Table

HERE = Path(__file__).resolve().parent
ROWS = [json.loads(line) for line in (HERE / "../vectors.jsonl").read_text().strip("\n").split("\n")]


def glob(text):
    return (lambda key: key.startswith(text[:-1])) if text.endswith("*") else (lambda key: key == text)


def form(said):
    if said["kind"] == "recorded":
        return logical.recorded(said["reserved"].get)
    if said["kind"] == "templates":
        rules = [Rule(one["template"], one["shards"], one["bucket"], glob(one["keys"])) for one in said["rules"]]
        return logical.templates(*rules)
    return getattr(logical, said["kind"].upper())


def table(said):
    attributes = {name: form(one) for name, one in said["attributes"].items()}
    return Table(said["key"], form(said["form"]), attributes, said["counters"].__contains__)


class Vectors(unittest.TestCase):
    def test_keys(self):
        keys = [row for row in ROWS if "value" in row]
        self.assertGreater(len(keys), 500)
        for row in keys:
            expected = Logical(row["logical"], row["shard"], row["bucket"])
            self.assertEqual(logical.logical(row["value"], form(row["form"])), expected, row)

    def test_binary_keys_that_came_as_bytes_are_bytes_again(self):
        for row in ROWS:
            if "B" in row.get("value", {}) and row["form"]["kind"] == "suffix":
                raw = {"B": base64.b64decode(row["value"]["B"])}
                self.assertEqual(logical.logical(raw).value, {"B": base64.b64decode(row["logical"]["B"])}, row)

    def test_records(self):
        records = [row for row in ROWS if "record" in row]
        self.assertGreater(len(records), 20)
        for row in records:
            before = copy.deepcopy(row["record"])
            self.assertEqual(logical.record(row["record"], table(row["table"])), row["logical"], row)
            self.assertEqual(row["record"], before, "the record that was given is changed")

    def test_the_example_of_the_page_does_what_it_says(self):
        page = (HERE / "../../../docs/how-to/read-a-stream.md").read_text()
        example = {}
        exec(textwrap.dedent(page.split("```python\n")[1].split("```")[0]), example)  # noqa: S102, the page is ours
        stored = [{"eventName": "MODIFY", "dynamodb": {"Keys": {"pk": {"S": key}}}} for key in ("game_x#~3", "vote_7#~3", "vote_7")]
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            example["handler"]({"Records": stored}, None)
        self.assertEqual(said.getvalue(), "MODIFY {'pk': {'S': 'game_x'}}\nMODIFY {'pk': {'S': 'vote_7'}}\n")


if __name__ == "__main__":
    sys.exit(unittest.main())
