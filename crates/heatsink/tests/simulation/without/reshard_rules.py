"""The rules of a reshard that live in the product's own code, each with the change that leaves it out. As in rules.py.

What a rule is for is in docs/explain/reshard.md and in the module that holds it; `crates/reshard/tests/model` shows for each in which order of steps it is
needed.
"""

from rules import Rule

COORDINATOR = "crates/reshard/src/coordinator.rs"
WALK = "crates/reshard/src/mover.rs"
PHASE = "crates/reshard/src/phase.rs"
POINT_READ = "crates/reshard/src/read.rs"
RANGE = "crates/reshard/src/range.rs"
KEY_RECORD = "crates/control/src/key_record.rs"
CLAIM = "crates/control/src/claim.rs"
RESOLVE = "crates/control/src/resolve.rs"
MOVER_PULL = "crates/workers/src/key/pull.rs"
MOVER_KEY = "crates/workers/src/key/logical_key.rs"
RUN = "crates/workers/src/key/run.rs"
SURVEY = "crates/workers/src/key/survey.rs"
PROTOCOL = "crates/workers/src/key/protocol.rs"
ROUTE_MANIFEST = "crates/route/Cargo.toml"
BLIND = "crates/route/src/moving/blind.rs"
PULL = "crates/route/src/moving/pull.rs"
CONTEXT = "crates/route/src/context.rs"
ROUTER = "crates/route/src/router.rs"
EVALUATED = "crates/route/src/scan/evaluated.rs"
APART = "crates/route/src/scan/apart.rs"
PASS = "crates/control/src/fence/pass.rs"
WANTED = "crates/route/src/items/wanted.rs"
ADDED = "crates/route/src/items/added.rs"
FOLD = "crates/route/src/items/fold.rs"

# The model finds no order that needs it either: it guards against calls that land later than is assumed.
NEVER = "No order of the model needs it: it guards against calls that land later than is assumed"
LAGGING = "The store of the simulation has no replicas that lag"
TOLD_AGAIN = "A gateway says in each acknowledgement until when what it sent may land, and one that is silent stays listed as long: every later acknowledgement tells it again"
# The model has coordinators that move nothing, and movers that begin where a dead one came to.
CLAIMED_BEFORE = "A run is coordinator and mover at once: its claim is older than the end of claims, and a run that takes over writes the record first, under which no earlier claim is taken"
WHOLE_ALREADY = "Every mover of the product begins at the beginning, and no old copy is added in MOVE: its first walk meets them all"


# A step of the fence waits for calls without an answer, and for those of silent gateways, as long as the protocol does once more. The protocol does not
# rest on that.
STEPS = ("unclean-counted", "stragglers-of-the-silent")


def rule(name, says, *changes, beside=(), also=(), unseen=""):
    return Rule(f"reshard-{name}", says, tuple(changes), beside=beside, also=also, unseen=unseen, story="a_key_that_moves")


RULES = (
    # The coordinator.
    rule("acknowledged", "a phase is acknowledged by all before the next", (COORDINATOR, "_ if publish && self.rules", "_ if publish && !LEFT_OUT && self.rules")),
    rule("unclean-checked", "HOLD is followed by CHECK unless all acknowledgements were clean", (COORDINATOR, "let skip = clean ||", "let skip = LEFT_OUT || clean ||"), beside=STEPS),
    rule("clean-counts-all", "those before HOLD count too", (COORDINATOR, "if self.rules.keep(Rule::CleanCountsAll)", "if !LEFT_OUT && self.rules.keep(Rule::CleanCountsAll)"), beside=STEPS, unseen=TOLD_AGAIN),
    rule("takeover-unclean", "who takes over has not seen every acknowledgement", (COORDINATOR, "let clean = !rules", "let clean = LEFT_OUT || !rules"), beside=STEPS, unseen=TOLD_AGAIN),
    rule("takeover-waits", "who takes over waits for acknowledgements again", (COORDINATOR, "if publish && !rules", "if publish && LEFT_OUT || publish && !rules")),
    rule("check-waits", "CHECK lasts until calls of before HOLD have landed", (COORDINATOR, "if self.rules.keep(Rule::CheckWaits)", "if !LEFT_OUT && self.rules.keep(Rule::CheckWaits)"), beside=STEPS),
    rule(
        "high-water-held",
        "the high water is read when all wait",
        (COORDINATOR, "Phase::Prepare, .. } if !self.rules.keep(Rule::HighWater", "Phase::Prepare, .. } if LEFT_OUT || !self.rules.keep(Rule::HighWater"),
        (COORDINATOR, "if self.rules.keep(Rule::HighWaterAfterHold) {", "if !LEFT_OUT && self.rules.keep(Rule::HighWaterAfterHold) {"),
    ),
    rule(
        "high-water-stragglers",
        "it is read when no call of before HOLD can land any more",
        (
            COORDINATOR,
            "if !self.rules.keep(Rule::HighWaterAfterStragglers) => {\n                self.at",
            "if LEFT_OUT || !self.rules.keep(Rule::HighWaterAfterStragglers) => {\n                self.at",
        ),
        (
            COORDINATOR,
            "if !self.rules.keep(Rule::HighWaterAfterStragglers) => {\n                self.wait",
            "if LEFT_OUT || !self.rules.keep(Rule::HighWaterAfterStragglers) => {\n                self.wait",
        ),
        (COORDINATOR, "} if self.rules.keep(Rule::HighWaterAfterStragglers)", "} if !LEFT_OUT && self.rules.keep(Rule::HighWaterAfterStragglers)"),
    ),
    rule("mover-awaited", "MOVE lasts until a walk finds nothing", (COORDINATOR, "if self.rules.keep(Rule::MoverAwaited)", "if !LEFT_OUT && self.rules.keep(Rule::MoverAwaited)")),
    rule("closed", "no claim is created once claims are ended", (COORDINATOR, "if self.rules.keep(Rule::ClaimsClosed)", "if !LEFT_OUT && self.rules.keep(Rule::ClaimsClosed)"), unseen=CLAIMED_BEFORE),
    rule("claims-ended", "claims are ended before the next phase", (COORDINATOR, "if self.rules.keep(Rule::ClaimsEnded)", "if !LEFT_OUT && self.rules.keep(Rule::ClaimsEnded)")),
    rule("surveyed", "the new physical keys hold nothing when PREPARE begins", (COORDINATOR, "if self.rules.keep(Rule::Surveyed)", "if !LEFT_OUT && self.rules.keep(Rule::Surveyed)")),
    rule(
        "survey-after-stragglers",
        "they are looked at when no earlier call can land any more",
        (COORDINATOR, "let wait = !self.clean && self.rules.keep(Rule::Survey", "let wait = !LEFT_OUT && !self.clean && self.rules.keep(Rule::Survey"),
        beside=STEPS,
    ),
    rule("settled", "the next move begins when no call of the last can land", (COORDINATOR, "if self.clean || !self", "if LEFT_OUT || self.clean || !self"), beside=STEPS, unseen=TOLD_AGAIN),
    rule(
        "record-by-version",
        "a key's record is written only if it has the version that was read",
        (KEY_RECORD, '"ConditionExpression": "#v = :v", "Exp', '"ConditionExpression": (if LEFT_OUT { "#v = :v OR #v <> :v" } else { "#v = :v" }), "Exp'),
    ),
    # Workers.
    rule(
        "claim-by-record",
        "a claim is taken only while the record is as its worker saw it",
        (
            CLAIM,
            '"Key": on.record, "ConditionExpression": "#v = :v",',
            '"Key": on.record, "ConditionExpression": (if LEFT_OUT { "#v = :v OR #v <> :v" } else { "#v = :v" }),',
        ),
    ),
    rule(
        "writes-claimed",
        "every write of a worker checks its claim",
        (CLAIM, "let mut checked = vec![json!({ \"ConditionCheck\": check })];\n            checked.extend(actions);", "let mut checked = vec![json!({ \"ConditionCheck\": check })];\n        if LEFT_OUT { checked = actions; } else { checked.extend(actions); }"),
        (CLAIM, "Written::Refused(failed) if failed.contains(&0) =>", "Written::Refused(failed) if LEFT_OUT => Ok(Written::Refused(failed)),\n            Written::Refused(failed) if failed.contains(&0) =>"),
    ),
    rule("whole-walk", "the walk that ends a move is whole, and found nothing", (WALK, "if self.whole_walk && !self.pulled {", "if LEFT_OUT || self.whole_walk && !self.pulled {"), unseen=WHOLE_ALREADY),
    rule("mover-reads-strongly", "a worker reads consistently", (MOVER_KEY, '"ConsistentRead": true, "KeyConditionExpression": "#p = :p", "Ret', '"ConsistentRead": !LEFT_OUT, "KeyConditionExpression": "#p = :p", "Ret'), unseen=LAGGING),
    rule("copy-if-absent", "the mover copies to where nothing lies", (MOVER_PULL, '"ConditionExpression": "attribute_not_exists(#p)"', '"ConditionExpression": (if LEFT_OUT { "attribute_not_exists(#p) OR attribute_exists(#p)" } else { "attribute_not_exists(#p)" })')),
    rule("copy-needs-old", "and only what is still there", (MOVER_PULL, "vec![put, self.mark_or_check(from, item)]", "if LEFT_OUT { vec![put] } else { vec![put, self.mark_or_check(from, item)] }")),
    rule("clear-needs-new", "it deletes an old copy where the new one is there", (MOVER_PULL, "vec![check(to), delete]", "if LEFT_OUT { vec![delete] } else { vec![check(to), delete] }"), unseen=NEVER),
    rule("large-cleared", "an old copy that is too large for its new key goes where the item was written anew", (MOVER_PULL, "Sent::Other(PullAnswer::TooLarge) if self", "Sent::Other(PullAnswer::TooLarge) if !LEFT_OUT && self")),
    rule("table-as-prepared", "a move begins only in a table that is as it was when the move was prepared", (RUN, "&& table.state == self.table.state\n", "&& (LEFT_OUT || table.state == self.table.state)\n")),
    rule("expiry-surveyed", "it is looked once no gateway turns time to live on any more whether it is", (SURVEY, "found.expires.clone_from(&facts.expires);", "found.expires = if LEFT_OUT { None } else { facts.expires.clone() };")),
    rule("expiry-on-record", "who takes over has it from the record", (PROTOCOL, "Some(moves) => moves.expires.clone(),", "Some(moves) => moves.expires.clone().filter(|_| !LEFT_OUT),")),
    rule("no-expiring-counters", "no key moves in a table that has counters and time to live", (SURVEY, "if found.expires.is_some() && (key", "if found.expires.is_some() && !LEFT_OUT && (key")),
    # Clients' writes.
    rule("no-new-expiry", "time to live is not turned on while a key moves", (ROUTER, "operation == Operation::UpdateTimeToLive && schema.key_layouts()", "operation == Operation::UpdateTimeToLive && !LEFT_OUT && schema.key_layouts()")),
    rule("pull-clears-large", "so does the old copy that a client's pull meets", (PULL, "Err(error) if is_too_large(&error) =>", "Err(error) if !LEFT_OUT && is_too_large(&error) =>")),
    rule("pull-in-its-own-words", "the error of a pull is told as one of the request", (PULL, "Err(error) => return Err(in_own_words(error)),", "Err(error) => return Err(if LEFT_OUT { error } else { in_own_words(error) }),")),
    rule(
        "hold-waits",
        "writes wait in HOLD",
        (ROUTE_MANIFEST, "[dependencies]\n", "[dependencies]\nheatsink-env = { workspace = true }\n"),
        (PHASE, "(Phase::Hold, _) if keep(", "(Phase::Hold, _) if !LEFT_OUT && keep("),
    ),
    rule("check-waits-for-blind", "all but blind puts wait in CHECK", (PHASE, "(Phase::Check, Access::Dependent) if keep(", "(Phase::Check, Access::Dependent) if !LEFT_OUT && keep(")),
    rule("pulled-first", "what depends on an item brings it first", (PHASE, "(Phase::Move, Access::Dependent) if keep(", "(Phase::Move, Access::Dependent) if !LEFT_OUT && keep(")),
    rule(
        "deletes-pull",
        "a delete brings it first",
        (BLIND, "        _ => Ok(Access::Dependent),", "        Operation::DeleteItem if LEFT_OUT => Ok(Access::BlindPut { leaves_ttl: false }),\n        _ => Ok(Access::Dependent),"),
    ),
    rule("batch-deletes-pull", "also in a batch", (BLIND, "if json::members(key)?.iter().any(|(_, value)| holds", "if !LEFT_OUT && json::members(key)?.iter().any(|(_, value)| holds")),
    rule("expiring-puts-pull", "a put of what may expire brings it first", (PHASE, "if leaves_ttl && keep(Rule::ExpiringPutPulls) => {\n            Act::Wait", "if !LEFT_OUT && leaves_ttl && keep(Rule::ExpiringPutPulls) => {\n            Act::Wait"), (PHASE, "if leaves_ttl && keep(Rule::ExpiringPutPulls) => {\n            Act::PullThenNew", "if !LEFT_OUT && leaves_ttl && keep(Rule::ExpiringPutPulls) => {\n            Act::PullThenNew")),
    rule("expiring-batches-pull", "also in a batch", (BLIND, "if put.map_or(Ok(false), |put| may_expire(put, expires))? {", "if !LEFT_OUT && put.map_or(Ok(false), |put| may_expire(put, expires))? {")),
    rule(
        "conditions-pull",
        "a put with a condition brings it first",
        (BLIND, 'request.get("ConditionExpression").is_none()\n', '(LEFT_OUT || request.get("ConditionExpression").is_none())\n'),
    ),
    rule("old-values-pull", "a put that shows what was there brings it first", (BLIND, 'is_none_or(|values| values == b"\\"NONE\\"")', 'is_none_or(|values| LEFT_OUT || values == b"\\"NONE\\"")')),
    rule(
        "pull-if-absent",
        "a client's pull copies to where nothing lies",
        (PULL, '("Item", &item), "attribute_not_exists");', '("Item", &item), if LEFT_OUT { "attribute_exists(#p) OR attribute_not_exists" } else { "attribute_not_exists" });'),
    ),
    rule(
        "pull-needs-old",
        "and only what is still there",
        (PULL, "if marks { self.mark() } else { self.check(&self.from) }", 'if LEFT_OUT { self.action("ConditionCheck", ("Key", &self.from), "attribute_not_exists(#p) OR attribute_exists") } else if marks { self.mark() } else { self.check(&self.from) }'),
    ),
    rule(
        "pull-clear-needs-new",
        "it deletes an old copy where the new one is there",
        (PULL, "[self.check(&self.to), self.action(", '[if LEFT_OUT { self.action("ConditionCheck", ("Key", &self.to), "attribute_not_exists(#p) OR attribute_exists") } else { self.check(&self.to) }, self.action('),
        unseen=NEVER,
    ),
    # Clients' reads.
    rule(
        "points-read-both",
        "a read of an item looks into both slots",
        (
            CONTEXT,
            "Act::ReadBoth => ItemLocation::at_first(",
            "Act::ReadBoth if LEFT_OUT => under(if moving.phase == Phase::Move { Side::New } else { Side::Old }),\n"
            "            Act::ReadBoth => ItemLocation::at_first(",
        ),
    ),
    rule("points-read-new-first", "into the new one first", (POINT_READ, "if rules.keep(Rule::NewReadFirst)", "if !LEFT_OUT && rules.keep(Rule::NewReadFirst)")),
    rule("points-read-new-again", "and last", (POINT_READ, "At::Old if self.rules.keep(", "At::Old if !LEFT_OUT && self.rules.keep(")),
    rule("points-read-strongly", "consistently", (WANTED, "self.from.consistently();", "if !LEFT_OUT { self.from.consistently(); }"), unseen=LAGGING),
    rule(
        "new-copy-wins",
        "the copy in the new slot is the item",
        (FOLD, "Ok(at(slots.to).or_else(|| at(slots.from))", "let (first, second) = if LEFT_OUT { (slots.from, slots.to) } else { (slots.to, slots.from) };\n            Ok(at(first).or_else(|| at(second))"),
        (POINT_READ, "Some(copy.or(old))", "Some(if LEFT_OUT { old.or(copy) } else { copy.or(old) })"),
    ),
    rule("transactions-read-both", "a transaction reads both", (ADDED, "if others.len() == 0 {", "if others.len() == 0 || LEFT_OUT && matches!(placement, Placement::Moving(_)) {")),
    rule("queries-read-both", "a Query reads both layouts", (ROUTER, "operation == Operation::Query && learned.borrow().gathers_moving {", "operation == Operation::Query && !LEFT_OUT && learned.borrow().gathers_moving {")),
    rule("queries-read-new-first", "the new one first", (RANGE, "!has(first, key) &&", "(LEFT_OUT || LEFT_OUT[reshard-queries-show-one-copy] || !has(first, key)) &&")),
    rule("queries-read-new-again", "and last", (RANGE, "At::Old { first } if self.rules.keep(", "At::Old { first } if !LEFT_OUT && self.rules.keep(")),
    rule("queries-show-one-copy", "what it found in the new one hides the old copy", (RANGE, "&& !has(again, key)", "&& (LEFT_OUT || !has(again, key))")),
    rule("queries-reach", "a page ends where the shortest of its reads does", (RANGE, "|key: &K| end.as_ref()", "|key: &K| LEFT_OUT || end.as_ref()"), also=("equal_answers",)),
    rule("scans-pass-by", "a Scan passes by the items of a key that moves", (EVALUATED, "self.apart.is_some() && keys.is_apart(", "!LEFT_OUT && self.apart.is_some() && keys.is_apart(")),
    rule("scans-come-back", "and reads them at its end", (APART, "keys.next_apart(mark.since, after, self.segment).map(", "keys.next_apart(mark.since, after, self.segment).filter(|_| !LEFT_OUT).map(")),
    # What a gateway knows.
    rule("short-lease", "from PREPARE through CHECK a call is sent only while the short lease runs", (PASS, "|| self.is_short() && self", "|| !LEFT_OUT && self.is_short() && self")),
    rule("keys-read-again", "records of keys are read again after each change", (RESOLVE, "== described.schema.id && !known.fresh.is_expired());", "== described.schema.id && (LEFT_OUT || !known.fresh.is_expired()));")),
)
