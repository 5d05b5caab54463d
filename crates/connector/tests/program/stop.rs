//! How a gateway of a program ends.

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use heatsink_connector::{Heatsink, Limits, Rules};
use heatsink_control::{Changer, Fencing};
use heatsink_dynamo::Operation;
use heatsink_env::RealEnv;

use crate::double::Double;
use crate::stage::{client, create_table, once, start, text, until};

#[tokio::test]
async fn it_lets_requests_finish_and_refuses_later_ones() {
    let store = Double::new();
    let heatsink = start(&store, Limits::default()).await;
    let (client, connector) = (client(&heatsink), heatsink.connector());
    create_table(&client, "Scores").await;
    store.hold(Some(Operation::PutItem));
    let put = |key: &str| client.put_item().table_name("Scores").item("pk", text(key)).send();
    // One is waited for, the other one not any more.
    let (waited, left) = (tokio::spawn(put("a")), tokio::spawn(put("b")));
    until("both", || store.held().0 == 2).await;
    left.abort();
    let stopping = tokio::spawn(heatsink.stop());
    let later = Client::from_conf(once(connector).build());
    let refused = loop {
        match later.list_tables().send().await {
            Ok(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            Err(error) => break error,
        }
    };
    assert_eq!(refused.code(), Some("ServiceUnavailable"), "{refused:?}");
    assert_eq!(refused.message(), Some("The gateway in this program was stopped; start another one"));
    assert!(!stopping.is_finished());
    store.hold(None);
    waited.await.unwrap().unwrap();
    assert!(stopping.await.unwrap(), "all have finished");
    assert_eq!(store.held(), (2, 0, 2));
    assert_eq!(later.list_tables().send().await.unwrap_err().code(), Some("ServiceUnavailable"));
}

#[tokio::test]
async fn what_takes_too_long_is_not_waited_for() {
    let store = Double::new();
    let heatsink = start(&store, Limits { drain: Duration::from_millis(50), ..Limits::default() }).await;
    let client = client(&heatsink);
    create_table(&client, "Scores").await;
    store.hold(Some(Operation::PutItem));
    let put = tokio::spawn(client.put_item().table_name("Scores").item("pk", text("a")).send());
    until("the put", || store.held().0 == 1).await;
    assert!(!heatsink.stop().await);
    put.abort();
}

#[tokio::test]
async fn it_takes_itself_off_the_list_of_gateways_however_it_ends() {
    let store = Double::new();
    let rules = Rules::read("rules", "[fence]\nheartbeat = \"200ms\"\npoll = \"50ms\"\n").unwrap();
    let fencing = Fencing::exclusive(rules.fence());
    let changer = Changer::beside(Arc::new(store.clone()), Arc::new(RealEnv), fencing);
    changer.freeze(false).await.unwrap();
    let names = async || {
        let listed = changer.gateways().await.unwrap();
        let names = listed.into_iter().flat_map(|(_, list)| list).map(|one| one.name);
        names.collect::<Vec<String>>()
    };
    let begin = || Heatsink::over(Arc::new(store.clone())).rules(rules.clone()).name("orders").start();

    let heatsink = begin().await.unwrap();
    assert_eq!(names().await, ["orders"]);
    assert!(heatsink.stop().await);
    assert_eq!(names().await, [""; 0]);

    let heatsink = begin().await.unwrap();
    assert_eq!(names().await, ["orders"]);
    let client = client(&heatsink);
    drop(heatsink);
    for _ in 0..500 {
        if names().await.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(names().await, [""; 0]);
    assert_eq!(client.list_tables().send().await.unwrap_err().code(), Some("ServiceUnavailable"));
}

#[test]
fn one_whose_runtime_has_ended_is_shut_when_it_is_dropped() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let first = runtime();
    let heatsink = first.block_on(start(&Double::new(), Limits::default()));
    let client = client(&heatsink);
    first.block_on(create_table(&client, "Scores"));
    drop(first);
    drop(heatsink);
    let refused = runtime().block_on(client.list_tables().send()).unwrap_err();
    assert_eq!(refused.code(), Some("ServiceUnavailable"));
}
