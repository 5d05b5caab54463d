//! The viral leaderboard's table and traffic. Everything follows from a request's number, so that
//! the right answer is known.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use heatsink_dynamo::Operation;
use heatsink_load::{Answer, Outcome, Request, Work};
use heatsink_physics::Quotas;
use serde_json::{Value as Json, json};

/// The table's name.
pub const TABLE: &str = "Leaderboards";
/// How many rows a leaderboard shows.
pub const TOP: usize = 100;
/// The same, as rates are reckoned with.
pub const PAGE: u32 = 100;
/// Bytes of a score: one write unit.
pub const ITEM_BYTES: u32 = 400;
/// Cold titles and their writes per second.
const TITLES: [(&str, u64); 4] = [("title_a", 120), ("title_b", 80), ("title_c", 60), ("title_d", 40)];

/// The quotas of an account that such a table is for; AWS gives 40,000 and 80,000 to a new one and
/// raises them on demand.
pub const QUOTAS: Quotas =
    Quotas { table: 90_000, account: 90_000, decreases: 4, switches: 4, tables: 2_500 };

/// `CreateTable`: provisioned with 30,000 write and 90,000 read units per second, so 60 partitions.
pub fn create_table() -> Json {
    json!({
        "TableName": TABLE,
        "AttributeDefinitions": [
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "S"},
        ],
        "KeySchema": [
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        "BillingMode": "PROVISIONED",
        "ProvisionedThroughput": {"ReadCapacityUnits": 90_000, "WriteCapacityUnits": 30_000},
    })
}

/// The rule that an operator would write: shard the viral titles by player, the second part of the
/// sort key.
pub fn rule(shards: u16) -> String {
    format!(
        "[[rule]]\ntable = \"{TABLE}\"\nkeys = \"game_*\"\nstrategy = \"calculated\"\n\
         by = {{ attribute = \"sk\", separator = \"#\", part = 1 }}\nshards = {shards}\n"
    )
}

/// A number that looks random and follows from another (splitmix64).
pub fn scramble(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The sort key of the nth score: `score#player`, zero-padded so that it sorts by score.
fn sort_key(nth: u64) -> String {
    format!("{:010}#p{nth:07}", scramble(nth) % 1_000_000_000)
}

fn put(game: &str, nth: u64) -> Request {
    let sort = sort_key(nth);
    // About 400 bytes: one write unit.
    let body = format!(
        r#"{{"TableName":"{TABLE}","Item":{{"pk":{{"S":"{game}"}},"sk":{{"S":"{sort}"}},"player":{{"S":"p{nth:07}"}},"badge":{{"S":"{:0>320}"}}}}}}"#,
        nth
    );
    Request::new(Operation::PutItem, body)
}

/// Scores of the viral title: every request is a new player's.
pub struct Scores {
    game: String,
    accepted: Vec<AtomicBool>,
}

impl Scores {
    /// Up to `count` scores of `game`.
    pub fn new(game: &str, count: usize) -> Self {
        Scores { game: game.to_owned(), accepted: (0..count).map(|_| AtomicBool::new(false)).collect() }
    }

    /// The sort keys that the top of the leaderboard must show: those of the best scores that were
    /// accepted.
    pub fn expected_top(&self) -> Vec<String> {
        let accepted = self.accepted.iter().enumerate().filter(|(_, done)| done.load(Ordering::Relaxed));
        let mut keys: Vec<String> = accepted.map(|(nth, _)| sort_key(nth as u64)).collect();
        keys.sort_unstable_by(|a, b| b.cmp(a));
        keys.truncate(TOP);
        keys
    }
}

impl Work for Scores {
    fn request(&self, nth: u64) -> Request {
        put(&self.game, nth)
    }

    fn outcome(&self, nth: u64, answer: &Answer) -> Outcome {
        let outcome = Outcome::of(answer);
        let slot = usize::try_from(nth).ok().and_then(|nth| self.accepted.get(nth));
        if let (Outcome::Accepted, Some(slot)) = (outcome, slot) {
            slot.store(true, Ordering::Relaxed);
        }
        outcome
    }
}

/// The other titles' scores, in proportion to how much each is played.
pub struct Background;

impl Background {
    /// Their writes per second, together.
    pub fn per_second() -> u64 {
        TITLES.iter().map(|(_, rate)| rate).sum()
    }
}

impl Work for Background {
    fn request(&self, nth: u64) -> Request {
        let mut at = scramble(nth) % Background::per_second();
        for (title, rate) in TITLES {
            if at < rate {
                return put(title, nth);
            }
            at -= rate;
        }
        put(TITLES[0].0, nth)
    }
}

/// The request for the top of a leaderboard: one Query, descending, eventually consistent.
pub fn top(game: &str) -> Json {
    json!({
        "TableName": TABLE,
        "KeyConditionExpression": "pk = :game",
        "ExpressionAttributeValues": {":game": {"S": game}},
        "ScanIndexForward": false,
        "Limit": TOP,
        "ReturnConsumedCapacity": "TOTAL",
    })
}

/// Dashboards that show the top of a leaderboard.
pub struct Readers {
    request: Request,
    answers: AtomicU64,
    units: Mutex<f64>,
}

impl Readers {
    /// Readers of `game`.
    pub fn new(game: &str) -> Self {
        let request = Request::new(Operation::Query, top(game).to_string());
        Readers { request, answers: AtomicU64::new(0), units: Mutex::new(0.0) }
    }

    /// Read units per Query, on average.
    pub fn units(&self) -> f64 {
        let answers = self.answers.load(Ordering::Relaxed);
        #[allow(clippy::cast_precision_loss, reason = "a mean is printed with three digits")]
        if answers > 0 {
            *self.units.lock().unwrap_or_else(PoisonError::into_inner) / answers as f64
        } else {
            0.0
        }
    }
}

impl Work for Readers {
    fn request(&self, _nth: u64) -> Request {
        self.request.clone()
    }

    fn outcome(&self, _nth: u64, answer: &Answer) -> Outcome {
        let outcome = Outcome::of(answer);
        if outcome == Outcome::Accepted
            && let Ok(body) = serde_json::from_slice::<Json>(&answer.body)
            && let Some(units) = body["ConsumedCapacity"]["CapacityUnits"].as_f64()
        {
            self.answers.fetch_add(1, Ordering::Relaxed);
            *self.units.lock().unwrap_or_else(PoisonError::into_inner) += units;
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_is_one_write_unit() {
        let request = put("game_x", 7);
        assert!(request.body.len() > 400 && request.body.len() < 600, "{}", request.body.len());
        let body: Json = serde_json::from_slice(&request.body).unwrap();
        assert_eq!(body["Item"]["badge"]["S"].as_str().map(str::len), Some(320));
    }

    #[test]
    fn the_expected_top_is_the_best_of_the_accepted() {
        let scores = Scores::new("game_x", 5);
        for nth in [0, 2, 3] {
            scores.accepted[nth].store(true, Ordering::Relaxed);
        }
        let mut keys = [sort_key(0), sort_key(2), sort_key(3)];
        keys.sort();
        keys.reverse();
        assert_eq!(scores.expected_top(), keys);
    }

    #[test]
    fn titles_get_their_share() {
        let mut count = 0;
        for nth in 0..3_000 {
            let body = Background.request(nth).body;
            count += u32::from(String::from_utf8_lossy(&body).contains("title_a"));
        }
        assert!((1_000..1_400).contains(&count), "{count}");
    }
}
