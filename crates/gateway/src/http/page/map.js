// The heat map: a canvas that holds what is scrolled to, however many keys there are. Its labels are elements of their own.

const KEY_HEIGHT = 20, SHARD_HEIGHT = 9, PART_HEIGHT = 26;
/** What is drawn of a shard's cell that is not measured. */
const EQUAL_HEIGHT = 4;

/** How many shards a key had in each column; `changes` says from which column on how many. */
function shardCounts(changes, columns) {
  const counts = new Array(columns).fill(1);
  for (const [from, count] of Array.isArray(changes) ? changes : []) counts.fill(Math.max(count, 1), from);
  return counts;
}

/** In which columns the shards of a key were measured: in all others each is taken for an equal share, because a hash spreads a key's items evenly. */
function measuredColumns(shards, columns) {
  const all = new Uint8Array(columns);
  for (const { units } of shards) for (let column = 0; column < columns; column++) if (units?.[column] > 0) all[column] = 1;
  return all;
}

/** A key with at most so many shards shows them at first. */
const UNFOLDED_SHARDS = 20;
/** Keys that took less of a partition than this, and were never refused, are cool: of each part so many are shown at first. */
const COOL = 0.1, COOL_AT_FIRST = 3;
/** Shard labels are shown on every fourth line: there is no room for more. */
const LABELLED_SHARDS = 4;
const PLATE = "#08060f", UNKNOWN_PIXEL = 0xff3a343a;

const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
const TICKS = [1, 2, 5, 10, 15, 30].map((n) => n * SECOND)
  .concat([1, 2, 5, 10, 15, 30].map((n) => n * MINUTE), [1, 2, 3, 6, 12].map((n) => n * HOUR), [1, 2, 7].map((n) => n * DAY));

/** A moment as the reader's clock has it; to the second, the minute or the day. */
function clock(millis, step) {
  const local = new Date(millis - new Date(millis).getTimezoneOffset() * MINUTE).toISOString();
  if (step >= DAY) return local.slice(0, 10);
  return local.slice(11, step >= MINUTE ? 16 : 19);
}

/** What the shards of a key have in a column, in words. */
function ofShards(row, column) {
  const count = row.counts[column];
  if (!row.measured[column]) return `, about ${rate(row.shares[column])} on each of ${count} shards`;
  const loads = row.measuredShards.slice(0, count).map(({ units }) => units?.[column] ?? 0);
  const most = Math.max(...loads);
  return `, measured: up to ${rate(most)} on one of ${count} shards (#${loads.indexOf(most)})`;
}

const isCool = (row) => row.peak < COOL && !row.throttled?.some((refused) => refused > 0);

class HeatMap {
  /** `chosen` is called with the cell under the cursor whenever it changes. */
  constructor(chosen) {
    for (const id of ["viewport", "stage", "window", "labels", "cells", "axis", "tip"]) this[id] = document.getElementById(id);
    this.chosen = chosen;
    this.map = null;
    this.lines = [];
    this.folded = new Map();
    this.coolShown = new Set();
    this.filter = "";
    this.brightness = 0;
    this.cursor = null;
    this.hovered = null;
    this.scratch = document.createElement("canvas");
    this.viewport.addEventListener("scroll", () => { this.tip.hidden = true; this.draw(); });
    this.viewport.addEventListener("keydown", (event) => this.key(event));
    this.cells.addEventListener("mousemove", (event) => this.hover(event));
    this.cells.addEventListener("mouseleave", () => { this.hovered = null; this.tip.hidden = true; });
    this.cells.addEventListener("click", (event) => {
      const cell = this.at(event);
      if (cell) this.choose(cell.line, cell.column);
    });
    new ResizeObserver(() => this.redraw()).observe(this.viewport);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
  }

  /** Takes a map as `/_heatsink/heat/map` gives it. */
  show(map) {
    // Most keys have no shards, and share these.
    const ones = shardCounts([], map.columns), unmeasured = measuredColumns([], map.columns);
    const rows = (map.rows ?? []).map((row) => {
      const ceiling = ceilingOf(row.kind);
      const counts = row.shards?.length > 0 ? shardCounts(row.shards, map.columns) : ones;
      const most = counts === ones ? 1 : Math.max(1, ...counts);
      const shards = most > 1 && Array.isArray(row.measured) ? row.measured : [];
      const measured = shards.length > 0 ? measuredColumns(shards, map.columns) : unmeasured;
      // What burns of a key with shards is one of them.
      const shares = most > 1 ? row.units.map((units, column) => (units == null ? null : units / counts[column])) : row.units;
      let peak = 0;
      for (const units of row.units) if (units > peak) peak = units;
      return { ...row, shards: most > 1 ? most : null, counts, shares, measuredShards: shards, measured, ceiling, peak: peak / ceiling, id: JSON.stringify([row.table, row.index, row.kind, row.key]) };
    });
    const parts = new Map();
    for (const row of rows.sort((a, b) => b.peak - a.peak)) {
      const part = `${placeText(row)} · ${row.kind}s`;
      if (!parts.has(part)) parts.set(part, []);
      parts.get(part).push(row);
    }
    this.map = map;
    this.parts = parts;
    this.arrange();
  }

  /** Puts the lines in their places. */
  arrange() {
    const wanted = this.filter.toLowerCase();
    this.lines = [];
    let y = 0;
    const add = (height, line) => { this.lines.push({ y, height, ...line }); y += height; };
    for (const [part, rows] of this.parts ?? []) {
      let found = rows.filter((row) => wanted === "" || `${part} ${keyText(row.key)}`.toLowerCase().includes(wanted));
      if (found.length === 0) continue;
      add(PART_HEIGHT, { part, id: part });
      // Whoever filters wants to see what is found.
      const cool = wanted === "" ? found.filter(isCool).slice(COOL_AT_FIRST) : [];
      const isShown = this.coolShown.has(part);
      if (cool.length > 1 && !isShown) found = found.filter((row) => !cool.includes(row));
      for (const row of found) {
        add(KEY_HEIGHT, { row, values: row.shares, id: row.id });
        if (row.shards && !this.isFolded(row)) {
          for (let shard = 0; shard < row.shards; shard++) {
            const own = row.measuredShards[shard];
            const values = row.shares.map((share, column) => {
              if (row.measured[column]) return own?.units?.[column] ?? 0;
              return share != null && shard >= row.counts[column] ? 0 : share;
            });
            add(SHARD_HEIGHT, { row, values, throttled: own?.throttled, shard, id: `${row.id}#${shard}` });
          }
        }
      }
      if (cool.length > 1) {
        const text = isShown ? `− ${cool.length} cooler keys` : `+ ${cool.length} cooler keys`;
        add(KEY_HEIGHT, { cooler: part, text, id: `${part} cooler` });
      }
    }
    this.height = y;
    this.stage.style.height = `${y}px`;
    this.viewport.style.height = `${Math.max(Math.min(y, Math.max(300, innerHeight * 0.55)), 60)}px`;
    if (this.cursor) {
      const line = this.lines.findIndex((line) => line.id === this.cursor.id);
      if (line < 0) this.cursor = null;
      else this.choose(line, Math.min(this.cursor.column, this.map.columns - 1), true);
    }
    this.redraw();
  }

  isFolded(row) {
    return this.folded.get(row.id) ?? row.shards > UNFOLDED_SHARDS;
  }

  /** Shows the cool keys of all parts, or hides them. */
  foldAllCooler() {
    if (this.coolShown.size > 0) this.coolShown.clear();
    else this.coolShown = new Set(this.parts?.keys());
    this.arrange();
  }

  /** Shows or hides the cool keys of a part. */
  foldCooler(part) {
    if (!this.coolShown.delete(part)) this.coolShown.add(part);
    this.arrange();
  }

  fold(row) {
    if (!row?.shards) return;
    this.folded.set(row.id, !this.isFolded(row));
    if (this.cursor?.id.startsWith(`${row.id}#`)) this.cursor.id = row.id;
    this.arrange();
  }

  redraw() {
    const { clientWidth, clientHeight } = this.viewport;
    if (clientWidth === 0) return;
    const left = Number.parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--label")) || 0;
    this.width = Math.max(clientWidth - left, 50);
    this.shownHeight = clientHeight;
    this.left = left;
    this.window.style.height = `${clientHeight}px`;
    this.pixels = devicePixelRatio || 1;
    for (const [canvas, width, height] of [[this.cells, this.width, clientHeight], [this.axis, this.viewport.offsetWidth, 20]]) {
      canvas.width = Math.round(width * this.pixels);
      canvas.height = Math.round(height * this.pixels);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    this.draw();
    this.drawAxis();
  }

  /** The first line that ends below `y`. */
  lineAt(y) {
    let low = 0, high = this.lines.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.lines[middle].y + this.lines[middle].height <= y) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  draw() {
    if (!this.map || !this.width) return;
    const { map, pixels, width, shownHeight } = this;
    const top = this.viewport.scrollTop;
    const from = this.lineAt(top), to = Math.min(this.lineAt(top + shownHeight) + 1, this.lines.length);
    const shown = this.lines.slice(from, to);
    const context = this.cells.getContext("2d");
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.cells.width, this.cells.height);
    this.label(shown, top, from);
    if (shown.length === 0 || !(map.columns > 0)) return;
    // One pixel a cell, which is then drawn as large as the cell is. Of cells narrower than a pixel the hottest counts.
    const bins = Math.max(1, Math.min(map.columns, Math.floor(width * pixels)));
    const image = new ImageData(bins, shown.length);
    const colours = new Uint32Array(image.data.buffer);
    const binOf = (column) => Math.floor((column * bins) / map.columns);
    const throttles = [], equal = [];
    shown.forEach((line, i) => {
      if (!line.values) return;
      const refused = line.shard === undefined ? line.row.throttled : line.throttled;
      const hottest = new Float64Array(bins).fill(-1);
      for (let column = 0; column < map.columns; column++) {
        const bin = binOf(column), units = line.values[column];
        if (units != null && units > hottest[bin]) hottest[bin] = units;
        if (refused?.[column] > 0 && throttles.at(-1)?.join() !== `${i},${bin}`) throttles.push([i, bin]);
        if (line.shard !== undefined && units > 0 && line.row.counts[column] > 1 && !line.row.measured[column] && equal.at(-1)?.join() !== `${i},${bin}`) equal.push([i, bin]);
      }
      for (let bin = 0; bin < bins; bin++) {
        colours[i * bins + bin] = hottest[bin] < 0 ? UNKNOWN_PIXEL : pixelOf(hottest[bin] / line.row.ceiling, this.brightness);
      }
    });
    this.scratch.width = bins;
    this.scratch.height = shown.length;
    this.scratch.getContext("2d").putImageData(image, 0, 0);
    context.setTransform(pixels, 0, 0, pixels, 0, 0);
    context.imageSmoothingEnabled = false;
    shown.forEach((line, i) => {
      if (!line.values) return;
      context.fillStyle = PLATE;
      context.fillRect(0, line.y - top - 1, width, line.height + 1);
      context.drawImage(this.scratch, 0, i, bins, 1, 0, line.y - top, width, line.height - 1);
    });
    // To whole pixels, or the cells would shine through between two of these.
    const edge = (bin) => Math.round(((bin * width) / bins) * pixels) / pixels;
    context.fillStyle = PLATE;
    for (const [i, bin] of equal) {
      const { y, height } = shown[i];
      context.fillRect(edge(bin), y - top, edge(bin + 1) - edge(bin), height - 1 - EQUAL_HEIGHT);
    }
    context.fillStyle = "#4cc9f0";
    for (const [i, bin] of throttles) {
      const { y, height, shard } = shown[i];
      const high = shard === undefined ? 4 : 2;
      context.fillRect((bin * width) / bins, y - top + height - 1 - high, Math.max(width / bins, 1), high);
    }
    this.drawCursor(context, top);
    if (!this.drawn) {
      this.drawn = true;
      performance.mark("map-drawn");
    }
  }

  drawCursor(context, top) {
    const line = this.cursor && this.lines[this.cursor.line];
    if (!line) return;
    const cell = this.width / this.map.columns;
    const x = this.cursor.column * cell - 1, y = line.y - top - 1, wide = Math.max(cell, 3) + 2, high = line.height + 1;
    for (const [style, grown] of [["#000", 1], ["#fff", 0]]) {
      context.strokeStyle = style;
      context.lineWidth = 1.5;
      context.strokeRect(x - grown, y - grown, wide + 2 * grown, high + 2 * grown);
    }
  }

  /** Elements for the labels of these lines; those of before are used again. */
  label(lines, top, from) {
    while (this.labels.children.length < lines.length) {
      const made = element("div");
      made.addEventListener("click", () => {
        const line = this.lines[made.dataset.line];
        if (line?.cooler) this.foldCooler(line.cooler);
        else this.fold(line?.row);
      });
      this.labels.append(made);
    }
    [...this.labels.children].forEach((made, i) => {
      const line = lines[i];
      made.hidden = !line;
      if (!line) return;
      const { row, shard, part, cooler } = line;
      const text = part ?? line.text ?? (shard === undefined ? shortKey(row.key, 200) : shard % LABELLED_SHARDS === 0 ? `#${shard}` : "");
      if (made.textContent !== text) made.textContent = text;
      const kind = part ? "part" : cooler ? "cooler" : shard === undefined ? `key${row.shards ? ` foldable${this.isFolded(row) ? "" : " unfolded"}` : ""}` : "shard";
      made.className = this.cursor?.line === from + i ? `${kind} chosen` : kind;
      made.dataset.line = from + i;
      made.style.top = `${line.y - top}px`;
      made.style.height = `${line.height}px`;
      if (shard === undefined) made.style.lineHeight = `${line.height}px`;
      else made.style.lineHeight = "";
    });
  }

  drawAxis() {
    const { map, axis, pixels, width, left } = this;
    if (!map) return;
    const context = axis.getContext("2d");
    context.setTransform(pixels, 0, 0, pixels, 0, 0);
    context.clearRect(0, 0, axis.width, axis.height);
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = getComputedStyle(axis).color;
    const span = map.columns * map.step_ms;
    const step = TICKS.find((tick) => (tick / span) * width >= 84) ?? 7 * DAY;
    const shift = new Date(map.from_ms).getTimezoneOffset() * MINUTE;
    for (let at = Math.ceil((map.from_ms - shift) / step) * step + shift; at < map.from_ms + span; at += step) {
      const x = left + ((at - map.from_ms) / span) * width;
      context.fillRect(x, 15, 1, 5);
      const text = clock(at, step), wide = context.measureText(text).width;
      if (x + wide / 2 < left + width) context.fillText(text, Math.max(x - wide / 2, left), 12);
    }
  }

  /** The line and column under the pointer. */
  at(event) {
    const box = this.cells.getBoundingClientRect();
    const line = this.lineAt(event.clientY - box.top + this.viewport.scrollTop);
    if (!this.map || !this.lines[line]?.row) return null;
    const column = Math.floor(((event.clientX - box.left) / this.width) * this.map.columns);
    return { line, column: Math.min(Math.max(column, 0), this.map.columns - 1) };
  }

  hover(event) {
    const cell = this.at(event);
    this.tip.hidden = !cell;
    this.hovered = cell && this.lines[cell.line];
    if (!cell) return;
    const { row, shard } = this.lines[cell.line];
    const facts = this.facts(cell.line, cell.column);
    this.tip.replaceChildren(keyElement(row.key, 60), element("span", `${shard === undefined ? "" : `shard ${shard} · `}${facts.time} · ${facts.load}`));
    const box = this.viewport.parentElement.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    const right = x + 14 + this.tip.offsetWidth > box.width;
    this.tip.style.left = `${right ? Math.max(x - 14 - this.tip.offsetWidth, 0) : x + 14}px`;
    this.tip.style.top = `${Math.min(y + 14, box.height - this.tip.offsetHeight - 4)}px`;
  }

  /** A cell in words. */
  facts(at, column) {
    const { row, values, shard } = this.lines[at];
    const moment = this.map.from_ms + column * this.map.step_ms;
    const day = this.map.step_ms >= MINUTE ? `${clock(moment, DAY)} ` : "";
    const units = shard === undefined ? row.units[column] : values[column];
    let load = units == null ? "not measured" : `${rate(units)} ${row.kind} units/s`;
    if (units != null && row.counts[column] > 1) load += shard === undefined ? ofShards(row, column) : row.measured[column] ? ", measured" : ", an equal share: not measured";
    const refused = (shard === undefined ? row.throttled : this.lines[at].throttled)?.[column];
    const throttled = refused > 0 ? `, ${rate(refused)} refused/s` : "";
    return { time: day + clock(moment, this.map.step_ms), load: load + throttled };
  }

  choose(line, column, quietly = false) {
    const { id, row, shard } = this.lines[line];
    this.cursor = { line, column, id };
    this.chosen({ row, shard, ...this.facts(line, column) });
    if (!quietly) this.draw();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.map || this.lines.length === 0) return;
    const moves = { ArrowDown: [1, 0], ArrowUp: [-1, 0], PageDown: [10, 0], PageUp: [-10, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1], Home: [0, -Infinity], End: [0, Infinity] };
    const move = moves[event.key];
    const row = this.cursor && this.lines[this.cursor.line].row;
    if (move) {
      const { line, column } = this.cursor ?? { line: 0, column: this.map.columns - 1 };
      const next = this.cursor || move[0] > 0 ? this.step(line, move[0]) : this.step(line, 1);
      this.choose(next, Math.min(Math.max(column + move[1], 0), this.map.columns - 1));
      this.reveal(next);
    } else if (event.key === "Enter" || event.key === " ") this.fold(row);
    else if (event.key === "o" || event.key === "O") this.foldAllCooler();
    else if (event.key === "c" || event.key === "C") copy(keyToCopy((row ?? this.hovered?.row)?.key ?? {}));
    else if (event.key === "+" || event.key === "-") document.dispatchEvent(new CustomEvent("brighter", { detail: event.key === "+" ? 0.5 : -0.5 }));
    else return;
    event.preventDefault();
  }

  /** The line so many lines on; headings are passed over. */
  step(line, by) {
    const way = by < 0 ? -1 : 1;
    let at = line, left = Math.abs(by);
    for (let next = line + way; left > 0 && this.lines[next]; next += way) {
      if (this.lines[next].row) { at = next; left -= 1; }
    }
    return at;
  }

  reveal(line) {
    const { y, height } = this.lines[line];
    const top = this.viewport.scrollTop;
    if (y - PART_HEIGHT < top) this.viewport.scrollTop = y - PART_HEIGHT;
    else if (y + height > top + this.shownHeight) this.viewport.scrollTop = y + height - this.shownHeight;
  }
}
