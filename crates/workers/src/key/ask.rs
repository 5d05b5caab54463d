//! Asks for layouts of several keys of a table, for gateways to carry out together: writes an intent
//! for each that can have what is wanted, and says of each other why not.
//!
//! Not here: which layouts are wanted (`automatic`, the command line), who carries them out
//! (`runner`).

use heatsink_control::reshard_intent::{Request, ReshardIntent, WantedLayout};
use heatsink_dynamo::Error;

use crate::error::WorkerError;
use crate::key::table_context::TableContext;

/// Who asks, and how it is to be carried out: what a [`Request`] says beside the layout.
#[derive(Clone, Debug)]
pub struct AskedBy {
    /// Who, for people; at most some sentences.
    pub by: String,
    /// Capacity units a second that moving the items of one key may take of its old shards.
    pub rate: u32,
    /// Whether the table's stream may show each item that moves.
    pub streams_confirmed: bool,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct AskedTogether {
    /// The intents that were written, in the order asked.
    pub asked: Vec<ReshardIntent>,
    /// The keys that are asked for already, by an intent that has not ended: nothing was written
    /// for them.
    pub already: Vec<Vec<u8>>,
    /// The keys that cannot have the layout, each with the reason. The others do not wait for them.
    pub refused: Vec<(Vec<u8>, String)>,
}

impl TableContext {
    /// Asks for a layout of each key. What cannot be done is said now, and not by whoever carries
    /// it out. The registry has to be there.
    ///
    /// # Errors
    /// The store's: intents that were written before stay, and are found by the next call.
    pub async fn ask_together(
        &self,
        wanted: &[(Vec<u8>, WantedLayout)],
        by: &AskedBy,
    ) -> Result<AskedTogether, Error> {
        let (registry, mut told) = (self.registry(), AskedTogether::default());
        let first = registry.env().unix_millis();
        for (key, wanted) in wanted {
            let wanted = self.in_full(key, wanted);
            match self.reshard(key, &wanted) {
                Ok(_) => {}
                Err(WorkerError::Store(error)) => return Err(error),
                Err(refused) => {
                    told.refused.push((key.clone(), refused.to_string()));
                    continue;
                }
            }
            let request = Request {
                layout: wanted,
                rate: by.rate,
                streams_confirmed: by.streams_confirmed,
                by: by.by.clone(),
                // In the order of the list, also where a clock stands still.
                asked: first + u64::try_from(told.asked.len()).unwrap_or(0),
            };
            let table = (self.id(), self.table().name.as_str());
            match registry.ask(table, (&key[..], self.key_type()).into(), request).await? {
                Some(intent) => told.asked.push(intent),
                None => told.already.push(key.clone()),
            }
        }
        Ok(told)
    }
}
