// dynamodb-toolbox: entities, queries with keys to start from that are built from an item, scans, batches, transactions.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe } from 'node:test';

import {
  BatchDeleteRequest, BatchGetCommand, BatchGetRequest, BatchPutRequest, BatchWriteCommand, ConditionCheck, DeleteItemCommand,
  DeleteTransaction, Entity, executeBatchGet, executeBatchWrite, executeTransactGet, executeTransactWrite, GetItemCommand,
  GetTransaction, $add, item, number, PutItemCommand, PutTransaction, QueryCommand, ScanCommand, string, Table,
  UpdateItemCommand, UpdateTransaction,
} from 'dynamodb-toolbox';

import { documents, makeTable, test } from '../board.js';
import { cursor, cut, dropTable, everyOrder, index, LOBBY, messages, ordered, ORDERS } from '../chat.js';

const name = 'Chat_toolbox';
const key = (attribute, type = 'string') => ({ name: attribute, type });
const Rooms = new Table({
  name,
  documentClient: documents,
  partitionKey: key('room'),
  sortKey: key('id'),
  indexes: {
    by_topic: { type: 'local', sortKey: key('topic') },
    by_rank: { type: 'global', partitionKey: key('room'), sortKey: key('rank', 'number') },
    by_author: { type: 'global', partitionKey: key('author'), sortKey: key('rank', 'number') },
  },
});
const Message = new Entity({
  name: 'message', table: Rooms, timestamps: false,
  schema: item({
    room: string().key(), id: string().key(), author: string(), rank: number(), topic: string(), text: string(),
    likes: number().optional(),
  }),
});

/** The Query of one order. */
function query(order, options, range) {
  const { value } = ORDERS[order];
  return Rooms.build(QueryCommand).entities(Message)
    .query({ ...(order !== 'table' && { index: order }), partition: value, ...(range && { range }) }).options(options).send();
}
const byId = (a, b) => (a.id < b.id ? -1 : 1);
const row = (room, id) => ({ ...messages[0], room, id });
const rowsOf = async (room) => (await Rooms.build(QueryCommand).entities(Message).query({ partition: room }).options({ maxPages: Infinity }).send()).Items;

async function write(rows) {
  for (let start = 0; start < rows.length; start += 25) {
    const puts = rows.slice(start, start + 25).map((one) => Message.build(BatchPutRequest).item(one));
    await executeBatchWrite({ maxAttempts: 20 }, Rooms.build(BatchWriteCommand).requests(...puts));
  }
}

describe('dynamodb-toolbox', () => {
  before(async () => {
    await makeTable(name, ['room', 'id'], { room: 'S', id: 'S', topic: 'S', author: 'S', rank: 'N' }, {
      LocalSecondaryIndexes: [index('by_topic', 'room', 'topic')],
      GlobalSecondaryIndexes: [index('by_rank', 'room', 'rank', 1000), index('by_author', 'author', 'rank', 1000)],
    });
    await write(messages);
  });
  after(() => dropTable(name));

  test('pages are exact; each starts from a key built from the last item', () => everyOrder(async (order, forward) => {
    for (const limit of [6, 7]) {
      let exclusiveStartKey;
      for (const page of cut(ordered(order, forward), limit)) {
        const found = await query(order, { limit, reverse: !forward, exclusiveStartKey });
        assert.deepEqual(found.Items, page);
        assert.deepEqual([found.Count, found.ScannedCount], [page.length, page.length]);
        assert.deepEqual(found.LastEvaluatedKey, page.length === limit ? cursor(page.at(-1), order) : undefined);
        exclusiveStartKey = found.Items.length > 0 ? cursor(found.Items.at(-1), order) : undefined;
      }
    }
  }));

  test('all pages in one call, or the first few', () => everyOrder(async (order, forward) => {
    const all = ordered(order, forward);
    const whole = await query(order, { limit: 8, reverse: !forward, maxPages: Infinity });
    assert.deepEqual(whole.Items, all);
    const some = await query(order, { limit: 5, reverse: !forward, maxPages: 3 });
    assert.deepEqual([some.Items, some.LastEvaluatedKey], [all.slice(0, 15), cursor(all[14], order)]);
  }));

  test('ranges, filters and chosen attributes', async () => {
    for (const reverse of [false, true]) {
      const options = { reverse, limit: 9, maxPages: Infinity };
      for (const [order, range, keep] of [
        ['table', { between: ['0010', '0050'] }, ({ id }) => id >= '0010' && id <= '0050'],
        ['table', { beginsWith: '002' }, ({ id }) => id.startsWith('002')],
        ['by_rank', { gte: -5 }, ({ rank }) => rank >= -5],
        ['by_author', { between: [-20, 20] }, ({ rank }) => rank >= -20 && rank <= 20],
        ['by_topic', { lt: '40' }, ({ topic }) => topic < '40'],
      ]) {
        assert.deepEqual((await query(order, options, range)).Items, ordered(order, !reverse, keep));
      }
      const filters = { message: { and: [{ attr: 'author', in: ['ann', 'cyd'] }, { not: { attr: 'text', contains: '3' } }] } };
      const filtered = await query('table', { ...options, filters, attributes: ['id', 'text'] });
      const keep = ({ author, text }) => author !== 'bob' && !text.includes('3');
      assert.deepEqual(filtered.Items, ordered('table', !reverse, keep).map(({ id, text }) => ({ id, text })));
      assert.equal(filtered.ScannedCount, ordered('table').length);
      const counted = await query('table', { ...options, select: 'COUNT' });
      assert.equal(counted.Count, ordered('table').length);
    }
    const one = await query('table', { consistent: true, capacity: 'TOTAL' }, { eq: '0007' });
    assert.deepEqual(one.Items, ordered('table', true, ({ id }) => id === '0007'));
    assert.ok(one.ConsumedCapacity.CapacityUnits > 0);
  });

  test('scans', async () => {
    const scan = (options) => Rooms.build(ScanCommand).entities(Message).options(options).send();
    assert.deepEqual((await scan({ limit: 10, maxPages: Infinity })).Items.sort(byId), messages);
    assert.deepEqual((await scan({ index: 'by_author', limit: 20, maxPages: Infinity })).Items.sort(byId), messages);
    const parts = await Promise.all([0, 1, 2].map((segment) => scan({ segment, totalSegments: 3, limit: 6, maxPages: Infinity })));
    assert.deepEqual(parts.flatMap((part) => part.Items).sort(byId), messages);
    const first = await scan({ limit: 31 });
    const rest = await scan({ exclusiveStartKey: cursor(first.Items.at(-1)), limit: 30, maxPages: Infinity });
    assert.deepEqual([...first.Items, ...rest.Items].sort(byId), messages);
    const filters = { message: { attr: 'room', eq: LOBBY } };
    assert.equal((await scan({ filters, select: 'COUNT', maxPages: Infinity })).Count, 70);
  });

  test('put, get, update, delete, with conditions and what was there', async () => {
    const Key = { room: 'written', id: '1' };
    const one = row('written', '1');
    const put = (options, text = 'one') => Message.build(PutItemCommand).item({ ...one, text }).options(options).send();
    await put({ condition: { attr: 'room', exists: false } });
    await assert.rejects(put({ condition: { attr: 'room', exists: false } }), { name: 'ConditionalCheckFailedException' });
    assert.deepEqual((await put({ returnValues: 'ALL_OLD' }, 'two')).Attributes, { ...one, text: 'one' });
    const update = (likes, options) => Message.build(UpdateItemCommand).item({ ...Key, likes }).options(options).send();
    assert.deepEqual((await update($add(3), { returnValues: 'ALL_NEW' })).Attributes, { ...one, text: 'two', likes: 3 });
    await update($add(4), { condition: { and: [{ attr: 'room', eq: 'written' }, { attr: 'likes', lt: 4 }] } });
    await assert.rejects(update($add(4), { condition: { attr: 'likes', lt: 4 } }), { name: 'ConditionalCheckFailedException' });
    const get = (options) => Message.build(GetItemCommand).key(Key).options(options).send();
    assert.deepEqual((await get({ consistent: true, attributes: ['room', 'likes'] })).Item, { room: 'written', likes: 7 });
    const gone = await Message.build(DeleteItemCommand).key(Key).options({ returnValues: 'ALL_OLD' }).send();
    assert.deepEqual(gone.Attributes, { ...one, text: 'two', likes: 7 });
    assert.equal((await get({})).Item, undefined);
  });

  test('batches answer in the order they were asked', async () => {
    const rows = Array.from({ length: 40 }, (_, n) => row('batched', String(n).padStart(2, '0')));
    await write(rows);
    assert.deepEqual(await rowsOf('batched'), rows);
    const asked = [...rows].reverse().map(({ room, id }) => Message.build(BatchGetRequest).key({ room, id }));
    const { Responses: [found] } = await executeBatchGet({ maxAttempts: 20 }, Rooms.build(BatchGetCommand).requests(...asked));
    assert.deepEqual(found, [...rows].reverse());
    const remove = rows.slice(0, 25).map(({ room, id }) => Message.build(BatchDeleteRequest).key({ room, id }));
    await executeBatchWrite({ maxAttempts: 20 }, Rooms.build(BatchWriteCommand).requests(...remove));
    assert.deepEqual(await rowsOf('batched'), rows.slice(25));
  });

  test('transactions', async () => {
    const at = (id) => ({ room: 'moved', id });
    const clientRequestToken = randomUUID();
    for (let times = 0; times < 2; times += 1) {
      const puts = ['1', '2', '3', '4'].map((id) => Message.build(PutTransaction).item(row('moved', id))
        .options({ condition: { attr: 'room', exists: false } }));
      await executeTransactWrite({ clientRequestToken }, ...puts);
    }
    await executeTransactWrite(
      Message.build(UpdateTransaction).item({ ...at('1'), text: 'new' }),
      Message.build(DeleteTransaction).key(at('2')),
      Message.build(ConditionCheck).key(at('3')).condition({ attr: 'room', eq: 'moved' }));
    const left = [{ ...row('moved', '1'), text: 'new' }, row('moved', '3'), row('moved', '4')];
    assert.deepEqual(await rowsOf('moved'), left);
    await assert.rejects(
      executeTransactWrite(
        Message.build(PutTransaction).item(row('moved', '9')),
        Message.build(ConditionCheck).key(at('3')).condition({ attr: 'text', eq: 'other' }),
        Message.build(DeleteTransaction).key(at('4'))),
      (error) => {
        assert.equal(error.name, 'TransactionCanceledException');
        assert.deepEqual(error.CancellationReasons.map(({ Code }) => Code), ['None', 'ConditionalCheckFailed', 'None']);
        return true;
      });
    assert.deepEqual(await rowsOf('moved'), left);
    const { Responses } = await executeTransactGet(...['4', '2', '1'].map((id) => Message.build(GetTransaction).key(at(id))));
    assert.deepEqual(Responses.map(({ Item }) => Item), [left[2], undefined, left[0]]);
  });
});
