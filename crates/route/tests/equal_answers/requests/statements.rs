//! Random statements.

use heatsink_dynamo::Operation;
use serde_json::{Value as Json, json};

use super::Requests;

impl Requests {
    /// A statement. `point`: it names one item.
    fn statement(&mut self, point: bool) -> Json {
        let (pk, sk) = (self.pk(), self.sk());
        let of_item = format!("pk = '{pk}' AND sk = '{sk}'");
        let range = self.one(&[
            "",
            " AND sk > '2025-01-02'",
            " AND sk BETWEEN '2024' AND '2025-01-04'",
            " AND begins_with(sk, '2025-01-0')",
        ]);
        let test = self.one(&["", "", " AND v = 'x'", " AND m.k > 3", " AND attribute_exists(at)"]);
        let set = self.one(&[
            "SET v = 'y'",
            "SET v = 'y', at = '2'",
            "REMOVE m",
            "SET n = 5",
            "REMOVE v SET team = 'red'",
        ]);
        let points = [
            format!("SELECT * FROM Tab WHERE {of_item}"),
            format!("SELECT v, pk, n FROM \"Tab\" WHERE {of_item}"),
        ];
        let writes = [
            format!(
                "INSERT INTO Tab VALUE {{'pk': '{pk}', 'sk': '{sk}', 'v': 'x', 'n': 3, 'at': '1', 'team': 'blue'}}"
            ),
            format!("UPDATE Tab {set} WHERE {of_item}{test}"),
            format!("DELETE FROM Tab WHERE {of_item}{test}"),
        ];
        let reads = [
            format!("SELECT * FROM Tab WHERE {of_item}{test}"),
            format!("SELECT * FROM Tab WHERE pk = '{pk}'{range}{test}"),
            format!("SELECT v, sk, n FROM Tab WHERE pk = '{pk}'{range}{test}"),
            format!("SELECT * FROM Tab WHERE pk IN ['a', 'b']{range}{test}"),
            format!("SELECT * FROM Tab.\"team\" WHERE team = 'red'{test}"),
            format!("SELECT * FROM Tab.\"local\" WHERE pk = '{pk}' AND at >= '2'{test}"),
            "SELECT * FROM Tab WHERE v = 'x' OR pk = 'a'".to_owned(),
            format!("SELECT * FROM Tab WHERE NOT pk = '{pk}'{test}"),
            format!("SELECT * FROM Tab WHERE pk = '{pk}'{range} ORDER BY sk DESC"),
        ];
        let mut text = match self.rng.u8(..3) {
            0 => self.one(&points),
            1 if !point => self.one(&reads),
            _ => self.one(&writes),
        };
        let mut body = json!({});
        if self.rng.bool()
            && let Some((before, after)) = text.split_once(&format!("'{pk}'"))
        {
            text = format!("{before}?{after}");
            body["Parameters"] = json!([{ "S": pk }]);
        }
        body["Statement"] = text.into();
        body
    }

    /// One statement.
    pub fn execute(&mut self) -> Json {
        self.statement(false)
    }

    /// Several statements, of different items where they write.
    pub fn execute_several(&mut self) -> (Operation, Json) {
        let mut statements: Vec<Json> = Vec::new();
        let writes = self.rng.bool();
        for _ in 0..self.rng.usize(1..4) {
            let statement = self.statement(true);
            let is_write = !statement["Statement"].as_str().unwrap().starts_with("SELECT");
            if is_write == writes && (!is_write || statements.is_empty()) {
                statements.push(statement);
            }
        }
        if statements.is_empty() {
            statements.push(json!({ "Statement": "SELECT * FROM Tab WHERE pk = 'a' AND sk = '2024'" }));
        }
        if self.rng.bool() {
            (Operation::BatchExecuteStatement, json!({ "Statements": statements }))
        } else {
            (Operation::ExecuteTransaction, json!({ "TransactStatements": statements }))
        }
    }
}
