// Runs the election before and after its rules, against `heatsink serve` behind its partitions, and checks both.
//
//   clients/run --alone        builds what is needed and runs this among others
//
// A candidate and a ballot are 98 KB here, so one write costs 98 units and 36 a second are 3,500: a busy machine is enough to
// overrun one key.

import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';

import { connect, late, offer, serving, table } from '../../clients/js/stage.js';
import { Election } from './votes.mjs';

const RATE = 36;
const SECONDS = 3;
const EARLY = [10, 2];
// How long the store takes for a vote that reaches it, in milliseconds; the others wait and go together.
const TAKES = 200;
const details = { manifesto: 'x'.repeat(100_000) };
const rules = (file) => fileURLToPath(new URL(file, import.meta.url));
const at = (number) => `2024-11-05T09:00:${String(Math.floor(number / 1000)).padStart(2, '0')}.${String(number % 1000).padStart(3, '0')}Z`;

/** The share of a load that was throttled; `load` also checks what the application is answered. */
const run = (file, load, upstream) => serving({ rules: file && rules(file), upstream }, async (endpoint) => {
  const hasty = connect(endpoint, 1);
  await table(hasty, 'ElectionData', ['PK', 'SK'], { indexes: [['GSI1', 'GSI1PK', 'GSI1SK']] });
  return load(new Election(hasty), new Election(connect(endpoint, 12)));
});

/** The same before a store that takes its time; also how many votes reached it. */
const farAway = (file, load) => serving({}, (store) => late(store, TAKES, 'ElectionData', async (upstream, passed) => (
  [await run(file, load, upstream), passed.updates])));

async function votes(hasty, patient) {
  await patient.nominate('A', details);
  // The first hour is slow.
  const early = await offer(...EARLY, () => patient.vote('A'));
  const { accepted, share } = await offer(RATE, SECONDS, () => hasty.vote('A'));
  assert.equal(await patient.total('A'), early.accepted.length + accepted.length);
  assert.equal(await patient.total('B'), 0);
  return share;
}

async function ballots(hasty, patient) {
  const { accepted, share } = await offer(RATE, SECONDS, (number) => hasty.cast(2024, number, at(number), details));
  assert.deepEqual(await patient.ballots(2024), accepted.map((number) => `${at(number)}#${number}`));
  return share;
}

for (const [name, load, file] of [['votes on one item', votes, 'heatsink.toml'], ['ballots under one index key', ballots, 'index.toml']]) {
  const [before, after] = [await run(null, load), await run(file, load)];
  const percent = (share) => `${(share * 100).toFixed(1)} %`;
  console.log(`${name.padEnd(30)} throttled ${percent(before)} before, ${percent(after)} after`);
  assert.ok(before > 0.25, `${name}: only ${before} throttled`);
  assert.ok(after < 0.01, `${name}: ${after} still throttled`);
}

// The item stays one, under the same load.
const [together, reached] = await farAway('combine.toml', votes);
const all = RATE * SECONDS + EARLY[0] * EARLY[1];
console.log(`${'votes on one item, combined'.padEnd(30)} throttled ${(together * 100).toFixed(1)} %; ${all} votes were ${reached} writes`);
assert.equal(together, 0);
assert.ok(reached < all / 2, `${reached} writes for ${all} votes`);
