// The sentence at the top, from what `/_heatsink/heat` says: what burns, by how much, and what is not known.

/** All keys of all parts, the one with the most to worry about first. */
function rankedKeys(heat) {
  const keys = (heat.parts ?? []).flatMap((part) => (part.keys ?? []).map((key) => ({ part, ...key })));
  for (const key of keys) {
    key.ofPartition = key.units_per_s / ceilingOf(key.part.kind) / Math.max(key.shards ?? 1, 1);
    // What is certain of it: counters are shared, and of many requests some are drawn.
    key.certain = key.ofPartition * (key.units_per_s > 0 ? Math.min(1, (key.least_units_per_s ?? key.units_per_s) / key.units_per_s) : 0);
    key.error = (key.error_units_per_s ?? 0) + (key.sampling_error_units_per_s ?? 0);
    key.refused = refusedShare(key);
  }
  // What burns now, then what burned in the time that the map shows by the second.
  const burnedLately = ({ burned }) => (burned && heat.now_ms - burned.to_ms < 10 * MINUTE ? 1 : 0);
  return keys.sort((a, b) => (b.throttled_per_s ?? 0) - (a.throttled_per_s ?? 0) || burnedLately(b) - burnedLately(a) || b.ofPartition - a.ofPartition);
}

function refusedShare({ throttled_per_s: throttled, requests_per_s: requests }) {
  return throttled > 0 ? Math.min(1, throttled / Math.max(requests ?? 0, throttled)) : 0;
}

/** The key that burned last, of those that are listed. */
function lastBurned(ranked) {
  return ranked.filter((key) => key.burned).sort((a, b) => b.burned.to_ms - a.burned.to_ms)[0];
}

/** What one key takes, of what, and whose it is. */
function loadText({ part, units_per_s, shards, clients }) {
  const over = shards > 1 ? ` over ${shards} shards` : "", by = mostlyBy({ clients });
  return `${rate(units_per_s)} ${part.kind} units/s${over}${by && `, ${by}`}`;
}

/** `{ level, pieces }`: pieces are texts, and keys as DynamoDB writes them. */
function diagnose(heat, ranked) {
  const parts = heat.parts ?? [];
  const seconds = rate((heat.window_ms ?? 1000) / 1000);
  if (!parts.some((part) => part.requests_per_s > 0)) return { level: "", pieces: [`No requests in the last ${seconds} s.`] };
  const [first] = ranked;
  const place = (part) => `table ${placeText(part)}`;
  const gives = (part) => `one partition gives ${rate(ceilingOf(part.kind))}`;
  if (first?.refused > 0) {
    const others = ranked.filter((key) => key.refused > 0).length - 1;
    const why = first.ofPartition >= 0.7
      ? `It takes ${loadText(first)}; ${gives(first.part)}.`
      : `It takes only ${loadText(first)}, so something else limits it: the table’s own capacity, or keys that share its partition.`;
    const more = others > 0 ? ` ${others} more ${others === 1 ? "key is" : "keys are"} refused too.` : "";
    const since = first.burned && heat.now_ms - first.burned.from_ms >= SECOND ? `, for ${duration(heat.now_ms - first.burned.from_ms)}` : "";
    return { level: "burning", pieces: [first.key, ` burns${since}: ${percent(first.refused)} of its ${first.part.kind}s on ${place(first.part)} are refused. ${why}${more}`] };
  }
  const [refused] = [...parts].filter((part) => part.throttled_per_s > 0).sort((a, b) => b.throttled_per_s - a.throttled_per_s);
  if (refused) {
    return { level: "burning", pieces: [
      `${percent(refusedShare(refused))} of the ${refused.kind}s on ${place(refused)} are refused, and no single key is hot: the table’s own capacity is used up, or many warm keys share a partition.`] };
  }
  if (!first) return { level: "cool", pieces: ["Nothing burns. No key takes enough to stand out."] };
  if (first.certain >= 0.8) {
    return { level: "warm", pieces: [first.key, ` is near its limit: ${loadText(first)} on ${place(first.part)}; ${gives(first.part)}. Nothing is refused yet.`] };
  }
  const each = first.shards > 1 ? "each at " : "";
  const last = lastBurned(ranked);
  if (last) {
    return { level: "cool", pieces: ["Nothing burns now. ", last.key, ` of ${place(last.part)} ${burnedText(last.burned, heat.now_ms)}.`] };
  }
  return { level: "cool", pieces: ["Nothing burns. The hottest key is ", first.key, ` of ${place(first.part)}: ${loadText(first)}, ${each}${percent(first.ofPartition)} of what one partition gives.`] };
}

function showDiagnosis(heat, ranked) {
  const { level, pieces } = diagnose(heat, ranked);
  const shown = document.getElementById("diagnosis");
  const made = pieces.map((piece) => (typeof piece === "string" ? piece : keyElement(piece, 64)));
  const text = made.map((piece) => piece.textContent ?? piece).join("");
  // Screen readers read a changed node: an unchanged sentence is left alone.
  if (shown.textContent === text && shown.className === level) return;
  shown.className = level;
  shown.replaceChildren(...made);
}

/** Advice wherever it stands: of the whole, of a part, of a key. A text, or `{ sentence, toml, command }`. */
function collectAdvice(heat, ranked) {
  const list = (advice) => (advice == null ? [] : Array.isArray(advice) ? advice : [advice]);
  const all = [...list(heat.advice), ...(heat.parts ?? []).flatMap((part) => list(part.advice)), ...ranked.flatMap((key) => list(key.advice))];
  return all.map((one) => (typeof one === "string" ? { sentence: one } : one));
}

let advised;
function showAdvice(heat, ranked) {
  const all = collectAdvice(heat, ranked);
  // A card that is replaced loses the focus and the selection of its reader.
  if (advised === JSON.stringify(all)) return;
  advised = JSON.stringify(all);
  const cards = all.slice(0, 20).map(({ sentence, toml, command }) => {
    const card = element("div", null, "card");
    if (sentence) card.append(element("p", visible(sentence)));
    for (const [text, what] of [[toml, "the rule"], [command, "the command"]]) {
      if (!text) continue;
      // What is copied is what is shown.
      const shown = what === "the rule" ? visibleLines(text) : visibleLines(text).replaceAll("\n", "\\n");
      const paste = element("div", null, "paste");
      paste.append(element("pre", shown), copyButton(() => shown, what));
      card.append(paste);
    }
    return card;
  });
  document.getElementById("advice").replaceChildren(...cards);
}
