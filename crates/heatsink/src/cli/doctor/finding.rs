//! What was looked at, how it is, and what to do about it.

use serde::Serialize;

/// How a thing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Ok,
    /// It cannot be seen from here.
    NotSeen,
    Warning,
    Fault,
}

impl State {
    const fn word(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::NotSeen => "not seen",
            State::Warning => "warning",
            State::Fault => "FAULT",
        }
    }
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
pub struct Finding {
    /// What was looked at.
    check: &'static str,
    pub state: State,
    said: String,
    /// What to do about it.
    #[serde(rename = "do")]
    remedy: Option<String>,
}

/// All that was found, in the order in which it was looked at.
#[derive(Debug, Default)]
pub struct Findings(pub Vec<Finding>);

impl Findings {
    pub fn ok(&mut self, check: &'static str, said: impl Into<String>) {
        self.add(check, State::Ok, said.into(), None);
    }

    pub fn not_seen(&mut self, check: &'static str, said: impl Into<String>, remedy: &str) {
        self.add(check, State::NotSeen, said.into(), Some(remedy.to_owned()));
    }

    pub fn warning(&mut self, check: &'static str, said: impl Into<String>, remedy: impl Into<String>) {
        self.add(check, State::Warning, said.into(), Some(remedy.into()));
    }

    pub fn fault(&mut self, check: &'static str, said: impl Into<String>, remedy: impl Into<String>) {
        self.add(check, State::Fault, said.into(), Some(remedy.into()));
    }

    fn add(&mut self, check: &'static str, state: State, said: String, remedy: Option<String>) {
        self.0.push(Finding { check, state, said, remedy });
    }

    /// How many are in this state.
    pub fn count(&self, state: State) -> usize {
        self.0.iter().filter(|finding| finding.state == state).count()
    }

    /// A line each, and another for what to do.
    pub fn words(&self) -> String {
        let line = |finding: &Finding| {
            let Finding { check, state, said, remedy } = finding;
            let remedy = remedy.iter().map(|remedy| format!("{:10}do: {remedy}\n", "")).collect::<String>();
            format!("{:8}  {check}: {said}\n{remedy}", state.word())
        };
        self.0.iter().map(line).collect()
    }
}
