// `local()` under Node's own test runner: what it answers, and that it ends with its process whatever happens.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { CreateTableCommand, DynamoDBClient, GetItemCommand, ListTablesCommand, PutItemCommand, QueryCommand } from "@aws-sdk/client-dynamodb";
import { local, NotStarted } from "heatsink";

const RULES = '[[rule]]\ntable = "*"\nstrategy = "calculated"\nshards = 4\n';

async function makeTable(client) {
  await client.send(new CreateTableCommand({
    TableName: "Scores", BillingMode: "PAY_PER_REQUEST",
    AttributeDefinitions: [{ AttributeName: "pk", AttributeType: "S" }, { AttributeName: "sk", AttributeType: "S" }],
    KeySchema: [{ AttributeName: "pk", KeyType: "HASH" }, { AttributeName: "sk", KeyType: "RANGE" }],
  }));
}

const item = (number) => ({ pk: { S: "game" }, sk: { S: String(number).padStart(3, "0") } });
const put = (client, number) => client.send(new PutItemCommand({ TableName: "Scores", Item: item(number) }));

function isAlive(pid) {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function ends(pid) {
  for (let i = 0; i < 250 && isAlive(pid); i += 1) await sleep(20);
  return !isAlive(pid);
}

test("an item is put and got", async () => {
  const begin = performance.now();
  const server = await local();
  const client = new DynamoDBClient(server.clientSettings());
  await client.send(new ListTablesCommand({}));
  console.log(`first answer after ${Math.round(performance.now() - begin)} ms`);
  assert(performance.now() - begin < 1000);
  await makeTable(client);
  await put(client, 1);
  assert.deepEqual((await client.send(new GetItemCommand({ TableName: "Scores", Key: item(1) }))).Item, item(1));
  assert.equal(server.endpoint, `http://127.0.0.1:${server.port}`);
  // With an idle connection.
  await server.stop();
  await server.stop();
  assert(!isAlive(server.pid));
  client.destroy();
});

test("rules spread keys", async () => {
  const server = await local({ rules: RULES });
  const client = new DynamoDBClient(server.clientSettings());
  await makeTable(client);
  for (let number = 0; number < 20; number += 1) await put(client, number);
  const found = await client.send(new QueryCommand({
    TableName: "Scores", KeyConditionExpression: "pk = :pk", ExpressionAttributeValues: { ":pk": { S: "game" } }, ReturnConsumedCapacity: "TOTAL",
  }));
  assert.deepEqual(found.Items, Array.from({ length: 20 }, (_, number) => item(number)));
  // Each of the four shards costs half a unit.
  assert.equal(found.ConsumedCapacity.CapacityUnits, 2);
  await server.stop();
});

test("it is disposed of", async () => {
  const server = await local();
  await server[Symbol.asyncDispose]();
  assert(!isAlive(server.pid));
});

test("a port that is taken is named in one sentence", async () => {
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  const { port } = taken.address();
  await assert.rejects(local({ port }), (error) => {
    assert(error instanceof NotStarted);
    assert.match(error.message, new RegExp(`cannot listen on 127.0.0.1:${port}: Address already in use; choose another address`));
    return true;
  });
  taken.close();
});

test("wrong rules are shown", async () => {
  await assert.rejects(local({ rules: '[[rule]]\ntable = "*"\nstrategy = "calculated"\n' }), /shards/);
});

for (const [what, end, program] of [
  ["is killed", (owner) => owner.kill("SIGKILL"), "setInterval(() => {}, 1000)"],
  // Nothing of the server keeps the process.
  ["just returns", () => {}, ""],
]) {
  test(`it ends when its owner ${what}`, async () => {
    const owner = spawn(process.execPath, ["--input-type=module", "-e", `import { local } from "heatsink"; console.log((await local()).pid); ${program}`],
      { stdio: ["ignore", "pipe", "inherit"] });
    const [said] = await once(owner.stdout, "data");
    const exited = once(owner, "exit");
    end(owner);
    await exited;
    assert(await ends(Number(said)));
  });
}

test("a platform without a package is told what to do", async () => {
  const pretend = 'Object.defineProperty(process, "platform", { value: "sunos" }); require(require("node:path").resolve("node_modules/heatsink/bin/heatsink.cjs"));';
  const command = spawn(process.execPath, ["-e", pretend], { stdio: ["ignore", "ignore", "pipe"], env: { ...process.env, HEATSINK_BINARY: "" }, timeout: 10_000 });
  let said = "";
  command.stderr.on("data", (text) => { said += text; });
  assert.deepEqual((await once(command, "close"))[0], 70);
  assert.match(said, /^heatsink: There is no heatsink binary for sunos-x64\. Build it .* set HEATSINK_BINARY to it\.\n$/);
});
