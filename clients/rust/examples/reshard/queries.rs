//! Queries of the whole key, both ways, each page through another gateway: in order, no row twice,
//! and each item of the worker as it knows it. The worker writes nothing meanwhile. Rows of others
//! are judged by their order alone.

use std::collections::HashMap;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use heatsink_env::Env;
use rand::Rng;

use crate::known::{Attributes, Holds, text};
use crate::worker::Worker;

/// For how long a page is asked for again.
const PATIENCE: Duration = Duration::from_secs(30);

impl Worker {
    /// One Query to its end, and what is wrong with it.
    pub(crate) async fn query(&mut self) {
        let forward = self.rng.random();
        let limit = [60, 150, 400][self.rng.random_range(0..3)];
        let Some(rows) = self.pages(forward, limit).await else { return };
        let what = format!("Query {} by {limit}", if forward { "upwards" } else { "downwards" });
        let sort_keys: Vec<&str> =
            rows.iter().filter_map(|row| row.get("sk")?.as_s().ok()).map(String::as_str).collect();
        for pair in sort_keys.windows(2) {
            if pair[0] == pair[1] {
                self.fault("doubled", pair[1], &format!("{what} showed it twice"));
            } else if (pair[0] < pair[1]) != forward {
                self.fault("disordered", pair[1], &format!("{what} showed it after {}", pair[0]));
            }
        }
        for row in &rows {
            if row.get("pk") != Some(&AttributeValue::S(self.shared.key.clone())) {
                self.fault(
                    "shown",
                    &format!("{:?}", row.get("sk")),
                    &format!("{what} showed the key {:?}", row.get("pk")),
                );
            }
        }
        let own = format!("-{}-", self.name);
        let mut shown: HashMap<&str, Holds> =
            sort_keys.iter().copied().zip(rows.iter().map(Holds::of)).collect();
        shown.retain(|sk, _| sk.contains(&own));
        for item in self.items.iter().chain(&self.left) {
            let found = shown.remove(item.sk.as_str());
            if !item.allows(found.as_ref()) {
                let (found, right) = (text(found.as_ref()), text(item.holds.as_ref()));
                self.fault("lost", &item.sk, &format!("{what} showed {found:?}, not {right:?}"));
            }
        }
        for (sk, holds) in shown {
            self.fault("phantom", sk, &format!("{what} showed {:?}, which nobody wrote", holds.text()));
        }
    }

    /// All rows; `None` where a page was refused over and over.
    async fn pages(&mut self, forward: bool, limit: i32) -> Option<Vec<Attributes>> {
        let (mut rows, mut cursor, mut refused) = (Vec::new(), None, None);
        loop {
            let at = self.gateway();
            let call = self.at[at].query().table_name(&self.shared.table).key_condition_expression("pk = :k");
            let call = call.expression_attribute_values(":k", AttributeValue::S(self.shared.key.clone()));
            let call = call.consistent_read(true).scan_index_forward(forward).limit(limit);
            let call = call.set_exclusive_start_key(cursor.clone());
            match self.sent("Query", Box::pin(call.send())).await {
                Ok(page) => {
                    refused = None;
                    cursor = page.last_evaluated_key().cloned();
                    rows.extend(page.items.unwrap_or_default());
                    if cursor.is_none() {
                        return Some(rows);
                    }
                }
                Err(_) => {
                    let now = self.shared.env.now();
                    let since = *refused.get_or_insert(now);
                    if now.since(since) > PATIENCE || self.is_stopping() {
                        return None;
                    }
                    self.rest().await;
                }
            }
        }
    }
}
