"""The safety rules of the fence, each with the small change to the product's source that leaves it out.

A change is (file, old text, new text). The old text occurs once in the file. In the new text `LEFT_OUT` holds while the rule is left out, and
`LEFT_OUT[name]` while another one is.
"""

from dataclasses import dataclass

PASS = "crates/control/src/fence/pass.rs"
GATEWAY = "crates/control/src/fence/gateway.rs"
CHANGER = "crates/control/src/fence/changer.rs"
ITEMS = "crates/control/src/fence/items.rs"
CLAIM = "crates/control/src/claim.rs"
TABLE_CACHE = "crates/control/src/table_cache.rs"
TABLE_OPERATIONS = "crates/control/src/control/table_operations.rs"
TABLE_LIFECYCLE = "crates/control/src/table_lifecycle.rs"
RECORDS = "crates/control/src/records.rs"
RESOLVE = "crates/control/src/resolve.rs"
FIRST_USE = "crates/control/src/first_use.rs"
INDEX_MIGRATION = "crates/workers/src/table/index_migration.rs"
ADOPT = "crates/workers/src/table/adoption.rs"
INNER = "crates/control/src/inner.rs"
MEMBER = "crates/fence/src/member.rs"
LIVENESS = "crates/fence/src/liveness.rs"
STEP = "crates/fence/src/step.rs"
PLANNER = "crates/gateway/src/planner.rs"


@dataclass(frozen=True)
class Rule:
    """One rule."""

    name: str
    """What holds as long as it is kept."""
    says: str
    changes: tuple = ()
    """The integration tests, other than the simulation, that are asked too."""
    also: tuple = ()
    """Other rules that are left out with it, because they cover for it. The simulation passes without these alone."""
    beside: tuple = ()
    """Why it cannot be seen here, if so. It is run all the same."""
    unseen: str = ""
    """The story whose seeds are tried."""
    story: str = "every_story"
    """Only scenarios whose path holds this are asked; all of them, if it is empty."""
    scenes: str = ""
    """The rule whose changes leave this one out too, where two stories need it."""
    change_of: str = ""


RULES = (
    # Requests.
    Rule(
        "lease-before-sending",
        "a call is sent only while the lease runs",
        ((PASS, "if self.lease_is_over(now) {", "if self.lease_is_over(now) && !LEFT_OUT {"),),
    ),
    Rule(
        "gate-before-sending",
        "a call is sent only while its plan's gate is open",
        ((PASS, "if !self.holds() {", "if !self.holds() && !LEFT_OUT {"),),
    ),
    Rule(
        "gate-on-delivery",
        "a result is given only while its plan's gate is open",
        ((PASS, "_ if self.holds() && ", "_ if (LEFT_OUT || self.holds()) && "),),
    ),
    Rule(
        "lease-on-delivery",
        "a result is given only while the lease runs",
        (
            (
                PASS,
                "!self.lease_is_over(self.lease.now())",
                "(LEFT_OUT || !self.lease_is_over(self.lease.now()))",
            ),
        ),
    ),
    Rule(
        "not-found-answered",
        "a request for a table that is not there is answered, not sent",
        ((PLANNER, "if pass.is_missing() {", "if pass.is_missing() && !LEFT_OUT {"),),
    ),
    Rule(
        "time-to-live",
        "a gateway knows a table's layouts before it turns on time to live",
        ((TABLE_LIFECYCLE, "matches!(operation, Operation::UpdateTimeToLive | Operation::UpdateTable)", "matches!(operation, Operation::UpdateTimeToLive | Operation::UpdateTable) && !LEFT_OUT"),),
    ),
    # What a gateway knows.
    Rule(
        "look-up-redone",
        "what was looked up is not kept if a newer epoch was seen meanwhile",
        ((TABLE_CACHE, "if seen() != began {", "if seen() != began && !LEFT_OUT {"),),
    ),
    Rule(
        "forgotten-closed",
        "the gates of what was replaced are closed with the others",
        ((TABLE_CACHE, "let mut gates = retired.clone();", "let mut gates = if LEFT_OUT { Vec::new() } else { retired.clone() };"),),
    ),
    Rule(
        "name-checked",
        "a table is not taken for another one that has its name on record",
        ((RESOLVE, "if *id != schema.id =>", "if *id != schema.id && !LEFT_OUT =>"),),
    ),
    Rule(
        "name-of-the-recorded",
        "a description is not believed of a recorded table whose name another one has taken",
        ((RESOLVE, "_ if others(&entry) => return Err(out_of_date(&schema.name)),", "_ if !LEFT_OUT && others(&entry) => return Err(out_of_date(&schema.name)),"),),
    ),
    Rule(
        "bound-has-record",
        "a bound name without a record is looked up again",
        ((RESOLVE, "if record.is_none() && entry", "if !LEFT_OUT && record.is_none() && entry"),),
    ),
    # Leases and registrations.
    Rule(
        "register-before-reading",
        "the first lease comes from a read after the registration",
        (
            (
                GATEWAY,
                "                sent = self.lease.now();\n                head = registry.head().await?;\n",
                "                if !LEFT_OUT {\n sent = self.lease.now();\n head = registry.head().await?;\n }\n",
            ),
        ),
        unseen="It matters to a gateway that was taken off the list in its silence and acts again while a change goes on; no story and no scenario here has one. The search of all orders catches it",
    ),
    Rule(
        "lease-from-sending",
        "a lease counts from before the read was sent, not from its answer",
        (
            (
                GATEWAY,
                "let seen = self.change(|member| member.read(sent",
                "let sent = if LEFT_OUT { self.lease.now() } else { sent };\nlet seen = self.change(|member| member.read(sent",
            ),
        ),
    ),
    Rule(
        "lease-needs-registration",
        "reads prolong a lease no further than two heartbeats past the last registration",
        (
            (
                MEMBER,
                "sent.min(beaten + self.bounds.heartbeat_patience())",
                "if LEFT_OUT { sent } else { sent.min(beaten + self.bounds.heartbeat_patience()) }",
            ),
        ),
        unseen="It matters to a gateway that was taken off the list in its silence and acts again while a change goes on; no story and no scenario here has one. The search of all orders catches it",
    ),
    Rule(
        "beats-differ",
        "no two registrations carry the same number",
        ((MEMBER, "self.beats += 1;", "if !LEFT_OUT || self.beats == 0 { self.beats += 1; }"),),
        unseen="It matters to a gateway that was taken off the list in its silence and acts again while a change goes on; no story and no scenario here has one. The search of all orders catches it",
    ),
    Rule(
        "closed-before-acknowledging",
        "an epoch is acknowledged once the gates of what it changed are closed",
        (
            (
                GATEWAY,
                "self.shut(looked, gates).await;\n        self.change(|member| member.applied",
                "if !LEFT_OUT { self.shut(looked, gates).await; }\n        self.change(|member| member.applied",
            ),
        ),
    ),
    # Steps.
    Rule(
        "record-before-head",
        "a record is written before the head that tells of it",
        (
            (
                FIRST_USE,
                "let record = inner.registry.create(entry, &record).await?;",
                "if LEFT_OUT { inner.announce(&record.name, record.version).await?; }\n"
                "let record = inner.registry.create(entry, &record).await?;",
            ),
            (
                FIRST_USE,
                "inner.announce(&record.name, record.version).await?;\n    let described",
                "if !LEFT_OUT { inner.announce(&record.name, record.version).await?; }\n    let described",
            ),
            (
                ADOPT,
                "let (mut record, mut checkpoint, mut said) = self.begin(options.exclusive, progress).await?;",
                "if LEFT_OUT { self.changer.announce(&self.context.table.name, 0).await?; }\n"
                "let (mut record, mut checkpoint, mut said) = self.begin(options.exclusive, progress).await?;",
            ),
            (
                ADOPT,
                "self.changer.announce(&record.name, record.version).await?;\n        if !checkpoint.is_counted()",
                "if !LEFT_OUT { self.changer.announce(&record.name, record.version).await?; }\n        if !checkpoint.is_counted()",
            ),
        ),
    ),
    Rule(
        "step-waited-for",
        "a step is waited for",
        ((CHANGER, "if self.settings.exclusive {\n            return Ok(step);", "if self.settings.exclusive || LEFT_OUT {\n            return Ok(step);"),),
    ),
    Rule(
        "list-after-publication",
        "the gateways are listed after the publication",
        (
            (
                CHANGER,
                "impl Changer {",
                "std::thread_local! { static EARLY: std::cell::RefCell<Vec<heatsink_fence::Registration>> = std::cell::RefCell::default(); }\n"
                "impl Changer {",
            ),
            (
                CHANGER,
                "let left = self.unsettled_for(&stored).await?;\n",
                "if LEFT_OUT { let list = self.registry.gateways().await?; EARLY.set(list.into_iter().map(|one| one.registration).collect()); }\n"
                "let left = self.unsettled_for(&stored).await?;\n",
            ),
            (
                CHANGER,
                "let step = Step::new(head.head.epoch, self.registry.env().now());\n",
                "let mut step = Step::new(head.head.epoch, self.registry.env().now());\n"
                "if LEFT_OUT { EARLY.with_borrow(|early| step.listed(self.registry.env().now(), early)); }\n",
            ),
        ),
    ),
    Rule(
        "lease-of-the-silent",
        "a gateway that does not acknowledge is waited for until its lease is over",
        ((STEP, "Awaits::Effects => bounds.lease ", "Awaits::Effects => (if LEFT_OUT { Duration::ZERO } else { bounds.lease }) "),),
    ),
    Rule(
        "stragglers-of-the-silent",
        "and then for the calls that it may have sent last",
        ((STEP, "+ bounds.straggler,", "+ if LEFT_OUT { Duration::ZERO } else { bounds.straggler },"),),
    ),
    Rule(
        "unclean-counted",
        "calls without an answer are waited for after the acknowledgement",
        ((STEP, "awaits == Awaits::Effects { one.unclean }", "awaits == Awaits::Effects && !LEFT_OUT { one.unclean }"),),
    ),
    Rule(
        "removed-only-when-silent",
        "a registration is removed only after its gateway's silence",
        ((LIVENESS, "now.since(sign.seen) > sign.silence", "(LEFT_OUT || now.since(sign.seen) > sign.silence)"),),
    ),
    Rule(
        "one-head-at-a-time",
        "the head is written only if it still has the epoch before",
        ((ITEMS, 'format!("#e = :e AND', 'format!("{} AND', ), (ITEMS, '#s = :s AND {frozen}")', '#s = :s AND {frozen}", if LEFT_OUT { "(#e = :e OR #e <> :e)" } else { "#e = :e" })')),
    ),
    # A new registry.
    Rule(
        "registry-settled",
        "nothing changes until every gateway must have noticed a new registry",
        ((CHANGER, "|| left.is_zero() {", "|| left.is_zero() || LEFT_OUT {"),),
    ),
    Rule(
        "settled-on-record",
        "whoever finds a registry that has not settled waits, not its maker alone",
        (
            (CHANGER, "if stored.settled {", "if stored.settled || LEFT_OUT && self.known.unsettled.lock().await.is_none() {"),
            (
                CHANGER,
                "let first = StoredHead {",
                "if LEFT_OUT { *self.known.unsettled.lock().await = Some(self.registry.env().now()); }\nlet first = StoredHead {",
            ),
        ),
    ),
    Rule(
        "one-lease-without-registry",
        "without a registry every gateway has the same short lease",
        ((MEMBER, "sent + self.bounds.unregistered_lease()", "sent + if LEFT_OUT { self.bounds.lease } else { self.bounds.unregistered_lease() }"),),
    ),
    Rule(
        "gate-without-registry",
        "what was forwarded for want of a registry is given up once there is one",
        (
            (
                GATEWAY,
                "self.shut(looked, vec![Arc::clone(&self.unsharded)]).await;",
                "if !LEFT_OUT { self.shut(looked, vec![Arc::clone(&self.unsharded)]).await; }",
            ),
        ),
    ),
    # First use.
    Rule(
        "pending-first",
        "an empty table is PENDING before it is ACTIVE",
        ((FIRST_USE, "state: State::Pending, ..inner", "state: if LEFT_OUT { State::Active } else { State::Pending }, ..inner"),),
    ),
    Rule(
        "empty-still",
        "a PENDING table is seen to be empty once more",
        ((FIRST_USE, "if !empty? {", "if !LEFT_OUT && !empty? {"),),
    ),
    Rule(
        "no-counters-that-expire",
        "a table with time to live takes no counters",
        ((FIRST_USE, "if has_counters(&record.layouts) && ", "if !LEFT_OUT && has_counters(&record.layouts) && "),),
    ),
    # Tables that are made and deleted.
    Rule(
        "intent-before-create",
        "a name is reserved before its table is made",
        (
            (TABLE_LIFECYCLE, "if !inner.registry.enter(before.as_ref(), &entry).await? {", "if !LEFT_OUT && !inner.registry.enter(before.as_ref(), &entry).await? {"),
            (
                TABLE_LIFECYCLE,
                "inner.announce(name, entry.version).await?;",
                "if LEFT_OUT[intent-acknowledged] { inner.publish(name, entry.version).await?; } "
                "else if !LEFT_OUT { inner.announce(name, entry.version).await?; }",
            ),
            (
                TABLE_LIFECYCLE,
                "let Intent { entry, layouts, _begun } = intent;",
                "let Intent { entry, layouts, _begun } = intent;\n"
                "if LEFT_OUT { let before = inner.registry.entry(&entry.name).await?; inner.registry.enter(before.as_ref(), &entry).await?; }",
            ),
        ),
    ),
    Rule("intent-acknowledged", "and every gateway knows: the change stands with the rule before"),
    Rule(
        "intent-left-alone",
        "what another gateway has begun is left to it",
        ((INNER, "Ok(list.iter().any(", "Ok(!LEFT_OUT && list.iter().any("),),
        unseen="Who takes over makes a first use, with its steps, and the maker binds the name again: it saves that, and nothing here rests on it",
    ),
    Rule(
        "begun-under-lease",
        "what was begun goes on only while nobody can take the gateway for dead",
        ((TABLE_OPERATIONS, "|| if begun {", "|| if begun && !LEFT_OUT {"),),
    ),
    Rule(
        "delete-announced",
        "every gateway keeps away from a table before it is deleted",
        ((TABLE_LIFECYCLE, "inner.announce(name, deleting.version).await?;", "if !LEFT_OUT { inner.announce(name, deleting.version).await?; }"),),
    ),
    Rule(
        "deletion-shared",
        "who deletes a table that is being deleted waits as long as the first",
        (
            (TABLE_LIFECYCLE, "State::Deleting { .. } => found,", "State::Deleting { .. } if !LEFT_OUT => found,"),
            (TABLE_LIFECYCLE, "State::Pending | State::Gone => return", "State::Deleting { .. } | State::Pending | State::Gone => return"),
        ),
    ),
    Rule(
        "deleted-by-id",
        "a table is deleted if it still is the one that was there when the deletion began to wait",
        ((TABLE_LIFECYCLE, "if described.is_none_or(|described| described.schema.id != deleting.id) {", "if !LEFT_OUT && described.is_none_or(|described| described.schema.id != deleting.id) {"),),
    ),
    # Records and workers.
    Rule(
        "record-by-version",
        "a record is replaced only if it has the version that was read",
        (
            (
                RECORDS,
                '"Item": to.item(), "ConditionExpression": "#v = :v",',
                '"Item": to.item(), "ConditionExpression": (if LEFT_OUT { "#v = :v OR #v <> :v" } else { "#v = :v" }),',
            ),
        ),
        also=("control",),
    ),
    Rule(
        "name-by-version",
        "the entry of a name is replaced only if it has the version that was read",
        ((RECORDS, 'put["ConditionExpression"] = json!("#v = :v");', 'put["ConditionExpression"] = json!(if LEFT_OUT { "#v = :v OR #v <> :v" } else { "#v = :v" });'),),
        also=("control",),
        unseen="A record is found by its table's id; its name only tells two tables apart, and no order was found in which a late entry does harm",
    ),
    Rule(
        "claim-checked",
        "every write of a worker is checked against its claim",
        (
            (
                CLAIM,
                'permit(&self.run, at), "ConditionExpression": "attribute_exists(pk)",',
                'permit(&self.run, at), "ConditionExpression": (if LEFT_OUT { "attribute_exists(pk) OR attribute_not_exists(pk)" } else { "attribute_exists(pk)" }),',
            ),
        ),
        also=("workers",),
    ),
    Rule(
        "takeover-publishes",
        "who takes an adoption of index keys over publishes its state again, and waits",
        (
            (
                INDEX_MIGRATION,
                "self.settle(&record, progress).await?;\n                    if !migration.touched {",
                "if !(LEFT_OUT && self.migration().is_some()) { self.settle(&record, progress).await?; }\n                    if !migration.touched {",
            ),
            (
                INDEX_MIGRATION,
                "self.settle(&record, progress).await?;\n                rewritten",
                "if !(LEFT_OUT && self.migration().is_some()) { self.settle(&record, progress).await?; }\n                rewritten",
            ),
        ),
        also=("workers", "gateways"),
    ),
    Rule(
        "reserved-is-nobodys",
        "while a name is reserved, no record holds for it",
        ((RESOLVE, "entry.holder != Holder::Free && entry.holder != bound", "(matches!(entry.holder, Holder::Bound { .. }) || !LEFT_OUT) && entry.holder != Holder::Free && entry.holder != bound"),),
    ),
    Rule(
        "name-is-taken",
        "an empty table without a record that takes a name is its holder",
        (
            (
                FIRST_USE,
                "true => intent.held(Holder::Bound { id: schema.id.clone() }),",
                "true => intent.held(if LEFT_OUT { Holder::Free } else { Holder::Bound { id: schema.id.clone() } }),",
            ),
        ),
    ),
)
