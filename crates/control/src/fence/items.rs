//! The fence's items in the registry: the head, and a registration for each gateway.

use std::time::Duration;

use heatsink_dynamo::{Code, Error, Operation, Outcome};
use heatsink_env::Processes;
use heatsink_fence::{Bounds, Head, Registration};
use serde_json::{Value as Json, json};

use super::ruled_tables::RuledTables;
use crate::counted::counted;
use crate::record::FORM;
use crate::registry::Registry;
use crate::seal;

const HEAD: &str = "head";
const GATEWAYS: &str = "gateways";

/// The head as it is stored in the registry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoredHead {
    pub head: Head,
    /// Whether every gateway that was started before the registry existed must have noticed it by
    /// now.
    pub settled: bool,
    /// Since when layout changes are frozen, if they are: milliseconds since 1970.
    pub frozen: Option<u64>,
}

impl StoredHead {
    fn item(&self) -> Json {
        let mut item = json!({
            "pk": { "S": HEAD }, "sk": { "S": HEAD },
            "form": { "N": FORM.to_string() },
            "epoch": { "N": self.head.epoch.to_string() },
            "changes": { "S": json!(self.head.changes).to_string() },
            "settled": { "BOOL": self.settled },
        });
        if let Some(since) = self.frozen {
            item["frozen"] = json!({ "N": since.to_string() });
        }
        seal::sealed(item)
    }

    fn read(item: &Json) -> Result<Self, Error> {
        let number = |name: &str| counted(item, name);
        if number("form") != Some(FORM) {
            return Err(Error::internal(
                "The registry's head has a form that this version of Heatsink does not know; it was written by another version",
            ));
        }
        let read = || {
            let epoch = number("epoch")?;
            let changes = serde_json::from_str(item["changes"]["S"].as_str()?).ok()?;
            let head = Head { epoch, changes };
            Some(StoredHead { head, settled: item["settled"]["BOOL"].as_bool()?, frozen: number("frozen") })
        };
        read()
            .filter(|_| !seal::is_broken(item))
            .ok_or_else(|| Error::internal("The registry's head is damaged"))
    }
}

/// A gateway as the registry lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// Its registration, for the fence.
    pub registration: Registration,
    /// Its name for people.
    pub name: String,
    /// The version of Heatsink that it runs.
    pub build: String,
    /// When it registered: milliseconds since 1970, by its own clock.
    pub since: u64,
    /// When it last wrote its registration, by its own clock.
    pub heard: u64,
    /// The mark of its process, where others can tell by it whether it has ended.
    pub process: Option<String>,
    /// Whether it carries out reshards. Older builds do not.
    pub carries: bool,
    /// Whether it carries out reshards of single values of indexes, too. Older builds do not.
    pub carries_values: bool,
    /// Whether it knows counters of single keys. Older builds refuse requests on tables that have
    /// some.
    pub knows_counters: bool,
    /// Whether it knows keys whose buckets have several numbers of shards. Older builds refuse
    /// requests on tables that have some.
    pub knows_steps: bool,
    /// Whether it knows single values of indexes, and keys of indexes that get another number of
    /// shards. Older builds refuse requests on tables that have some on record.
    pub knows_values: bool,
    /// Whether it knows keys that [stand by their hash](crate::registry_key) in the registry. Older
    /// builds refuse requests on tables that have some.
    pub knows_long_keys: bool,
    /// Whether it knows that several keys of a table, and a value of an index, move at a time. Older
    /// builds wait for each other.
    pub knows_together: bool,
    /// Whether it knows keys whose shards have slots by name. Older builds refuse requests on tables
    /// that have some.
    pub knows_slots: bool,
    /// Whether it knows that keys which are numbers have shards. Older builds refuse requests on
    /// tables of which some have.
    pub knows_numbers: bool,
    /// Whether it knows counters that get fewer shards. Older builds refuse requests on tables that
    /// have some.
    pub knows_narrowing: bool,
    /// Whether it knows that all keys of a table get other layouts. Older builds refuse requests on
    /// such a table.
    pub knows_table_changes: bool,
    /// Whether it knows keys that lie in ranges of their sort keys. An older one refuses their records,
    /// and with them their tables.
    pub knows_ranges: bool,
    /// Which tables its rules would shard. Older builds do not say it.
    pub ruled: Option<RuledTables>,
}

impl Gateway {
    /// Whether it answers nobody any more, by the wall clock: milliseconds since 1970. Its process
    /// has ended, or it has been silent for longer than its lease.
    pub fn is_dead(&self, now: u64) -> bool {
        let silent = Duration::from_millis(now.saturating_sub(self.heard));
        self.registration.ended || silent > self.registration.bounds.lease
    }

    fn item(&self) -> Json {
        let Registration { gateway, beat, epoch, unclean, bounds, ended: _ } = &self.registration;
        let mut item = json!({
            "pk": { "S": GATEWAYS }, "sk": { "S": gateway },
            "form": { "N": FORM.to_string() },
            "beat": { "N": beat.to_string() },
            "epoch": { "N": epoch.to_string() },
            "unclean": { "N": unclean.as_millis().to_string() },
            "bounds": { "S": json!(bounds).to_string() },
            "name": { "S": self.name },
            "build": { "S": self.build },
            "since": { "N": self.since.to_string() },
            "heard": { "N": self.heard.to_string() },
            "carries": { "BOOL": self.carries },
            "carries_values": { "BOOL": self.carries_values },
            "counters": { "BOOL": self.knows_counters },
            "steps": { "BOOL": self.knows_steps },
            "values": { "BOOL": self.knows_values },
            "long_keys": { "BOOL": self.knows_long_keys },
            "together": { "BOOL": self.knows_together },
            "slots": { "BOOL": self.knows_slots },
            "numbers": { "BOOL": self.knows_numbers },
            "narrowing": { "BOOL": self.knows_narrowing },
            "table_changes": { "BOOL": self.knows_table_changes },
            "ranges": { "BOOL": self.knows_ranges },
        });
        if let Some(process) = &self.process {
            item["process"] = json!({ "S": process });
        }
        if let Some(ruled) = &self.ruled {
            item["ruled"] = json!({ "S": json!(ruled).to_string() });
        }
        seal::sealed(item)
    }

    fn read(item: &Json) -> Result<Self, Error> {
        let text = |name: &str| item[name]["S"].as_str();
        let number = |name: &str| item[name]["N"].as_str().and_then(|text| text.parse::<u64>().ok());
        // What older builds do not say.
        let flag = |name: &str| item[name]["BOOL"].as_bool().unwrap_or(false);
        let gateway = text("sk").unwrap_or("?");
        let read = || {
            number("form").filter(|form| *form == FORM)?;
            // What no gateway can have is damaged: a change would not wait for it, or for ever.
            let bounds: Bounds = serde_json::from_str(text("bounds")?).ok()?;
            bounds.check().ok()?;
            Some(Gateway {
                registration: Registration {
                    gateway: gateway.to_owned(),
                    beat: counted(item, "beat")?,
                    // One that nobody has come to would acknowledge all changes to come.
                    epoch: counted(item, "epoch")?,
                    unclean: Duration::from_millis(number("unclean")?),
                    bounds,
                    ended: flag("ended"),
                },
                name: text("name")?.to_owned(),
                build: text("build")?.to_owned(),
                since: number("since")?,
                heard: number("heard").or_else(|| number("since"))?,
                process: text("process").map(str::to_owned),
                carries: flag("carries"),
                carries_values: flag("carries_values"),
                knows_counters: flag("counters"),
                knows_steps: flag("steps"),
                knows_values: flag("values"),
                knows_long_keys: flag("long_keys"),
                knows_together: flag("together"),
                knows_slots: flag("slots"),
                knows_numbers: flag("numbers"),
                knows_narrowing: flag("narrowing"),
                knows_table_changes: flag("table_changes"),
                knows_ranges: flag("ranges"),
                ruled: match text("ruled") {
                    Some(text) => Some(serde_json::from_str(text).ok()?),
                    None => None,
                },
            })
        };
        read().filter(|_| !seal::is_broken(item)).ok_or_else(|| {
            Error::internal(format!(
                "The registration of gateway {gateway} in the registry is damaged, or was written by another version of Heatsink, and no layout can change \
                 beside it. Stop that gateway, and take it off the list with `heatsink gateways --remove {gateway}`"
            ))
        })
    }
}

/// The action of a transaction that fails while layouts are frozen.
pub(crate) fn unless_frozen(registry: &str) -> Json {
    json!({ "ConditionCheck": {
        "TableName": registry, "Key": { "pk": { "S": HEAD }, "sk": { "S": HEAD } }, "ConditionExpression": "attribute_not_exists(#f)",
        "ExpressionAttributeNames": { "#f": "frozen" },
    } })
}

impl Registry {
    /// The head; `None` if there is no registry, or one without a head.
    pub(crate) async fn head(&self) -> Result<Option<StoredHead>, Error> {
        let key = json!({ "pk": { "S": HEAD }, "sk": { "S": HEAD } });
        let body = json!({ "TableName": self.name(), "Key": key, "ConsistentRead": true });
        match self.call(Operation::GetItem, body).await {
            Ok(answer) => {
                let head = answer.get("Item").map(StoredHead::read).transpose()?;
                if let Some(stored) = &head {
                    self.meet();
                    self.note_changes(&stored.head.changes);
                }
                Ok(head)
            }
            Err(error) if error.code == Code::ResourceNotFoundException => Ok(None),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Writes the head, if it still equals `from` (`None`: if there is none). `false` when it does
    /// not; the write may have succeeded all the same, if an answer was lost.
    pub(crate) async fn write_head(&self, from: Option<&StoredHead>, to: &StoredHead) -> Result<bool, Error> {
        let mut body = json!({ "TableName": self.name(), "Item": to.item(), "ConditionExpression": "attribute_not_exists(pk)" });
        if let Some(from) = from {
            let frozen =
                if from.frozen.is_some() { "attribute_exists(#f)" } else { "attribute_not_exists(#f)" };
            body["ConditionExpression"] = json!(format!("#e = :e AND #s = :s AND {frozen}"));
            body["ExpressionAttributeNames"] = json!({ "#e": "epoch", "#s": "settled", "#f": "frozen" });
            body["ExpressionAttributeValues"] =
                json!({ ":e": { "N": from.head.epoch.to_string() }, ":s": { "BOOL": from.settled } });
        }
        match self.call_patiently(Operation::PutItem, body).await {
            Ok(_) => {
                self.note_changes(&to.head.changes);
                Ok(true)
            }
            Err(error)
                if error.code == Code::ConditionalCheckFailedException
                    || error.outcome == Outcome::Unknown =>
            {
                Ok(false)
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Every registered gateway.
    pub(crate) async fn gateways(&self) -> Result<Vec<Gateway>, Error> {
        let (mut found, mut start) = (Vec::new(), Json::Null);
        loop {
            let mut body = json!({
                "TableName": self.name(), "ConsistentRead": true, "KeyConditionExpression": "pk = :g",
                "ExpressionAttributeValues": { ":g": { "S": GATEWAYS } },
            });
            if !start.is_null() {
                body["ExclusiveStartKey"] = start;
            }
            let page = self.call_patiently(Operation::Query, body).await;
            let mut page = page.map_err(|error| self.failed(error))?;
            for item in page["Items"].as_array().into_iter().flatten() {
                found.push(Gateway::read(item)?);
            }
            start = page["LastEvaluatedKey"].take();
            if start.is_null() {
                return Ok(found);
            }
        }
    }

    /// Registers a gateway.
    pub(crate) async fn register(&self, gateway: &Gateway) -> Result<(), Error> {
        let body = json!({ "TableName": self.name(), "Item": gateway.item() });
        self.call(Operation::PutItem, body).await.map_err(|error| self.failed(error))?;
        Ok(())
    }

    /// Writes the registration of a gateway of this build with another heartbeat, and other rules
    /// where it has some now. `false` when the gateway is not registered
    /// any more, or was taken for ended.
    pub(crate) async fn beat(&self, gateway: &Gateway) -> Result<bool, Error> {
        let item = gateway.item();
        let body = json!({
            "TableName": self.name(), "Key": { "pk": item["pk"], "sk": item["sk"] },
            "UpdateExpression": "SET beat = :b, epoch = :e, unclean = :u, heard = :h, ruled = :r, seal = :s",
            // A registration of before that has landed late is not this one, and its seal another.
            "ConditionExpression": "since = :n AND attribute_not_exists(ended)",
            "ExpressionAttributeValues": {
                ":n": item["since"],
                ":b": item["beat"], ":e": item["epoch"], ":u": item["unclean"], ":h": item["heard"], ":r": item["ruled"], ":s": seal::value(&item),
            },
        });
        match self.call(Operation::UpdateItem, body).await {
            Ok(_) => Ok(true),
            Err(error) if error.code == Code::ConditionalCheckFailedException => Ok(false),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Every registered gateway. Those whose process has ended, as `processes` can tell, are marked
    /// so, for everybody.
    pub(crate) async fn gateways_marked(&self, processes: &dyn Processes) -> Result<Vec<Gateway>, Error> {
        let mut list = self.gateways().await?;
        for one in &mut list {
            let Registration { gateway, beat, ended, .. } = &mut one.registration;
            if !*ended && one.process.as_ref().is_some_and(|mark| processes.has_ended(mark)) {
                *ended = self.mark_ended(gateway, *beat).await?;
            }
        }
        Ok(list)
    }

    /// Marks a gateway's process as ended. `false` if its registration does not have that heartbeat
    /// any more: one that was on its way has landed.
    async fn mark_ended(&self, gateway: &str, beat: u64) -> Result<bool, Error> {
        let body = json!({
            "TableName": self.name(), "Key": { "pk": { "S": GATEWAYS }, "sk": { "S": gateway } },
            "UpdateExpression": "SET ended = :t", "ConditionExpression": "beat = :b",
            "ExpressionAttributeValues": { ":t": { "BOOL": true }, ":b": { "N": beat.to_string() } },
        });
        match self.call(Operation::UpdateItem, body).await {
            Ok(_) => Ok(true),
            Err(error) if error.code == Code::ConditionalCheckFailedException => Ok(false),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Removes a registration, if it still has that heartbeat; without one, unconditionally.
    pub(crate) async fn remove_gateway(&self, gateway: &str, beat: Option<u64>) -> Result<(), Error> {
        let mut body =
            json!({ "TableName": self.name(), "Key": { "pk": { "S": GATEWAYS }, "sk": { "S": gateway } } });
        if let Some(beat) = beat {
            body["ConditionExpression"] = json!("beat = :b");
            body["ExpressionAttributeValues"] = json!({ ":b": { "N": beat.to_string() } });
        }
        match self.call(Operation::DeleteItem, body).await {
            Err(error) if error.code != Code::ConditionalCheckFailedException => Err(self.failed(error)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gateway() -> Gateway {
        let registration = Registration {
            gateway: "g".to_owned(),
            beat: 1,
            epoch: 1,
            unclean: Duration::ZERO,
            bounds: Bounds::DEFAULT,
            ended: false,
        };
        Gateway {
            registration,
            name: "name".to_owned(),
            build: "0".to_owned(),
            since: 1,
            heard: 1,
            process: None,
            carries: true,
            carries_values: true,
            knows_counters: true,
            knows_steps: true,
            knows_values: true,
            knows_long_keys: true,
            knows_together: true,
            knows_slots: true,
            knows_numbers: true,
            knows_narrowing: true,
            knows_table_changes: true,
            knows_ranges: true,
            ruled: Some(RuledTables::default()),
        }
    }

    #[test]
    fn who_is_silent_for_longer_than_its_lease_is_dead() {
        let lease = u64::try_from(Bounds::DEFAULT.lease.as_millis()).unwrap();
        let heard = Gateway { heard: 1_000, ..gateway() };
        assert!(!heard.is_dead(1_000 + lease) && heard.is_dead(1_001 + lease));
        assert!(!heard.is_dead(0), "its clock is ahead");
    }

    #[test]
    fn a_registration_that_no_gateway_has_is_damaged() {
        let item = gateway().item();
        assert_eq!(Gateway::read(&item).unwrap(), gateway());
        let zero = r#"{"secs":0,"nanos":0}"#;
        let most = r#"{"secs":18446744073709551615,"nanos":0}"#;
        let bounds = |lease: &str, straggler: &str| {
            format!(r#"{{"lease":{lease},"heartbeat":{lease},"poll":{lease},"straggler":{straggler}}}"#)
        };
        for text in [bounds(zero, zero), bounds(most, zero), bounds(most, most)] {
            let mut damaged = item.clone();
            damaged["bounds"]["S"] = json!(text);
            let error = Gateway::read(&seal::sealed(damaged)).unwrap_err().to_string();
            assert!(error.contains("is damaged"), "{text}: {error}");
        }
        for name in ["epoch", "beat"] {
            let mut damaged = item.clone();
            damaged[name]["N"] = json!(u64::MAX.to_string());
            assert!(Gateway::read(&seal::sealed(damaged)).is_err(), "{name}");
        }
    }
}
