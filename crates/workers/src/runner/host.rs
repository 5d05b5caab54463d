//! In what process intents are carried out: in a gateway, or in a command beside gateways or
//! without any.
//!
//! Not here: what is carried out (`work`), whose an intent is (`held`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use heatsink_control::reshard_intent::Carrier;
use heatsink_control::{Announcer, Changer, Control, KeyWrites, Rules};

use crate::key::reshard::Reshard;
use crate::value::ValueReshard;

/// A process that carries intents out.
#[derive(Clone)]
pub(super) enum Host {
    Gateway(Control),
    Command {
        rules: Arc<Rules>,
        /// Its name for people.
        name: String,
        /// No other process uses the store.
        alone: bool,
        /// Who writes and reads the records of each table's keys.
        writes: Arc<Mutex<HashMap<String, Arc<KeyWrites>>>>,
        /// What makes their changes known.
        changer: Box<Changer>,
    },
}

impl Host {
    pub fn rules(&self) -> Arc<Rules> {
        match self {
            Host::Gateway(control) => control.rules(),
            Host::Command { rules, .. } => Arc::clone(rules),
        }
    }

    /// It as the carrier of an intent, in that run.
    pub fn carrier(&self, run: u64) -> Carrier {
        let (gateway, name) = match self {
            Host::Gateway(control) => control.identity(),
            // It is registered nowhere.
            Host::Command { name, .. } => ("", name.as_str()),
        };
        Carrier { run, gateway: gateway.to_owned(), name: name.to_owned() }
    }

    /// Whether it may send requests now. A command has no lease: the claim under which it writes
    /// items ends when another process takes over.
    pub fn may_send(&self) -> bool {
        match self {
            Host::Gateway(control) => control.has_lease(),
            Host::Command { .. } => true,
        }
    }

    /// Whether a command knows that no other process uses the store.
    pub fn is_alone(&self) -> bool {
        matches!(self, Host::Command { alone: true, .. })
    }

    /// A command of that name for people.
    pub fn command(rules: &Rules, name: &str, alone: bool, changer: Changer) -> Self {
        let (rules, name) = (Arc::new(rules.clone()), name.to_owned());
        Host::Command { rules, name, alone, writes: Arc::default(), changer: Box::new(changer) }
    }

    /// Who writes and reads the records of a table's keys in this process.
    pub fn key_writes(&self, table_id: &str) -> Arc<KeyWrites> {
        match self {
            Host::Gateway(control) => control.key_writes(table_id),
            Host::Command { writes, .. } => {
                let mut known = writes.lock().unwrap_or_else(PoisonError::into_inner);
                Arc::clone(known.entry(table_id.to_owned()).or_default())
            }
        }
    }

    /// A reshard, carried out within this process.
    pub fn key(&self, reshard: Reshard) -> Reshard {
        match self {
            Host::Gateway(control) => reshard.within(control),
            Host::Command { changer, .. } => {
                let writes = self.key_writes(&reshard.described.schema.id);
                let announcer = Announcer::Beside(changer.clone());
                Reshard { writes, announcer, ..reshard }
            }
        }
    }

    /// The same of a value of an index.
    pub fn value(&self, reshard: ValueReshard) -> ValueReshard {
        match self {
            Host::Gateway(control) => reshard.within(control),
            Host::Command { .. } => reshard,
        }
    }
}
