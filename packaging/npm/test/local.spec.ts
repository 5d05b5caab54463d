// `local()` under vitest, by `import`, in TypeScript, with `await using`.
import { DynamoDBClient, ListTablesCommand } from "@aws-sdk/client-dynamodb";
import { local } from "heatsink";
import { expect, test } from "vitest";

test("it answers, and is stopped at the end of the block", async () => {
  let pid = 0;
  {
    await using server = await local({ partitions: false });
    pid = server.pid;
    const client = new DynamoDBClient(server.clientSettings());
    expect((await client.send(new ListTablesCommand({}))).TableNames).toEqual([]);
    client.destroy();
  }
  expect(() => process.kill(pid, 0)).toThrow("ESRCH");
});
