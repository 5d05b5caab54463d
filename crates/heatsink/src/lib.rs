//! Heatsink as a library: a gateway in your own process, in front of a store.
//!
//! ```
//! use std::sync::Arc;
//!
//! use heatsink::{Embedded, Gateway, Operation, Rules};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # futures::executor::block_on(async {
//! let rules = Rules::read("rules", "[[rule]]\ntable = \"Scores\"\nstrategy = \"calculated\"\nshards = 4\n")?;
//! let store = Arc::new(Embedded::memory()?);
//! let gateway = Gateway::builder(store).rules(rules).start().await?;
//!
//! let table = r#"{"TableName": "Scores", "BillingMode": "PAY_PER_REQUEST",
//!     "AttributeDefinitions": [{"AttributeName": "game", "AttributeType": "S"}, {"AttributeName": "player", "AttributeType": "S"}],
//!     "KeySchema": [{"AttributeName": "game", "KeyType": "HASH"}, {"AttributeName": "player", "KeyType": "RANGE"}]}"#;
//! gateway.call(Operation::CreateTable, table).await?;
//! for player in ["ann", "bob", "eve"] {
//!     let put = format!(r#"{{"TableName": "Scores", "Item": {{"game": {{"S": "chess"}}, "player": {{"S": "{player}"}}}}}}"#);
//!     gateway.call(Operation::PutItem, put).await?;
//! }
//! let query = r#"{"TableName": "Scores", "Select": "COUNT", "KeyConditionExpression": "game = :g",
//!     "ExpressionAttributeValues": {":g": {"S": "chess"}}}"#;
//! let answer = gateway.call(Operation::Query, query).await?;
//! assert_eq!(answer, r#"{"Count":3,"ScannedCount":3}"#);
//! # Ok(())
//! # })
//! # }
//! ```
//!
//! A [`Runner`] beside the gateway carries out what `heatsink reshard` asks for. Other gateways of
//! the store rely on that if the gateway's [`Fencing`] is [`carrying`](Fencing::carrying).
//!
//! Not here: the command line (`main.rs` and beneath).

pub use heatsink_control::{Fencing, Rules, StartError};
pub use heatsink_dynamo::{Error, Operation};
pub use heatsink_gateway::http::Hosts;
pub use heatsink_gateway::{Builder, Gateway, Limits};
pub use heatsink_store::Store;
pub use heatsink_store::embedded::Embedded;
pub use heatsink_workers::{Acts, Runner, carry};
