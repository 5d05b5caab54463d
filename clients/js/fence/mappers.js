// ElectroDB and OneTable at the gateways of `clients/fence`: each line of stdin is a call, each of stdout what came of it. Nothing is sent again here,
// so every outcome is the gateway's own. Not here: which calls are made and what must come of them, which clients/python/fence knows.

import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';

import { Table } from 'dynamodb-onetable';
import { Dynamo } from 'dynamodb-onetable/Dynamo';
import { Entity } from 'electrodb';

import { connect } from '../stage.js';

// For how many milliseconds a page is asked for again, and the pause between.
const PATIENCE = 30_000;
const PAUSE = 50;

const [table, ...endpoints] = process.argv.slice(2);
const clients = endpoints.map((endpoint) => connect(endpoint, 1));

/** Of both: rows as `pk, sk, v, n`. */
const row = ({ pk, sk, v, n }) => [pk, sk, v ?? null, n ?? null];

function electro(client) {
  const text = { type: 'string', required: true };
  const tasks = new Entity({
    model: { entity: 'task', version: '1', service: 'storm' },
    attributes: { team: text, id: text, v: { type: 'string' }, n: { type: 'number' } },
    indexes: { own: { pk: { field: 'pk', composite: ['team'] }, sk: { field: 'sk', composite: ['id'] } } },
  }, { table, client });
  const whole = { data: 'includeKeys', consistent: true };
  const page = ({ data, cursor }) => [data.map(row), cursor];
  return {
    put: ({ item }) => tasks.put(item).go(),
    create: ({ item }) => tasks.create(item).go(),
    update: ({ key, v }) => tasks.update(key).set({ v }).go(),
    add: ({ key }) => tasks.update(key).add({ n: 1 }).go(),
    delete: ({ key }) => tasks.delete(key).go(),
    batch: async ({ items }) => {
      const { unprocessed } = await tasks.put(items).go();
      if (unprocessed.length > 0) throw new Error('some were left out');
    },
    get: async ({ key }) => [(await tasks.get(key).go(whole)).data].filter(Boolean).map(row),
    find: async ({ team, limit, order }, cursor) => page(await tasks.query.own({ team }).go({ ...whole, limit, order, cursor })),
    all: async ({ team, limit, order }) => (await tasks.query.own({ team }).go({ ...whole, limit, order, pages: 'all' })).data.map(row),
    scan: async ({ limit }, cursor) => page(await tasks.scan.go({ ...whole, limit, cursor })),
  };
}

function onetable(client) {
  const text = (value) => ({ type: String, ...(value && { value }) });
  const schema = {
    format: 'onetable:1.1.0', version: '0.0.1', indexes: { primary: { hash: 'pk', sort: 'sk' } },
    models: { Task: { pk: text('team#${team}'), sk: text('task#${id}'), team: text(), id: text(), v: text(), n: { type: Number } } },
  };
  const quiet = { log: false, hidden: true };
  const store = new Table({ client: new Dynamo({ client }), name: table, partial: true, schema, logger: false });
  const tasks = store.getModel('Task');
  const whole = { ...quiet, consistent: true, parse: true };
  const found = (item) => [item].filter(Boolean).map(row);
  const page = (rows) => [rows.map(row), rows.next];
  return {
    put: ({ item }) => tasks.create(item, { ...quiet, exists: null }),
    create: ({ item }) => tasks.create(item, quiet),
    update: ({ key, v }) => tasks.update({ ...key, v }, { ...quiet, exists: null }),
    add: ({ key }) => tasks.update(key, { ...quiet, exists: null, add: { n: 1 } }),
    delete: ({ key }) => tasks.remove(key, { ...quiet, exists: null }),
    batch: async ({ items }) => {
      const batch = {};
      for (const item of items) await tasks.create(item, { ...quiet, exists: null, batch });
      await store.batchWrite(batch);
    },
    get: async ({ key }) => found(await tasks.get(key, whole)),
    find: async ({ team, limit, order }, next) => page(await tasks.find({ team }, { ...whole, limit, reverse: order === 'desc', next })),
    all: async ({ team, order }) => (await tasks.find({ team }, { ...whole, reverse: order === 'desc' })).map(row),
    scan: async ({ limit }, next) => page(await tasks.scan({}, { ...whole, limit, next })),
  };
}

const mappers = { ElectroDB: clients.map(electro), OneTable: clients.map(onetable) };

/** What the SDK told, under whatever the mapper has wrapped it in. */
function cause(error) {
  for (let at = error, depth = 0; at && depth < 5; at = at.cause ?? at.context?.err, depth += 1) {
    if (at.$metadata) return at;
  }
  return error;
}

function told(error) {
  const of = cause(error);
  // Without a status nothing was answered. Nobody listened where the connection was refused.
  const status = of.$response?.statusCode ?? of.$metadata?.httpStatusCode ?? null;
  return { status, refused: of.code === 'ECONNREFUSED', name: of.name, message: String(of.message).slice(0, 400) };
}

/** All pages, each at the next gateway. A page that is refused is asked for again, with the position that the mapper gave. */
async function pages(of, { call, gateway, patience = PATIENCE, ...asked }) {
  const rows = [];
  let [position, at, since] = [undefined, gateway, null];
  for (;;) {
    try {
      const [found, next] = await of[at % of.length][call](asked, position);
      rows.push(...found);
      if (!next) return rows;
      [position, since] = [next, null];
    } catch (error) {
      const { message } = told(error);
      since ??= Date.now();
      if (/[Bb]egin the Scan, the Query, or the statement again/.test(message) || Date.now() - since > patience) throw error;
      await setTimeout(PAUSE);
    }
    at += 1;
  }
}

async function answer({ number, mapper, ...request }) {
  const { call, gateway } = request;
  let said;
  try {
    const of = mappers[mapper];
    const rows = await (['find', 'scan'].includes(call) ? pages(of, request) : of[gateway][call](request));
    said = { number, rows: Array.isArray(rows) ? rows : null };
  } catch (error) {
    said = { number, error: told(error) };
  }
  process.stdout.write(`${JSON.stringify(said)}\n`);
}

for await (const line of createInterface(process.stdin)) answer(JSON.parse(line));
