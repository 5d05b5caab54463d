// Asks the gateway, again and again, and shows what it says. What cannot be had is said where it would stand.

const SPANS = { "10m": ["10 minutes", 2 * SECOND], "6h": ["6 hours", 20 * SECOND], "4d": ["4 days", MINUTE], "28d": ["28 days", MINUTE] };
const PATIENCE = 10 * SECOND;
const hash = new URLSearchParams(location.hash.slice(1));
const state = { span: SPANS[hash.get("span")] ? hash.get("span") : "10m", table: hash.get("table"), seen: null, ranked: [] };
const map = new HeatMap(showCell);

function remember() {
  const parameters = new URLSearchParams({ span: state.span, ...(state.table ? { table: state.table } : {}) });
  history.replaceState(null, "", `#${parameters}`);
}

class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** The frame of the page is painted before the first answer is read: a large map keeps the browser busy. Where no frame is drawn, nobody waits for one. */
const painted = new Promise((resolve) => {
  requestAnimationFrame(() => setTimeout(resolve));
  setTimeout(resolve, SECOND);
});

/** The JSON at a path below `/_heatsink/`; a `Refusal` where there is none, of status 0 where nobody answers. */
async function ask(path) {
  const token = sessionStorage.getItem("token");
  const answer = await fetch(`/_heatsink/${path}`, {
    headers: token ? { Authorization: `Bearer ${token}` } : {}, signal: AbortSignal.timeout(PATIENCE), cache: "no-store",
  }).catch(() => { throw new Refusal(0, "the gateway does not answer"); });
  await painted;
  if (answer.ok) return answer.json();
  const said = await answer.json().then((body) => body.error, () => null);
  throw new Refusal(answer.status, typeof said === "string" ? visible(said) : `the gateway answers ${answer.status}`);
}

/** Says why there is nothing to see. */
function failed(id, what, problem) {
  if (problem.status === 401) {
    document.getElementById("login").hidden = false;
    note(id, "This needs the token.");
  } else if (problem.status === 404) note(id, `This gateway gives no ${what}: ${problem.message}.`);
  else if (problem.status) note(id, `The gateway gives no ${what} now: ${problem.message}.`, true);
  else if (problem.status === 0) note(id, "The gateway does not answer.", true);
  else note(id, `What the gateway says of its ${what} cannot be read: ${visible(problem.message)}.`, true);
}

/** Calls `work` at once and then every `pause()` milliseconds, while the page is seen. Slow work makes the pauses longer. */
function every(pause, work) {
  let timer, running = false, again = false;
  const run = async () => {
    clearTimeout(timer);
    if (running) { again = true; return; }
    running = true;
    const began = performance.now();
    await work();
    running = false;
    if (again) { again = false; run(); return; }
    if (!document.hidden) timer = setTimeout(run, Math.max(pause(), 10 * (performance.now() - began)));
  };
  document.addEventListener("visibilitychange", () => { if (!document.hidden) run(); });
  run();
  return run;
}

function answered() {
  state.seen = Date.now();
  freshness();
}

function freshness() {
  const line = document.getElementById("freshness");
  const age = state.seen === null ? null : (Date.now() - state.seen) / 1000;
  const isStale = age !== null && age > 8;
  const text = age === null ? "" : isStale ? `No answer since ${clock(state.seen, SECOND)}: what is shown is old` : "Live";
  if (line.textContent !== text) line.textContent = text;
  line.className = isStale ? "stale" : "";
}

function offerTables(heat) {
  const select = document.getElementById("table");
  const tables = [...new Set((heat.parts ?? []).map((part) => part.table))].sort();
  const ranked = rankedKeys(heat);
  if (!tables.includes(state.table)) state.table = ranked[0]?.part.table ?? tables[0] ?? null;
  if ([...select.options].map((option) => option.value).join("\n") !== tables.join("\n")) {
    select.replaceChildren(...tables.map((name) => {
      const option = element("option", visible(name));
      option.value = name;
      return option;
    }));
  }
  if (state.table !== null && select.value !== state.table) select.value = state.table;
}

async function askHeat() {
  try {
    const heat = await ask("heat");
    answered();
    document.getElementById("login").hidden = true;
    const ranked = rankedKeys(heat);
    state.ranked = ranked;
    showDiagnosis(heat, ranked);
    showAdvice(heat, ranked);
    showKeys(heat, ranked);
    showAutomatic(heat);
    const before = state.table;
    offerTables(heat);
    if (state.table !== before) askPartitionsNow();
  } catch (problem) {
    if (problem.status && problem.status !== 401) answered();
    const diagnosis = document.getElementById("diagnosis");
    const text = problem.status === 401 ? "The token is needed." : problem.status === 404 ? "This gateway does not measure heat."
      : problem.status === 0 ? "The gateway does not answer." : "The gateway cannot say what is hot.";
    if (diagnosis.textContent !== text) diagnosis.textContent = text;
    diagnosis.className = problem.status === 404 ? "" : "burning";
    failed("keys-note", "heat", problem);
  }
}

async function askMap() {
  const { span } = state;
  try {
    const answer = await ask(`heat/map?span=${span}`);
    if (span !== state.span) return;
    map.show(answer);
    const none = (answer.rows ?? []).length === 0;
    note("map-note", none ? `No key was warm in the last ${SPANS[span][0]}.` : "");
    document.getElementById("map").hidden = none;
  } catch (problem) {
    failed("map-note", "map", problem);
    if (problem.status) document.getElementById("map").hidden = true;
  }
}

async function askPartitions() {
  if (!state.table) return;
  try {
    const { table } = state;
    const answer = await ask(`partitions?table=${encodeURIComponent(table)}`);
    if (table === state.table) showPartitions(answer, state.ranked);
  } catch (problem) {
    document.getElementById("partitions").replaceChildren();
    failed("partitions-note", "partitions", problem);
  }
}

async function askReshards() {
  try {
    showReshards(await ask("reshards"));
  } catch (problem) {
    document.getElementById("reshards").replaceChildren();
    failed("reshards-note", "list of reshards", problem);
  }
}

function legend() {
  const bar = element("canvas"), shown = document.getElementById("legend");
  bar.width = 150;
  bar.height = 1;
  const context = bar.getContext("2d"), image = context.createImageData(150, 1), pixels = new Uint32Array(image.data.buffer);
  const end = 2 ** -map.brightness;
  for (let x = 0; x < 150; x++) pixels[x] = pixelOf((end * x) / 149, map.brightness);
  context.putImageData(image, 0, 0);
  const most = `${rate(CEILING.write * end)} writes/s or ${rate(CEILING.read * end)} reads/s${end === 1 ? ", one partition’s limit" : ""}, and more`;
  shown.replaceChildren("0", bar, most, element("span", null, "throttled"), "refused", element("span", null, "equal"), "a shard that is not measured");
}

function brighten(steps) {
  const slider = document.getElementById("brightness");
  slider.value = Number(slider.value) + steps;
  map.brightness = Number(slider.value);
  legend();
  map.draw();
}

function chooseSpan(span) {
  state.span = span;
  remember();
  for (const button of document.querySelectorAll("#spans button")) {
    const isChosen = button.value === span;
    button.setAttribute("aria-checked", String(isChosen));
    button.tabIndex = isChosen ? 0 : -1;
  }
}

// First of all, so that the gateway works while the page is put together.
const askMapNow = every(() => SPANS[state.span][1], askMap);
const askHeatNow = every(() => 2 * SECOND, askHeat);
const askPartitionsNow = every(() => 2 * SECOND, askPartitions);
const askReshardsNow = every(() => 3 * SECOND, askReshards);

document.getElementById("host").textContent = location.host;
const spans = document.getElementById("spans");
for (const [span, [text]] of Object.entries(SPANS)) {
  const button = element("button", text);
  button.type = "button";
  button.value = span;
  button.setAttribute("role", "radio");
  button.addEventListener("click", () => { chooseSpan(span); askMapNow(); });
  spans.append(button);
}
spans.addEventListener("keydown", (event) => {
  const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (!by) return;
  event.preventDefault();
  const all = [...spans.children], at = all.findIndex((button) => button.value === state.span);
  const next = all[(at + by + all.length) % all.length];
  next.click();
  next.focus();
});
chooseSpan(state.span);
legend();
document.getElementById("filter").addEventListener("input", (event) => { map.filter = event.target.value; map.arrange(); });
document.getElementById("brightness").addEventListener("input", () => brighten(0));
document.addEventListener("brighter", (event) => brighten(event.detail));
document.getElementById("table").addEventListener("change", (event) => { state.table = event.target.value; remember(); askPartitionsNow(); });
document.getElementById("login").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("token", document.getElementById("token").value);
  document.getElementById("login-note").textContent = "";
  ask("heat").catch((problem) => {
    if (problem.status === 401) document.getElementById("login-note").textContent = "That is not the token.";
  });
  for (const again of [askHeatNow, askMapNow, askPartitionsNow, askReshardsNow]) again();
});

setInterval(freshness, SECOND);
