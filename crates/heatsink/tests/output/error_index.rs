//! The index of errors, docs/reference/errors.md: what an operator or a client's log shows, what it
//! means, what to do.
//!
//! Each message is a piece of a product source: one that is reworded there fails here. So does an
//! `Error::unavailable` of the product without an entry.

use std::path::Path;

use crate::pages::{hold, root};

/// A piece of a message as the source has it, its meaning, what to do.
type Entry = (&'static str, &'static str, &'static str);

/// Retryable answers to clients. Nothing was done unless the meaning says so.
const RETRYABLE: &[Entry] = &[
    (
        "cannot be reached: {why}",
        "No connection to the upstream. Nothing was sent.",
        "Look at the network, `--upstream` and the endpoint.",
    ),
    (
        "answer was lost: {why}",
        "The connection broke before the answer. A write may have taken effect.",
        "Treat it as a lost connection: read, or repeat what is idempotent.",
    ),
    (
        "The server's answer was lost: {}",
        "A command's connection to the running server broke. What it wrote may be there.",
        "Run the command again.",
    ),
    ("Only a part of it was sent", "The connection broke while the request was sent.", "Repeat it."),
    (
        "was damaged on the way",
        "The answer failed its checksum. A write may have taken effect.",
        "As for a lost answer. If it recurs, look at proxies.",
    ),
    (
        "No answer within {} s",
        "The request took too long. A write may have taken effect.",
        "As for a lost answer.",
    ),
    (
        "was given up before anything of it was sent",
        "The deadline passed while the request waited.",
        "Repeat it. Look for a layout change or an overload.",
    ),
    (
        "whose request ended before its answer",
        "Combined writes were cut off. They may have taken effect.",
        "As for a lost answer.",
    ),
    (
        "has too many digits to be told",
        "A combined update was done; its number is too long.",
        "Read the item.",
    ),
    (
        "wait for one that is under way; nothing was written",
        "Too many writes of one item wait (`combine`).",
        "Repeat it. If it lasts, the store is slow.",
    ),
    (
        "and writes to it wait for a moment",
        "A key is cut over to other shards.",
        "Repeat it. If it lasts for a minute: [a change that hangs](../how-to/recover.md#a-change-that-hangs).",
    ),
    (
        "of requests to its shards and their answers",
        "The request holds more memory than one request may.",
        "Repeat it with a smaller `Limit`.",
    ),
    ("The table did not exist when the request arrived", "The table was created meanwhile.", "Repeat it."),
    (
        "The layout of the table changed while the request was in progress",
        "A layout changed. A write may have taken effect.",
        "Treat it as a lost connection.",
    ),
    (
        "The registry shows changes that this gateway has not caught up with",
        "The gateway reads the registry late.",
        "Wait some seconds; then see [recover](../how-to/recover.md).",
    ),
    (
        "gateways that were started without it have yet to notice it",
        "The registry is new. The wait is 40 s, once.",
        "Wait.",
    ),
    (
        "and this command changes nothing",
        "A dry run met a change that is under way.",
        "Run it again when the change has ended.",
    ),
    (
        "head could not be written",
        "The registry's head is contested or throttled.",
        "Run it again. Give the registry on-demand capacity.",
    ),
    ("Other changes of layouts came before this one", "Another change won.", "Run it again."),
    ("Other changes came before this one", "Another change won.", "Run it again."),
    (
        "It was written by an older build",
        "The registry has an older form.",
        "Start `heatsink serve` of this build on it first.",
    ),
    ("The gateway is stopping", "SIGTERM or Ctrl-C was received.", "Repeat it; another gateway answers."),
    (
        "The gateway in this program was stopped",
        "The program's `Heatsink` or `Local` is gone.",
        "Keep it as long as its clients.",
    ),
    ("Table {} is being deleted", "DeleteTable has not ended.", "Repeat it."),
    ("Table {} is being created by another gateway", "CreateTable has not ended.", "Repeat it."),
    ("while it was being recorded", "The table was deleted or made again meanwhile.", "Repeat it."),
    (
        "could not be put on record",
        "The first use of an empty table failed.",
        "The message ends with the store's reason; mend that.",
    ),
    (
        "did not become active within {} s",
        "The registry's table is still being created.",
        "Look at it in the store; then run it again.",
    ),
    ("was not deleted within {} s", "`leave` removes the registry.", "Run it again."),
    (
        "existed before and is not found any more",
        "The registry was deleted.",
        "[Get it back](../how-to/recover.md#the-registry-is-lost).",
    ),
    (
        "until all its items are restored from one moment",
        "Items of the registry were lost, or put back from before a later change.",
        "[Restore them](../how-to/recover.md#one-item-of-the-registry).",
    ),
    (
        "The registry changes too often to tell",
        "Layouts change faster than they can be read.",
        "Repeat it. Look for two automations that fight.",
    ),
    ("A table with the name {name} is being created", "CreateTable has not ended.", "Repeat it."),
    (
        "Delete the table when that has ended",
        "`adopt` works on the table.",
        "Let it end, or run `adopt` again if it was killed.",
    ),
    ("is being changed by another gateway", "Another gateway creates or deletes the table.", "Repeat it."),
    ("is moving items of table {name}", "`adopt` works on the table.", "Let it end."),
    (
        "until that is done its items cannot be read or written",
        "`adopt` moves the table's items offline.",
        "Wait for it. If it was killed, run it again.",
    ),
    (
        "This gateway stopped carrying it out",
        "The gateway that moved a key is stopping.",
        "Nothing: another gateway continues.",
    ),
    (
        "An item was moved again and again while it was written to",
        "Other code moves the item between shards.",
        "Repeat it.",
    ),
    (
        "is not carried out on it meanwhile",
        "The operation has to wait until the key has moved.",
        "Repeat it later. `heatsink reshard status` shows progress.",
    ),
    (
        "its parts were set again and again while they were read",
        "A counter gets fewer shards, and clients set it all the time.",
        "Repeat it.",
    ),
    (
        "was met there by others again and again",
        "Many writers of one item while its key moves.",
        "Repeat it.",
    ),
    (
        "and the store refused that: {error}",
        "The store refused to move the item.",
        "The message has the store's reason; mend that.",
    ),
    (
        "statements of the transaction read items that are being moved",
        "The transaction is too large while its key moves.",
        "Split it, or repeat it after the move.",
    ),
    (
        "The first item of the page changed in each of",
        "A strong page never stood still.",
        "Repeat it, with a smaller `Limit`.",
    ),
    ("and this gateway has yet to learn of it", "A key got shards during a Scan.", "Repeat it."),
];

/// Refusals that stay until somebody acts.
const LASTING: &[Entry] = &[
    (
        "and `required = true` under [fence] says that it has to be there",
        "There is no registry in the store.",
        "Restore it, or leave `required` out for a new store.",
    ),
    (
        "Two registries for one table would lose items",
        "The table belongs to another registry.",
        "Name that registry under `[fence]`.",
    ),
    (
        "and this process was given the registry",
        "The record lies in another registry.",
        "Name that registry under `[fence]`.",
    ),
    (
        "has the tag heatsink.registry = ",
        "The table was on record, and its record is gone.",
        "[Get it back](../how-to/recover.md#the-registry-is-lost).",
    ),
    (
        "just where {shards} shards put them",
        "Items lie in shards, and there is no record.",
        "[Get it back](../how-to/recover.md#the-registry-is-lost).",
    ),
    (
        "The credentials of this command are missing, wrong, expired",
        "The store refused the credentials.",
        "Set `AWS_PROFILE`, or `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`.",
    ),
    (
        "only loopback addresses are served",
        "`--server`, or `--listen` of `watch`, names a network address.",
        "Run the command on the server's machine.",
    ),
    (
        "beyond loopback (127.0.0.1, [::1], localhost) it needs a token",
        "`--admin` is reachable from elsewhere.",
        "Give `--admin-token-file`.",
    ),
    ("and is not overwritten", "The file of `--record` exists.", "Give a new name."),
    (
        "cannot open the data file {}",
        "Another process has it, or it is no data file.",
        "Stop that process; the message names it.",
    ),
    (
        "do not carry this out: they are of an older version",
        "Only older gateways are registered.",
        "[Upgrade](../how-to/upgrade.md) them, or say `--here`.",
    ),
    (
        "No gateway is registered at this store",
        "Nobody would carry out the reshard.",
        "Start a gateway, or say `--here`.",
    ),
    ("and one command is for {MOST_KEYS} at most", "Too many keys are named.", "Split them with `--file`."),
    (
        "with the one that it was started with",
        "`--upstream` or `--server` names the wrong kind of server.",
        "Give the endpoint behind the gateway.",
    ),
    (
        "The rules contradict the registry",
        "Rules and record differ; the record holds.",
        "Give all gateways the same rules; change a layout with `adopt` or `reshard`.",
    ),
    (
        "that this version of Heatsink does not know",
        "A newer build wrote it.",
        "[Upgrade](../how-to/upgrade.md) this one.",
    ),
];

/// What the page says beside the tables.
const HEAD: &str = "# Errors

<!-- Generated: HEATSINK_BLESS=1 cargo test --workspace --test output -->

Search this page for a piece of the message. `{…}` stands for what differs. Every error has the type
and code that DynamoDB's errors have, so SDKs decide as ever whether to retry.

| code | whose fault | what SDKs do |
|---|---|---|
| `ValidationException` | the request's, or what Heatsink [does not do](compatibility.md) | fail |
| `ThrottlingException`, `ProvisionedThroughputExceededException` | too much at once: a partition, or a [limit](limits.md) | retry slowly |
| `ServiceUnavailable` (503) | the store, the network, a layout change | retry |
| `AccessDeniedException` | the `Host`, an account operation, the upstream's IAM | fail |
| `InternalServerError` (500) | the store, or Heatsink: report it if the message is ours | retry |
";

const CODES: &str = "
## Errors of commands

Errors go to stderr. With `--output json` an error is one line; `retryable` says that the same
command may succeed later.

```text
{\"error\":{\"exit_code\":69,\"kind\":\"unavailable\",\"message\":\"…\",\"retryable\":true}}
```

## Exit codes

| code | `kind` | when |
|---|---|---|
| 0 | | done; also `--help` and `--version` |
| 1 | `failed` | done in part or not at all, or something needs a decision: a stopped adoption, a misplaced item, a rule without a table |
| 64 | `usage` | arguments, rules or a request are wrong, no such table, or credentials refused; nothing was changed |
| 69 | `unavailable` | a port, a data file, a server or a store is not available, or stdout cannot be written |
| 70 | `software` | a failure inside Heatsink: please report it |
| 130 | `signalled` | a second Ctrl-C ended `serve`; or Ctrl-C ended `reshard start --wait`, and the reshard goes on |
| 143 | `signalled` | the same with SIGTERM |
";

fn table(title: &str, entries: &[Entry]) -> String {
    let mut rows = format!("\n## {title}\n\n| message | means | do |\n|---|---|---|\n");
    for (piece, means, act) in entries {
        // What stands in braces is a name of the source.
        let mut message = String::new();
        for (nth, part) in piece.split('{').enumerate() {
            let rest = if nth == 0 { part } else { part.split_once('}').unwrap().1 };
            message += &format!("{}{rest}", if nth == 0 { "" } else { "{…}" });
        }
        rows += &format!("| {} | {means} | {act} |\n", message.trim());
    }
    rows
}

/// The text of the product's sources, with strings that go on over a line end joined. Tests are not
/// among them.
fn sources(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let product = text.split("#[cfg(test)]").next().unwrap();
            let mut lines = product.split("\\\n");
            let first = lines.next().unwrap().to_owned();
            found.push(lines.fold(first, |all, line| all + line.trim_start()).replace("\\\"", "\""));
        }
    }
}

fn product() -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let folder = entry.unwrap().path().join("src");
        if folder.is_dir() {
            sources(&folder, &mut found);
        }
    }
    found
}

#[test]
fn the_page_of_errors_has_the_messages_of_the_sources() {
    let sources = product();
    for (piece, ..) in RETRYABLE.iter().chain(LASTING) {
        assert!(sources.iter().any(|source| source.contains(piece)), "no source says {piece:?} any more");
    }
    let page =
        HEAD.to_owned() + &table("Retryable", RETRYABLE) + &table("Until somebody acts", LASTING) + CODES;
    hold("errors.md", &page);
}

#[test]
fn every_retryable_error_has_an_entry() {
    let mut found = 0;
    for source in product() {
        for call in source.split("Error::unavailable(").skip(1) {
            let head: String = call.chars().take(120).collect();
            // A message that is made elsewhere, and one word of a test double, are not told from
            // here.
            let Some(message) = head.split('"').nth(1).filter(|message| message.contains(' ')) else {
                continue;
            };
            let call: String = call.chars().take(600).collect();
            assert!(
                RETRYABLE.iter().any(|(piece, ..)| call.contains(piece)),
                "errors.md has no entry for {message:?}"
            );
            found += 1;
        }
    }
    assert!(found > 20, "{found}");
}
