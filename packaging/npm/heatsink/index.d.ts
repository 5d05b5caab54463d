/// <reference lib="esnext.disposable" />

/** Settings of {@link local}. */
export interface Settings {
  /** Whether it throttles as DynamoDB's partitions do. Default: true. */
  partitions?: boolean;
  /** A file of rules, or the rules themselves as TOML text of several lines. Default: no key is spread. */
  rules?: string;
  /** A file that keeps the data. Default: data is in memory. */
  data?: string;
  /** On 127.0.0.1. Default: a free one. */
  port?: number;
  /** The server's region. Default: us-east-1. */
  region?: string;
  /** More arguments of `heatsink serve`. */
  arguments?: string[];
  /** How many milliseconds it may take to start. Default: 10000. */
  timeout?: number;
}

/** A running server. It ends with this process, even if that is killed. */
export interface Local {
  /** The URL that clients take as `endpoint`. */
  readonly endpoint: string;
  /** The same as `endpoint`. */
  readonly url: string;
  readonly port: number;
  readonly region: string;
  /** The process of the server. */
  readonly pid: number;
  /** Environment variables by which every AWS SDK finds it, with made-up credentials. */
  environ(): Record<string, string>;
  /** What a client of the AWS SDK takes. */
  clientSettings(): { endpoint: string; region: string; credentials: { accessKeyId: string; secretAccessKey: string } };
  /** The last of what it logged. */
  log(): string;
  /** Ends it, and resolves at its end. Kills it after `timeout` milliseconds. Default: 5000. Can be called again. */
  stop(timeout?: number): Promise<void>;
  /** `await using` calls it. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** The server did not start. The message has what it said. */
export class NotStarted extends Error {}

/** Starts a server with an empty store, and resolves once it answers. Rejects with {@link NotStarted}. */
export function local(settings?: Settings): Promise<Local>;

/** The path of the binary for this platform. */
export function find(): string;
