//! What was decided about hot keys, and which keys burn and are left alone, with the reason: for
//! the log, for metrics, and for whoever looks at a gateway.
//!
//! Not here: deciding (`heatsink_heat::policy`).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use heatsink_control::Mode;
use heatsink_env::{Env, MonotonicInstant};
use heatsink_heat::ClientShare;
use metrics::{counter, gauge};
use serde_json::{Value as Json, json};

use crate::events::Events;

/// The most decisions that are kept.
const DECISIONS: usize = 100;
/// The most keys that are left alone and shown.
const SHOWN: usize = 1_000;
/// The most of them that one look logs.
const LOGGED: usize = 20;
/// A key that is left alone for the same reason all the time is logged again after so long.
const AGAIN: Duration = Duration::from_secs(600);

/// A key of a table, or a value of an index, for people.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Shown {
    pub table: String,
    pub index: Option<String>,
    pub key: String,
}

/// A key that burns and that nothing is done for.
#[derive(Clone, Debug)]
pub(super) struct Alone {
    pub of: Shown,
    /// The reason's name: a label of metrics.
    pub reason: &'static str,
    /// The same in words.
    pub sentence: String,
    /// Who makes the heat, where clients are known.
    pub clients: Vec<ClientShare>,
    pub since: MonotonicInstant,
}

/// What became of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Its intent is on record.
    Asked,
    /// An intent for the key was on record before.
    AskedAlready,
    /// It cannot be carried out.
    Refused,
    /// It was logged, and nothing else is to be done.
    Proposed,
}

impl Outcome {
    const fn name(self) -> &'static str {
        match self {
            Outcome::Asked => "asked",
            Outcome::AskedAlready => "asked-already",
            Outcome::Refused => "refused",
            Outcome::Proposed => "proposed",
        }
    }
}

/// The decisions of this gateway, the newest first, and the keys that it leaves alone. Of a gateway
/// that does not decide: what the deciding one tells.
#[derive(Debug, Default)]
pub struct Acts {
    state: Mutex<State>,
    events: Events,
}

#[derive(Debug, Default)]
struct State {
    mode: Option<Mode>,
    decisions: VecDeque<Json>,
    alone: Vec<Json>,
    /// When each was last logged, by its key and reason.
    logged: BTreeMap<(Shown, &'static str), MonotonicInstant>,
    /// The reasons that the metrics name.
    gauged: BTreeSet<&'static str>,
    /// What the deciding gateway tells, where that is another one.
    of_another: Option<Json>,
}

impl Acts {
    /// The same for whoever is told of each as it happens.
    pub fn telling(events: Events) -> Self {
        Acts { events, ..Acts::default() }
    }

    /// Where what happens is told.
    pub(crate) fn events(&self) -> &Events {
        &self.events
    }

    /// What `GET /_heatsink/heat` shows as `automatic`. `mode` is the strongest of the sections:
    /// `off` without any.
    pub fn shown(&self) -> Json {
        let state = self.state();
        let own = json!({ "decisions": state.decisions, "left_alone": state.alone });
        let mut shown = state.of_another.clone().unwrap_or(own);
        shown["mode"] = state.mode.map_or_else(|| json!("off"), |mode| json!(mode));
        shown["deciding"] = json!(state.of_another.is_none());
        shown
    }

    /// The same for the other gateways, which show it as theirs.
    pub(super) fn told(&self) -> Json {
        let state = self.state();
        let alone = state.alone.get(..DECISIONS).unwrap_or(&state.alone);
        json!({ "decisions": state.decisions, "left_alone": alone })
    }

    /// The strongest mode of the sections, if there are any.
    pub(super) fn begin(&self, mode: Option<Mode>) {
        self.state().mode = mode;
    }

    /// Another gateway decides, and tells this.
    pub(super) fn another_decides(&self, told: Option<Json>) {
        let mut state = self.state();
        state.leave_alone(&[]);
        state.of_another = Some(told.unwrap_or_else(|| json!({ "decisions": [], "left_alone": [] })));
    }

    /// A decision: which key, what it gets, why, and what became of it.
    pub(super) fn decided(
        &self,
        env: &dyn Env,
        of: &Shown,
        what: &'static str,
        told: &str,
        outcome: Outcome,
    ) {
        counter!("heatsink_automatic_decisions_total", "what" => what, "outcome" => outcome.name())
            .increment(1);
        let mut decision = named(of);
        for (name, value) in [
            ("at_ms", json!(env.unix_millis())),
            ("what", json!(what)),
            ("sentence", json!(told)),
            ("outcome", json!(outcome.name())),
        ] {
            decision[name] = value;
        }
        self.events.tell("decision", decision.clone());
        let mut state = self.state();
        state.decisions.push_front(decision);
        state.decisions.truncate(DECISIONS);
    }

    /// The keys that burn and are left alone at this look, of a gateway that decides. Each is
    /// logged once, and again while it lasts.
    pub(super) fn leaves_alone(&self, env: &dyn Env, all: &[Alone]) {
        let (now, unix) = (env.now(), env.unix_millis());
        let mut state = self.state();
        state.of_another = None;
        state.leave_alone(all);
        let since = |one: &Alone| {
            unix.saturating_sub(u64::try_from(now.since(one.since).as_millis()).unwrap_or(u64::MAX))
        };
        state.alone = all.iter().take(SHOWN).map(|one| one.shown(since(one))).collect();
        state.logged.retain(|_, at| now.since(*at) < AGAIN);
        let is_new = |one: &&Alone| !state.logged.contains_key(&one.told());
        let new: Vec<&Alone> = all.iter().filter(is_new).collect();
        for one in new.iter().take(LOGGED) {
            let (Shown { table, index, key }, reason) = (&one.of, one.reason);
            tracing::warn!(table, index, key, reason, "a hot key is left alone: {}", one.sentence);
        }
        if let Some(more) = new.len().checked_sub(LOGGED).filter(|more| *more > 0) {
            tracing::warn!(
                "{more} more hot keys are left alone; `heatsink top --once --output json` lists them"
            );
        }
        for one in &new {
            self.events.tell("left_alone", one.shown(since(one)));
        }
        state.logged.extend(new.into_iter().map(|one| (one.told(), now)));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Alone {
    /// What one line of the log is about.
    fn told(&self) -> (Shown, &'static str) {
        (self.of.clone(), self.reason)
    }

    fn shown(&self, since_ms: u64) -> Json {
        let mut shown = named(&self.of);
        shown["reason"] = json!(self.reason);
        shown["sentence"] = json!(self.sentence);
        shown["since_ms"] = json!(since_ms);
        if !self.clients.is_empty() {
            shown["clients"] = json!(self.clients);
        }
        shown
    }
}

impl State {
    /// Sets the gauges to so many keys by reason.
    fn leave_alone(&mut self, all: &[Alone]) {
        let mut by_reason: BTreeMap<&'static str, u32> = BTreeMap::new();
        for one in all {
            *by_reason.entry(one.reason).or_default() += 1;
        }
        self.gauged.extend(by_reason.keys());
        for reason in &self.gauged {
            let keys = by_reason.get(reason).copied().unwrap_or(0);
            gauge!("heatsink_automatic_left_alone", "reason" => *reason).set(f64::from(keys));
        }
    }
}

/// A key as a member of what is shown; `index` only of a value of one.
fn named(of: &Shown) -> Json {
    let mut named = json!({ "table": of.table, "key": of.key });
    if let Some(index) = &of.index {
        named["index"] = json!(index);
    }
    named
}

#[cfg(test)]
mod tests {
    use heatsink_env::ManualEnv;

    use super::*;

    fn alone(key: &str, reason: &'static str, since: MonotonicInstant) -> Alone {
        let of = Shown { table: "T".to_owned(), index: None, key: key.to_owned() };
        Alone { of, reason, sentence: format!("{key} is left alone"), clients: Vec::new(), since }
    }

    #[test]
    fn a_key_is_shown_while_it_is_left_alone_and_decisions_newest_first() {
        let env = ManualEnv::seeded(1);
        let acts = Acts::default();
        acts.begin(Some(Mode::Auto));
        let since = env.now();
        env.advance(Duration::from_secs(3));
        let team = ClientShare { client: "team1".into(), share_percent: 83.0 };
        let by_team = Alone { clients: vec![team], ..alone("a", "stream", since) };
        acts.leaves_alone(&env, &[by_team, alone("b", "budget", env.now())]);
        let shown = acts.shown();
        assert_eq!((&shown["mode"], &shown["deciding"]), (&json!("auto"), &json!(true)));
        let first = &shown["left_alone"][0];
        assert_eq!(first["since_ms"].as_u64(), Some(env.unix_millis() - 3_000));
        assert_eq!((&first["key"], &first["reason"]), (&json!("a"), &json!("stream")));
        assert_eq!(first["clients"], json!([{ "client": "team1", "share_percent": 83.0 }]));
        assert_eq!(shown["left_alone"][1].get("clients"), None, "where clients are not known");
        let of = Shown { table: "T".to_owned(), index: Some("by-x".to_owned()), key: "open".to_owned() };
        acts.decided(&env, &of, "index-value", "why", Outcome::Asked);
        acts.decided(&env, &of, "index-value", "why", Outcome::Refused);
        acts.leaves_alone(&env, &[]);
        let shown = acts.shown();
        assert_eq!(shown["left_alone"], json!([]));
        assert_eq!(shown["decisions"][0]["outcome"], "refused");
        assert_eq!(shown["decisions"][1]["index"], "by-x");
    }

    #[test]
    fn what_another_gateway_decides_is_shown_as_its_own_until_this_one_decides() {
        let env = ManualEnv::seeded(1);
        let (acts, other) = (Acts::default(), Acts::default());
        other.leaves_alone(&env, &[alone("a", "stream", env.now())]);
        acts.another_decides(Some(other.told()));
        let shown = acts.shown();
        assert_eq!((&shown["left_alone"][0]["key"], &shown["deciding"]), (&json!("a"), &json!(false)));
        acts.leaves_alone(&env, &[]);
        assert_eq!(acts.shown()["left_alone"], json!([]));
    }
}
