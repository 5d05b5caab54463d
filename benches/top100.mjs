// The top 100 by JavaScript: through a sharded table, and scattered by hand with Promise.all. Prints medians in ms as JSON.
// Arguments: port, number of reads. Uses the SDK that clients/run installed.

import { createRequire } from 'node:module';

const require = createRequire(new URL('../clients/js/package.json', import.meta.url));
const { DynamoDBClient, QueryCommand } = require('@aws-sdk/client-dynamodb');

const [port, reads] = process.argv.slice(2).map(Number);
const client = new DynamoDBClient({
  endpoint: `http://127.0.0.1:${port}`, region: 'us-east-1', maxAttempts: 1,
  credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
});

const top = async (TableName, game) => (await client.send(new QueryCommand({
  TableName, KeyConditionExpression: 'pk = :g', ExpressionAttributeValues: { ':g': { S: game } },
  ScanIndexForward: false, Limit: 100,
}))).Items;

async function byHand() {
  const shards = await Promise.all(Array.from({ length: 10 }, (_, n) => top('Hand', `game_x#${n}`)));
  return shards.flat().sort((a, b) => (a.sk.S < b.sk.S ? 1 : -1)).slice(0, 100);
}

const calls = { sharded: () => top('Sharded', 'game_x'), hand: byHand };
const times = { sharded: [], hand: [] };
for (let turn = 0; turn < reads; turn += 1) {
  for (const [name, call] of Object.entries(calls)) {
    const begin = performance.now();
    const items = await call();
    if (items.length !== 100) throw new Error(`${name}: ${items.length} items`);
    if (turn >= reads / 10) times[name].push(performance.now() - begin);
  }
}
const median = (all) => all.sort((a, b) => a - b)[Math.floor(all.length / 2)];
console.log(JSON.stringify({ sharded: median(times.sharded), hand: median(times.hand) }));
client.destroy();
