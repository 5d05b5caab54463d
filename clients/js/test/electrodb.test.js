// ElectroDB: entities and collections, its cursors (also those that it builds again from keys), upserts, batches, transactions.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe } from 'node:test';

import electrodb from 'electrodb';

import { documents, makeTable, test } from '../board.js';
import { cut, dropTable, everyOrder, index, LOBBY, messages as given, ordered } from '../chat.js';

const { createConversions, Entity, Service } = electrodb;
const table = 'Chat_electrodb';
const configuration = { client: documents, table };
const model = (entity) => ({ entity, version: '1', service: 'chat' });
const text = { type: 'string' };
// Numbers in composite keys are text: padded, they sort by value.
const rank = { type: 'number', required: true, padding: { length: 4, char: '0' } };

const Message = new Entity({
  model: model('message'),
  attributes: { room: text, id: text, author: text, topic: text, rank, text, likes: { type: 'number' } },
  indexes: {
    table: { pk: { field: 'pk', composite: ['room'] }, sk: { field: 'sk', composite: ['id'] } },
    by_topic: { index: 'local1', pk: { field: 'pk', composite: ['room'] }, sk: { field: 'local1sk', composite: ['topic'] } },
    by_rank: { index: 'shared1', pk: { field: 'pk', composite: ['room'] }, sk: { field: 'shared1sk', composite: ['rank'] } },
    by_author: {
      index: 'global1', collection: 'activity',
      pk: { field: 'global1pk', composite: ['author'] }, sk: { field: 'global1sk', composite: ['rank'] } },
  },
}, configuration);

const Pin = new Entity({
  model: model('pin'),
  attributes: { room: text, at: text, author: text, note: text },
  indexes: {
    table: { pk: { field: 'pk', composite: ['room'] }, sk: { field: 'sk', composite: ['at'] } },
    by_author: {
      index: 'global1', collection: 'activity',
      pk: { field: 'global1pk', composite: ['author'] }, sk: { field: 'global1sk', composite: ['at'] } },
  },
}, configuration);

const Chat = new Service({ messages: Message, pins: Pin }, configuration);

// Ranks are text here, so none may be negative.
const messages = given.map((message) => ({ ...message, rank: message.rank + 50 }));
const pins = Array.from({ length: 9 }, (_, n) => ({ room: LOBBY, at: `2026-0${n + 1}`, author: 'bob', note: `pin ${n}` }));
const want = (name, forward, keep) => ordered(name, forward, keep).map((message) => ({ ...message, rank: message.rank + 50 }));
const ids = (found) => found.map(({ id }) => id);
const order = (forward) => (forward ? 'asc' : 'desc');

/** The query of one order, and the name of the access pattern behind it. */
function query(name) {
  return name === 'by_author' ? Message.query.by_author({ author: 'bob' }) : Message.query[name]({ room: LOBBY });
}

describe('electrodb', () => {
  before(async () => {
    await makeTable(
      table, ['pk', 'sk'], { pk: 'S', sk: 'S', local1sk: 'S', shared1sk: 'S', global1pk: 'S', global1sk: 'S' }, {
        LocalSecondaryIndexes: [index('local1', 'pk', 'local1sk')],
        GlobalSecondaryIndexes: [index('shared1', 'pk', 'shared1sk', 1000), index('global1', 'global1pk', 'global1sk', 1000)],
      });
    for (const [entity, rows] of [[Message, messages], [Pin, pins]]) {
      let left = rows;
      while (left.length > 0) left = (await entity.put(left).go()).unprocessed;
    }
  });
  after(() => dropTable(table));

  test('pages are exact, and cursors lead from one to the next', () => everyOrder(async (name, forward) => {
    for (const limit of [6, 10]) {
      const pages = cut(want(name, forward), limit);
      let cursor = null;
      for (const [number, page] of pages.entries()) {
        const found = await query(name).go({ limit, cursor, order: order(forward) });
        assert.deepEqual(found.data, page);
        cursor = found.cursor;
        assert.equal(cursor === null, number === pages.length - 1);
      }
    }
  }));

  test('a count that ends inside a page makes a cursor from the last item', () => everyOrder(async (name, forward) => {
    const pages = cut(want(name, forward), 7);
    let cursor = null;
    const got = [];
    do {
      const found = await query(name).go({ count: 7, limit: 5, cursor, order: order(forward) });
      got.push(found.data);
      cursor = found.cursor;
    } while (cursor !== null && got.length <= pages.length);
    assert.deepEqual(got.filter((page) => page.length > 0), pages.filter((page) => page.length > 0));
  }));

  test('a cursor built from an item is as good as the one given', () => everyOrder(async (name, forward) => {
    const all = want(name, forward);
    for (const place of [0, 9, all.length - 2]) {
      const pattern = createConversions(Message).byAccessPattern[name];
      const cursor = pattern.fromComposite.toCursor(all[place]);
      const found = await query(name).go({ limit: 8, cursor, order: order(forward) });
      assert.deepEqual(found.data, all.slice(place + 1, place + 9));
      assert.deepEqual(pattern.fromKeys.toCursor(pattern.fromCursor.toKeys(cursor)), cursor);
    }
  }));

  test('all pages at once', () => everyOrder(async (name, forward) => {
    const all = await query(name).go({ pages: 'all', limit: 9, order: order(forward) });
    assert.deepEqual([all.data, all.cursor], [want(name, forward), null]);
    const some = await query(name).go({ pages: 2, limit: 6, order: order(forward) });
    assert.deepEqual(some.data, want(name, forward).slice(0, 12));
  }));

  test('sort key conditions and filters', async () => {
    for (const forward of [true, false]) {
      const go = { pages: 'all', limit: 7, order: order(forward) };
      const room = () => Message.query.table({ room: LOBBY });
      for (const [asked, keep] of [
        [room().between({ id: '0010' }, { id: '0040' }), ({ id }) => id >= '0010' && id <= '0040'],
        [room().gt({ id: '0033' }), ({ id }) => id > '0033'],
        [room().lte({ id: '0033' }), ({ id }) => id <= '0033'],
        [room().begins({ id: '001' }), ({ id }) => id.startsWith('001')],
        [room().where(({ author }, { eq }) => eq(author, 'ann')), ({ author }) => author === 'ann'],
      ]) {
        assert.deepEqual((await asked.go(go)).data, want('table', forward, keep));
      }
      const ranks = await Message.query.by_rank({ room: LOBBY }).between({ rank: 30 }, { rank: 70 }).go(go);
      assert.deepEqual(ranks.data, want('by_rank', forward, (message) => message.rank >= -20 && message.rank <= 20));
    }
  });

  test('a collection gives the entities of one author together', async () => {
    for (const forward of [true, false]) {
      const whole = await Chat.collections.activity({ author: 'bob' }).go({ pages: 'all', limit: 7, order: order(forward) });
      assert.deepEqual(whole.data.messages, want('by_author', forward));
      assert.deepEqual(whole.data.pins, forward ? pins : [...pins].reverse());
      const got = { messages: [], pins: [] };
      let cursor = null;
      do {
        const page = await Chat.collections.activity({ author: 'bob' }).go({ limit: 10, cursor, order: order(forward) });
        got.messages.push(...page.data.messages);
        got.pins.push(...page.data.pins);
        cursor = page.cursor;
      } while (cursor);
      assert.deepEqual(got, whole.data);
    }
  });

  test('a scan sees every entity of its kind once', async () => {
    const byId = (a, b) => (a.id < b.id ? -1 : 1);
    assert.deepEqual((await Message.scan.go({ pages: 'all', limit: 13 })).data.sort(byId), messages);
    const matched = await Message.match({ author: 'cyd' }).go({ pages: 'all' });
    assert.deepEqual(matched.data.sort(byId), messages.filter(({ author }) => author === 'cyd'));
  });

  test('upsert, patch, update, create, delete', async () => {
    const key = { room: 'written', id: '1' };
    const item = { ...key, author: 'dan', topic: 'zz', rank: 7, text: 'one' };
    assert.deepEqual((await Message.upsert(item).go({ response: 'all_new' })).data, item);
    const again = await Message.upsert({ ...item, text: 'two' }).add({ likes: 1 }).go({ response: 'all_new' });
    assert.deepEqual(again.data, { ...item, text: 'two', likes: 1 });
    const patched = await Message.patch(key).add({ likes: 2 }).where(({ text: t }, { eq }) => eq(t, 'two')).go({ response: 'updated_new' });
    // ElectroDB writes the parts of the key beside it, as attributes.
    assert.deepEqual(patched.data, { ...key, likes: 3 });
    await assert.rejects(
      Message.patch(key).set({ text: 'three' }).where(({ text: t }, { eq }) => eq(t, 'one')).go(), /conditional request failed/i);
    await assert.rejects(Message.patch({ room: 'written', id: 'none' }).set({ text: 'x' }).go(), /conditional request failed/i);
    await assert.rejects(Message.create(item).go(), /conditional request failed/i);
    assert.deepEqual((await Message.get(key).go()).data, { ...item, text: 'two', likes: 3 });
    assert.deepEqual((await Message.query.by_author({ author: 'dan' }).go()).data.length, 1);
    assert.deepEqual((await Message.delete(key).go({ response: 'all_old' })).data, { ...item, text: 'two', likes: 3 });
    assert.equal((await Message.get(key).go()).data, null);
    await assert.rejects(Message.remove(key).go(), /conditional request failed/i);
  });

  test('batches keep their order', async () => {
    const rows = Array.from({ length: 40 }, (_, n) => ({ ...messages[0], room: 'batched', id: String(n).padStart(2, '0') }));
    assert.deepEqual((await Message.put(rows).go()).unprocessed, []);
    const asked = rows.map(({ room, id }) => ({ room, id })).reverse();
    const found = await Message.get([...asked, { room: 'batched', id: 'none' }]).go({ preserveBatchOrder: true });
    assert.deepEqual(found.data, [...rows].reverse().concat(null));
    assert.deepEqual(found.unprocessed, []);
    assert.deepEqual((await Message.delete(asked.slice(10)).go()).unprocessed, []);
    const left = await Message.query.table({ room: 'batched' }).go({ pages: 'all', limit: 3, order: 'desc' });
    assert.deepEqual(ids(left.data), ids(rows.slice(30).reverse()));
  });

  test('transactions', async () => {
    const row = (id) => ({ ...messages[0], room: 'moved', id });
    const write = () => Chat.transaction.write(({ messages: m, pins: p }) => [
      m.put(row('1')).commit(), m.create(row('2')).commit(), p.put({ ...pins[0], room: 'moved' }).commit()]);
    const token = randomUUID();
    assert.equal((await write().go({ token })).canceled, false);
    // A retry under the same token is the same transaction: `create` does not fail.
    assert.equal((await write().go({ token })).canceled, false);
    const cancelled = await Chat.transaction.write(({ messages: m }) => [
      m.delete({ room: 'moved', id: '1' }).commit(),
      m.create(row('2')).commit({ response: 'all_old' }),
      m.check({ room: 'moved', id: '3' }).where(({ text: t }, { exists }) => exists(t)).commit(),
    ]).go();
    assert.equal(cancelled.canceled, true);
    assert.deepEqual(cancelled.data.map(({ code }) => code), ['None', 'ConditionalCheckFailed', 'ConditionalCheckFailed']);
    assert.deepEqual(cancelled.data[1].item, row('2'));
    const read = await Chat.transaction.get(({ messages: m, pins: p }) => [
      p.get({ room: 'moved', at: pins[0].at }).commit(), m.get({ room: 'moved', id: '3' }).commit(), m.get({ room: 'moved', id: '1' }).commit()]).go();
    assert.deepEqual(read.data.map(({ item }) => item), [{ ...pins[0], room: 'moved' }, null, row('1')]);
  });
});
