//! What one answer has, and what is refused before it is carried out.

use std::time::Duration;

use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::config::{HttpClient, RuntimeComponents};
use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::operation::RequestId;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorSettings};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponentsBuilder;
use aws_smithy_types::body::SdkBody;
use futures::future::join_all;
use heatsink_connector::{Connector, Limits};
use heatsink_dynamo::Operation;

use crate::double::Double;
use crate::stage::{client, create_table, start, text, until};

/// A request with these headers, as an SDK of any service hands it over.
async fn raw(
    connector: &Connector,
    headers: &[(&'static str, &'static str)],
    body: &'static [u8],
) -> Result<HttpResponse, ConnectorError> {
    let components: RuntimeComponents = RuntimeComponentsBuilder::for_tests().build().unwrap();
    let connector = connector.http_connector(&HttpConnectorSettings::default(), &components);
    let mut request = HttpRequest::new(SdkBody::from(body));
    request.set_method("POST").unwrap();
    for (name, value) in headers {
        request.headers_mut().insert(*name, *value);
    }
    connector.call(request).await
}

#[tokio::test]
async fn an_answer_has_its_checksum_and_its_request_id() {
    let heatsink = start(&Double::new(), Limits::default()).await;
    let client = client(&heatsink);
    create_table(&client, "Scores").await;
    let put = client.put_item().table_name("Scores").item("pk", text("a")).send().await.unwrap();
    let another = client.put_item().table_name("Scores").item("pk", text("a")).send().await.unwrap();
    let (one, other) = (put.request_id().unwrap(), another.request_id().unwrap());
    assert_eq!(one.len(), 52);
    assert_ne!(one, other);
    let missing = client.get_item().table_name("None").key("pk", text("a")).send().await.unwrap_err();
    assert_eq!(missing.code(), Some("ResourceNotFoundException"));
    assert!(missing.request_id().is_some());

    let answer = raw(&heatsink.connector(), &[("x-amz-target", "DynamoDB_20120810.ListTables")], b"{}").await;
    let answer = answer.unwrap();
    assert_eq!(answer.status().as_u16(), 200);
    let body = answer.body().bytes().unwrap();
    assert_eq!(body, br#"{"TableNames":["Scores"]}"#);
    assert_eq!(answer.headers().get("x-amz-crc32"), Some(&*crc32fast::hash(body).to_string()));
    assert_eq!(answer.headers().get("content-type"), Some("application/x-amz-json-1.0"));
}

#[tokio::test]
async fn streams_are_answered_too() {
    let heatsink = start(&Double::new(), Limits::default()).await;
    let target = [("x-amz-target", "DynamoDBStreams_20120810.ListStreams")];
    let answer = raw(&heatsink.connector(), &target, b"{}").await.unwrap();
    assert_eq!(answer.body().bytes(), Some(&br#"{"Streams":[]}"#[..]));
}

#[tokio::test]
async fn what_is_no_request_for_dynamodb_never_reaches_the_gateway() {
    let heatsink = start(&Double::new(), Limits::default()).await;
    for headers in [&[][..], &[("x-amz-target", "AWSSecurityTokenServiceV20110615.AssumeRole")]] {
        let error = raw(&heatsink.connector(), headers, b"{}").await.unwrap_err();
        assert!(error.is_user(), "the SDK does not try it again: {error:?}");
        assert!(format!("{error:?}").contains("not for DynamoDB"), "{error:?}");
    }
}

#[tokio::test]
async fn what_dynamodb_refuses_is_refused_with_its_codes() {
    let heatsink = start(&Double::new(), Limits::default()).await;
    const LIST: (&str, &str) = ("x-amz-target", "DynamoDB_20120810.ListTables");
    const GZIP: (&str, &str) = ("content-encoding", "gzip");
    for (headers, body, code) in [
        (&[("x-amz-target", "DynamoDB_20120810.Nothing")][..], &b"{}"[..], "UnknownOperationException"),
        (&[LIST], b"", "SerializationException"),
        (&[LIST], b"{", "SerializationException"),
        (&[LIST, GZIP], b"{}", "SerializationException"),
        (&[LIST], br#"{"Limit":0}"#, "ValidationException"),
    ] {
        let answer = raw(&heatsink.connector(), headers, body).await.unwrap();
        let told = std::str::from_utf8(answer.body().bytes().unwrap()).unwrap().to_owned();
        assert_eq!(answer.status().as_u16(), 400, "{told}");
        assert!(told.contains(code), "{headers:?}: {told}");
    }
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_refused_by_its_size() {
    let limits = Limits { body: 64 * 1024, ..Limits::default() };
    let heatsink = start(&Double::new(), limits).await;
    let client = client(&heatsink);
    create_table(&client, "Scores").await;
    let put = |bytes: usize| {
        let blob = AttributeValue::B(Blob::new(vec![0; bytes]));
        client.put_item().table_name("Scores").item("pk", text("a")).item("blob", blob).send()
    };
    put(40_000).await.unwrap();
    // In base64 a third longer.
    let refused = put(50_000).await.unwrap_err();
    assert_eq!(refused.raw_response().unwrap().status().as_u16(), 413);
    assert!(refused.message().unwrap().contains("larger than 65536 bytes"), "{refused:?}");
}

#[tokio::test]
async fn no_more_requests_are_in_progress_than_the_limit_says() {
    let store = Double::new();
    let heatsink = start(&store, Limits { requests: 2, ..Limits::default() }).await;
    let client = client(&heatsink);
    create_table(&client, "Scores").await;
    store.hold(Some(Operation::GetItem));
    let get = || {
        let get = client.get_item().table_name("Scores").key("pk", text("a")).send();
        tokio::spawn(get)
    };
    let within = [get(), get()];
    until("two calls", || store.held().0 == 2).await;
    let refused = get().await.unwrap().unwrap_err();
    assert_eq!(refused.code(), Some("ThrottlingException"));
    assert_eq!(refused.message(), Some("More than 2 requests are in progress"));
    store.hold(None);
    assert!(join_all(within).await.into_iter().all(|got| got.unwrap().is_ok()));
    get().await.unwrap().unwrap();
}

#[tokio::test]
async fn bodies_have_room_in_the_budget_or_are_refused() {
    let store = Double::new();
    let limits = Limits { memory: 2 << 20, memory_wait: Duration::from_millis(50), ..Limits::default() };
    let heatsink = start(&store, limits).await;
    let client = client(&heatsink);
    create_table(&client, "Scores").await;
    store.hold(Some(Operation::PutItem));
    let put = || {
        let put = client.put_item().table_name("Scores").item("pk", text("a"));
        tokio::spawn(put.item("text", text("x".repeat(300_000))).send())
    };
    // Bodies may fill half of the two megabytes, whatever a request takes beside its body.
    let puts: Vec<_> = (0..4).map(|_| put()).collect();
    let mut said = Vec::new();
    for put in puts {
        if let Ok(ended) = tokio::time::timeout(Duration::from_secs(1), put).await {
            said.push(ended.unwrap().unwrap_err().message().unwrap().to_owned());
        }
    }
    assert!(said.iter().any(|said| said.ends_with("there was no room for this body")), "{said:?}");
}
