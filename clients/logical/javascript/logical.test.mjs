// Holds logical.mjs against the table of vectors.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import * as subject from "./logical.mjs";

const lines = readFileSync(new URL("../vectors.jsonl", import.meta.url), "utf8").trimEnd().split("\n");
const rows = lines.map((line) => JSON.parse(line));

const glob = (text) => (key) => (text.endsWith("*") ? key.startsWith(text.slice(0, -1)) : key === text);

function form(said) {
  switch (said.kind) {
    case "recorded": return subject.recorded((key) => (Object.hasOwn(said.reserved, key) ? said.reserved[key] : undefined));
    case "templates": return subject.templates(...said.rules.map((one) => ({ ...one, keys: glob(one.keys) })));
    default: return subject[said.kind.toUpperCase()];
  }
}

function table(said) {
  const attributes = Object.entries(said.attributes).map(([name, one]) => [name, form(one)]);
  const isCounter = (key) => said.counters.includes(key);
  return { key: said.key, form: form(said.form), attributes: Object.fromEntries(attributes), isCounter };
}

test("keys", () => {
  const keys = rows.filter((row) => row.value);
  assert.ok(keys.length > 500);
  for (const row of keys) {
    const expected = { value: row.logical, shard: row.shard, bucket: row.bucket };
    assert.deepEqual(subject.logical(row.value, form(row.form)), expected, JSON.stringify(row));
  }
});

test("binary keys that came as bytes are bytes again", () => {
  for (const row of rows.filter((row) => row.value?.B !== undefined && row.form.kind === "suffix")) {
    const bytes = (text) => new Uint8Array(Buffer.from(text, "base64"));
    assert.deepEqual(subject.logical({ B: bytes(row.value.B) }).value, { B: bytes(row.logical.B) }, JSON.stringify(row));
  }
});

test("records", () => {
  const records = rows.filter((row) => row.record);
  assert.ok(records.length > 20);
  for (const row of records) {
    const before = structuredClone(row.record);
    assert.deepEqual(subject.record(row.record, table(row.table)), row.logical, JSON.stringify(row));
    assert.deepEqual(row.record, before, "the record that was given is changed");
  }
});
