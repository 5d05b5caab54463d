// Tests that the store behind the endpoint cannot pass are skipped by name, with the reason.

import { basename } from 'node:path';
import { test as run } from 'node:test';

/** What that store itself lacks, as `file::test | reason`, for all tests whose names begin so (the lists are in clients/run). */
const cannot = (process.env.HEATSINK_CANNOT ?? '').split('\n').filter((line) => line.includes(' | ')).map((line) => line.split(' | '));
/** How often a test begins again whose position is refused since keys move: as a client must. */
const times = Number(process.env.HEATSINK_BEGINS_AGAIN ?? 0);

async function again(check, left) {
  try {
    await check();
  } catch (error) {
    if (left === 0 || !String(error).includes('is of another layout')) throw error;
    await again(check, left - 1);
  }
}

export const test = (name, check) => {
  const skip = cannot.find(([begin]) => `${basename(process.argv[1])}::${name}`.startsWith(begin))?.[1];
  run(name, { skip }, (context) => again(() => check(context), times));
};
