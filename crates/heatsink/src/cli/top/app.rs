//! What `top` knows, and what its user chose: keys, answers and time in, rows out. It knows no
//! terminal.
//!
//! Not here: how it is drawn (`draw`).

use std::cmp::Ordering;
use std::time::Duration;

use heatsink_env::MonotonicInstant;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::history::History;
use super::told::{Gateways, Reshards, Told};
use crate::cli::hot_keys::{Heat, HotKey, KeyId};

/// The longest filter.
const LONGEST_FILTER: usize = 100;
/// Rows of a page up or down.
const PAGE: usize = 10;

/// The columns that rows are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    Key,
    Table,
    Units,
    Filled,
    Throttled,
    Shards,
}

impl Column {
    const ALL: [Column; 6] =
        [Column::Key, Column::Table, Column::Units, Column::Filled, Column::Throttled, Column::Shards];

    /// The column so many places further, around the ends.
    fn further(self, by: usize) -> Self {
        let at = Column::ALL.iter().position(|one| *one == self).unwrap_or_default();
        Column::ALL.get((at + by) % Column::ALL.len()).copied().unwrap_or(self)
    }

    /// Whether its smallest comes first: text from A, figures from the highest.
    const fn is_rising(self) -> bool {
        matches!(self, Column::Key | Column::Table)
    }

    fn order(self, a: &HotKey, b: &HotKey) -> Ordering {
        match self {
            Column::Key => a.key.cmp(&b.key),
            Column::Table => a.place.cmp(&b.place),
            Column::Units => b.units.total_cmp(&a.units),
            Column::Filled => b.filled().total_cmp(&a.filled()),
            Column::Throttled => b.throttled().total_cmp(&a.throttled()),
            Column::Shards => b.shards.cmp(&a.shards),
        }
    }
}

/// What a key press is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Keys,
    /// The filter is being written.
    Filter,
    Help,
}

/// All of it.
#[derive(Debug)]
pub struct App {
    pub server: String,
    pub mode: Mode,
    pub sort: Column,
    pub is_reversed: bool,
    pub filter: String,
    pub is_paused: bool,
    pub is_done: bool,
    pub history: History,
    pub reshards: Result<Reshards, String>,
    pub gateways: Result<Gateways, String>,
    /// Why the last question for the heat got no answer.
    pub problem: Option<String>,
    /// The last heat, with its keys in the order of worry.
    heat: Option<(Heat, Vec<HotKey>)>,
    begun: MonotonicInstant,
    now: MonotonicInstant,
    /// When the last heat came.
    told: Option<MonotonicInstant>,
    selected: Option<KeyId>,
}

impl App {
    /// Nothing is known yet.
    pub fn new(server: &str, now: MonotonicInstant) -> Self {
        App {
            server: server.to_owned(),
            mode: Mode::Keys,
            sort: Column::Filled,
            is_reversed: false,
            filter: String::new(),
            is_paused: false,
            is_done: false,
            history: History::default(),
            reshards: Ok(Reshards::default()),
            gateways: Ok(Gateways::default()),
            problem: None,
            heat: None,
            begun: now,
            now,
            told: None,
            selected: None,
        }
    }

    /// The time is this.
    pub fn tick(&mut self, now: MonotonicInstant) {
        self.now = now;
    }

    /// The server said something, or nothing. While it is paused only the latter is taken.
    pub fn tell(&mut self, told: Told) {
        match told {
            Told::Heat(Err(problem)) => self.problem = Some(problem),
            _ if self.is_paused => {}
            Told::Heat(Ok(heat)) => {
                let keys = heat.keys();
                self.history.add(heat.now_ms, &keys);
                self.heat = Some((heat, keys));
                self.told = Some(self.now);
                self.problem = None;
            }
            Told::Reshards(told) => self.reshards = told,
            Told::Gateways(told) => self.gateways = told,
        }
    }

    /// A key was pressed.
    pub fn press(&mut self, key: KeyEvent) {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            self.is_done |= matches!(key.code, KeyCode::Char('c' | 'd'));
            return;
        }
        match self.mode {
            Mode::Keys => self.command(key.code),
            Mode::Filter => self.write(key.code),
            Mode::Help => self.mode = Mode::Keys,
        }
    }

    fn command(&mut self, code: KeyCode) {
        match code {
            KeyCode::Char('q') => self.is_done = true,
            KeyCode::Char('/') => self.mode = Mode::Filter,
            KeyCode::Char('?' | 'h') => self.mode = Mode::Help,
            KeyCode::Char('p' | ' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('r') => self.is_reversed = !self.is_reversed,
            KeyCode::Char('s' | '>') | KeyCode::Right => self.sort_by(self.sort.further(1)),
            KeyCode::Char('S' | '<') | KeyCode::Left => {
                self.sort_by(self.sort.further(Column::ALL.len() - 1))
            }
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Up | KeyCode::Char('k') => self.select(|at, _| at.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.select(|at, _| at + 1),
            KeyCode::PageUp => self.select(|at, _| at.saturating_sub(PAGE)),
            KeyCode::PageDown => self.select(|at, _| at + PAGE),
            KeyCode::Home => self.select(|_, _| 0),
            KeyCode::End => self.select(|_, count| count),
            _ => {}
        }
    }

    fn write(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.mode = Mode::Keys,
            KeyCode::Esc => {
                self.filter.clear();
                self.mode = Mode::Keys;
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char(one) if !one.is_control() && self.filter.chars().count() < LONGEST_FILTER => {
                self.filter.push(one);
            }
            _ => {}
        }
    }

    fn sort_by(&mut self, column: Column) {
        self.sort = column;
        self.is_reversed = false;
    }

    /// Selects the row at the place that `to` gives for the place now and the number of rows.
    fn select(&mut self, to: impl FnOnce(usize, usize) -> usize) {
        let rows = self.rows();
        let at = to(self.selected_row(&rows), rows.len()).min(rows.len().saturating_sub(1));
        self.selected = rows.get(at).map(|key| key.id.clone());
    }

    /// The keys that fit the filter, in the chosen order.
    pub fn rows(&self) -> Vec<&HotKey> {
        let wanted = self.filter.to_lowercase();
        let fits = |key: &&HotKey| {
            wanted.is_empty()
                || key.key.to_lowercase().contains(&wanted)
                || key.place.to_lowercase().contains(&wanted)
        };
        let mut rows: Vec<&HotKey> = self.keys().iter().filter(fits).collect();
        // Equal rows stay in the order of worry.
        rows.sort_by(|a, b| match self.is_reversed {
            false => self.sort.order(a, b),
            true => self.sort.order(b, a),
        });
        rows
    }

    /// Which of these rows is selected: the same key as before, wherever it went; else the first.
    pub fn selected_row(&self, rows: &[&HotKey]) -> usize {
        rows.iter().position(|key| Some(&key.id) == self.selected.as_ref()).unwrap_or_default()
    }

    /// The last heat.
    pub fn heat(&self) -> Option<&Heat> {
        self.heat.as_ref().map(|(heat, _)| heat)
    }

    /// How many keys there are, those that the filter leaves out included.
    pub fn keys(&self) -> &[HotKey] {
        self.heat.as_ref().map(|(_, keys)| keys.as_slice()).unwrap_or_default()
    }

    /// How old the heat is; how long there has been none, before the first.
    pub fn age(&self) -> Duration {
        self.now.since(self.told.unwrap_or(self.begun))
    }

    /// Whether the sorted column shows its smallest first.
    pub fn is_rising(&self) -> bool {
        self.sort.is_rising() != self.is_reversed
    }
}

#[cfg(test)]
pub mod tests;
