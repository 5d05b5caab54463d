// Where the binary for this platform lies. Each platform has a package of its own, so that nobody downloads the others.
"use strict";

const fs = require("node:fs");
const path = require("node:path");

const PACKAGES = { "linux-x64": "@heatsink/linux-x64" };
// Names another binary, one that was just built for example.
const VARIABLE = "HEATSINK_BINARY";

/** The path of the binary. Throws an error of one sentence, and what to do, where there is none. */
function find() {
  const named = process.env[VARIABLE];
  if (named) {
    if (fs.existsSync(named)) return path.resolve(named);
    throw new Error(`${VARIABLE} names ${named}, which does not exist.`);
  }
  const platform = `${process.platform}-${process.arch}`;
  const name = PACKAGES[platform];
  if (!name) {
    throw new Error(
      `There is no heatsink binary for ${platform}. ` +
        `Build it (\`cargo install --path crates/heatsink --locked\` in its source) and set ${VARIABLE} to it.`,
    );
  }
  try {
    return require.resolve(`${name}/heatsink`);
  } catch {
    throw new Error(
      `The package ${name} is not installed. Install again without \`--omit=optional\` and \`--no-optional\`: npm install ${name}`,
    );
  }
}

module.exports = { find, VARIABLE };
