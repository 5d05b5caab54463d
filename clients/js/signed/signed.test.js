// The SDK and lib-dynamodb through a gateway that knows its clients, over TLS: long-term keys, session tokens, what is refused, what the SDK adds to
// requests and checks of answers. One table is sharded, one is not.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { Agent } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { crc32 } from 'node:zlib';

import { ListTablesCommand, QueryCommand } from '@aws-sdk/client-dynamodb';
import * as lib from '@aws-sdk/lib-dynamodb';

import { certificates, connect, serving, table } from '../stage.js';

const ADMIN = { accessKeyId: 'admin', secretAccessKey: 'admin/+secret' };
const TEAM = { accessKeyId: 'team1', secretAccessKey: 'team', sessionToken: 'token/+==' };

const folder = mkdtempSync(join(tmpdir(), 'heatsink-signed-'));
let gateway;
let stop;
let stopped;

/** The document client of someone. `more` are settings of the SDK. */
function as(credentials, { ca = 'ca.pem', attempts = 1, ...more } = {}) {
  return connect(gateway, attempts, { credentials, requestHandler: { httpsAgent: new Agent({ ca: readFileSync(join(folder, ca)) }) }, ...more });
}

before(async () => {
  certificates(folder);
  const rules = fileURLToPath(new URL('../../signed.toml', import.meta.url));
  const asked = new Promise((resolve) => { stop = resolve; });
  await new Promise((ready, failed) => {
    stopped = serving({ rules, tls: folder }, (endpoint) => { gateway = endpoint; ready(); return asked; });
    stopped.catch(failed);
  });
  for (const name of ['Scores', 'Plain']) await table(as(ADMIN), name, ['pk', 'sk']);
});

after(async () => {
  stop();
  await stopped;
  rmSync(folder, { recursive: true });
});

for (const [kind, credentials] of Object.entries({ 'a long-term key': ADMIN, 'a session token': TEAM })) {
  for (const TableName of ['Scores', 'Plain']) {
    test(`what is signed with ${kind} is served from ${TableName}`, async () => {
      const client = as(credentials);
      const send = (name, input) => client.send(new lib[`${name}Command`](input));
      // Answers are long enough to be compressed for those who take that.
      const items = Array.from({ length: 20 }, (_, n) => ({ pk: `team1#${kind}`, sk: String(n).padStart(2, '0'), n, text: 'ä  ☃\t'.repeat(50) }));
      const keys = items.map(({ pk, sk }) => ({ pk, sk }));
      const [first, ...others] = items;

      await send('Put', { TableName, Item: { ...first, n: -1 } });
      assert.deepEqual((await send('Get', { TableName, Key: keys[0] })).Item, { ...first, n: -1 });
      const added = await send('Update', {
        TableName, Key: keys[0], UpdateExpression: 'ADD n :one', ExpressionAttributeValues: { ':one': 1 }, ReturnValues: 'ALL_NEW' });
      assert.deepEqual(added.Attributes, first);
      const puts = others.slice(0, 14).map((Item) => ({ PutRequest: { Item } }));
      assert.deepEqual((await send('BatchWrite', { RequestItems: { [TableName]: puts } })).UnprocessedItems, {});
      await send('TransactWrite', { TransactItems: others.slice(14).map((Item) => ({ Put: { TableName, Item } })) });

      const asked = (value) => ({ TableName, KeyConditionExpression: 'pk = :p', ExpressionAttributeValues: { ':p': value } });
      const pages = [];
      for await (const page of lib.paginateQuery({ client, pageSize: 7 }, asked(first.pk))) pages.push(page.Items);
      assert.deepEqual(pages, [items.slice(0, 7), items.slice(7, 14), items.slice(14)]);
      // The SDK without lib-dynamodb.
      assert.equal((await client.send(new QueryCommand(asked({ S: first.pk })))).Items[19].n.N, '19');

      const many = (await send('BatchGet', { RequestItems: { [TableName]: { Keys: keys } } })).Responses[TableName];
      assert.deepEqual(many.sort((a, b) => a.n - b.n), items);
      const all = await send('TransactGet', { TransactItems: keys.map((Key) => ({ Get: { TableName, Key } })) });
      assert.deepEqual(all.Responses.map(({ Item }) => Item), items);
    });
  }
}

test('what is signed wrongly is refused by its type', async () => {
  const put = (client, team) => client.send(new lib.PutCommand({ TableName: 'Scores', Item: { pk: `team${team}#x`, sk: 'x' } }));
  for (const [credentials, name, team = 1] of [
    [{ ...ADMIN, secretAccessKey: 'wrong' }, 'InvalidSignatureException'],
    [{ ...TEAM, secretAccessKey: 'wrong' }, 'InvalidSignatureException'],
    [{ ...TEAM, sessionToken: undefined }, 'UnrecognizedClientException'],
    [{ ...TEAM, sessionToken: 'another' }, 'UnrecognizedClientException'],
    [{ ...ADMIN, accessKeyId: 'nobody' }, 'UnrecognizedClientException'],
    [TEAM, 'AccessDeniedException', 2],
  ]) await assert.rejects(put(as(credentials), team), { name });
  await assert.rejects(put(as(ADMIN, { region: 'eu-west-1' }), 1), { name: 'InvalidSignatureException' });
  await assert.rejects(put(as(ADMIN, { ca: 'server.pem' }), 1), /certificate/);
});

test('what the SDK adds is taken, what it may check is right, and its clock is put right', async () => {
  const requests = [];
  const answers = [];
  const client = as(TEAM, { attempts: 2, systemClockOffset: -3_600_000 });
  client.middlewareStack.add((next) => async ({ request }) => {
    requests.push(request.headers);
    const { response } = await next({ request });
    const body = Buffer.concat(await response.body.toArray());
    answers.push([response.statusCode, response.headers['x-amz-crc32'], String(crc32(body))]);
    return { response: Object.assign(response, { body: Readable.from([body]) }) };
  }, { step: 'deserialize', priority: 'low' });
  assert.deepEqual((await client.send(new ListTablesCommand())).TableNames, ['Plain', 'Scores']);
  assert.deepEqual(answers.map(([status]) => status), [400, 200]);
  for (const [, told, counted] of answers) assert.equal(told, counted);
  const signed = requests[1].authorization.match(/SignedHeaders=([^,]*)/)[1].split(';');
  for (const name of ['amz-sdk-invocation-id', 'amz-sdk-request', 'x-amz-content-sha256', 'x-amz-security-token', 'x-amz-user-agent']) {
    assert.ok(signed.includes(name), name);
  }
});

test('a presigned request is refused by name', async () => {
  const signer = await as(ADMIN).config.signer({ name: 'sigv4', signingName: 'dynamodb', signingRegion: 'us-east-1' });
  const client = as(ADMIN, { signer: { sign: (request) => signer.presign(request) } });
  await assert.rejects(client.send(new ListTablesCommand()), { name: 'IncompleteSignatureException', message: /presigned/ });
});
