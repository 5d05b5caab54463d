//! Warm throughput: what a table or index is ready for at once. Requests ask for more of it, and
//! descriptions tell it.
//!
//! The engine does not know it. So it is taken out of requests and put into descriptions here. The
//! sentences are DynamoDB's (AWS, "Warm throughput"; recorded by aws-controllers-k8s, 2026-10-08).
//! A raise takes effect at once, so its status is always `ACTIVE`.
//!
//! Not here: the partitions that it brings (`heatsink_physics::Tables::warm_up`).

use bytes::Bytes;
use heatsink_dynamo::{Code, Error, Operation, json};
use heatsink_physics::{Mode, ResourceSnapshot};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::catalogue::TableInfo;
use super::plan;

const MEMBER: &str = "WarmThroughput";
/// The lists of indexes that a request may have.
const INDEXES: &str = "GlobalSecondaryIndexes";
const UPDATES: &str = "GlobalSecondaryIndexUpdates";

/// What is asked for one table or index, units per second; what is left out stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
struct Units {
    #[serde(rename = "ReadUnitsPerSecond")]
    read: Option<i64>,
    #[serde(rename = "WriteUnitsPerSecond")]
    write: Option<i64>,
}

/// What is asked for a table or one of its indexes.
struct Asked {
    index: Option<String>,
    units: Units,
    /// Its mode, where the request makes it.
    made: Option<Option<Mode>>,
}

/// The warm throughput that a request asks for.
pub(super) struct Warming(Vec<Asked>);

impl Warming {
    /// Of a request that asks for none.
    pub(super) fn none() -> Self {
        Warming(Vec::new())
    }

    /// Reads a `CreateTable` or `UpdateTable`; nothing of one that cannot be parsed, which the
    /// engine refuses.
    ///
    /// # Errors
    /// `ValidationException` where an index is named and no number.
    pub(super) fn read(operation: Operation, body: &[u8], known: Option<&TableInfo>) -> Result<Self, Error> {
        let Ok(request) = serde_json::from_slice::<Request>(body) else { return Ok(Warming::none()) };
        let mut modes = plan::plans(operation, body, known).into_iter().filter(|plan| plan.on.is_none());
        let mut made = || Some(modes.next().and_then(|plan| plan.mode));
        let mut all = Vec::new();
        let table = match operation {
            Operation::CreateTable if known.is_none() => made(),
            _ => None,
        };
        all.extend(request.warm.map(|units| Asked { index: None, units, made: table }));
        for index in request.indexes.into_iter().flatten() {
            all.extend(index.asked(made())?);
        }
        for update in request.updates.into_iter().flatten() {
            if let Some(index) = update.create {
                all.extend(index.asked(made())?);
            }
            if let Some(index) = update.update {
                all.extend(index.asked(None)?);
            }
        }
        Ok(Warming(all))
    }

    /// Whether it may be: no less than what there is, and within the quota of a table.
    ///
    /// # Errors
    /// `ValidationException`, `LimitExceededException`; `ResourceNotFoundException` for an index
    /// that is not there.
    pub(super) fn permit(&self, resources: &[ResourceSnapshot], quota: u64) -> Result<(), Error> {
        for Asked { index, units, made } in &self.0 {
            let of = index.as_ref().map_or_else(|| "table".to_owned(), |name| format!("index {name}"));
            let now = resources.iter().find(|one| one.index.as_deref() == index.as_deref());
            let (least, why) = match (made, now) {
                (Some(Some(mode)), _) => (mode.start(), Floor::of(*mode)),
                (None, Some(now)) => ([now.warm_reads, now.warm_writes], Floor::Current),
                (None, None) if index.is_some() && !resources.is_empty() => {
                    return Err(Error::new(Code::ResourceNotFoundException, "Requested resource not found"));
                }
                // The engine refuses a table that is not there, or is made without capacity.
                _ => continue,
            };
            let sides = [("Read", units.read, least[0]), ("Write", units.write, least[1])];
            for (side, asked, least) in sides {
                let Some(asked) = asked else { continue };
                let asked = u64::try_from(asked).unwrap_or(0);
                if asked < least {
                    return Err(Error::validation(format!(
                        "One or more parameter values were invalid: Requested {side}UnitsPerSecond for WarmThroughput for {of} is \
                         lower than {}",
                        why.in_words(side)
                    )));
                }
                if asked > quota {
                    return Err(Error::new(
                        Code::LimitExceededException,
                        format!(
                            "Subscriber limit exceeded: Requested {side}UnitsPerSecond for WarmThroughput for {of} exceeds \
                             TableMax{side}CapacityUnits of the account"
                        ),
                    ));
                }
            }
        }
        Ok(())
    }

    /// What is asked for: the index, reads and writes; 0 for what stays.
    pub(super) fn each(&self) -> impl Iterator<Item = (Option<&str>, [u64; 2])> {
        let units = |asked: Option<i64>| asked.and_then(|units| u64::try_from(units).ok()).unwrap_or(0);
        self.0.iter().map(move |one| (one.index.as_deref(), [units(one.units.read), units(one.units.write)]))
    }

    /// The request as the engine understands it. `None` if nothing is left for it.
    ///
    /// # Errors
    /// `SerializationException` if the body is not a JSON object.
    pub(super) fn without(&self, operation: Operation, body: &Bytes) -> Result<Option<Bytes>, Error> {
        if self.0.is_empty() {
            return Ok(Some(body.clone()));
        }
        let mut request: Map<String, Value> =
            serde_json::from_slice(body).map_err(|_| Error::bare(Code::SerializationException))?;
        request.remove(MEMBER);
        for index in request.get_mut(INDEXES).and_then(Value::as_array_mut).into_iter().flatten() {
            forget(index);
        }
        if let Some(updates) = request.get_mut(UPDATES).and_then(Value::as_array_mut) {
            for kind in ["Create", "Update"] {
                updates.iter_mut().filter_map(|update| update.get_mut(kind)).for_each(forget);
            }
            // An update that asked for nothing else: only the name is left.
            updates.retain(|update| update["Update"].as_object().is_none_or(|index| index.len() > 1));
            if updates.is_empty() {
                request.remove(UPDATES);
            }
        }
        let left = operation != Operation::UpdateTable || request.len() > 1;
        Ok(left.then(|| Bytes::from(Value::Object(request).to_string())))
    }
}

fn forget(index: &mut Value) {
    if let Some(index) = index.as_object_mut() {
        index.remove(MEMBER);
    }
}

/// What a request may not go below.
#[derive(Clone, Copy)]
enum Floor {
    OnDemand,
    Provisioned,
    Current,
}

impl Floor {
    fn of(mode: Mode) -> Self {
        if mode.provisioned() { Floor::Provisioned } else { Floor::OnDemand }
    }

    fn in_words(self, side: &str) -> String {
        match self {
            Floor::OnDemand => "initial throughput for OnDemand. See: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html#on-demand-capacity-mode-initial".to_owned(),
            Floor::Provisioned => format!("{side}CapacityUnits of ProvisionedThroughput"),
            Floor::Current => "current WarmThroughput, decreasing WarmThroughput is not supported".to_owned(),
        }
    }
}

/// An answer whose description of the table, if it has one, tells the warm throughput of the table
/// and of its global indexes.
///
/// # Errors
/// `InternalServerError` if the answer is not the JSON of a description.
pub(super) fn told(answer: &Bytes, resources: &[ResourceSnapshot]) -> Result<Bytes, Error> {
    for member in ["Table", "TableDescription"] {
        let Some(description) = json::member(answer, member).map_err(|_| broken())? else { continue };
        let warm = |index: Option<&str>| {
            let of = resources.iter().find(|one| one.index.as_deref() == index)?;
            let units = json!({
                "ReadUnitsPerSecond": of.warm_reads, "WriteUnitsPerSecond": of.warm_writes, "Status": "ACTIVE",
            });
            Some(units.to_string().into_bytes())
        };
        let mut changes = Vec::new();
        let own = warm(None);
        changes.extend(own.as_deref().map(|own| (MEMBER, Some(own))));
        let indexes = json::member(description, INDEXES).map_err(|_| broken())?;
        let indexes = indexes.filter(|indexes| *indexes != b"null").map(|indexes| {
            let with = |index: &[u8]| {
                let name = json::member(index, "IndexName").ok()??;
                let warm = warm(Some(&*json::string(name).ok()?))?;
                json::splice_members(index, &[(MEMBER, Some(&warm))]).ok()
            };
            let all = json::elements(indexes).map_err(|_| broken())?;
            let all: Vec<Vec<u8>> =
                all.into_iter().map(|one| with(one).unwrap_or_else(|| one.to_vec())).collect();
            Ok::<_, Error>([&b"["[..], &all.join(&b','), b"]"].concat())
        });
        let indexes = indexes.transpose()?;
        changes.extend(indexes.as_deref().map(|indexes| (INDEXES, Some(indexes))));
        let description = json::splice_members(description, &changes).map_err(|_| broken())?;
        let answer = json::splice_members(answer, &[(member, Some(&description))]);
        return answer.map(Bytes::from).map_err(|_| broken());
    }
    Ok(answer.clone())
}

fn broken() -> Error {
    Error::internal("The store's description of its table cannot be read")
}

#[derive(Deserialize)]
struct Request {
    #[serde(rename = "WarmThroughput")]
    warm: Option<Units>,
    #[serde(rename = "GlobalSecondaryIndexes")]
    indexes: Option<Vec<Index>>,
    #[serde(rename = "GlobalSecondaryIndexUpdates")]
    updates: Option<Vec<Update>>,
}

#[derive(Deserialize)]
struct Update {
    #[serde(rename = "Create")]
    create: Option<Index>,
    #[serde(rename = "Update")]
    update: Option<Index>,
}

#[derive(Deserialize)]
struct Index {
    #[serde(rename = "IndexName", default)]
    name: String,
    #[serde(rename = "WarmThroughput")]
    warm: Option<Units>,
}

impl Index {
    fn asked(self, made: Option<Option<Mode>>) -> Result<Option<Asked>, Error> {
        match self.warm {
            Some(Units { read: None, write: None }) => Err(Error::validation(format!(
                "One or more parameter values were invalid: WarmThroughput must have at least one of ReadUnitsPerSecond or \
                 WriteUnitsPerSecond specified for index: {}",
                self.name
            ))),
            Some(units) => Ok(Some(Asked { index: Some(self.name), units, made })),
            None => Ok(None),
        }
    }
}
