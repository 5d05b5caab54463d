// What the types of `import` allow.
import { local, NotStarted, type Local } from "heatsink";

const server: Local = await local({ partitions: false, rules: "heatsink.toml", port: 0 });
const environment: Record<string, string> = server.environ();
await server.stop();
// @ts-expect-error: no such setting
await local({ ports: 0 });
export { environment, NotStarted };
