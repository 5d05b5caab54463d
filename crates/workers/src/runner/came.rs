//! What comes of an intent after its work has ended: it has ended, too, or it is done later.
//!
//! Not here: the work (`work`), how that is written (`held`).

use heatsink_control::reshard_intent::{EndedAs, ReshardIntent};
use heatsink_dynamo::{Code, Error};
use heatsink_layout::{in_slots, shards};

use crate::error::WorkerError;
use crate::key::report::ReshardReport;

/// What came of the work.
pub(super) enum Came {
    Ended(EndedAs, String),
    /// It goes on later, here or elsewhere. With why not now, if there is a reason.
    Later(Option<String>),
}

impl Came {
    /// What comes of an intent whose work ended so. `hindered`: what hindered it before; `moving`:
    /// its key may be on its way.
    pub fn of(
        intent: &ReshardIntent,
        worked: &Result<Option<ReshardReport>, WorkerError>,
        hindered: Option<&String>,
        moving: bool,
    ) -> Came {
        let later = |text: &str| Came::Later(Some(text.to_owned()));
        match worked {
            Ok(None) => Came::Later(None),
            Ok(Some(report)) => Came::Ended(EndedAs::Moved, moved(intent, report)),
            Err(WorkerError::Cancelled(text)) => Came::Ended(EndedAs::Cancelled, text.clone()),
            Err(WorkerError::Stopped(text)) => Came::Ended(EndedAs::Stopped, text.clone()),
            Err(WorkerError::Busy(text)) => later(text),
            // Nobody is left alone on the way: in some phases writes wait.
            Err(WorkerError::Store(error)) if moving => later(&again(error)),
            Err(error) if moving => later(&error.to_string()),
            // The same again is no outage: items of the registry cannot be read.
            Err(WorkerError::Store(error))
                if error.retryable()
                    && (error.code != Code::InternalServerError || hindered != Some(&again(error))) =>
            {
                later(&again(error))
            }
            Err(error) => Came::Ended(EndedAs::Stopped, error.to_string()),
        }
    }
}

fn moved(intent: &ReshardIntent, report: &ReshardReport) -> String {
    // By carriers before this one, too.
    let moved = intent.progress.moved + report.moved;
    let to = format!("{}{}", shards(report.to), in_slots(&report.slots));
    match (&intent.index, &report.step) {
        (None, Some(step)) => format!("the key has {to} {step}"),
        (None, None) => format!("the key has {to}, and {moved} items were moved"),
        (Some(_), _) => format!("the value has {to}, and {moved} items were rewritten"),
    }
}

fn again(error: &Error) -> String {
    format!("The store failed: {error}")
}
