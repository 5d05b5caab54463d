// `local()` under jest, by `require`.
const { DynamoDBClient, ListTablesCommand } = require("@aws-sdk/client-dynamodb");
const { local } = require("heatsink");

let server;
beforeAll(async () => {
  server = await local();
});
afterAll(() => server.stop());

test("it answers", async () => {
  const client = new DynamoDBClient(server.clientSettings());
  expect((await client.send(new ListTablesCommand({}))).TableNames).toEqual([]);
  client.destroy();
});

test("a server that a test forgets does not hang jest", async () => {
  expect((await local()).port).toBeGreaterThan(0);
});
