// What a gateway with a viral leaderboard says under /_heatsink/, made up: the page is tested on it.

/** Names that try to be more than names. */
export const HOSTILE = [
  '<img src=x onerror="window.harmed=1"><script>window.harmed=1</script>',
  '"><svg onload=window.harmed=1>&lt;b&gt;',
  'red \u001b[31malert\u001b[0m \u0007bell',
  'two\nlines\r\nand\ttab',
  'invoice_\u202Efdp.exe',
  'zero\u200Bwidth\u2066isolated\u2069',
  '\\x1b is not an escape',
  `2 KB ${'k'.repeat(2042)}`,
  'Z\u0341\u0342\u0343\u0344\u0345\u0346\u0347\u0348\u0349algo',
  '__proto__',
];

const SPANS = { '10m': [600, 1000], '6h': [360, 60_000], '4d': [576, 600_000], '28d': [672, 3_600_000] };

/** Numbers between 0 and 1 that are the same each time. */
function dice(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

const part = (more) => ({ table: 'Leaderboards', index: null, kind: 'write', units_per_s: 6120, requests_per_s: 6120, throttled_per_s: 0, floor_units_per_s: 12, ...more });
const key = (name, units, more) => ({
  key: { S: name }, shards: null, units_per_s: units, error_units_per_s: Math.ceil(units / 300), requests_per_s: units, throttled_per_s: 0,
  growing_sort_share: 0.1, largest_item_bytes: 420, same_page_share: 0, ...more,
});

const ADVICE = {
  sentence: 'Shard game_x over 16 keys: 4,812 writes/s then fall on 16 partitions with 301 each. A top-100 read costs 16 requests of 0.5 units instead of one of 6.',
  toml: '[[rule]]\ntable    = "Leaderboards"\nkeys     = "game_x"\nstrategy = "calculated"\nshards   = 16\n',
  command: 'heatsink reshard start Leaderboards game_x --shards 16 --wait',
};

/** Who makes the heat: an older gateway tells none of them. */
const CLIENTS = [{ client: 'team1', share_percent: 83.4 }, { client: 'reports', share_percent: 9 }];
const hostile = (name) => [{ client: name, share_percent: 71 }];

const automatic = (now) => ({
  mode: 'auto',
  left_alone: [{ table: 'Chat', index: 'by_room', key: 'room#1', reason: 'index-values-off', sentence: 'Values of indexes may not be spread: index_values is not set', since_ms: now - 41_000, clients: hostile(HOSTILE[2]) }],
  decisions: [{ at_ms: now - 9_000, table: 'Leaderboards', key: HOSTILE[0], what: '16 shards', sentence: 'It takes 4,812 write units a second', outcome: 'asked for' }],
});

export function heat(state = 'burning') {
  const now = Date.now();
  const base = { now_ms: now, window_ms: 1000, automatic: automatic(now) };
  const burned = state === 'burning' ? { from_ms: now - 130_000, to_ms: now } : { from_ms: now - 140_000, to_ms: now - 20_000 };
  if (state === 'idle') return { ...base, parts: [] };
  const viral = state === 'burning'
    ? key('game_x', 4812, { partitions: [7], throttled_per_s: 2983, growing_sort_share: 0.82, advice: ADVICE, burned, clients: CLIENTS })
    : key('game_x', 4812, { shards: 16, partitions: [...Array(16).keys()], growing_sort_share: 0.82, burned: state === 'burned' ? burned : null });
  return {
    ...base,
    parts: [
      part({ throttled_per_s: viral.throttled_per_s, keys: [viral, ...HOSTILE.map((name, i) => key(name, 300 - 20 * i, { clients: hostile(name) })), key('game_y', 212), key('', 20)] }),
      part({ kind: 'read', units_per_s: 1260, requests_per_s: 640, keys: [key('game_x', 1150, { requests_per_s: 600, same_page_share: 0.93 })] }),
      part({ table: 'Chat', index: 'by_room', units_per_s: 310, requests_per_s: 310, keys: [key('room#1', 96, { largest_item_bytes: 91_000 }), { ...key('', 41), key: { N: '42' } }] }),
    ],
  };
}

/** A map with so many more keys than the story needs. */
export function map(span = '10m', more = 14) {
  const [columns, step] = SPANS[span];
  const random = dice(7);
  const times = [...Array(columns).keys()];
  const begins = Math.floor(columns * 0.35), fixed = Math.floor(columns * 0.72);
  const noisy = (mean) => Math.round(10 * Math.max(0, mean * (0.85 + 0.3 * random()))) / 10;
  const wave = (mean, phase) => times.map((t) => noisy(mean * (1 + 0.6 * Math.sin((t / columns) * 9 + phase))));
  const load = times.map((t) => (t < begins ? noisy(120) : noisy(Math.min(4812, 400 + (t - begins) * (26_000 / columns)))));
  const row = (name, kind, units, extra) => ({ table: 'Leaderboards', index: null, kind, key: { S: name }, units, throttled: times.map(() => 0), shards: [], ...extra });
  const rows = [
    row('game_x', 'write', load, { throttled: times.map((t) => (t < fixed ? Math.max(0, load[t] - 1000) : 0)), shards: [[fixed, 16]] }),
    ...HOSTILE.map((name, i) => row(name, 'write', wave(300 - 20 * i, i))),
    row('game_x', 'read', wave(900, 2)),
    ...[...Array(Math.ceil(more / 2)).keys()].map((i) => row(`room#${i}`, 'write', wave(600 / (i + 1), i), { table: 'Chat', index: 'by_room' })),
    ...[...Array(Math.floor(more / 2)).keys()].map((i) => row(`player_${i}`, 'read', wave(2200 / (i + 1), i))),
  ];
  return { from_ms: Date.now() - columns * step, step_ms: step, columns, rows };
}

export const reshards = () => ({
  reshards: [{ table: 'Leaderboards', key: 'game_x', key_type: 'S', shards: 16, phase: 'MOVE', moved: 31_200, to_move: 48_000, paused: false, cancelled: false, hindered: null, ended: null }],
});

export function partitions(table) {
  const random = dice(3);
  return {
    table,
    resources: [{
      index: null, mode: 'on demand', read_units_per_s: 12_000, write_units_per_s: 30_000,
      partitions: [...Array(24).keys()].map((id) => ({
        id, first_position: '', first_sort_key: '', state: 'active', splits_in_s: null, not_split_because: id === 7 ? 'one item collection takes it all' : null,
        read_units_per_s: 200 * random(), write_units_per_s: id === 7 ? 1000 : 160 * random(), throttled_per_s: id === 7 ? 2983 : 0, lag_ms: 0,
      })),
    }],
  };
}
