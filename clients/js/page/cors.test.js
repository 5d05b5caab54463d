// Web pages of an origin that `--allow-origin` names use the clients' address from Chromium, and no others do. The SDK's requests are sent by the page, so
// that the browser asks for each what it asks for a page that holds the SDK.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';

import { CreateTableCommand, DynamoDBClient, GetItemCommand, PutItemCommand, ResourceNotFoundException } from '@aws-sdk/client-dynamodb';
import { chromium } from 'playwright-core';

const executablePath = process.env.HEATSINK_CHROMIUM ?? '/usr/bin/chromium';
const args = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
const item = { pk: { S: 'game' }, n: { N: '1' } };
let browser, server, told;
const sites = [];

/** A site of its own with an empty page: its origin. */
async function site() {
  const listener = createServer((_, answer) => answer.setHeader('content-type', 'text/html').end('<title>a tool</title>'));
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  sites.push(listener);
  return `http://localhost:${listener.address().port}`;
}

/** The SDK, whose requests a page of that origin sends; and the page. */
async function within(origin) {
  const page = await browser.newPage();
  await page.goto(origin);
  const fetched = ({ url, method, headers, body }) => page.evaluate(async (asked) => {
    const answer = await fetch(asked.url, asked);
    return { statusCode: answer.status, headers: Object.fromEntries(answer.headers), text: await answer.text() };
  }, { url, method, headers, body });
  const requestHandler = {
    async handle({ method, headers, body }) {
      const { text, ...answer } = await fetched({ url: told.endpoint, method, headers, body: Buffer.from(body).toString() });
      return { response: { ...answer, body: new TextEncoder().encode(text) } };
    },
  };
  const credentials = { accessKeyId: 'local', secretAccessKey: 'local', sessionToken: 'token' };
  return { fetched, client: new DynamoDBClient({ endpoint: told.endpoint, region: 'us-east-1', credentials, maxAttempts: 1, requestHandler }) };
}

let named, other;
before(async () => {
  [named, other] = [await site(), await site()];
  browser = await chromium.launch({ executablePath, args });
  server = spawn(process.env.HEATSINK_BIN, [
    'serve', '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0', '--rules', '/dev/null', '--allow-origin', named, '--output', 'json',
  ], { env: { ...process.env, HEATSINK_LAME_DUCK: '0' }, stdio: ['ignore', 'pipe', 'inherit'] });
  told = JSON.parse((await once(createInterface(server.stdout), 'line'))[0]);
}, { timeout: 120_000 });
after(async () => {
  await browser?.close();
  sites.forEach((listener) => listener.close());
  server?.kill('SIGTERM');
});

test('the SDK in a page of a named origin asks, and reads answers, errors and their headers', { timeout: 120_000 }, async () => {
  const { client } = await within(named);
  await client.send(new CreateTableCommand({
    TableName: 'Tool', BillingMode: 'PAY_PER_REQUEST', KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }],
    AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' }] }));
  await client.send(new PutItemCommand({ TableName: 'Tool', Item: item }));
  const got = await client.send(new GetItemCommand({ TableName: 'Tool', Key: { pk: item.pk } }));
  assert.deepEqual(got.Item, item);
  assert.match(got.$metadata.requestId, /^[0-9A-Z]{52}$/);
  await assert.rejects(client.send(new GetItemCommand({ TableName: 'None', Key: { pk: item.pk } })), ResourceNotFoundException);
});

test('a page of another origin gets nothing, and no page gets the admin address', { timeout: 120_000 }, async () => {
  const refused = await within(other);
  await assert.rejects(refused.client.send(new PutItemCommand({ TableName: 'Tool', Item: { pk: { S: 'theirs' } } })), /Failed to fetch/);
  const { client, fetched } = await within(named);
  assert.equal((await client.send(new GetItemCommand({ TableName: 'Tool', Key: { pk: { S: 'theirs' } } }))).Item, undefined);
  for (const path of ['/healthz', '/_heatsink/heat']) {
    await assert.rejects(fetched({ url: told.admin + path, method: 'GET', headers: {} }), /Failed to fetch/, path);
  }
});
