// Puts, updates, deletes, batches, odd keys, and the errors that an application sees.

import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';

import {
  BatchGetItemCommand, ConditionalCheckFailedException, DeleteTableCommand, GetItemCommand, paginateQuery,
  PutItemCommand, ResourceNotFoundException,
} from '@aws-sdk/client-dynamodb';
import {
  BatchGetCommand, BatchWriteCommand, DeleteCommand, GetCommand, PutCommand, ScanCommand, UpdateCommand,
} from '@aws-sdk/lib-dynamodb';

import { client, documents, fill, makeTable, test } from '../board.js';

const TableName = 'Writes_js';
const send = (Command, input) => documents.send(new Command({ TableName, ...input }));

describe('writes', () => {
  before(() => makeTable(TableName, ['pk', 'sk'], { pk: 'S', sk: 'S' }));
  after(() => client.send(new DeleteTableCommand({ TableName })));

  test('put, get, update with each kind of return value, delete', async () => {
    const Key = { pk: 'game_x', sk: '00000042#ann' };
    const item = { ...Key, n: 1, list: ['a', { deep: [null, true, 'é😀'] }], set: new Set(['x', 'y']) };
    await send(PutCommand, { Item: item });
    assert.deepEqual((await send(GetCommand, { Key, ConsistentRead: true })).Item, item);
    const update = (UpdateExpression, ReturnValues, values) => send(UpdateCommand, {
      Key, UpdateExpression, ReturnValues, ExpressionAttributeValues: values,
    });
    assert.deepEqual((await update('SET n = n + :one', 'UPDATED_NEW', { ':one': 1 })).Attributes, { n: 2 });
    assert.deepEqual((await update('SET n = :v', 'UPDATED_OLD', { ':v': 9 })).Attributes, { n: 2 });
    assert.deepEqual((await update('REMOVE #l, #s', 'ALL_OLD').catch((error) => error)).name, 'ValidationException');
    assert.deepEqual(
      (await send(UpdateCommand, {
        Key, UpdateExpression: 'REMOVE #l, #s SET twin = pk', ReturnValues: 'ALL_NEW',
        ExpressionAttributeNames: { '#l': 'list', '#s': 'set' },
      })).Attributes, { ...Key, n: 9, twin: 'game_x' });
    const gone = await send(DeleteCommand, { Key, ReturnValues: 'ALL_OLD' });
    assert.deepEqual(gone.Attributes, { ...Key, n: 9, twin: 'game_x' });
    assert.equal((await send(GetCommand, { Key })).Item, undefined);
  });

  test('conditions see the keys as they were sent, and a failed one is its own error', async () => {
    const Item = { pk: 'game_c', sk: '1', v: 1 };
    await send(PutCommand, { Item, ConditionExpression: 'attribute_not_exists(pk)' });
    await assert.rejects(
      send(PutCommand, { Item: { ...Item, v: 2 }, ConditionExpression: 'attribute_not_exists(pk)' }),
      (error) => error instanceof ConditionalCheckFailedException && error.message === 'The conditional request failed');
    await send(PutCommand, {
      Item: { ...Item, v: 3 }, ConditionExpression: 'pk = :p AND v < :v',
      ExpressionAttributeValues: { ':p': 'game_c', ':v': 2 },
    });
    assert.equal((await send(GetCommand, { Key: { pk: 'game_c', sk: '1' } })).Item.v, 3);
  });

  test('a failed condition can show the item', async () => {
    const Key = { pk: { S: 'game_d' }, sk: { S: '1' } };
    await client.send(new PutItemCommand({ TableName, Item: { ...Key, v: { N: '1' } } }));
    await assert.rejects(
      client.send(new PutItemCommand({
        TableName, Item: Key, ConditionExpression: 'v > :n', ExpressionAttributeValues: { ':n': { N: '5' } },
        ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
      })),
      (error) => {
        assert.deepEqual(error.Item, { ...Key, v: { N: '1' } });
        return error instanceof ConditionalCheckFailedException;
      });
  });

  test('batches write, read and delete, and go on with what was left over', async () => {
    const all = Array.from({ length: 90 }, (_, n) => ({ pk: `batch_${n % 2}`, sk: String(n).padStart(3, '0'), n }));
    assert.ok(await fill(TableName, all) >= 4);
    const read = async () => {
      const found = [];
      let left = { [TableName]: { Keys: all.map(({ pk, sk }) => ({ pk, sk })) } };
      for (let tries = 0; left?.[TableName]; tries += 1) {
        assert.ok(tries < 20);
        const answer = await documents.send(new BatchGetCommand({ RequestItems: left }));
        found.push(...(answer.Responses[TableName] ?? []));
        left = answer.UnprocessedKeys;
      }
      return found.sort((a, b) => a.n - b.n);
    };
    assert.deepEqual(await read(), all);
    const remove = all.slice(0, 20).map(({ pk, sk }) => ({ DeleteRequest: { Key: { pk, sk } } }));
    await documents.send(new BatchWriteCommand({ RequestItems: { [TableName]: remove } }));
    assert.deepEqual(await read(), all.slice(20));
    const Keys = [{ pk: { S: 'a' }, sk: { S: 'b' } }, { pk: { S: 'a' }, sk: { S: 'b' } }];
    await assert.rejects(
      client.send(new BatchGetItemCommand({ RequestItems: { [TableName]: { Keys } } })),
      { name: 'ValidationException', message: 'Provided list of item keys contains duplicates' });
  });

  test('keys that look like shards stay apart', async () => {
    const keys = ['k', 'k#~1', 'k#1', 'k#~1#~2', 'k#~'];
    for (const pk of keys) await send(PutCommand, { Item: { pk, sk: 'same', mine: pk } });
    for (const pk of keys) assert.equal((await send(GetCommand, { Key: { pk, sk: 'same' } })).Item.mine, pk);
    const seen = (await send(ScanCommand, { FilterExpression: 'sk = :s', ExpressionAttributeValues: { ':s': 'same' } })).Items;
    assert.deepEqual(seen.map(({ pk }) => pk).sort(), [...keys].sort());
  });

  test('a missing table', async () => {
    const Key = { pk: { S: 'a' }, sk: { S: 'b' } };
    await assert.rejects(
      client.send(new GetItemCommand({ TableName: 'NoSuchTable', Key })),
      (error) => error instanceof ResourceNotFoundException && error.$metadata.httpStatusCode === 400);
  });
});

describe('key types', () => {
  const cases = {
    Numbers_js: ['N', ['-1e20', '-10', '-9.5', '0', '0.001', '2', '10', '123456789012345678901234567890'], (n) => n],
    Blobs_js: ['B', [[0], [0, 0], [1], [127], [128], [195, 169], [255], [255, 255]], (b) => Uint8Array.from(b)],
    // By UTF-8 bytes; JavaScript's own order (UTF-16) would put the emoji before U+FF5E.
    Words_js: ['S', ['A', 'Z', 'a', 'é', 'я', '日本', '\uff5e', '😀', '😀😀'], (s) => s],
  };
  for (const [name, [type, ordered, wire]] of Object.entries(cases)) {
    test(`${type} sort keys come in their order, both ways`, async () => {
      await makeTable(name, ['pk', 'sk'], { pk: 'S', sk: type });
      const pk = { S: 'игра' };
      for (const value of [...ordered].reverse()) {
        await client.send(new PutItemCommand({ TableName: name, Item: { pk, sk: { [type]: wire(value) }, at: { S: String(value) } } }));
      }
      for (const ScanIndexForward of [true, false]) {
        const got = [];
        const input = {
          TableName: name, KeyConditionExpression: 'pk = :p', ExpressionAttributeValues: { ':p': pk }, ScanIndexForward };
        for await (const page of paginateQuery({ client, pageSize: 3 }, input)) got.push(...page.Items.map((item) => item.at.S));
        const want = ordered.map(String);
        assert.deepEqual(got, ScanIndexForward ? want : want.reverse());
      }
      await client.send(new DeleteTableCommand({ TableName: name }));
    });
  }
});
