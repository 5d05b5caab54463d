//! The keys of a table that changes while clients use it: moved by the gateways that are registered,
//! many at once, or here, until all lie by the table's new layouts. `adopt` and `leave` do that.
//!
//! Not here: in what order that is right (`heatsink_workers::LiveAdoption`).

use std::sync::Arc;

use heatsink_control::reshard_intent::Request;
use heatsink_workers::{Here, KeyWish, LiveAdoption, LiveNext, Progress};

use super::progress::Bar;
use super::reshard::{Access, How, Opened, Place, Wish, by_gateways, stopped};
use crate::exit::Exit;
use crate::output::Output;

/// Why keys cannot move while clients use a store that is itself a server of Heatsink.
pub(super) const NO_DIRECTORY: &str = "the store has no place for the keys that are entered meanwhile";

/// How the keys of a table move.
pub(super) struct TableMoves<'a> {
    pub opened: &'a Opened,
    pub table: &'a str,
    pub how: How,
    pub place: Place,
    pub output: Output,
}

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moved {
    pub keys: usize,
    pub items: u64,
    /// Whether all keys lie as they should, or only so many as were asked for.
    pub ended: bool,
}

impl TableMoves<'_> {
    /// Carries it out to its end.
    ///
    /// # Errors
    /// What stopped it; the same command goes on.
    pub async fn carry_out(&self, live: &mut LiveAdoption, bar: &Arc<Bar>) -> Result<Moved, Exit> {
        let (mut keys, mut items) = (0, 0);
        loop {
            match live.next(&**bar).await.map_err(stopped)? {
                LiveNext::Move(wishes) => {
                    keys += wishes.len();
                    items += self.move_keys(live, wishes, bar).await?;
                }
                LiveNext::UpTo => return Ok(Moved { keys, items, ended: false }),
                LiveNext::Done => return Ok(Moved { keys, items, ended: true }),
            }
        }
    }

    async fn move_keys(
        &self,
        live: &LiveAdoption,
        wishes: Vec<KeyWish>,
        bar: &Arc<Bar>,
    ) -> Result<u64, Exit> {
        let TableMoves { opened, table, how, place, output } = self;
        if *output == Output::Text {
            eprintln!("table {table}: {} keys move", wishes.len());
        }
        let context = opened.table(table, how.confirm_streams).await.map_err(stopped)?;
        // Why one cannot move is said before anything is asked for.
        for wish in &wishes {
            context.reshard(&wish.key, &wish.layout).map_err(stopped)?;
        }
        if !how.here && opened.is_carried(|one| one.carries).await? {
            let key_type = live.key_type();
            let wish = |one: KeyWish| Wish { index: None, key: one.key, key_type, layout: one.layout };
            let wishes: Vec<Wish> = wishes.into_iter().map(wish).collect();
            let reports = by_gateways(opened, table, &wishes, how, place).await?;
            return Ok(reports.iter().map(|one| one.moved).sum());
        }
        let (store, env) = (Arc::clone(&opened.store), Arc::clone(&opened.env));
        let alone = opened.access == Access::Alone;
        let here = Here::new(store, env, &opened.rules, "heatsink adopt", alone);
        let request = Request {
            layout: 1.into(),
            rate: how.rate,
            streams_confirmed: how.confirm_streams,
            by: std::env::var("USER").unwrap_or_default(),
            asked: opened.env.unix_millis(),
        };
        let progress: Arc<dyn Progress> = Arc::<Bar>::clone(bar);
        live.move_here(&here, wishes, &request, &progress).await.map_err(stopped)
    }
}
