// The viral leaderboard, read: order, pages, conditions, filters, counts, scans, indexes, paginators.

import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';

import { DeleteTableCommand, paginateScan } from '@aws-sdk/client-dynamodb';
import { paginateQuery, QueryCommand, ScanCommand } from '@aws-sdk/lib-dynamodb';

import { byKey, client, collection, documents, fill, makeTable, pages, rows, test, VIRAL } from '../board.js';

const TableName = 'Leaderboards_js';
const all = rows();
const units = 10000;
const index = (IndexName, hash, range, more = {}) => ({
  IndexName, Projection: { ProjectionType: 'ALL' }, ...more,
  KeySchema: [{ AttributeName: hash, KeyType: 'HASH' }, { AttributeName: range, KeyType: 'RANGE' }],
});

const query = (more, values = {}) => documents.send(new QueryCommand({
  TableName, KeyConditionExpression: 'pk = :g', ...more, ExpressionAttributeValues: { ':g': VIRAL, ...values },
}));
const everyItem = async (more, values) => (
  (await pages((ExclusiveStartKey) => query({ ...more, ExclusiveStartKey }, values))).flatMap((page) => page.Items)
);
const key = ({ pk, sk }) => ({ pk, sk });

describe('the board', () => {
  before(async () => {
    await makeTable(TableName, ['pk', 'sk'], { pk: 'S', sk: 'S', region: 'S', player: 'S', score: 'N' }, {
      units,
      LocalSecondaryIndexes: [index('by_region', 'pk', 'region')],
      GlobalSecondaryIndexes: [index('by_player', 'player', 'score', {
        ProvisionedThroughput: { ReadCapacityUnits: units, WriteCapacityUnits: units },
      })],
    });
    await fill(TableName, all);
  });
  after(() => client.send(new DeleteTableCommand({ TableName })));

  test('top 100 in exact order, then the next hundred', async () => {
    const want = collection(all, VIRAL, { forward: false });
    const first = await query({ ScanIndexForward: false, Limit: 100 });
    assert.deepEqual(first.Items, want.slice(0, 100));
    assert.deepEqual([first.Count, first.ScannedCount], [100, 100]);
    assert.deepEqual(first.LastEvaluatedKey, key(want[99]));
    const second = await query({ ScanIndexForward: false, Limit: 100, ExclusiveStartKey: first.LastEvaluatedKey });
    assert.deepEqual(second.Items, want.slice(100, 200));
  });

  for (const forward of [true, false]) {
    for (const Limit of [undefined, 33]) {
      test(`every row, ${forward ? 'up' : 'down'}, Limit ${Limit}`, async () => {
        const items = await everyItem({ ScanIndexForward: forward, Limit });
        assert.deepEqual(items, collection(all, VIRAL, { forward }));
      });
      test(`between and begins_with, ${forward ? 'up' : 'down'}, Limit ${Limit}`, async () => {
        const shape = { ScanIndexForward: forward, Limit };
        const between = await everyItem(
          { ...shape, KeyConditionExpression: 'pk = :g AND sk BETWEEN :a AND :b' }, { ':a': '00000300', ':b': '00000400' });
        assert.deepEqual(between, collection(all, VIRAL, { forward, keep: ({ sk }) => sk >= '00000300' && sk <= '00000400' }));
        const begins = await everyItem(
          { ...shape, KeyConditionExpression: 'pk = :g AND begins_with(sk, :a)' }, { ':a': '000012' });
        assert.deepEqual(begins, collection(all, VIRAL, { forward, keep: ({ sk }) => sk.startsWith('000012') }));
      });
    }
  }

  test('Limit counts evaluated rows, not filtered ones', async () => {
    const want = collection(all, VIRAL, { forward: false }).slice(0, 60);
    const page = await query(
      { ScanIndexForward: false, Limit: 60, FilterExpression: '#r = :r', ExpressionAttributeNames: { '#r': 'region' },
        ProjectionExpression: 'player' }, { ':r': 'eu' });
    assert.deepEqual(page.Items, want.filter((row) => row.region === 'eu').map(({ player }) => ({ player })));
    assert.equal(page.ScannedCount, 60);
    assert.equal(page.Count, page.Items.length);
    assert.deepEqual(page.LastEvaluatedKey, key(want[59]));
  });

  test('a rank is a COUNT above one\'s own row', async () => {
    const own = collection(all, VIRAL, { forward: false })[777];
    const found = await pages((ExclusiveStartKey) => query(
      { KeyConditionExpression: 'pk = :g AND sk > :s', Select: 'COUNT', ExclusiveStartKey }, { ':s': own.sk }));
    assert.equal(found.reduce((sum, page) => sum + page.Count, 0), 777);
    assert.ok(found.every((page) => page.Items === undefined));
  });

  test('the Query paginator agrees', async () => {
    const got = [];
    const input = {
      TableName, KeyConditionExpression: 'pk = :g', ExpressionAttributeValues: { ':g': VIRAL }, ScanIndexForward: false };
    for await (const page of paginateQuery({ client: documents, pageSize: 250 }, input)) got.push(...page.Items);
    assert.deepEqual(got, collection(all, VIRAL, { forward: false }));
  });

  test('the Scan paginator sees every row once', async () => {
    const got = [];
    for await (const page of paginateScan({ client, pageSize: 400 }, { TableName })) {
      got.push(...page.Items.map((item) => ({ pk: item.pk.S, sk: item.sk.S })));
    }
    assert.deepEqual(got.sort(byKey), all.map(key).sort(byKey));
  });

  test('a parallel Scan divides the rows', async () => {
    const parts = await Promise.all([0, 1, 2].map((Segment) => pages((ExclusiveStartKey) => documents.send(
      new ScanCommand({ TableName, Segment, TotalSegments: 3, Limit: 200, ExclusiveStartKey })))));
    assert.deepEqual(parts.flat().flatMap((page) => page.Items).sort(byKey), [...all].sort(byKey));
  });

  test('the local index is in order and complete', async () => {
    const items = await everyItem({ IndexName: 'by_region', ScanIndexForward: false, Limit: 170 });
    const regions = items.map(({ region }) => region);
    assert.deepEqual(regions, [...regions].sort().reverse());
    assert.deepEqual(items.sort(byKey), collection(all, VIRAL));
  });

  test('the global index shows logical keys', async () => {
    const items = await everyItem(
      { IndexName: 'by_player', KeyConditionExpression: 'player = :g' }, { ':g': 'player_0011' });
    const want = all.filter(({ player }) => player === 'player_0011').sort((a, b) => a.score - b.score);
    assert.deepEqual(items.map(({ score }) => score), want.map(({ score }) => score));
    assert.deepEqual(items.sort(byKey), want.sort(byKey));
    const page = await query(
      { IndexName: 'by_player', KeyConditionExpression: 'player = :g', Limit: 1 }, { ':g': 'player_0011' });
    assert.deepEqual(Object.keys(page.LastEvaluatedKey).sort(), ['pk', 'player', 'score', 'sk']);
    assert.equal(page.LastEvaluatedKey.pk, page.Items[0].pk);
  });

  test('a cursor that is none is refused', async () => {
    for (const ExclusiveStartKey of [{ pk: VIRAL }, { pk: VIRAL, sk: 1 }, { pk: 'game_a', sk: '1' }]) {
      await assert.rejects(query({ ExclusiveStartKey }), { name: 'ValidationException' });
    }
  });
});
