"""The report of a story: a JSON document, and the same for people."""

import json
from datetime import datetime, timezone

from story import plan
from story.steps import part


def document(target, name, planned, meter, story, outcome, began):
    return {
        "outcome": outcome, "table": name, "store": target.endpoint, "region": target.region,
        "began": began.isoformat(timespec="seconds"), "ended": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "planned": {"dollars": round(plan.total(planned).dollars(target.region), 6), "steps": {step.name: vars(step.use) for step in planned}},
        "taken": meter.document(), "steps": story.steps if story else [], "faults": story.faults if story else [],
    }


def text(told):
    """For people. The budget, what was taken, and a line for each step."""
    taken = told["taken"]
    yield f"{told['table']} at {told['store']}, {told['began']} to {told['ended']}: {told['outcome']}"
    yield f"taken: ${taken['dollars']:.4f} of a budget of ${taken['budget_dollars']:.4f}; ${told['planned']['dollars']:.4f} were planned"
    for how in ("counted", "computed"):
        yield f"  {how}: {taken[how]['writes']:,.0f} write units, {taken[how]['reads']:,.0f} read units"
    yield ""
    for step in told["steps"]:
        yield step["step"] + "".join(f"; {name} {value}" for name, value in step.items() if isinstance(value, (int, float, str)) and name != "step")
        for when in ("before", "while", "after"):
            if when in step:
                yield f"  {when:<7} {step[when]['seconds']:>6} s  {part(step[when])}; {step[when]['refused']} refused, {step[when]['unknown']} unknown"
    yield ""
    yield f"{len(told['faults'])} faults"
    yield from told["faults"][:50]


def write(told, path, blot):
    """The two files, and their names."""
    files = {path.with_suffix(".json"): json.dumps(told, indent=1), path.with_suffix(".txt"): "\n".join(text(told)) + "\n"}
    for file, content in files.items():
        file.write_text(blot(content))
    return [str(file) for file in files]
