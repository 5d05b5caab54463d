#!/usr/bin/env node
// `heatsink ...` of node_modules/.bin: runs the binary with the same arguments, and ends as it does.
"use strict";

const { spawn } = require("node:child_process");
const os = require("node:os");
const { find } = require("../binary.cjs");

let binary;
try {
  binary = find();
} catch (error) {
  console.error(`heatsink: ${error.message}`);
  process.exit(70);
}
const child = spawn(binary, process.argv.slice(2), { stdio: "inherit" });
child.on("error", (error) => {
  console.error(`heatsink: ${binary} does not run here: ${error.message}`);
  process.exit(70);
});
// A terminal sends Ctrl-C to both, and the server waits for its requests: this one must not end first, nor send it twice.
const forward = (signal) => child.kill(signal);
process.on("SIGINT", () => process.stdin.isTTY || forward("SIGINT"));
process.on("SIGTERM", forward);
process.on("SIGHUP", forward);
// npx that is killed tells nobody: whoever it ran has another parent then.
if (process.env.npm_command === "exec") {
  const parent = process.ppid;
  const looking = setInterval(() => {
    if (process.ppid === parent) return;
    // Once: a second signal would cut requests off.
    clearInterval(looking);
    forward("SIGTERM");
  }, 500);
}
child.on("exit", (code, signal) => process.exit(code ?? 128 + os.constants.signals[signal]));
