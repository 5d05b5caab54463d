// The leaderboard that the tests play: its rows, what an unsharded DynamoDB answers about them, and the connection.
// The expected answers are computed from a plain array. Nothing here knows about shards.

import { BatchWriteItemCommand, CreateTableCommand, DynamoDBClient, waitUntilTableExists } from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { marshall } from '@aws-sdk/util-dynamodb';

export { test } from './cannot.js';

export const VIRAL = 'game_x';

const endpoint = process.env.HEATSINK_ENDPOINT ?? '';
if (!['127.0.0.1', 'localhost'].includes(URL.canParse(endpoint) ? new URL(endpoint).hostname : '')) {
  throw new Error('set HEATSINK_ENDPOINT to an endpoint on this machine, such as http://127.0.0.1:8000');
}
export const connect = () => new DynamoDBClient({
  endpoint, region: 'us-east-1', credentials: { accessKeyId: 'local', secretAccessKey: 'local' }, maxAttempts: 4,
});
export const client = connect();
export const documents = DynamoDBDocumentClient.from(client);

/** 2,000 scores for one game and 20 for another. Scores repeat; keys do not. */
export function rows() {
  const made = [];
  let seed = 12345;
  for (const [pk, count] of [[VIRAL, 2000], ['game_a', 20]]) {
    for (let number = 0; number < count; number += 1) {
      seed = (seed * 1103515245 + 12345) % 2147483648;
      const score = seed % 1500;
      const player = `player_${String(number).padStart(4, '0')}`;
      made.push({
        pk, sk: `${String(score).padStart(8, '0')}#${player}`, player, score,
        region: ['ap', 'eu', 'us'][number % 3],
        // Large enough that the game's rows do not fit one 1 MB page.
        note: String(number).padStart(4, '0').repeat(150),
      });
    }
  }
  return made;
}

const bySortKey = (a, b) => Buffer.compare(Buffer.from(a.sk), Buffer.from(b.sk));
export const byKey = (a, b) => Buffer.compare(Buffer.from(a.pk), Buffer.from(b.pk)) || bySortKey(a, b);

/** One game's rows in the order a Query gives them. */
export function collection(all, game, { forward = true, keep = () => true } = {}) {
  const found = all.filter((row) => row.pk === game && keep(row)).sort(bySortKey);
  return forward ? found : found.reverse();
}

export async function makeTable(name, keys, types, { units = 1000, ...more } = {}) {
  await client.send(new CreateTableCommand({
    TableName: name,
    KeySchema: keys.map((key, place) => ({ AttributeName: key, KeyType: place === 0 ? 'HASH' : 'RANGE' })),
    AttributeDefinitions: Object.entries(types).map(([AttributeName, AttributeType]) => ({ AttributeName, AttributeType })),
    ProvisionedThroughput: { ReadCapacityUnits: units, WriteCapacityUnits: units },
    ...more,
  }));
  await waitUntilTableExists({ client, minDelay: 1, maxDelay: 1, maxWaitTime: 60 }, { TableName: name });
}

/** Sends plain rows 25 at a time, and again what came back unprocessed. Returns how many requests it took. */
export async function fill(table, all) {
  let requests = 0;
  for (let start = 0; start < all.length; start += 25) {
    let left = { [table]: all.slice(start, start + 25).map((row) => ({ PutRequest: { Item: marshall(row) } })) };
    for (let tries = 0; Object.keys(left).length > 0; tries += 1) {
      if (tries === 20) throw new Error('items stay unprocessed');
      left = (await client.send(new BatchWriteItemCommand({ RequestItems: left }))).UnprocessedItems ?? {};
      requests += 1;
    }
  }
  return requests;
}

/** Every page of a request: `send` takes the cursor. */
export async function pages(send) {
  const all = [];
  let cursor;
  do {
    const page = await send(cursor);
    all.push(page);
    cursor = page.LastEvaluatedKey;
  } while (cursor);
  return all;
}
