"""The scenarios by name. Each module says in its first line what happens, and has `run(stage)`."""

from fence.scenarios import calm, copies, creation, cursors, first_use, index, killed, mixture, outage, recreation, reshard, rollout, stopped, table

# In the order in which they run; the last one has the time that the others leave. `table` runs where it is named.
ALL = {
    "calm": calm, "creation": creation, "rollout": rollout, "index": index, "recreation": recreation, "cursors": cursors, "copies": copies,
    "stopped": stopped, "killed": killed, "outage": outage, "first-use": first_use, "reshard": reshard,
    "table": table,
    "mixture": mixture,
}
