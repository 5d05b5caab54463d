"""The safety rules of a counter that widens, each with the change that leaves it out. As in rules.py; those that a reshard has too are left out by its
change.

What a rule is for is in docs/explain/reshard-kinds.md#counters; `crates/reshard/tests/model/widening.rs` shows for those of the protocol in which order of steps each is
needed.
"""

from reshard_rules import CONTEXT, COORDINATOR, PROTOCOL, STEPS
from rules import Rule

FRAGMENTS = "crates/route/src/counter/pages.rs"
QUERIES = "crates/route/src/query/mod.rs"
WRITE = "crates/route/src/counter/write.rs"


def rule(name, says, *changes, of="", beside=(), unseen=""):
    change_of = f"reshard-{of}" if of else ""
    return Rule(f"widening-{name}", says, changes, beside=beside, unseen=unseen, story="a_counter_that_widens", scenes="widening", change_of=change_of)


RULES = (
    # The coordinator.
    rule("readers-first", "all read and clear the new fragments before anybody adds to them", (COORDINATOR, "Change::Widen | Change::Step if !self.rules", "Change::Widen | Change::Step if LEFT_OUT || !self.rules")),
    rule("acknowledged", "a phase is acknowledged by all before the next", of="acknowledged"),
    rule("after-stragglers", "nobody adds to the new fragments while calls may land that know only the old ones", (COORDINATOR, "let wait = !self.clean && self.rules.keep(Rule::Widen", "let wait = !LEFT_OUT && !self.clean && self.rules.keep(Rule::Widen"), beside=STEPS),
    rule("surveyed", "the names of the new fragments hold nothing when PREPARE begins", of="surveyed"),
    rule("survey-after-stragglers", "they are looked at when no earlier call can land any more", of="survey-after-stragglers", beside=STEPS),
    rule("settled", "the next widening begins when no call of the last can land", of="settled", beside=STEPS),
    rule("record-by-version", "a key's record is written only if it has the version that was read", of="record-by-version"),
    rule("takeover-unclean", "who takes over has not seen every acknowledgement", of="takeover-unclean", beside=STEPS),
    rule("takeover-waits", "who takes over waits for acknowledgements again", of="takeover-waits"),
    rule("names-kept", "the names of new fragments that calls may clear are nobody else's after a cancel", (PROTOCOL, "let kept = before.moves", "let kept = !LEFT_OUT && before.moves")),
    # Clients' requests in PREPARE.
    rule(
        "adds-to-old",
        "ADDs go to the fragments of before",
        (WRITE, "let shard = shared.next_fragment(adds);", "let shard = shared.next_fragment(if LEFT_OUT { u16::try_from(others.len() + 1).unwrap_or(adds) } else { adds });"),
    ),
    rule(
        "writes-know-all",
        "a put, a set, a delete clears the new fragments, too",
        (
            CONTEXT,
            "let widened = self.layouts.in_force(table, key).placement(sort)?;",
            "use Operation::{BatchExecuteStatement, BatchGetItem, BatchWriteItem, DeleteItem, ExecuteStatement, ExecuteTransaction, GetItem, PutItem, TransactGetItems, TransactWriteItems, UpdateItem};\n"
            "            let in_force = self.layouts.in_force(table, key);\n"
            "            let mut widened = in_force.placement(sort)?;\n"
            "            let narrow = match self.operation {\n"
            "                PutItem | UpdateItem | DeleteItem => LEFT_OUT,\n"
            "                BatchWriteItem => LEFT_OUT[widening-batches-know-all],\n"
            "                TransactWriteItems => LEFT_OUT[widening-transactions-know-all],\n"
            "                ExecuteStatement | BatchExecuteStatement | ExecuteTransaction => LEFT_OUT[widening-statements-know-all],\n"
            "                GetItem | BatchGetItem | TransactGetItems => LEFT_OUT[widening-points-know-all],\n"
            "                _ => false,\n"
            "            };\n"
            "            if narrow && let InForce::Widening(widening) = &in_force && let Some(Placement::SumOf { others, .. }) = &mut widened {\n"
            "                others.truncate(usize::from(widening.adds) - 1);\n"
            "            }",
        ),
    ),
    rule("batches-know-all", "so does one in a batch"),
    rule("transactions-know-all", "in a transaction"),
    rule("statements-know-all", "by a statement"),
    rule("points-know-all", "a read of an item adds them"),
    rule(
        "queries-know-all",
        "so does a Query",
        (
            QUERIES,
            "query.fold = counter::fold(query, &layout)?.map(Arc::new);",
            "let known = match context.layouts().in_force(schema, &query.partition.canonical_bytes()) {\n"
            "            heatsink_layout::InForce::Widening(widening) if LEFT_OUT => Arc::new(Layout { shards: widening.adds, ..(*widening.layout).clone() }),\n"
            "            _ => Arc::clone(&layout),\n"
            "        };\n"
            "        query.fold = counter::fold(query, &known)?.map(Arc::new);",
        ),
    ),
    rule(
        "scans-know-all",
        "so does a Scan",
        (
            FRAGMENTS,
            "let placement = layout.placement(None).map_err(unplaced)?;",
            "let mut placement = layout.placement(None).map_err(unplaced)?;\n"
            "                if LEFT_OUT\n"
            "                    && let Some(heatsink_layout::InForce::Widening(widening)) = self.table.in_force(identity.partition())\n"
            "                    && let heatsink_layout::Placement::SumOf { others, .. } = &mut placement\n"
            "                {\n"
            "                    others.truncate(usize::from(widening.adds) - 1);\n"
            "                }",
        ),
    ),
)
