/**
 * Logical keys of what is read past Heatsink: records of a DynamoDB Stream, of Kinesis, items of an export. Copy this one file; it needs Node.
 *
 *     import { SUFFIX, logical, record } from "./logical.mjs";
 *
 *     logical({ S: "game_x#~3" });            // { value: { S: "game_x" }, shard: 3, bucket: null }
 *     record(one, { key: "pk" });             // the stream record with logical keys; null for what is no change of an item
 *
 * How physical keys are written is a *form*: `SUFFIX` under rules (numbers included), `BUCKETS` where a rule has buckets, `WHOLE` where rules
 * name only indexes, `recorded(...)` where no rule names the table's keys and single ones were resharded, `templates(...)` where a rule has a
 * template. It is told, not guessed: `game_x#~3` is a client's own key in a table that is not sharded.
 *
 * Values are attribute values of DynamoDB JSON; binary ones are base64 (Lambda, Kinesis) or a Uint8Array (SDK), and come back as they came.
 * Buckets are as ISO 8601 writes them: 2026-06-22T01, 2026-06-22, 2026-06 or 2026-W26.
 */

/** The attribute of an old copy. */
const MOVED = "heatsink:moved";

export const SUFFIX = { kind: "suffix" };
export const BUCKETS = { kind: "buckets" };
export const WHOLE = { kind: "whole" };

/**
 * Only keys on record have shards: `reserved(key)` is the `reserved` of `heatsink reshard status TABLE --output json`, undefined for other keys.
 * Keys are given as it prints them: binary ones in base64, numbers in canonical text. `() => 65536` takes every key that is written like a shard
 * for one: right where no client has keys that end in `#~` and a number.
 */
export const recorded = (reserved) => ({ kind: "recorded", reserved });

/**
 * The table's rules in their order, each `{ template, shards, bucket, keys }`: bucket is "hour", "day", "week" or "month", `keys(key)` says which
 * logical keys the rule names (all, if left out). A rule without a template keeps its keys whole.
 */
export const templates = (...rules) => ({ kind: "templates", rules });

/** The logical key, shard and bucket of a physical key. */
export function logical(value, form = SUFFIX) {
  const [kind, stored] = Object.entries(value)[0];
  if (kind !== "S" && kind !== "N" && kind !== "B") return { value, shard: 0, bucket: null };
  const inBase64 = kind === "B" && typeof stored === "string";
  // Bytes as text of one character each.
  const physical = Buffer.from(stored, inBase64 ? "base64" : "utf8").toString("latin1");
  const read = decode(kind === "N" ? canonical(physical) ?? physical : physical, kind, form);
  const key = Buffer.from(read.key, "latin1");
  const raw = kind === "B" && !inBase64 ? new Uint8Array(key) : key.toString(inBase64 ? "base64" : "utf8");
  return { value: { [kind]: raw }, shard: read.shard, bucket: read.bucket };
}

/**
 * A stream record with logical keys in Keys, NewImage and OldImage; null if it is of a part of a counter, which is no item of its own, or of the
 * old copy of an item that moved to another shard.
 * `table` is `{ key, form, attributes, isCounter }`: the partition key's name and form; the forms of spread keys of indexes by their names,
 * SUFFIX by a rule, recorded(...) by `reshard --index`; which logical keys hold counters.
 */
export function record(one, table) {
  const change = { ...one.dynamodb };
  if (change.NewImage?.[MOVED] || change.OldImage?.[MOVED]) return null;
  const { value, shard, bucket } = logical(change.Keys[table.key], table.form);
  if ((shard > 0 || bucket) && table.isCounter?.(text(value))) return null;
  for (const image of ["Keys", "NewImage", "OldImage"]) {
    if (change[image]) change[image] = item(change[image], table);
  }
  return { ...one, dynamodb: change };
}

/** An item with its logical key, and logical values of the keys of indexes; numbers of these are never spread. */
export function item(stored, table) {
  const changed = { ...stored };
  for (const [name, form] of Object.entries(table.attributes ?? {})) {
    if (stored[name]?.S !== undefined || stored[name]?.B !== undefined) changed[name] = logical(stored[name], form).value;
  }
  if (stored[table.key]) changed[table.key] = logical(stored[table.key], table.form).value;
  return changed;
}

const text = (value) => named(Object.values(value)[0]);
const named = (stored) => (typeof stored === "string" ? stored : Buffer.from(stored).toString("base64"));
const asNamed = (key, kind) => Buffer.from(key, "latin1").toString(kind === "B" ? "base64" : "utf8");

function decode(physical, kind, form) {
  const whole = { key: physical, shard: 0, bucket: null };
  if (form.kind === "whole") return whole;
  if (form.kind === "templates") return byTemplates(physical, kind, form.rules) ?? whole;
  const { key, shard } = kind === "N" ? shardOfNumber(physical) : shardOf(physical);
  if (form.kind === "recorded") return shard < (form.reserved(asNamed(key, kind)) ?? 1) ? { key, shard, bucket: null } : whole;
  if (kind === "N") return { key, shard, bucket: null };
  const dated = form.kind === "buckets" ? bucketOf(key) : { key, bucket: null };
  const inner = split(dated.key);
  const isReserved = inner?.number === 0 && (split(inner.key) || (form.kind === "buckets" && bucketOf(inner.key).bucket));
  return { key: isReserved ? inner.key : dated.key, shard, bucket: dated.bucket };
}

/** What stands before `#~` and a number, and that number. */
function split(key) {
  const found = /#~(0|[1-9][0-9]{0,4})$/.exec(key);
  return found && { key: key.slice(0, found.index), number: Number(found[1]) };
}

function shardOf(physical) {
  const found = split(physical);
  return found && found.number >= 1 && found.number <= 65535 ? { key: found.key, shard: found.number } : { key: physical, shard: 0 };
}

const FORMATS = { hour: "%Y-%m-%dT%H", day: "%Y-%m-%d", week: "%G-W%V", month: "%Y-%m" };
const escaped = (literal) => Buffer.from(literal, "utf8").toString("latin1").replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");

/** A pattern for the buckets of a format: a group for each field. */
const pattern = (format) => format.split(/%([YGmdHV])/)
  .map((part, at) => (at % 2 ? `(?<${part}>[0-9]{${/[YG]/.test(part) ? 4 : 2}})` : escaped(part))).join("");

const BUCKET_PATTERNS = Object.values(FORMATS).map((format) => new RegExp(`#~${pattern(format)}$`));

/** What stands before `#~` and a bucket, and that bucket. */
function bucketOf(key) {
  for (const one of BUCKET_PATTERNS) {
    const found = one.exec(key);
    const bucket = found && calendar(found.groups);
    if (bucket) return { key: key.slice(0, found.index), bucket };
  }
  return { key, bucket: null };
}

/** The bucket of these fields as ISO 8601 writes it; null if the calendar has none. */
function calendar({ Y, m, d, H, G, V }) {
  if (G) {
    const last = lastWeekday(Number(G)) === 4 || lastWeekday(Number(G) - 1) === 3 ? 53 : 52;
    return Number(V) >= 1 && Number(V) <= last ? `${G}-W${V}` : null;
  }
  const year = Number(Y);
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  const days = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][Number(m) - 1];
  const day = Number(d ?? 1);
  if (!days || day < 1 || day > days || Number(H ?? 0) > 23) return null;
  return `${Y}-${m}${d ? `-${d}` : ""}${H ? `T${H}` : ""}`;
}

/** The day of the week of a year's last day, from Sunday, 0. The calendar repeats after 400 years. */
function lastWeekday(year) {
  const from = year + 400;
  return (from + Math.floor(from / 4) - Math.floor(from / 100) + Math.floor(from / 400)) % 7;
}

/** A number as DynamoDB writes it: no exponent, no needless zeros. null for what is none. */
function canonical(number) {
  const found = /^([+-]?)([0-9]*)\.?([0-9]*)(?:[eE]([+-]?)0*([0-9]{1,6}))?$/.exec(number);
  if (!found || !(found[2] + found[3])) return null;
  const digits = (found[2] + found[3]).replace(/^0+/, "");
  const kept = trimmed(digits);
  const written = Number(found[5] ?? 0) * (found[4] === "-" ? -1 : 1);
  const exponent = written - found[3].length + digits.length - kept.length;
  const top = exponent + Math.max(kept.length, 1) - 1;
  if (kept.length > 38 || top < -130 || top > 125) return null;
  if (!kept) return "0";
  const point = kept.length + exponent;
  const sign = found[1] === "-" ? "-" : "";
  if (exponent >= 0) return sign + kept + "0".repeat(exponent);
  return sign + (point > 0 ? `${kept.slice(0, point)}.${kept.slice(point)}` : `0.${"0".repeat(-point)}${kept}`);
}

/** Without zeros at the end. */
function trimmed(digits) {
  let end = digits.length;
  while (end > 0 && digits[end - 1] === "0") end -= 1;
  return digits.slice(0, end);
}

/** The logical key 12.5 in shard 3 is 12.5000007095510003. */
function shardOfNumber(physical) {
  const found = /^(-?[0-9]{1,20})\.([0-9]{6})709551([0-9]{1,4})$/.exec(physical);
  const own = found && trimmed(found[2]);
  const key = found && (own ? `${found[1]}.${own}` : found[1]);
  const shard = found ? Number(found[3].padEnd(4, "0")) : 0;
  return shard && key !== "-0" ? { key, shard } : { key: physical, shard: 0 };
}

function byTemplates(physical, kind, rules) {
  for (const rule of rules) {
    const read = rule.template ? byTemplate(physical, rule) : null;
    if (read && rules.find(({ keys }) => !keys || keys(asNamed(read.key, kind))) === rule) return read;
  }
  return null;
}

function byTemplate(physical, rule) {
  let source = "", end = 0, start = 0, width = 1;
  for (const piece of rule.template.matchAll(/\{(pk|shard|bucket)(?:\+([0-9]+))?(?::([^}]*))?\}/g)) {
    source += escaped(rule.template.slice(end, piece.index));
    end = piece.index + piece[0].length;
    if (piece[1] === "pk") {
      source += "(?<pk>.+)";
    } else if (piece[1] === "shard") {
      source += "(?<shard>[0-9]{1,5})";
      [start, width] = [Number(piece[2] ?? 0), Number.parseInt(piece[3] ?? "1", 10)];
    } else {
      source += pattern(piece[3] ?? FORMATS[rule.bucket]);
    }
  }
  const groups = new RegExp(`^${source}${escaped(rule.template.slice(end))}$`, "s").exec(physical)?.groups;
  if (!groups) return null;
  const shard = groups.shard ? Number(groups.shard) - start : 0;
  const isWrittenSo = !groups.shard || groups.shard === String(shard + start).padStart(width, "0");
  const hasBucket = groups.Y ?? groups.G;
  const bucket = hasBucket ? calendar(groups) : null;
  if (!isWrittenSo || shard < 0 || shard >= rule.shards || (hasBucket && !bucket)) return null;
  return { key: groups.pk, shard, bucket };
}
