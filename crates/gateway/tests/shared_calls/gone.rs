//! Clients that do not wait: who has hung up, or whose time is over before its turn, writes nothing.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use heatsink_control::Rules;
use heatsink_dynamo::Operation;
use heatsink_gateway::{Gateway, Limits};
use heatsink_store::Store;
use http::{HeaderMap, HeaderValue};
use http_body_util::Full;
use serde_json::{Value as Json, json};

use super::slow::Slow;
use super::writes::{add, create, key};

#[tokio::test]
async fn who_is_gone_before_its_turn_is_left_out() {
    for hangs_up in [true, false] {
        let store = Arc::new(Slow::new(200));
        create(&store.store).await;
        let rules = "[[rule]]\ntable = \"*\"\nstrategy = \"none\"\ncombine = true\n";
        let limits = Limits { request: Duration::from_millis(100), ..Limits::default() };
        let gateway = Gateway::builder(Arc::clone(&store) as _)
            .rules(Rules::read("rules", rules).unwrap())
            .limits(limits)
            .start()
            .await
            .unwrap();
        let (door, serving) = gateway.serve_in_process(pending());
        tokio::spawn(serving);
        let mut headers = HeaderMap::new();
        headers.insert("x-amz-target", HeaderValue::from_static("DynamoDB_20120810.UpdateItem"));
        headers.insert("content-type", HeaderValue::from_static("application/x-amz-json-1.0"));
        let ask = async || {
            let body = Full::new(Bytes::from(add(1, "NONE").1.to_string()));
            let answer = door.answer(&headers, body);
            match hangs_up {
                true => {
                    let _ = tokio::time::timeout(Duration::from_millis(50), answer).await;
                    Json::Null
                }
                false => serde_json::from_slice(answer.await.body()).unwrap(),
            }
        };
        let answers = join_all((0..10).map(|_| ask())).await;
        if !hangs_up {
            let says = |words: &str| {
                let like =
                    |answer: &&Json| answer["message"].as_str().is_some_and(|text| text.contains(words));
                answers.iter().filter(like).count()
            };
            // The first one was under way.
            assert_eq!((says("may have been carried out"), says("nothing of the request was sent")), (1, 9));
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        let get = json!({ "TableName": "Votes", "Key": key() });
        let there = store.store.call(Operation::GetItem, Bytes::from(get.to_string())).await.unwrap();
        let there: Json = serde_json::from_slice(&there).unwrap();
        assert_eq!(there["Item"]["n"]["N"], "1", "hangs up: {hangs_up}");
    }
}
