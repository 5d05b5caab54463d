// @aws-sdk/lib-dynamodb: its paginators, its transactions and batches, and how it marshals.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { IdempotentParameterMismatchException, TransactionCanceledException } from '@aws-sdk/client-dynamodb';
import {
  BatchGetCommand, BatchWriteCommand, DynamoDBDocumentClient, ExecuteStatementCommand, GetCommand, NumberValue, paginateQuery,
  paginateScan, PutCommand, QueryCommand, ScanCommand, TransactGetCommand, TransactWriteCommand, UpdateCommand,
} from '@aws-sdk/lib-dynamodb';
import { unmarshall } from '@aws-sdk/util-dynamodb';

import { connect, documents, makeTable, test } from '../board.js';
import { cursor, cut, dropTable, everyOrder, LOBBY, makeRooms, messages, ordered, ORDERS } from '../chat.js';

const Rooms = 'Chat_documents';
const TableName = 'Documents_js';

/** The Query of one order. */
function query(index, forward, more) {
  const { partition, value } = ORDERS[index];
  return {
    TableName: Rooms, ...(index !== 'table' && { IndexName: index }), KeyConditionExpression: '#p = :p',
    ExpressionAttributeNames: { '#p': partition }, ExpressionAttributeValues: { ':p': value }, ScanIndexForward: forward, ...more,
  };
}
const byId = (a, b) => (a.id < b.id ? -1 : 1);
const collect = async (pages) => {
  const all = [];
  for await (const page of pages) all.push(page);
  return all;
};

describe('paginators', () => {
  before(() => makeRooms(Rooms));
  after(() => dropTable(Rooms));

  for (const pageSize of [6, 7, 10]) {
    test(`paginateQuery gives exact pages of ${pageSize}`, () => everyOrder(async (index, forward) => {
      const want = cut(ordered(index, forward), pageSize);
      assert.ok(want.length >= 3);
      const pages = await collect(paginateQuery({ client: documents, pageSize }, query(index, forward)));
      assert.deepEqual(pages.map((page) => page.Items), want);
      assert.deepEqual(
        pages.map((page) => page.LastEvaluatedKey),
        want.map((page) => (page.length === pageSize ? cursor(page.at(-1), index) : undefined)));
      assert.deepEqual(pages.map((page) => [page.Count, page.ScannedCount]), want.map((page) => [page.length, page.length]));
    }));
  }

  test('paginateQuery starts from a key built from an item', () => everyOrder(async (index, forward) => {
    const want = ordered(index, forward);
    for (const place of [0, 8, want.length - 2]) {
      const startingToken = cursor(want[place], index);
      const pages = await collect(paginateQuery({ client: documents, pageSize: 9, startingToken }, query(index, forward)));
      assert.deepEqual(pages.flatMap((page) => page.Items), want.slice(place + 1));
    }
  }));

  test('paginateQuery stops on the same token', async () => {
    const input = query('by_author', false, { FilterExpression: 'attribute_not_exists(room)' });
    const pages = await collect(paginateQuery({ client: documents, pageSize: 4, stopOnSameToken: true }, input));
    assert.deepEqual(pages.map((page) => page.Count), cut(ordered('by_author'), 4).map(() => 0));
  });

  test('paginateScan sees every message once, on the table and on indexes', async () => {
    for (const IndexName of [undefined, 'by_topic', 'by_rank', 'by_author']) {
      const pages = await collect(paginateScan({ client: documents, pageSize: 11 }, { TableName: Rooms, IndexName }));
      assert.deepEqual(pages.flatMap((page) => page.Items).sort(byId), messages);
      assert.ok(pages.every((page) => page.ScannedCount <= 11));
      const [start] = pages;
      const rest = await collect(paginateScan(
        { client: documents, pageSize: 30, startingToken: cursor(start.Items.at(-1), IndexName) }, { TableName: Rooms, IndexName }));
      assert.deepEqual([...start.Items, ...rest.flatMap((page) => page.Items)].sort(byId), messages);
    }
  });
});

describe('documents', () => {
  before(() => makeTable(TableName, ['pk', 'sk'], { pk: 'S', sk: 'S' }, { units: 40000 }));
  after(() => dropTable(TableName));

  test('marshalling options', async () => {
    class Score {
      constructor(value) { this.value = value; }
    }
    // A connection of its own: the options would reach every document client of a shared one.
    const own = DynamoDBDocumentClient.from(connect(), {
      marshallOptions: {
        removeUndefinedValues: true, convertEmptyValues: true, convertClassInstanceToMap: true, allowImpreciseNumbers: true },
      unmarshallOptions: { wrapNumbers: true },
    });
    const Item = {
      pk: 'hot', sk: 'options', gone: undefined, empty: '', none: new Set(), score: new Score(3), bytes: Uint8Array.from([0, 255]),
      big: 123456789012345678901234567890n, exact: NumberValue.from('0.1234567890123456789012345678901234567'),
    };
    await own.send(new PutCommand({ TableName, Item }));
    const Key = { pk: 'hot', sk: 'options' };
    const wrapped = (await own.send(new GetCommand({ TableName, Key }))).Item;
    assert.deepEqual(Object.keys(wrapped).sort(), ['big', 'bytes', 'empty', 'exact', 'none', 'pk', 'score', 'sk']);
    assert.deepEqual([wrapped.empty, wrapped.none, wrapped.bytes], [null, null, Item.bytes]);
    assert.equal(wrapped.big.value ?? String(wrapped.big), '123456789012345678901234567890');
    assert.equal(wrapped.exact.value, '0.1234567890123456789012345678901234567');
    assert.equal(wrapped.score.value.value, '3');
    // The plain client refuses what it would have to round or drop.
    await assert.rejects(documents.send(new PutCommand({ TableName, Item: { ...Key, n: 2 ** 60 } })), /MAX_SAFE_INTEGER/);
  });

  const put = (sk, more) => ({ Put: { TableName, Item: { pk: 'transact', sk, n: 1 }, ...more } });
  const all = async () => (await documents.send(new QueryCommand({
    TableName, KeyConditionExpression: 'pk = :p', ExpressionAttributeValues: { ':p': 'transact' } }))).Items.map(({ sk, n }) => [sk, n]);

  test('a transaction is done once for each token', async () => {
    const ClientRequestToken = randomUUID();
    const input = { ClientRequestToken, TransactItems: ['a', 'b', 'c', 'd', 'e', 'f'].map((sk) => put(sk)) };
    await documents.send(new TransactWriteCommand(input));
    const change = { UpdateExpression: 'ADD n :n', ExpressionAttributeValues: { ':n': 10 } };
    await documents.send(new UpdateCommand({ TableName, Key: { pk: 'transact', sk: 'a' }, ...change }));
    await documents.send(new TransactWriteCommand(input));
    assert.deepEqual(await all(), [['a', 11], ['b', 1], ['c', 1], ['d', 1], ['e', 1], ['f', 1]]);
    await assert.rejects(
      documents.send(new TransactWriteCommand({ ClientRequestToken, TransactItems: [put('a')] })),
      (error) => error instanceof IdempotentParameterMismatchException);
    await documents.send(new TransactWriteCommand({ TransactItems: [
      { Update: { TableName, Key: { pk: 'transact', sk: 'b' }, ...change } },
      { Delete: { TableName, Key: { pk: 'transact', sk: 'c' } } },
      { ConditionCheck: {
        TableName, Key: { pk: 'transact', sk: 'd' }, ConditionExpression: 'pk = :p',
        ExpressionAttributeValues: { ':p': 'transact' } } },
    ] }));
    assert.deepEqual(await all(), [['a', 11], ['b', 11], ['d', 1], ['e', 1], ['f', 1]]);
    const get = (sk) => ({ Get: { TableName, Key: { pk: 'transact', sk } } });
    const { Responses } = await documents.send(new TransactGetCommand({ TransactItems: [get('f'), get('c'), get('a')] }));
    assert.deepEqual(Responses.map(({ Item }) => Item), [
      { pk: 'transact', sk: 'f', n: 1 }, undefined, { pk: 'transact', sk: 'a', n: 11 }]);
  });

  test('a cancelled transaction says why, in the order of its actions', async () => {
    const untouched = await all();
    const exists = { ConditionExpression: 'attribute_not_exists(pk)', ReturnValuesOnConditionCheckFailure: 'ALL_OLD' };
    await assert.rejects(
      documents.send(new TransactWriteCommand({ TransactItems: [put('x'), put('f', exists), put('y'), put('d', exists)] })),
      (error) => {
        assert.ok(error instanceof TransactionCanceledException);
        assert.deepEqual(
          error.CancellationReasons.map(({ Code }) => Code), ['None', 'ConditionalCheckFailed', 'None', 'ConditionalCheckFailed']);
        // An error's items are not unmarshalled by the document client.
        assert.deepEqual(error.CancellationReasons.map(({ Item }) => Item && unmarshall(Item)), [
          undefined, { pk: 'transact', sk: 'f', n: 1 }, undefined, { pk: 'transact', sk: 'd', n: 1 }]);
        return true;
      });
    assert.deepEqual(await all(), untouched);
    const twice = documents.send(new TransactWriteCommand({ TransactItems: [put('z'), put('z')] }));
    await assert.rejects(twice, {
      name: 'ValidationException', message: 'Transaction request cannot include multiple operations on one item' });
  });

  test('a batch of more than 16 MB is given back in part', async () => {
    const blob = 'x'.repeat(350_000);
    const keys = Array.from({ length: 60 }, (_, n) => ({ pk: `wide_${n % 30}`, sk: String(n).padStart(2, '0') }));
    for (let start = 0; start < keys.length; start += 20) {
      let left = { [TableName]: keys.slice(start, start + 20).map((key) => ({ PutRequest: { Item: { ...key, blob } } })) };
      while (left?.[TableName]) left = (await documents.send(new BatchWriteCommand({ RequestItems: left }))).UnprocessedItems;
    }
    const found = [];
    let [left, requests] = [{ [TableName]: { Keys: keys } }, 0];
    for (; left?.[TableName]; requests += 1) {
      const answer = await documents.send(new BatchGetCommand({ RequestItems: left }));
      found.push(...answer.Responses[TableName].map(({ pk, sk }) => ({ pk, sk })));
      left = answer.UnprocessedKeys;
      for (const key of left?.[TableName]?.Keys ?? []) assert.ok(keys.some(({ pk, sk }) => pk === key.pk && sk === key.sk));
      assert.ok(requests < 20);
    }
    assert.ok(requests > 1);
    assert.deepEqual(found.sort((a, b) => (a.sk < b.sk ? -1 : 1)), keys);
  });

  test('a throttled batch gives back what it did not write, under the keys it was given', async () => {
    const Throttled = 'Throttled_js';
    await makeTable(Throttled, ['pk', 'sk'], { pk: 'S', sk: 'S' });
    // 350 units each, all under one key, on a table whose one partition writes 1,000 a second.
    const items = Array.from({ length: 6 }, (_, n) => ({ pk: 'hot', sk: String(n), blob: 'x'.repeat(350_000) }));
    let left = items.map((Item) => ({ PutRequest: { Item } }));
    let requests = 0;
    for (; left.length > 0; requests += 1) {
      assert.ok(requests < 20);
      const { UnprocessedItems } = await documents.send(new BatchWriteCommand({ RequestItems: { [Throttled]: left } }));
      left = UnprocessedItems[Throttled] ?? [];
      for (const { PutRequest } of left) assert.deepEqual(PutRequest.Item, items[Number(PutRequest.Item.sk)]);
      if (left.length > 0) await setTimeout(300);
    }
    assert.ok(requests > 1);
    const found = await collect(paginateQuery({ client: documents, pageSize: 2 }, {
      TableName: Throttled, KeyConditionExpression: 'pk = :p', ExpressionAttributeValues: { ':p': 'hot' } }));
    assert.deepEqual(found.flatMap((page) => page.Items), items);
    await dropTable(Throttled);
  });

  test('PartiQL with parameters and pages', async () => {
    for (let n = 0; n < 9; n += 1) await documents.send(new PutCommand({ TableName, Item: { pk: 'ql', sk: `${n}`, n } }));
    const ask = (Statement, Parameters, more) => documents.send(new ExecuteStatementCommand({ Statement, Parameters, ...more }));
    await ask(`UPDATE "${TableName}" SET n = ? WHERE pk = ? AND sk = ?`, [40, 'ql', '4']);
    for (const [order, want] of [['ASC', [0, 1, 2, 3, 40, 5, 6, 7, 8]], ['DESC', [8, 7, 6, 5, 40, 3, 2, 1, 0]]]) {
      const got = [];
      let NextToken;
      do {
        const page = await ask(`SELECT n FROM "${TableName}" WHERE pk = ? ORDER BY sk ${order}`, ['ql'], { Limit: 4, NextToken });
        assert.ok(page.Items.length <= 4);
        got.push(...page.Items.map(({ n }) => n));
        NextToken = page.NextToken;
      } while (NextToken);
      assert.deepEqual(got, want);
    }
    const some = await ask(`SELECT * FROM "${TableName}" WHERE pk = ? AND sk BETWEEN ? AND ?`, ['ql', '3', '5']);
    assert.deepEqual(some.Items, [{ pk: 'ql', sk: '3', n: 3 }, { pk: 'ql', sk: '4', n: 40 }, { pk: 'ql', sk: '5', n: 5 }]);
  });
});
