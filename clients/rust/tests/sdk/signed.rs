//! A gateway that knows its clients, over TLS by a CA of its own: a long-term key and a session
//! token, on a table that is sharded and on one that is not.

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::interceptors::{
    BeforeDeserializationInterceptorContextRef, BeforeTransmitInterceptorContextRef,
};
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{ConfigBag, Credentials, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::{BoxError, DisplayErrorContext, ProvideErrorMetadata};
use aws_sdk_dynamodb::types::{
    AttributeValue, Get, KeysAndAttributes, Put, PutRequest, ReturnValue, TransactGetItem, TransactWriteItem,
    WriteRequest,
};
use heatsink_access::Clients;
use heatsink_control::Rules;
use heatsink_env::{Env, RealEnv};
use heatsink_gateway::http::{PemFile, ServerTls, TlsFiles};
use heatsink_store::upstream::Network;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType};
use tempfile::TempDir;

use crate::stage::{config, create_table, serve, text};

type Item = HashMap<String, AttributeValue>;

const ADMIN: (&str, &str, Option<&str>) = ("admin", "admin/+secret", None);
const TEAM: (&str, &str, Option<&str>) = ("team1", "team", Some("token/+=="));

/// A gateway, and whom its clients trust.
struct Known {
    endpoint: String,
    network: Network,
}

impl Known {
    async fn serve() -> Known {
        let folder = TempDir::new().unwrap();
        let file = |name: &str| folder.path().join(name);
        let mut known = r#"rule = [{ table = "Scores", strategy = "calculated", shards = 4 }]"#.to_owned();
        for ((id, secret, token), more) in [(ADMIN, ""), (TEAM, "keys = \"team1#*\"")] {
            known += &format!("\n[[client]]\nid = {id:?}\nsecret_file = \"{id}\"\n{more}\n");
            std::fs::write(file(id), secret).unwrap();
            if let Some(token) = token {
                known += "session_token_file = \"token\"\n";
                std::fs::write(file("token"), token).unwrap();
            }
        }
        for entry in std::fs::read_dir(folder.path()).unwrap() {
            std::fs::set_permissions(entry.unwrap().path(), PermissionsExt::from_mode(0o600)).unwrap();
        }
        let rules = Rules::read(&file("heatsink.toml").display().to_string(), &known).unwrap();
        let clients = Clients::load(rules.clients(), "us-east-1").unwrap();

        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let mut params = CertificateParams::default();
        params.subject_alt_names = vec![SanType::IpAddress([127, 0, 0, 1].into())];
        let key = KeyPair::generate().unwrap();
        let (cert, key) = (params.signed_by(&key, &ca).unwrap().pem(), key.serialize_pem());
        let files = TlsFiles {
            cert: PemFile { name: "cert", text: &cert },
            key: PemFile { name: "key", text: &key },
            client_ca: None,
        };
        let tls = ServerTls::read(files, RealEnv.unix_millis());
        std::fs::write(file("ca.pem"), ca.pem()).unwrap();
        let network = Network::of_environment(Some(("ca", &file("ca.pem")))).unwrap();
        let address = serve(rules, clients, Some(tls.unwrap())).await;
        Known { endpoint: format!("https://{address}"), network }
    }

    fn client(&self, (id, secret, token): (&str, &str, Option<&str>)) -> Client {
        let credentials = Credentials::new(id, secret, token.map(str::to_owned), None, "test");
        let config = config(self.endpoint.clone(), credentials, &self.network);
        Client::from_conf(config.retry_config(RetryConfig::disabled()).interceptor(Checksum).build())
    }
}

/// Compares each answer with the checksum that came with it, as other SDKs do, and sees that the
/// request had what the SDK adds.
#[derive(Debug)]
struct Checksum;

impl Intercept for Checksum {
    fn name(&self) -> &'static str {
        "checksum"
    }

    fn read_before_transmit(
        &self,
        context: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        for added in ["amz-sdk-invocation-id", "amz-sdk-request", "x-amz-user-agent"] {
            assert!(context.request().headers().contains_key(added), "{added}");
        }
        Ok(())
    }

    fn read_before_deserialization(
        &self,
        context: &BeforeDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let told = context.response().headers().get("x-amz-crc32").unwrap();
        assert_eq!(told, crc32fast::hash(context.response().body().bytes().unwrap()).to_string());
        Ok(())
    }
}

fn number(value: usize) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

async fn play(client: &Client, table: &str, pk: &str) {
    let item = |at: usize| {
        let sk = text(format!("{at:02}"));
        Item::from([("pk".to_owned(), text(pk)), ("sk".to_owned(), sk), ("n".to_owned(), number(at))])
    };
    let items: Vec<Item> = (0..20).map(item).collect();
    let keys = items.iter().map(|item| {
        let mut key = item.clone();
        key.remove("n");
        key
    });
    let keys: Vec<Item> = keys.collect();

    client.put_item().table_name(table).set_item(Some(items[0].clone())).send().await.unwrap();
    let got = client.get_item().table_name(table).set_key(Some(keys[0].clone())).send().await.unwrap();
    assert_eq!(got.item(), Some(&items[0]));
    let update = client.update_item().table_name(table).set_key(Some(keys[0].clone()));
    let update = update.update_expression("ADD n :one").expression_attribute_values(":one", number(1));
    let added = update.return_values(ReturnValue::UpdatedNew).send().await.unwrap();
    assert_eq!(added.attributes().unwrap()["n"], number(1));

    let put = |item: &Item| PutRequest::builder().set_item(Some(item.clone())).build().unwrap();
    let puts = items[..15].iter().map(|item| WriteRequest::builder().put_request(put(item)).build());
    let written = client.batch_write_item().request_items(table, puts.collect()).send().await.unwrap();
    assert!(written.unprocessed_items().unwrap().is_empty());
    let put = |item: &Item| Put::builder().table_name(table).set_item(Some(item.clone())).build().unwrap();
    let puts = items[15..].iter().map(|item| TransactWriteItem::builder().put(put(item)).build());
    client.transact_write_items().set_transact_items(Some(puts.collect())).send().await.unwrap();

    let query = client.query().table_name(table).key_condition_expression("pk = :p");
    let mut pages = query.expression_attribute_values(":p", text(pk)).limit(7).into_paginator().send();
    let mut read = Vec::new();
    while let Some(page) = pages.next().await {
        read.push(page.unwrap().items.unwrap_or_default());
    }
    assert_eq!(read, [&items[..7], &items[7..14], &items[14..]]);
    let wanted = KeysAndAttributes::builder().set_keys(Some(keys.clone())).build().unwrap();
    let many = client.batch_get_item().request_items(table, wanted).send().await.unwrap();
    let mut many = many.responses.unwrap().remove(table).unwrap();
    many.sort_by_key(|item| item["sk"].as_s().unwrap().clone());
    assert_eq!(many, items);
    let get = |key: &Item| Get::builder().table_name(table).set_key(Some(key.clone())).build().unwrap();
    let gets = keys.iter().map(|key| TransactGetItem::builder().get(get(key)).build());
    let all = client.transact_get_items().set_transact_items(Some(gets.collect())).send().await.unwrap();
    let all: Vec<Item> = all.responses.unwrap().into_iter().filter_map(|answer| answer.item).collect();
    assert_eq!(all, items);
}

#[tokio::test]
async fn what_is_signed_is_served() {
    let known = Known::serve().await;
    for table in ["Scores", "Plain"] {
        create_table(&known.client(ADMIN), table).await;
        play(&known.client(ADMIN), table, "team1#key").await;
        play(&known.client(TEAM), table, "team1#token").await;
    }
}

#[tokio::test]
async fn what_is_signed_wrongly_is_refused_by_its_type() {
    let known = Known::serve().await;
    create_table(&known.client(ADMIN), "Scores").await;
    for (credentials, pk, expected) in [
        (("admin", "wrong", None), "team1#x", "InvalidSignatureException"),
        (("team1", "wrong", TEAM.2), "team1#x", "InvalidSignatureException"),
        (("team1", "team", None), "team1#x", "UnrecognizedClientException"),
        (("team1", "team", Some("another")), "team1#x", "UnrecognizedClientException"),
        (("nobody", "admin/+secret", None), "team1#x", "UnrecognizedClientException"),
        (TEAM, "team2#x", "AccessDeniedException"),
    ] {
        let put = known.client(credentials).put_item().table_name("Scores");
        let refused = put.item("pk", text(pk)).item("sk", text("x")).send().await.unwrap_err();
        assert_eq!(refused.code(), Some(expected), "{credentials:?}");
    }
}

#[tokio::test]
async fn a_gateway_of_another_ca_is_not_spoken_to() {
    let (known, other) = (Known::serve().await, Known::serve().await);
    let astray = Known { endpoint: known.endpoint, network: other.network };
    let failed = astray.client(ADMIN).list_tables().send().await.unwrap_err();
    let said = DisplayErrorContext(&failed).to_string();
    assert!(said.contains("certificate"), "{said}");
}
