"""The scenarios by name. Each module says in its first line what happens, and has `run(stage)`."""

from fence.scenarios import creation, cursors, first_touch, index, killed, mixture, recreation, rollout, stopped

# In the order in which they run; the last one has the time that the others leave.
ALL = {
    "creation": creation, "rollout": rollout, "index": index, "recreation": recreation, "cursors": cursors, "stopped": stopped,
    "killed": killed, "first-touch": first_touch, "mixture": mixture,
}
