// The lists below the map: hot keys, reshards, partitions; and what stands beside the map for the chosen cell.

const KEYS_AT_FIRST = 25, TILES_AT_MOST = 400;
let allKeys = false;

/** A table of rows; a cell is a text or an element. */
function table(columns, rows) {
  const head = element("tr"), body = element("tbody");
  for (const { name, className } of columns) {
    const cell = element("th", name, className);
    cell.scope = "col";
    head.append(cell);
  }
  for (const row of rows) {
    const line = element("tr");
    row.forEach((content, i) => {
      const cell = element("td", null, columns[i].className);
      cell.append(content ?? "");
      line.append(cell);
    });
    body.append(line);
  }
  const made = element("table"), top = element("thead"), around = element("div", null, "scroll");
  top.append(head);
  made.append(top, body);
  around.append(made);
  return around;
}

function meter(share) {
  const made = element("span", null, share >= 1 ? "meter full" : "meter"), bar = element("i");
  bar.style.width = `${Math.min(100, Math.max(0, share * 100 || 0))}%`;
  made.append(bar);
  return made;
}

function joined(...pieces) {
  const made = document.createDocumentFragment();
  made.append(...pieces);
  return made;
}

/** Whether the reader is in there: a button has the focus, or text is selected. Then it is not replaced under the hands. */
function isInUse(root) {
  const selection = getSelection();
  return root.contains(document.activeElement) || (!selection.isCollapsed && root.contains(selection.anchorNode));
}

function hints({ growing_sort_share: growing, largest_item_bytes: largest, same_page_share: page, clients }) {
  const said = [mostlyBy({ clients })].filter(Boolean);
  if (growing >= 0.5) said.push(`${percent(growing)} of its sort keys only grow`);
  if (page >= 0.5) said.push(`${percent(page)} read the same page`);
  if (largest >= 32 * 1024) said.push(`items of up to ${Math.round(largest / 1024)} KB`);
  return said.join("; ");
}

/** The partitions that the writes of a key go to, where the store tells. */
function placeOf({ partitions }) {
  if (!Array.isArray(partitions) || partitions.length === 0) return "";
  const [some, more] = [partitions.slice(0, 5), partitions.length - 5];
  return element("span", ` on ${some.join(", ")}${more > 0 ? ` and ${more} more` : ""}`, "error");
}

/** How many shards, and what the hottest of them takes where that is measured. */
function shardsOf({ shards, measured }) {
  if (shards == null) return "–";
  if (!Array.isArray(measured) || measured.length === 0) return String(shards);
  const most = Math.max(...measured.map((one) => one.units_per_s));
  const hottest = element("span", ` up to ${rate(most)}`, "error");
  hottest.title = `measured: the hottest shard (#${measured.findIndex((one) => one.units_per_s === most)}) takes ${rate(most)} units/s`;
  return joined(String(shards), hottest);
}

function showKeys(heat, ranked) {
  const root = document.getElementById("keys");
  if (isInUse(root)) return;
  const columns = [
    { name: "Key" }, { name: "" }, { name: "Table" }, { name: "Units/s", className: "number" }, { name: "Of what its partitions give" },
    { name: "Requests/s", className: "number" }, { name: "Refused", className: "number" }, { name: "Shards", className: "number" }, { name: "Burned" }, { name: "Seen", className: "wide" },
  ];
  const shown = allKeys ? ranked : ranked.slice(0, KEYS_AT_FIRST);
  const rows = shown.map((key) => {
    const refused = element("span", key.refused > 0 ? percent(key.refused) : "0", key.refused > 0 ? "burning-text" : "");
    return [
      keyElement(key.key, 44), copyButton(() => keyToCopy(key.key), "the key"), `${placeText(key.part)} · ${key.part.kind}s`,
      joined(rate(key.units_per_s), element("span", key.error > 0 ? ` ± ${rate(key.error)}` : "", "error")),
      joined(meter(key.ofPartition), percent(key.ofPartition), placeOf(key)), rate(key.requests_per_s), refused, shardsOf(key), burnedText(key.burned, heat.now_ms), hints(key),
    ];
  });
  const made = rows.length === 0 ? [] : [table(columns, rows)];
  if (shown.length < ranked.length) {
    const more = element("button", `Show all ${ranked.length} keys`, "more");
    more.addEventListener("click", () => { allKeys = true; more.blur(); showKeys(heat, ranked); });
    made.push(more);
  }
  root.replaceChildren(...made);
  const floors = (heat.parts ?? []).filter((part) => part.floor_units_per_s > 0).map((part) => rate(part.floor_units_per_s));
  const floor = floors.length > 0 ? ` Keys below ${floors.length === 1 ? floors[0] : "their part’s floor of units/s"} may be missing.` : "";
  note("keys-note", rows.length === 0 ? "No key takes enough to be listed." : `± is how much a rate may be wrong.${floor}`);
}

function showReshards(answer) {
  const root = document.getElementById("reshards");
  const rows = (answer.reshards ?? []).map((one) => {
    const state = one.ended ? `${visible(one.ended.as ?? "ended")}: ${visible(one.ended.text ?? "")}`
      : [one.phase ? `phase ${visible(one.phase)}` : "waits for a gateway", one.paused && "paused", one.cancelled && "being cancelled", one.hindered && visible(one.hindered)].filter(Boolean).join("; ");
    const share = one.ended?.as === "moved" ? 1 : one.moved / one.to_move;
    // What was counted is done: it walks once more, until a walk finds nothing.
    const rest = one.moved < one.to_move ? ` of about ${rate(one.to_move)} items` : one.ended ? " items" : " items; looks for what is left";
    const progress = one.to_move > 0 ? joined(meter(Math.min(share, 0.999)), `${rate(one.moved)}${rest}`) : `${rate(one.moved ?? 0)} items`;
    return [keyElement({ [one.key_type ?? "S"]: one.key }, 48), visible(one.table), String(one.shards), progress, state];
  });
  const columns = [{ name: "Key" }, { name: "Table" }, { name: "Shards", className: "number" }, { name: "Moved" }, { name: "State", className: "wide" }];
  root.replaceChildren(...(rows.length > 0 ? [table(columns, rows)] : []));
  note("reshards-note", rows.length === 0 ? "No reshard is under way." : answer.next ? "There are others: heatsink reshard status lists them." : "");
}

/** The hot keys of each partition of a table, the hottest first: `ranked` is in that order. */
function keysOfPartitions(table, ranked) {
  const found = new Map();
  for (const key of ranked) {
    if (key.part.table !== table || !Array.isArray(key.partitions)) continue;
    for (const number of key.partitions) found.set(number, (found.get(number) ?? new Set()).add(shortKey(key.key, 30)));
  }
  return found;
}

function showPartitions({ table, resources = [] }, ranked) {
  const hot = keysOfPartitions(table, ranked);
  const root = document.getElementById("partitions");
  const made = [];
  for (const { index, mode, partitions = [] } of resources) {
    made.push(element("p", `${index == null ? "The table" : `Index ${visible(index)}`}: ${visible(mode)}, ${partitions.length} ${partitions.length === 1 ? "partition" : "partitions"}`, "resource"));
    const tiles = element("div", null, "tiles");
    for (const one of partitions.slice(0, TILES_AT_MOST)) {
      const share = Math.max(one.write_units_per_s / CEILING.write, one.read_units_per_s / CEILING.read);
      const tile = element("div", null, one.throttled_per_s > 0 ? "tile throttled" : "tile");
      Object.assign(tile.style, tileColours(share));
      tile.append(element("b", `${one.id} · ${percent(share)}`), element("span", `${Math.round(one.write_units_per_s)} w  ${Math.round(one.read_units_per_s)} r`));
      if (one.throttled_per_s > 0) tile.append(element("span", ` ${rate(one.throttled_per_s)} refused`));
      const splits = one.splits_in_s == null ? (one.not_split_because ? `; not split: ${visible(one.not_split_because)}` : "") : `; splits in ${one.splits_in_s} s`;
      const keys = index == null ? [...(hot.get(one.id) ?? [])] : [];
      if (keys.length > 0) tile.append(element("span", keys.length === 1 ? keys[0] : `${keys[0]} and ${keys.length - 1} more`, "hot"));
      tile.title = [`${visible(one.state ?? "")}${splits}`, ...keys.slice(0, 10)].join("\n");
      tiles.append(tile);
    }
    made.push(tiles);
  }
  root.replaceChildren(...made);
  note("partitions-note", made.length > 0 ? "" : "The table has no partitions yet.");
}

/** The chosen cell: its key in full, to read and to copy. */
function showCell({ row, shard, time, load }) {
  const what = element("div", null, "what");
  const facts = `${placeText(row)} · ${visible(row.kind)}s${shard === undefined ? "" : ` · shard ${shard}`} · ${time} · ${load}`;
  what.append(keyElement(row.key), element("div", facts, "facts"));
  document.getElementById("inspector").replaceChildren(copyButton(() => keyToCopy(row.key), "the key"), what);
}

/** A line about a list, instead of it or above it. */
function note(id, text, isAlarm = false) {
  const line = document.getElementById(id);
  line.textContent = text;
  line.hidden = text === "";
  line.classList.toggle("alarm", isAlarm);
}
