//! What a search is over: who takes part, what clients ask for, how the world begins, and which
//! rule is left out.

use heatsink_reshard::{Access, Outcome, Rule, Rules};

use crate::monitor::{CALLS, Item};

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Replaces the item.
    Put,
    /// Replaces it by one that expires.
    PutExpiring,
    /// Puts one that expires if there is none.
    CreateExpiring,
    /// Adds to its number if it exists, answers the new one, and has it expire.
    Expire,
    /// Puts it if there is none.
    Create,
    /// Removes it.
    Delete,
    /// Adds to its number if it exists, and answers the new one.
    Update,
    /// Adds to its number, and makes it if need be.
    Add,
    /// Adds to its number, makes it if need be, and answers nothing of it, as counters do.
    Count,
    /// Reads it.
    Get,
    /// Reads all items.
    Query,
    /// Writes an item of another key, whose name is that of the first item's new place.
    PutForeign,
    /// Turns time to live on.
    TurnOn,
}

/// A call of a script, and the item that it is for.
pub type Call = (Op, usize);
/// The calls of each gateway.
pub type Script = Vec<Vec<Call>>;

/// One configuration: a set of scripts, each searched from its own beginning.
#[derive(Clone, Debug)]
pub struct Config {
    pub scripts: Vec<Script>,
    /// What the items may hold at the beginning: one beginning for each.
    pub stored: Vec<[Option<Item>; 2]>,
    /// What lies at their new places.
    pub orphans: [Option<Item>; 2],
    /// How many items there are.
    pub items: usize,
    /// How many moves, one after the other, to and fro.
    pub changes: u8,
    /// How many calls of clients, and of workers, may be late.
    pub late: usize,
    pub crashes: u8,
    /// How many movers there are at a time.
    pub movers: usize,
    /// How many coordinators die, and whether they are only taken for dead.
    pub deaths: u8,
    pub undead: bool,
    /// How many moves may be cancelled.
    pub cancels: u8,
    /// Items expire at any time.
    pub expiry: bool,
    /// But only once time to live is turned on.
    pub turned_on: bool,
    /// Transactions of pulls may be sent again while the first attempt is late.
    pub retries: bool,
    /// Items with this number do not fit under their new key.
    pub too_large: Option<u16>,
    /// Coordinators and workers may stop between any two of their steps, not only where somebody
    /// else can tell.
    pub fine: bool,
    /// Gateways acknowledge while they have a request under way whose answer they deliver: a rule
    /// of the fence that is left out.
    pub acknowledges_early: bool,
    pub rules: Rules,
    pub left_out: Vec<Rule>,
    /// How the last move ends, in some order.
    pub ends: Outcome,
}

/// What an item holds at the beginning.
pub const FIRST: Option<Item> = Some(Item { number: 7, expires: false });

impl Config {
    /// One item that there is or is not, one move, one mover that may die once, up to two late
    /// calls.
    pub fn new(scripts: Vec<Script>) -> Self {
        assert!(scripts.iter().all(|script| script.iter().map(Vec::len).sum::<usize>() <= CALLS));
        Config {
            scripts,
            stored: vec![[None, None], [FIRST, None]],
            orphans: [None, None],
            items: 1,
            changes: 1,
            late: 2,
            crashes: 1,
            movers: 1,
            deaths: 0,
            undead: false,
            cancels: 0,
            expiry: false,
            turned_on: false,
            retries: false,
            too_large: None,
            fine: false,
            acknowledges_early: false,
            rules: Rules::ALL,
            left_out: Vec::new(),
            ends: Outcome::Moved,
        }
    }

    pub fn without(mut self, rule: Rule) -> Self {
        self.rules = self.rules.without(rule);
        self.left_out.push(rule);
        self
    }

    /// The number of a call among all of its script.
    pub fn number(&self, script: usize, gateway: usize, call: usize) -> usize {
        self.scripts[script].iter().take(gateway).map(Vec::len).sum::<usize>() + call
    }
}

impl Op {
    /// What a gateway takes it for that knows of time to live, or of none.
    pub fn access(self, expires: bool) -> Access {
        match self {
            Op::Put | Op::PutForeign | Op::TurnOn => Access::BlindPut { leaves_ttl: false },
            Op::PutExpiring => Access::BlindPut { leaves_ttl: expires },
            Op::Expire => Access::Update { leaves_ttl: expires },
            Op::Create | Op::CreateExpiring => Access::Dependent,
            Op::Delete => Access::Delete,
            Op::Update | Op::Add | Op::Count => Access::Update { leaves_ttl: false },
            Op::Get | Op::Query => Access::Read,
        }
    }

    /// Whether it is about an item of the key.
    pub fn is_of_items(self) -> bool {
        !matches!(self, Op::PutForeign | Op::TurnOn)
    }

    pub fn only_reads(self) -> bool {
        matches!(self, Op::Get | Op::Query)
    }
}

/// Every script of gateways that make so many calls each, of these kinds. Gateways that make as
/// many are alike.
pub fn scripts(calls: &[Call], lengths: &[usize]) -> Vec<Script> {
    let mut all: Vec<Script> = vec![Vec::new()];
    for length in lengths {
        let mut rows: Vec<Vec<Call>> = vec![Vec::new()];
        for _ in 0..*length {
            rows = rows
                .iter()
                .flat_map(|row| calls.iter().map(|call| [row.as_slice(), &[*call]].concat()))
                .collect();
        }
        all = all
            .iter()
            .flat_map(|script| rows.iter().map(|row| [script.as_slice(), std::slice::from_ref(row)].concat()))
            .collect();
    }
    let order =
        |row: &Vec<Call>| row.iter().map(|call| calls.iter().position(|one| one == call)).collect::<Vec<_>>();
    all.retain(|script| {
        script.windows(2).all(|pair| pair[0].len() != pair[1].len() || order(&pair[0]) <= order(&pair[1]))
    });
    all
}

/// A script of calls for the first item.
pub fn script(gateways: &[&[Op]]) -> Script {
    gateways.iter().map(|ops| ops.iter().map(|op| (*op, 0)).collect()).collect()
}
