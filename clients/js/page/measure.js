// Measures the page of the admin address on a real gateway whose history has 1,000 keys that were warm for an hour: `clients/page`.
//
// The history is made up, and resumed from by `serve --heat-history`; the answers, their gzip and the page are the gateway's.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, get } from 'node:http';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';

import { chromium } from 'playwright-core';

const executablePath = process.env.HEATSINK_CHROMIUM ?? '/usr/bin/chromium';
const args = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
const KEYS = 1000, ROUNDS = 9, SHARDS = 16;
const pictures = process.argv[2];

/** Sums of the last hour in steps of each span: what a gateway saves. */
function rings(end, rate) {
  return [1_000, 60_000, 600_000, 3_600_000].map((step) => {
    const last = Math.floor((end - 1) / step);
    const first = Math.max(Math.floor((end - 3_600_000) / step), last - 599);
    const cells = [];
    for (let at = first; at <= last; at++) {
      const [units, throttled] = rate((at * step - (end - 3_600_000)) / 3_600_000);
      cells.push([(units * step) / 1000, (throttled * step) / 1000]);
    }
    return { end: last + 1, cells };
  });
}

/** A history of ten tables with a hundred keys each: one that burns until it gets shards, others that come and go. */
function history(end) {
  const noise = (key, time) => 0.75 + 0.25 * Math.sin(key * 12.9898 + time * 78.233) + 0.2 * Math.sin(time * 2_000 + key);
  const rows = [];
  for (let key = 0; key < KEYS; key++) {
    const part = { table: `Leaderboards_${key % 10}`, index: null, kind: key % 3 ? 'Write' : 'Read' };
    const mean = 1500 / (1 + key / 8);
    const load = (time) => mean * Math.max(noise(key, time), 0.05);
    const row = { rings: rings(end, (time) => [load(time), 0]), sum: mean * 800, at: end, shards: [] };
    if (key === 1) {
      const viral = (time) => 300 + 4700 * Math.min(1, Math.max(0, time - 0.3) * 6);
      const fixed = (time) => time >= 0.7;
      row.rings = rings(end, (time) => [viral(time), fixed(time) ? 0 : Math.max(0, viral(time) - 1000)]);
      row.shards = [[end - 0.3 * 3_600_000, SHARDS]];
      row.measured = [...Array(SHARDS).keys()].map((shard) => rings(end, (time) => [time >= 0.72 ? (viral(time) / SHARDS) * (0.8 + 0.4 * Math.abs(noise(shard, time) - 0.75)) : 0, 0]));
    }
    rows.push([{ part, key: { kind: 'S', text: key === 1 ? 'game_x' : `game_${key}` } }, row]);
  }
  return { version: 1, rows };
}

async function serve(folder) {
  const file = join(folder, 'heat.json');
  writeFileSync(file, JSON.stringify(history(Math.floor(Date.now() / 1000) * 1000)));
  const gateway = spawn(process.env.HEATSINK_BIN, ['serve', '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0', '--heat-history', file, '--output', 'json'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = await once(gateway.stdout, 'data');
  return { gateway, admin: JSON.parse(line).admin };
}

/** The bytes of an answer as they come, and how long they take. */
function fetched(url, encoding) {
  return new Promise((resolve, reject) => {
    const began = performance.now();
    get(url, { headers: encoding ? { 'accept-encoding': encoding } : {} }, (answer) => {
      const pieces = [];
      answer.on('data', (piece) => pieces.push(piece)).on('end', () => resolve({ body: Buffer.concat(pieces), millis: performance.now() - began, encoding: answer.headers['content-encoding'] }));
    }).on('error', reject);
  });
}

const figures = (numbers) => {
  const all = numbers.map(Math.round).sort((a, b) => a - b);
  return `${all[Math.floor(all.length / 2)]} ms (${all[0]} to ${all.at(-1)})`;
};

/** Milliseconds until the first paint and until the map is drawn, by the clock and of the page's thread: a busy machine changes the latter little. */
async function visit(browser, url, hasMap) {
  const context = await browser.newContext({ viewport: { width: 1400, height: 1000 } });
  const page = await context.newPage();
  await browser.startTracing(page, { categories: ['toplevel', 'loading', 'blink.user_timing', 'devtools.timeline', 'disabled-by-default-devtools.timeline'] });
  await page.goto(url);
  await page.waitForFunction((name) => performance.getEntriesByName(name).length > 0, hasMap ? 'map-drawn' : 'first-contentful-paint');
  if (hasMap) {
    const keys = await page.evaluate(() => map.lines.filter((line) => line.row && line.shard === undefined).length);
    assert.equal(keys, KEYS, 'the map has a line for each key');
  }
  const events = JSON.parse((await browser.stopTracing()).toString()).traceEvents;
  await context.close();
  const paint = events.filter((event) => event.name === 'firstContentfulPaint').at(-1);
  const began = events.filter((event) => event.name === 'navigationStart' && event.pid === paint.pid).at(-1);
  const tasks = events.filter((event) => event.name === 'RunTask' && event.ph === 'X' && event.pid === paint.pid && event.tid === paint.tid && event.ts >= began.ts);
  const until = ({ ts }) => [(ts - began.ts) / 1000, tasks.filter((task) => task.ts < ts).reduce((sum, task) => sum + task.tdur, 0) / 1000];
  const drawn = events.filter((event) => event.name === 'map-drawn').at(-1);
  return { 'first paint': until(paint), ...(drawn ? { 'map drawn': until(drawn) } : {}) };
}

async function measure(browser, site) {
  const empty = createServer((_, response) => response.setHeader('content-type', 'text/html').end('<!doctype html><p>word')).listen(0, '127.0.0.1');
  await once(empty, 'listening');
  const urls = { 'a page of one word': `http://127.0.0.1:${empty.address().port}/`, '6h': `${site}/#span=6h`, '10m': `${site}/#span=10m` };
  const found = {};
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, url] of Object.entries(urls)) {
      for (const [what, [clock, thread]] of Object.entries(await visit(browser, url, url.startsWith(site)))) {
        const of = (found[`${name}: ${what}`] ??= { clock: [], thread: [] });
        of.clock.push(clock);
        of.thread.push(thread);
      }
    }
  }
  empty.close();
  for (const [what, { clock, thread }] of Object.entries(found)) console.log(`${what}: ${figures(clock)}; of it processor time of the page's thread: ${figures(thread)}`);
}

async function photograph(browser, site) {
  for (const [name, options] of Object.entries({
    light: { colorScheme: 'light' }, dark: { colorScheme: 'dark' }, narrow: { colorScheme: 'light', viewport: { width: 390, height: 844 } },
  })) {
    const context = await browser.newContext({ viewport: { width: 1400, height: 1000 }, ...options });
    const page = await context.newPage();
    await page.goto(`${site}/#span=6h`);
    await page.waitForFunction(() => performance.getEntriesByName('map-drawn').length > 0);
    await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true });
    await context.close();
  }
}

const folder = mkdtempSync(join(tmpdir(), 'heatsink-page-'));
const { gateway, admin } = await serve(folder);
const browser = await chromium.launch({ executablePath, args });
try {
  console.log(`${execFileSync(executablePath, ['--version']).toString().trim()}, headless; ${cpus().length} × ${cpus()[0].model}; load average ${loadavg().map((load) => load.toFixed(1)).join(', ')}; ${KEYS} keys × 1 h, ${ROUNDS} rounds, median (lowest to highest)`);
  for (const path of ['/', '/_heatsink/heat/map?span=6h', '/_heatsink/heat/map?span=10m']) {
    const plain = await fetched(admin + path), packed = await fetched(admin + path, 'gzip');
    assert.deepEqual([plain.encoding, packed.encoding], [undefined, 'gzip']);
    if (path !== '/') assert.equal(JSON.parse(plain.body).rows.length, KEYS);
    console.log(`${path}: ${plain.body.length} bytes in ${Math.round(plain.millis)} ms; gzip ${packed.body.length} bytes in ${Math.round(packed.millis)} ms`);
  }
  await measure(browser, admin);
  if (pictures) await photograph(browser, admin);
} finally {
  await browser.close();
  gateway.kill();
  await once(gateway, 'exit');
  rmSync(folder, { recursive: true });
}
