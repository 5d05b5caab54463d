// Runs the operations log without a rule, with days alone, and with shards in its days, against `heatsink serve` behind its partitions.
//
//   clients/run --alone        builds what is needed and runs this among others
//
// A line is 98 KB here, so one write costs 98 units and 36 a second are 3,500: a busy machine is enough to overrun one key.

import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';

import { connect, offer, serving, table } from '../../clients/js/stage.js';
import { Operations } from './ops_log.mjs';

const RATE = 36;
const SECONDS = 3;
const details = { transcript: 'x'.repeat(100_000) };
const two = (number) => String(number).padStart(2, '0');
const at = (day, number) => `2026-06-${two(day)}T01:${two(Math.floor(number / 60_000))}:${two(Math.floor(number / 1000) % 60)}.${String(number % 1000).padStart(3, '0')}Z`;
const keys = (items) => items.map((item) => item.SK);

const run = (file) => serving({ rules: file && fileURLToPath(new URL(file, import.meta.url)) }, async (endpoint) => {
  const hasty = connect(endpoint, 1);
  await table(hasty, 'AntiCounterfeit', ['PK', 'SK']);
  const operations = new Operations(connect(endpoint, 12));

  // A quiet week: fifty lines lie over five days of it.
  const week = [];
  for (let day = 16; day <= 22; day += 1) {
    for (let number = 0; number < 12; number += 1) {
      await operations.log(at(day, number), 'scan');
      week.push(`${at(day, number)}#scan`);
    }
  }
  assert.deepEqual(keys(await operations.last(50)), week.reverse().slice(0, 50));

  // Alerts over four months, read over three; brands are few, and whole.
  const alerts = [];
  for (const month of ['03', '04', '05', '06']) {
    for (let day = 1; day <= 9; day += 1) {
      await operations.alert('abc', `2026-${month}-0${day}T01:00:00Z`, 'geographic');
      if (month !== '03') alerts.push(`ALERT#2026-${month}-0${day}T01:00:00Z#geographic`);
    }
  }
  assert.deepEqual(keys(await operations.alerts('abc', '2026-04', '2026-07')), alerts);
  for (let brand = 0; brand < 10; brand += 1) await operations.register(`brand-${brand}`, `2026-06-22T01:00:0${brand}Z`);
  assert.deepEqual((await operations.brands()).map((item) => item.brand), Array.from({ length: 10 }, (_, brand) => `brand-${brand}`));

  // And today.
  const today = new Operations(hasty);
  const { accepted, share } = await offer(RATE, SECONDS, (number) => today.log(at(23, number), 'scan', details));
  assert.deepEqual(keys(await operations.last(50)), [...accepted.reverse().map((number) => `${at(23, number)}#scan`), ...week].slice(0, 50));
  return share;
});

const phases = [['one key', null, true], ['buckets of days', 'buckets.toml', true], ['buckets of days, 8 shards in each', 'heatsink.toml', false]];
for (const [name, file, throttles] of phases) {
  const share = await run(file);
  console.log(`${name.padEnd(36)} throttled ${(share * 100).toFixed(1)} %`);
  if (throttles) assert.ok(share > 0.25, `${name}: only ${share} throttled`);
  else assert.ok(share < 0.01, `${name}: ${share} still throttled`);
}
