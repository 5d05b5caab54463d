// The chat rooms that the library tests read: their messages, and the pages that any unsharded DynamoDB cuts them into.
// One room holds nearly everything, so sharded it lies under several physical keys. Index sort keys do not repeat within an
// index key, so every order is exact. The expected answers are computed from a plain array. Nothing here knows about shards.

import { DeleteTableCommand } from '@aws-sdk/client-dynamodb';

import { client, fill, makeTable } from './board.js';

export const LOBBY = 'lobby';
const AUTHORS = ['ann', 'bob', 'cyd'];

// Index name ('table' is none): its partition key, its sort key, a value of the first that has many messages.
export const ORDERS = {
  table: { partition: 'room', sort: 'id', value: LOBBY },
  by_topic: { partition: 'room', sort: 'topic', value: LOBBY },   // local
  by_rank: { partition: 'room', sort: 'rank', value: LOBBY },     // global, with the table's partition key
  by_author: { partition: 'author', sort: 'rank', value: 'bob' }, // global, with a partition key of its own
};

/** 70 messages in the lobby, 6 in the attic. */
export const messages = Array.from({ length: 76 }, (_, number) => ({
  room: number < 70 ? LOBBY : 'attic',
  id: String(number).padStart(4, '0'),
  author: AUTHORS[number % 3],
  rank: (number * 37) % 101 - 50,
  topic: ((number * 17) % 101).toString(16).padStart(2, '0'),
  text: `message ${number}`,
}));

/** The messages that a Query of `index` gives, in its order. */
export function ordered(index, forward = true, keep = () => true) {
  const { partition, sort, value } = ORDERS[index];
  const found = messages.filter((message) => message[partition] === value && keep(message));
  found.sort((a, b) => (a[sort] < b[sort] ? -1 : 1));
  return forward ? found : found.reverse();
}

/** The pages of `size` that DynamoDB makes: a page that is full has a cursor, so an empty page can follow. */
export function cut(found, size) {
  return Array.from({ length: Math.floor(found.length / size) + 1 }, (_, page) => found.slice(page * size, (page + 1) * size));
}

/** The LastEvaluatedKey of a page that ends with `message`. */
export function cursor(message, index = 'table') {
  const { partition, sort } = ORDERS[index];
  return Object.fromEntries(['room', 'id', partition, sort].map((name) => [name, message[name]]));
}

/** Calls `check(index, forward)` for the table and each index, in both directions. */
export async function everyOrder(check) {
  for (const index of Object.keys(ORDERS)) {
    for (const forward of [true, false]) await check(index, forward);
  }
}

export const keys = (partition, sort) => [
  { AttributeName: partition, KeyType: 'HASH' }, { AttributeName: sort, KeyType: 'RANGE' },
];

/** An index of CreateTable that projects everything; `units` for a global one. */
export function index(IndexName, partition, sort, units) {
  return {
    IndexName, KeySchema: keys(partition, sort), Projection: { ProjectionType: 'ALL' },
    ...(units && { ProvisionedThroughput: { ReadCapacityUnits: units, WriteCapacityUnits: units } }),
  };
}

/** Creates the chat rooms under `name` and fills them. */
export async function makeRooms(name) {
  const { by_topic: topic, by_rank: rank, by_author: author } = ORDERS;
  await makeTable(name, ['room', 'id'], { room: 'S', id: 'S', topic: 'S', author: 'S', rank: 'N' }, {
    LocalSecondaryIndexes: [index('by_topic', topic.partition, topic.sort)],
    GlobalSecondaryIndexes: [
      index('by_rank', rank.partition, rank.sort, 1000), index('by_author', author.partition, author.sort, 1000)],
  });
  await fill(name, messages);
}

export const dropTable = (TableName) => client.send(new DeleteTableCommand({ TableName }));
