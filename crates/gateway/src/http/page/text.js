"use strict";
// How values of others are shown. Every key, name and sentence of the gateway goes through `visible` and reaches the page as text, never as markup.

/** What a reader cannot see, or what changes how its neighbours are seen: controls, formats (bidi, zero width), line ends, odd spaces, half characters, piles of marks. */
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}\\]|(?! )\p{Zs}|(?<=\p{M}{2})\p{M}/gu;
const SHORT = { "\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\" };

/** The text with everything unseen as an escape. Two different texts stay different. */
function visible(text) {
  return String(text).replace(UNSEEN, (unseen) => {
    const code = unseen.codePointAt(0);
    return SHORT[unseen] ?? (code < 256 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u{${code.toString(16)}}`);
  });
}

/** Text of several lines: its line ends stay. */
function visibleLines(text) {
  return String(text).split("\n").map((line) => line.split("\\").map(visible).join("\\")).join("\n");
}

/** The value of a key in DynamoDB's form: `{ "S": "game_x" }`. */
function keyValue(key) {
  const [value] = Object.values(key ?? {});
  return value === undefined ? "" : String(value);
}

/** A key as people read it: text as it is, others with their type. */
function keyText(key) {
  const [type] = Object.keys(key ?? {});
  const text = visible(keyValue(key));
  if (type === "S") return text === "" ? "(empty)" : text;
  return `${visible(type ?? "?")}:${text}`;
}

/** A key of at most `most` characters, shortened in its middle. */
function shortKey(key, most = 48) {
  const characters = [...keyText(key)];
  if (characters.length <= most) return characters.join("");
  const end = Math.floor(most / 3);
  return `${characters.slice(0, most - end - 1).join("")}…${characters.slice(-end).join("")}`;
}

/** What is copied of a key: itself, if pasting it is harmless; else DynamoDB's JSON, with everything unseen escaped. */
function keyToCopy(key) {
  const value = keyValue(key);
  if (Object.keys(key ?? {})[0] === "S" && value !== "" && visible(value) === value) return value;
  const units = (text) => [...Array(text.length).keys()].map((i) => `\\u${text.charCodeAt(i).toString(16).padStart(4, "0")}`).join("");
  return JSON.stringify(key).replace(/[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu, units);
}

/** A number of units or requests per second: three digits that count. */
function rate(number) {
  if (!Number.isFinite(number)) return "?";
  return Number(number.toPrecision(Math.max(3, String(Math.trunc(number)).length))).toLocaleString("en-US");
}

function percent(share) {
  if (!Number.isFinite(share)) return "?";
  return share > 0 && share < 0.01 ? "< 1 %" : `${Math.round(share * 100)} %`;
}

/** `mostly by team1 (83 %)`; "" where no client makes half of it or more, or none is known: older gateways tell none. */
function mostlyBy({ clients }) {
  const most = (clients ?? []).find((one) => one.share_percent >= 50);
  return most ? `mostly by ${shortKey({ S: most.client }, 40)} (${percent(most.share_percent / 100)})` : "";
}

/** A length of time in one unit: `20 s`, `3 min`, `5 h`, `2 days`. */
function duration(millis) {
  const seconds = Math.max(0, Math.round(millis / 1000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} days`;
}

/** What was refused so lately burns still: windows are of a second, and refusals come in bursts. */
const STILL_BURNS = 3000;

/** When a key burned, in words; "" where it did not. `now`: the gateway's clock. */
function burnedText(burned, now) {
  if (!burned) return "";
  const { from_ms: from, to_ms: to } = burned;
  if (now - to < STILL_BURNS) return `burns, for ${duration(now - from)}`;
  return `last burned ${duration(now - to)} ago, for ${duration(to - from)}`;
}

/** What one partition gives in a second. */
const CEILING = { read: 3000, write: 1000 };
const ceilingOf = (kind) => CEILING[kind] ?? 1000;

/** `Leaderboards / by_score`. */
function placeText({ table, index }) {
  return visible(table ?? "?") + (index == null ? "" : ` / ${visible(index)}`);
}

/** An element with this text and class. */
function element(name, text, className) {
  const made = document.createElement(name);
  if (text != null) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function keyElement(key, most) {
  const made = element("span", most ? shortKey(key, most) : keyText(key), "key");
  made.dir = "ltr";
  return made;
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Without TLS, beyond this machine, browsers have only the old way.
    const area = element("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

/** A button that copies what `text` gives, and says that it did. */
function copyButton(text, what) {
  const button = element("button", "Copy", "copy");
  button.type = "button";
  button.setAttribute("aria-label", `Copy ${what}`);
  button.addEventListener("click", async (event) => {
    // A list with the focus in it is not brought up to date; after a click of the mouse nobody needs it there.
    if (event.detail > 0) button.blur();
    button.textContent = (await copy(text())) ? "Copied" : "Not copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  return button;
}
