//! A gateway with an empty store in memory, for one test.
//!
//! It runs on a thread of its own, so that it outlives the runtime of the test that has started it,
//! and that its end can be waited for where nothing can be awaited.

use std::fmt;
use std::sync::{Arc, mpsc};
use std::thread::{Builder as Thread, JoinHandle};
use std::time::Duration;

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_runtime_api::client::behavior_version::BehaviorVersion;
use aws_types::SdkConfig;
use aws_types::region::Region;
use heatsink_control::Rules;
use heatsink_dynamo::Error;
use heatsink_env::RealEnv;
use heatsink_gateway::Limits;
use heatsink_physics::Quotas;
use heatsink_store::embedded::Embedded;
use heatsink_store::partitioned::Partitioned;
use tokio::sync::oneshot;

use crate::{Connector, Heatsink, StartError};

/// The region of the store.
const REGION: &str = "us-east-1";

/// A gateway with an empty store in memory, for one test: `local().start()?`.
pub fn local() -> LocalBuilder {
    LocalBuilder { rules: String::new(), partitions: true }
}

/// A local gateway that is not started yet.
#[derive(Clone, Debug)]
pub struct LocalBuilder {
    rules: String,
    partitions: bool,
}

/// A gateway with a store in memory. When it is dropped it has stopped, and the data is gone.
pub struct Local {
    connector: Connector,
    /// Stops it when it is dropped.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl LocalBuilder {
    /// The rules, as the text of a `heatsink.toml`. Without it no key is sharded.
    #[must_use]
    pub fn rules(self, toml: &str) -> Self {
        LocalBuilder { rules: toml.to_owned(), ..self }
    }

    /// Whether the store has the partitions and the quotas of DynamoDB, and throttles as it does;
    /// it does by default.
    #[must_use]
    pub fn partitions(self, on: bool) -> Self {
        LocalBuilder { partitions: on, ..self }
    }

    /// Starts it, and returns once it answers.
    ///
    /// # Errors
    /// [`StartError::Rules`] says what is wrong with them, and where; [`StartError::Store`] when the
    /// engine or its thread cannot start.
    pub fn start(self) -> Result<Local, StartError> {
        let rules = Rules::read("rules", &self.rules);
        let rules = rules.map_err(|error| StartError::Rules(error.to_string()))?;
        let (stop, stopped) = oneshot::channel::<()>();
        let (told, started) = mpsc::channel();
        let run = move || {
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_time().build() {
                Ok(runtime) => runtime,
                // Nobody waits once the other end is gone.
                Err(error) => return drop(told.send(Err(failed(&error)))),
            };
            runtime.block_on(async {
                match start(rules, self.partitions).await {
                    Ok(heatsink) => {
                        let _ = told.send(Ok(heatsink.connector()));
                        // It resolves when the sender is dropped.
                        let _ = stopped.await;
                        heatsink.stop().await;
                    }
                    Err(error) => drop(told.send(Err(error))),
                }
            });
        };
        let thread = Thread::new().name("heatsink-local".to_owned()).spawn(run);
        let thread = thread.map_err(|error| failed(&error))?;
        let connector = started.recv().map_err(|error| failed(&error))??;
        Ok(Local { connector, stop: Some(stop), thread: Some(thread) })
    }
}

async fn start(rules: Rules, partitions: bool) -> Result<Heatsink, StartError> {
    let engine = Embedded::memory().map_err(StartError::Store)?.in_region(REGION).expiring();
    let builder = match partitions {
        false => Heatsink::over(Arc::new(engine)),
        true => {
            let store = Partitioned::start(engine, Arc::new(RealEnv), Quotas::default()).await;
            let store = Arc::new(store.map_err(StartError::Store)?);
            let told = Arc::clone(&store);
            Heatsink::over(store).partitions(Box::new(move |table: &str| told.report(table)))
        }
    };
    // The data ends with it: nothing is worth waiting for.
    let limits = Limits { drain: Duration::ZERO, ..Limits::default() };
    let builder = builder.only_gateway().prompt_indexes();
    builder.rules(rules).limits(limits).region(REGION).start().await
}

fn failed(error: &dyn std::error::Error) -> StartError {
    StartError::Store(Error::internal(format!("the thread of a local gateway did not start: {error}")))
}

impl Local {
    /// The configuration for `aws_sdk_dynamodb::Client::new`, with made-up credentials. For clients
    /// of DynamoDB and of DynamoDB Streams alone.
    pub fn sdk_config(&self) -> SdkConfig {
        let credentials = Credentials::new("local", "local", None, None, "heatsink");
        SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::from_static(REGION))
            .credentials_provider(SharedCredentialsProvider::new(credentials))
            .http_client(self.connector())
            .build()
    }

    /// The HTTP client for a configuration of one's own.
    pub fn connector(&self) -> Connector {
        self.connector.clone()
    }
}

impl fmt::Debug for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Local")
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It has no result, and says itself what it panics with.
            let _ = thread.join();
        }
    }
}
