// Servers of a program's own, and load against them: what the examples and the tests of hand-sharded and signed tables stand on.
// HEATSINK_BIN names the built binary. Every server listens on a free loopback port and is stopped at the end.

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';

import { CreateTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';

// Those of clients/signed.toml.
const SECRETS = { ADMIN_SECRET: 'admin/+secret', ADMIN_FORMER: 'former', TEAM_SECRET: 'team', TEAM_TOKEN: 'token/+==' };

/** A CA of the program's own, and a certificate of 127.0.0.1 by it: `ca.pem`, `server.pem`, `server.key`. */
export function certificates(folder) {
  const make = (name, ...more) => execFileSync('openssl', [
    'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2',
    '-subj', `/CN=heatsink ${name}`, '-keyout', `${name}.key`, '-out', `${name}.pem`, ...more,
  ], { cwd: folder, stdio: 'ignore' });
  make('ca', '-addext', 'keyUsage=critical,keyCertSign');
  make('server', '-CA', 'ca.pem', '-CAkey', 'ca.key', '-addext', 'basicConstraints=critical,CA:FALSE', '-addext', 'subjectAltName=IP:127.0.0.1');
}

/**
 * Runs `heatsink serve` under the rules of a file, in memory behind partitions or before an endpoint, while `use(endpoint)` runs. Over TLS with the
 * `certificates` of a folder. Without the quotas of a new account: the tables here are as large as the accounts' are.
 */
export async function serving({ rules, upstream, tls } = {}, use) {
  const args = ['serve', '--listen', '127.0.0.1:0', '--output', 'json'];
  if (rules) args.push('--rules', rules);
  args.push(...(upstream ? ['--upstream', upstream] : ['--quotas', 'off']));
  if (tls) args.push('--tls-cert', `${tls}/server.pem`, '--tls-key', `${tls}/server.key`);
  const env = {
    ...process.env, ...SECRETS, AWS_ACCESS_KEY_ID: 'local', AWS_SECRET_ACCESS_KEY: 'local', AWS_REGION: 'us-east-1', AWS_EC2_METADATA_DISABLED: 'true',
    HEATSINK_LAME_DUCK: '0',
  };
  const server = spawn(process.env.HEATSINK_BIN, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(server, 'exit');
  try {
    const line = await Promise.race([once(createInterface(server.stdout), 'line'), ended]);
    if (typeof line[0] !== 'string') throw new Error('the server did not start');
    return await use(JSON.parse(line[0]).endpoint);
  } finally {
    server.kill('SIGTERM');
    await ended;
  }
}

/**
 * A store that is as far away as DynamoDB: passes what it is sent on to an endpoint, the updates of a table after so many milliseconds, while
 * `use(endpoint, passed)` runs; `passed.updates` counts those.
 */
export async function late(endpoint, milliseconds, TableName, use) {
  const passed = { updates: 0 };
  // The endpoint is a server of Heatsink's, which refuses the names of Heatsink's own tables.
  const renamed = (body, from, to) => Buffer.from(body.toString().replaceAll(`"${from}.`, `"${to}.`));
  const whole = async (stream) => {
    const parts = [];
    for await (const part of stream) parts.push(part);
    return Buffer.concat(parts);
  };
  const server = createServer(async (from, to) => {
    const body = renamed(await whole(from), 'heatsink', 'behind');
    if (from.headers['x-amz-target']?.endsWith('.UpdateItem') && JSON.parse(body).TableName === TableName) {
      passed.updates += 1;
      await setTimeout(milliseconds);
    }
    const headers = { ...from.headers, 'content-length': body.length };
    const on = request(new URL(from.url, endpoint), { method: from.method, headers }, async (answer) => {
      const { 'x-amz-crc32': checksum, 'content-length': length, ...kept } = answer.headers;
      to.writeHead(answer.statusCode, kept).end(renamed(await whole(answer), 'behind', 'heatsink'));
    });
    on.on('error', () => to.destroy());
    on.end(body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    return await use(`http://127.0.0.1:${server.address().port}`, passed);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

/** The SDK at the endpoint. With one attempt a throttled request is not sent again. */
export function connect(endpoint, maxAttempts = 4, more = {}) {
  const credentials = { accessKeyId: 'local', secretAccessKey: 'local' };
  return DynamoDBDocumentClient.from(new DynamoDBClient({ endpoint, region: 'us-east-1', credentials, maxAttempts, ...more }));
}

/** Makes a table with string keys, and indexes, provisioned so that each has 80 partitions, or fewer. `indexes` are name, partition key, sort key. */
export async function table(client, TableName, [partition, sort], { indexes = [], writes = 40_000 } = {}) {
  const ProvisionedThroughput = { ReadCapacityUnits: 3 * writes, WriteCapacityUnits: writes };
  const keys = (hash, range) => [
    { AttributeName: hash, KeyType: 'HASH' }, ...(range ? [{ AttributeName: range, KeyType: 'RANGE' }] : []),
  ];
  const names = new Set([partition, sort, ...indexes.flatMap(([, ...of]) => of)].filter(Boolean));
  await client.send(new CreateTableCommand({
    TableName, KeySchema: keys(partition, sort), ProvisionedThroughput,
    AttributeDefinitions: [...names].map((AttributeName) => ({ AttributeName, AttributeType: 'S' })),
    ...(indexes.length && {
      GlobalSecondaryIndexes: indexes.map(([IndexName, hash, range]) => (
        { IndexName, KeySchema: keys(hash, range), Projection: { ProjectionType: 'ALL' }, ProvisionedThroughput })),
    }),
  }));
}

const THROTTLES = ['ProvisionedThroughputExceededException', 'ThrottlingException'];

/** Calls `send(number)` at even distances: the numbers that were accepted, ascending, and the share that was throttled. */
export async function offer(rate, seconds, send) {
  const total = rate * seconds;
  const begin = performance.now();
  const sent = [];
  while (sent.length < total) {
    const due = Math.min(total, Math.ceil((performance.now() - begin) * rate / 1000));
    while (sent.length < due) {
      sent.push(send(sent.length).then(() => true, (error) => {
        if (!THROTTLES.includes(error.name)) throw error;
        return false;
      }));
    }
    await setTimeout(5);
  }
  const answers = await Promise.all(sent);
  const accepted = answers.flatMap((taken, number) => (taken ? [number] : []));
  return { accepted, share: 1 - accepted.length / total };
}
