// What the gateway does by itself: whether it may, what it decided, and why it leaves alone what burns.

/** A key or a value of an index, and where it is. */
function subject({ table, index, key }) {
  return joined(keyElement({ S: key }, 44), ` of ${placeText({ table, index })}`);
}

/** What stands at the top of the section. */
function automaticText({ mode, deciding }) {
  if (mode === "auto") return `On${deciding === false ? "; another gateway decides" : ""}.`;
  if (mode === "propose") return "It proposes changes, and makes none: mode = \"propose\".";
  return "Off: no [[automatic]] section lets this gateway change anything.";
}

function showAutomatic(heat) {
  const root = document.getElementById("automatic");
  const { automatic } = heat;
  document.getElementById("automatic-section").hidden = !automatic;
  if (!automatic || isInUse(root)) return;
  note("automatic-note", automaticText(automatic));
  const made = [], ago = (millis) => `${duration(heat.now_ms - millis)}`;
  const left = automatic.left_alone ?? [], decided = automatic.decisions ?? [];
  if (left.length > 0) {
    const columns = [{ name: "Burns and is left alone" }, { name: "For" }, { name: "Why", className: "wide" }];
    const why = (one) => [visible(one.sentence), mostlyBy(one)].filter(Boolean).join("; ");
    made.push(table(columns, left.map((one) => [subject(one), ago(one.since_ms), why(one)])));
  }
  if (decided.length > 0) {
    const columns = [{ name: "Decided" }, { name: "Ago" }, { name: "What" }, { name: "Came" }, { name: "Why", className: "wide" }];
    const rows = decided.map((one) => [subject(one), ago(one.at_ms), visible(one.what), visible(one.outcome ?? ""), visible(one.sentence)]);
    made.push(table(columns, rows));
  }
  root.replaceChildren(...made);
}
