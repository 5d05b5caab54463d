// Tests that the store behind the endpoint cannot pass are skipped by name, with the reason.

import { basename } from 'node:path';
import { test as run } from 'node:test';

/** What that store itself lacks, as `file::test | reason` (the lists are in clients/run). */
const cannot = Object.fromEntries(
  (process.env.HEATSINK_CANNOT ?? '').split('\n').filter((line) => line.includes(' | ')).map((line) => line.split(' | ')));
export const test = (name, check) => run(name, { skip: cannot[`${basename(process.argv[1])}::${name}`] }, check);
