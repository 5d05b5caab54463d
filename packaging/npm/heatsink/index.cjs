// A server for one program or test: started on a free port, and ended with it for certain.
"use strict";

const { spawn } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { find } = require("./binary.cjs");

// Settings of the caller that would lead a local server elsewhere.
const NOT_PASSED_ON = /^(AWS_|HEATSINK_|LISTEN_|NOTIFY_SOCKET$|OTEL_|RUST_LOG$)/;
// The most of the log that is kept, in characters.
const KEPT = 64 * 1024;

class NotStarted extends Error {
  name = "NotStarted";
}

class Local {
  #child;
  #log = "";
  #ended;
  #forget;

  constructor(child, forget) {
    this.#child = child;
    this.#forget = forget;
    child.stderr.setEncoding("utf8").on("data", (text) => {
      this.#log = (this.#log + text).slice(-KEPT);
    });
    this.#ended = new Promise((resolve) => {
      child.once("error", (error) => resolve({ error }));
      // "close", not "exit": the log is whole then.
      child.once("close", (code, signal) => resolve({ code, signal }));
    });
    // The pipe breaks when the server ends first.
    child.stdin.on("error", () => {});
  }

  /** Resolves when it answers. */
  async _started(region, timeout) {
    const { stdout } = this.#child;
    let line = "";
    const answers = new Promise((resolve) => {
      stdout.setEncoding("utf8").on("data", (text) => {
        line += text;
        if (line.includes("\n")) resolve(true);
      });
    });
    let timer;
    const late = new Promise((resolve) => {
      timer = setTimeout(resolve, timeout, { late: true });
    });
    const first = await Promise.race([answers, this.#ended, late]);
    clearTimeout(timer);
    const told = parsed(line);
    if (first === true && told.endpoint) {
      this.endpoint = told.endpoint;
      this.port = Number(new URL(told.endpoint).port);
      this.region = region;
      this.pid = this.#child.pid;
      this.#letGo();
      return this;
    }
    if (first.late) this.#child.kill("SIGKILL");
    const { error, code } = await this.#ended;
    this.#forget();
    const what = error ? `${this.#child.spawnfile} does not run here: ${error.message}`
      : first.late ? `no answer within ${timeout} ms` : `exit code ${code}`;
    throw new NotStarted(`the server did not start (${what}): ${told.error?.message ?? this.#log.trim()}`);
  }

  /** A test that forgot `stop()` must not hang: nothing of the server holds this process. The pipe to its input ends with it. */
  #letGo() {
    this.#child.unref();
    for (const stream of this.#child.stdio) stream.unref();
  }

  get url() {
    return this.endpoint;
  }

  environ() {
    return {
      AWS_ENDPOINT_URL_DYNAMODB: this.endpoint,
      AWS_ACCESS_KEY_ID: "local",
      AWS_SECRET_ACCESS_KEY: "local",
      AWS_REGION: this.region,
      AWS_DEFAULT_REGION: this.region,
    };
  }

  clientSettings() {
    return { endpoint: this.endpoint, region: this.region, credentials: { accessKeyId: "local", secretAccessKey: "local" } };
  }

  log() {
    return this.#log;
  }

  async stop(timeout = 5000) {
    this.#child.stdin.end();
    // Until it is cleared it holds this process, which nothing else of the server does.
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), timeout);
    await this.#ended;
    clearTimeout(timer);
    this.#forget();
  }

  async [Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]() {
    await this.stop();
  }
}

async function local({
  partitions = true, rules, data, port = 0, region = "us-east-1", arguments: more = [], timeout = 10_000,
} = {}) {
  const binary = find();
  const [file, forget] = written(rules);
  const command = ["serve", "--listen", `127.0.0.1:${port}`, "--output", "json", "--end-with-stdin",
    "--partitions", partitions ? "on" : "off", "--rules", file];
  if (data !== undefined) command.push("--data", path.resolve(data));
  const passed = Object.entries(process.env).filter(([name]) => !NOT_PASSED_ON.test(name));
  const child = spawn(binary, [...command, ...more], {
    cwd: "/",
    // A session of its own: Ctrl-C at the terminal is for the tests, which then end the server.
    detached: true,
    env: { ...Object.fromEntries(passed), AWS_REGION: region },
    stdio: ["pipe", "pipe", "pipe"],
  });
  return new Local(child, forget)._started(region, timeout);
}

/** The file of the rules, and what removes it if it was made for them. */
function written(rules) {
  // Not the heatsink.toml of whatever folder the tests run in.
  if (rules === undefined) return [os.devNull, () => {}];
  if (!rules.includes("\n")) return [path.resolve(rules), () => {}];
  // It stays as long as the server: rules are read again when they change.
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "heatsink-"));
  const file = path.join(folder, "heatsink.toml");
  fs.writeFileSync(file, rules);
  return [file, () => fs.rmSync(folder, { recursive: true, force: true })];
}

function parsed(line) {
  try {
    return JSON.parse(line);
  } catch {
    return {};
  }
}

module.exports = { local, NotStarted, find };
