//! Heatsink inside a Rust program: `aws-sdk-dynamodb` asks the gateway without a socket between
//! them.
//!
//! [`Heatsink`] is a gateway that runs in the program. Its [`Connector`] is an HTTP client for the
//! SDK: what the SDK would send to DynamoDB goes through the stages of a request on the network
//! (admit, plan, execute, deliver, observe), with the same limits, errors, metrics and heat.
//!
//! ```no_run
//! use aws_sdk_dynamodb::config::{BehaviorVersion, Region};
//! use heatsink_connector::{Heatsink, Rules};
//!
//! # async fn program() -> Result<(), Box<dyn std::error::Error>> {
//! let rules = Rules::read("heatsink.toml", &std::fs::read_to_string("heatsink.toml")?)?;
//! let upstream = Heatsink::upstream("https://dynamodb.eu-west-1.amazonaws.com").await?;
//! let heatsink = upstream.rules(rules).start().await?;
//!
//! let config = aws_sdk_dynamodb::Config::builder()
//!     .behavior_version(BehaviorVersion::latest())
//!     .region(Region::new("eu-west-1"))
//!     .allow_no_auth()
//!     .http_client(heatsink.connector());
//! let client = aws_sdk_dynamodb::Client::from_conf(config.build());
//! // …
//! heatsink.stop().await;
//! # Ok(())
//! # }
//! ```
//!
//! The requests of the program itself are trusted: they need no signature, and `[[client]]` sections
//! of the rules do not hold for them. Heatsink signs what it sends to its upstream, with the
//! credentials of AWS's standard chain.
//!
//! In tests, with the feature `local`:
//!
//! ```
//! # #[cfg(feature = "local")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let local = heatsink_connector::local().start()?;
//! let client = aws_sdk_dynamodb::Client::new(&local.sdk_config());
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "local"))]
//! # fn main() {}
//! ```
//!
//! Not here: what a request becomes (`heatsink-gateway`), the command line (`heatsink`).

mod connector;
mod heatsink;
#[cfg(feature = "local")]
mod local;
mod start_error;

pub use connector::Connector;
pub use heatsink::{Builder, Heatsink};
pub use heatsink_control::Rules;
pub use heatsink_gateway::Limits;
pub use heatsink_store::Store;
#[cfg(feature = "local")]
pub use heatsink_store::embedded::Embedded;
#[cfg(feature = "local")]
pub use local::{Local, LocalBuilder, local};
pub use start_error::StartError;
