// Tables that code sharded by hand, and that code beside Heatsink: one writes to the store directly, the other through Heatsink, and
// each reads what the other wrote. HEATSINK_BEHIND names the store: an endpoint on this machine, of its own for each run.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { GetCommand, PutCommand, QueryCommand, UpdateCommand } from '@aws-sdk/lib-dynamodb';

import { test } from '../cannot.js';
import { connect, serving, table } from '../stage.js';

const run = promisify(execFile);
const behind = process.env.HEATSINK_BEHIND;
const SHARDS = 10;

/** FNV-1a of 32 bits over UTF-8, as it is written for a shard number. */
function fnv1a(text) {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash;
}
const messageKey = (room, id) => `ROOM#${room}.${(fnv1a(id) % SHARDS) + 1}`;

const MESSAGES = `
[[rule]]
table    = "MessagesByHand"
keys     = "ROOM#*"
strategy = "template"
template = "{pk}.{shard+1}"
hash     = "fnv1a32"
shards   = ${SHARDS}
by       = { attribute = "SK", separator = "|", part = 1 }
`;

const VOTES = `
[[rule]]
table      = "VotesByHand"
keys       = "CANDIDATE#*"
strategy   = "counter"
attributes = ["votes"]
shards     = ${SHARDS}
`;

/** A gateway under rules before the store; a table that holds items is adopted first. */
async function gateway(rules, adopt, use) {
  const place = await mkdtemp(join(tmpdir(), 'heatsink-by-hand-'));
  try {
    const file = join(place, 'heatsink.toml');
    await writeFile(file, rules);
    const env = { ...process.env, AWS_ACCESS_KEY_ID: 'local', AWS_SECRET_ACCESS_KEY: 'local', AWS_REGION: 'us-east-1' };
    if (adopt) await run(process.env.HEATSINK_BIN, ['adopt', adopt, '--rules', file, '--upstream', behind, '--yes', '--offline'], { env });
    return await serving({ rules: file, upstream: behind }, (endpoint) => use(connect(endpoint)));
  } finally {
    await rm(place, { recursive: true });
  }
}

async function all(client, input) {
  const found = [];
  let ExclusiveStartKey;
  do {
    const page = await client.send(new QueryCommand({ ...input, ExclusiveStartKey }));
    found.push(...page.Items);
    ExclusiveStartKey = page.LastEvaluatedKey;
  } while (ExclusiveStartKey);
  return found;
}

test('messages under fnv1a of a part of the sort key, counted from 1', async () => {
  const past = connect(behind);
  await table(past, 'MessagesByHand', ['PK', 'SK'], { writes: 1_000 });
  const messages = Array.from({ length: 100 }, (_, number) => ({ sk: `${String(1000 + number)}|m-${number}`, id: `m-${number}` }));
  const put = (client, PK, SK) => client.send(new PutCommand({ TableName: 'MessagesByHand', Item: { PK, SK, text: `says ${SK}` } }));
  for (const { sk, id } of messages.slice(0, 50)) await put(past, messageKey('cats', id), sk);

  await gateway(MESSAGES, 'MessagesByHand', async (through) => {
    for (const [number, { sk, id }] of messages.slice(50).entries()) {
      await (number % 2 ? put(through, 'ROOM#cats', sk) : put(past, messageKey('cats', id), sk));
    }
    const input = {
      TableName: 'MessagesByHand', KeyConditionExpression: 'PK = :room', ExpressionAttributeValues: { ':room': 'ROOM#cats' }, Limit: 21,
    };
    const expected = messages.map(({ sk }) => ({ PK: 'ROOM#cats', SK: sk, text: `says ${sk}` }));
    assert.deepEqual(await all(through, input), expected);
    assert.deepEqual(await all(through, { ...input, ScanIndexForward: false }), expected.toReversed());
    const keys = new Set();
    for (const { sk, id } of messages) {
      const PK = messageKey('cats', id);
      keys.add(PK);
      const { Item } = await past.send(new GetCommand({ TableName: 'MessagesByHand', Key: { PK, SK: sk } }));
      assert.deepEqual(Item, { PK, SK: sk, text: `says ${sk}` });
    }
    assert.equal(keys.size, SHARDS);
    // An overwrite by either is one message.
    await put(past, messageKey('cats', 'm-90'), '1090|m-90');
    await put(through, 'ROOM#cats', '1003|m-3');
    assert.equal((await all(through, input)).length, messages.length);
  });
});

/** The counter as it is written by hand: a random shard for each vote, all shards read for the total. */
const byHand = (client, candidate) => ({
  vote: () => client.send(new UpdateCommand({
    TableName: 'VotesByHand', Key: { PK: `${candidate}#${Math.floor(Math.random() * SHARDS)}`, SK: 'METADATA' },
    UpdateExpression: 'ADD votes :inc', ExpressionAttributeValues: { ':inc': 1 },
  })),
  total: async () => {
    const shards = Array.from({ length: SHARDS }, async (_, shard) => {
      const { Item } = await client.send(new GetCommand({ TableName: 'VotesByHand', Key: { PK: `${candidate}#${shard}`, SK: 'METADATA' } }));
      return Item?.votes ?? 0;
    });
    return (await Promise.all(shards)).reduce((sum, votes) => sum + votes, 0);
  },
});

test('vote counters by hand: bypassing Heatsink, through it, and moved into a counter', async () => {
  const past = connect(behind);
  await table(past, 'VotesByHand', ['PK', 'SK'], { writes: 1_000 });
  const votes = (count, counter) => Promise.all(Array.from({ length: count }, counter.vote));

  // The rule counts candidates; the ten items of the hand-written counter are other keys, and stay as they are.
  const rules = VOTES.replace('CANDIDATE#*', 'CANDIDATE#?');
  await gateway(rules, null, async (through) => {
    const [outside, inside] = [byHand(past, 'CANDIDATE#A'), byHand(through, 'CANDIDATE#A')];
    await votes(60, inside);
    await votes(40, outside);
    assert.deepEqual([await outside.total(), await inside.total()], [100, 100]);

    // One ADD of the old total makes it a counter of Heatsink's.
    const Key = { PK: 'CANDIDATE#A', SK: 'METADATA' };
    const add = (amount) => through.send(new UpdateCommand({
      TableName: 'VotesByHand', Key, UpdateExpression: 'ADD votes :inc', ExpressionAttributeValues: { ':inc': amount },
    }));
    await add(await outside.total());
    await Promise.all(Array.from({ length: 50 }, () => add(1)));
    const { Item } = await through.send(new GetCommand({ TableName: 'VotesByHand', Key }));
    assert.deepEqual(Item, { ...Key, votes: 150 });
  });
});
