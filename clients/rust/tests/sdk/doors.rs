//! The two doors by which the SDK reaches a gateway of this process, and what may become of a key
//! meanwhile: tests run through both doors in each of these worlds.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::Credentials;
use futures::future::pending;
use heatsink_connector::Heatsink;
use heatsink_control::registry::Registry;
use heatsink_control::reshard_intent::{EndedAs, Request, Subject};
use heatsink_control::{Changer, Fencing, Rules};
use heatsink_dynamo::KeyType;
use heatsink_env::RealEnv;
use heatsink_gateway::Gateway;
use heatsink_gateway::http::Hosts;
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use heatsink_store::upstream::Network;
use heatsink_workers::carry;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::stage::config;

/// How the SDK asks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Door {
    /// By HTTP, on loopback.
    Loopback,
    /// By the connector.
    InProcess,
}

/// What the key of a test is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum World {
    Unsharded,
    ByRule,
    /// It gets other shards again and again, while it is used.
    Resharded,
}

pub const ALL: [(Door, World); 6] = [
    (Door::Loopback, World::Unsharded),
    (Door::InProcess, World::Unsharded),
    (Door::Loopback, World::ByRule),
    (Door::InProcess, World::ByRule),
    (Door::Loopback, World::Resharded),
    (Door::InProcess, World::Resharded),
];

/// So many times a key gets other shards.
const MOVES: [u16; 3] = [4, 2, 1];

/// Reshards wait for the gateway's looks at the registry.
const FENCE: &str = "[fence]\nlease = \"20s\"\nheartbeat = \"1s\"\npoll = \"100ms\"\nstraggler = \"2s\"\n";
const BY_RULE: &str = "[[rule]]\ntable = \"*\"\nstrategy = \"calculated\"\nshards = 4\n";

/// A gateway of this process with a store in memory, and the SDK before it.
pub struct Opened {
    pub client: Client,
    world: World,
    store: Arc<dyn Store>,
    rules: Rules,
    /// Of the one door; the other one serves until the test ends.
    _heatsink: Option<Heatsink>,
}

impl Opened {
    pub async fn at(door: Door, world: World) -> Opened {
        let store: Arc<dyn Store> = Arc::new(Embedded::memory().unwrap());
        let rules = format!("{FENCE}{}", if world == World::ByRule { BY_RULE } else { "" });
        let rules = Rules::read("rules", &rules).unwrap();
        // The registry is there, and no gateway is left that has not noticed it.
        let first = Changer::beside(Arc::clone(&store), Arc::new(RealEnv), Fencing::exclusive(rules.fence()));
        first.freeze(false).await.unwrap();
        let network = Network::plain().expect("TLS is in this build");
        let settings =
            |address: String| config(address, Credentials::new("x", "y", None, None, "test"), &network);
        let (client, heatsink) = match door {
            Door::Loopback => {
                let fencing = Fencing::shared(rules.fence(), "test").carrying();
                let gateway = Gateway::builder(Arc::clone(&store)).rules(rules.clone()).fencing(fencing);
                let gateway = gateway.start().await.unwrap();
                let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
                let address = listener.local_addr().unwrap();
                let (env, control) = (Arc::new(RealEnv), gateway.control().clone());
                let (status, acts) = (Arc::clone(gateway.status()), Arc::default());
                let carried = Arc::clone(&store);
                tokio::spawn(carry(carried, env, control, status, acts, Duration::ZERO, pending()));
                tokio::spawn(gateway.serve(listener, Hosts::loopback(), pending()));
                (Client::from_conf(settings(format!("http://{address}")).build()), None)
            }
            Door::InProcess => {
                let heatsink = Heatsink::over(Arc::clone(&store)).rules(rules.clone()).name("test");
                let heatsink = heatsink.start().await.unwrap();
                // Nobody is asked there.
                let settings = settings("http://127.0.0.1:1".to_owned());
                let client = Client::from_conf(settings.http_client(heatsink.connector()).build());
                (client, Some(heatsink))
            }
        };
        Opened { client, world, store, rules, _heatsink: heatsink }
    }

    /// What moves a key of a table from now on, where this world does that: the gateway itself, as it
    /// is asked.
    pub fn moves(&self, table: &'static str, key: &'static str) -> Moves {
        let done = Arc::new(AtomicUsize::new(0));
        let moved = Arc::clone(&done);
        let registry =
            Registry::new(Arc::clone(&self.store), Arc::new(RealEnv), &self.rules.fence().registry);
        let task = (self.world == World::Resharded).then(|| {
            tokio::spawn(async move {
                for shards in MOVES {
                    reshard(&registry, table, key, shards).await;
                    moved.fetch_add(1, Ordering::SeqCst);
                }
            })
        });
        Moves { task, done }
    }
}

/// Asks for that many shards of a key, and waits until a gateway has seen to it.
async fn reshard(registry: &Registry, table: &str, key: &str, shards: u16) {
    let id = registry.describe(table).await.unwrap().unwrap().schema.id;
    let subject: Subject<'_> = (key.as_bytes(), KeyType::S).into();
    let before = registry.intent_for(&id, subject).await.unwrap();
    let request = Request {
        layout: shards.into(),
        rate: u32::MAX,
        streams_confirmed: false,
        by: "test".to_owned(),
        asked: registry.env().unix_millis(),
    };
    let mut intent = registry.new_intent((&id, table), subject, request);
    intent.version = before.as_ref().map_or(intent.version, |before| before.version + 1);
    assert!(registry.write_intent(before.as_ref(), &intent).await.unwrap());
    let ended = loop {
        let now = registry.intent_for(&id, subject).await.unwrap();
        if let Some(ended) = now.and_then(|intent| intent.ended) {
            break ended;
        }
        registry.env().sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(ended.how, EndedAs::Moved, "{}", ended.text);
}

/// The moves of a key.
pub struct Moves {
    task: Option<JoinHandle<()>>,
    done: Arc<AtomicUsize>,
}

impl Moves {
    /// Whether the key moves.
    pub fn go_on(&self) -> bool {
        self.task.as_ref().is_some_and(|task| !task.is_finished())
    }

    /// All are done that there were to be.
    pub async fn ended(self) {
        if let Some(task) = self.task {
            task.await.unwrap();
            assert_eq!(self.done.load(Ordering::SeqCst), MOVES.len());
        }
    }
}
