//! `GET /_heatsink/heat` of a server in front of the embedded store: which keys it shows as hot,
//! and with what rates.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "sockets keep real time")]

use std::io::Read;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_control::Rules;
use heatsink_dynamo::{Code, Error, Operation};
use heatsink_gateway::http::{Access, Hosts};
use heatsink_gateway::{Gateway, Service};
use heatsink_layout::{By, Hash, Layout, SortKey, Strategy};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use serde_json::{Value as Json, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The embedded store, which throttles what is for the key `burning`, and leaves one member of each
/// batch of writes unprocessed.
struct Hot(Embedded);

impl Store for Hot {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        let text = String::from_utf8_lossy(&body).into_owned();
        if operation == Operation::PutItem && text.contains("burning") {
            let body = json!({
                "__type": "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
                "message": "slow down",
                "ThrottlingReasons": [{ "reason": "TableWriteKeyRangeThroughputExceeded", "resource": "arn" }],
            });
            let error = Error::from_wire(400, Bytes::from(body.to_string()));
            return async move { Err(error) }.boxed();
        }
        async move {
            let answer = self.0.call(operation, body).await?;
            if operation != Operation::BatchWriteItem {
                return Ok(answer);
            }
            let request: Json = serde_json::from_str(&text).unwrap();
            let left = &request["RequestItems"]["games"][0];
            Ok(Bytes::from(json!({ "UnprocessedItems": { "games": [left] } }).to_string()))
        }
        .boxed()
    }
}

struct Server {
    /// The admin address.
    address: SocketAddr,
    service: Arc<Service>,
}

impl Server {
    async fn start(rules: &str) -> Server {
        let store = Arc::new(Hot(Embedded::memory().unwrap()));
        let rules = Rules::read("rules", rules).unwrap();
        let gateway = Gateway::builder(store).rules(rules).start().await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let service = Arc::clone(gateway.service());
        let access = Access::Hosts(Hosts::loopback());
        tokio::spawn(gateway.serve_admin(listener, access, std::future::pending()));
        let clients = TcpListener::bind("127.0.0.1:0").await.unwrap();
        tokio::spawn(gateway.serve(clients, Hosts::loopback(), std::future::pending()));
        let server = Server { address, service };
        let create = json!({
            "TableName": "games", "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{ "AttributeName": "pk", "AttributeType": "S" }, { "AttributeName": "sk", "AttributeType": "N" },
                { "AttributeName": "owner", "AttributeType": "S" }],
            "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }, { "AttributeName": "sk", "KeyType": "RANGE" }],
            "GlobalSecondaryIndexes": [{ "IndexName": "by-owner", "Projection": { "ProjectionType": "ALL" },
                "KeySchema": [{ "AttributeName": "owner", "KeyType": "HASH" }] }],
        });
        server.call(Operation::CreateTable, &create).await.unwrap();
        // The first request names the table; then its keys are asked for.
        server.get("first").await;
        let started = Instant::now();
        loop {
            server.get("first").await;
            tokio::time::sleep(Duration::from_millis(20)).await;
            if server.heat("").await["parts"].as_array().is_some_and(|parts| !parts.is_empty()) {
                return server;
            }
            assert!(started.elapsed() < Duration::from_secs(20), "no heat is counted");
        }
    }

    async fn call(&self, operation: Operation, body: &Json) -> Result<Json, Error> {
        let answer = self.service.call(operation, Bytes::from(body.to_string())).await?;
        Ok(serde_json::from_slice(&answer).unwrap())
    }

    async fn get(&self, key: &str) {
        let body = json!({ "TableName": "games", "Key": { "pk": { "S": key }, "sk": { "N": "1" } } });
        self.call(Operation::GetItem, &body).await.unwrap();
    }

    async fn put(&self, key: &str, sort: u64) -> Result<Json, Error> {
        let item = json!({ "pk": { "S": key }, "sk": { "N": sort.to_string() }, "owner": { "S": "o" } });
        self.call(Operation::PutItem, &json!({ "TableName": "games", "Item": item })).await
    }

    async fn heat(&self, query: &str) -> Json {
        self.ask(query, "HTTP/1.1 200").await
    }

    /// Asks over HTTP, behind `/_heatsink/heat`.
    async fn ask(&self, query: &str, status: &str) -> Json {
        let (head, body) = self.get_with(query, "").await;
        assert!(head.starts_with(status), "{head}");
        serde_json::from_slice(&body).unwrap()
    }

    /// The head and the body of an answer behind `/_heatsink/heat`, to a request with these
    /// headers.
    async fn get_with(&self, query: &str, headers: &str) -> (String, Vec<u8>) {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        let request = format!(
            "GET /_heatsink/heat{query} HTTP/1.1\r\nhost: localhost\r\n{headers}connection: close\r\n\r\n"
        );
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer).await.unwrap();
        let body = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
        (
            String::from_utf8_lossy(&answer[..body]).to_lowercase().replacen("http/", "HTTP/", 1),
            answer[body..].to_vec(),
        )
    }

    /// The heat of the first window for which `holds`, while this goes on.
    async fn heat_when(&self, traffic: impl AsyncFn(), holds: impl Fn(&Json) -> bool) -> Json {
        let begun = Instant::now();
        loop {
            traffic().await;
            let heat = self.heat("?table=games").await;
            if holds(&heat) {
                return heat;
            }
            assert!(begun.elapsed() < Duration::from_secs(40), "{heat}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Runs this, and shows the window that holds all of its accesses: so many. Where a window
    /// ended in between, it runs again.
    async fn window(&self, accesses: f64, traffic: impl AsyncFn()) -> Json {
        for _ in 0..20 {
            traffic().await;
            let ran = Instant::now();
            while ran.elapsed() < Duration::from_millis(1_800) {
                let heat = self.heat("?table=games").await;
                let parts = heat["parts"].as_array().unwrap().iter();
                let counted: f64 = parts.map(|part| times(&heat, &part["requests_per_s"])).sum();
                if (counted - accesses).abs() < 1e-6 {
                    return heat;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
        panic!("no window has {accesses} accesses: {}", self.heat("?table=games").await);
    }
}

fn part<'a>(heat: &'a Json, index: Option<&str>, kind: &str) -> &'a Json {
    let parts = heat["parts"].as_array().unwrap().iter();
    let mut found = parts
        .filter(|part| part["kind"] == kind && part["index"] == json!(index) && part["table"] == "games");
    found.next().unwrap_or_else(|| panic!("no part {index:?} {kind} in {heat}"))
}

fn key<'a>(part: &'a Json, key: &str) -> &'a Json {
    let keys = part["keys"].as_array().unwrap();
    keys.iter().find(|one| one["key"] == json!({ "S": key })).unwrap_or_else(|| panic!("no {key} in {part}"))
}

/// What was counted in the window, of a rate.
fn times(heat: &Json, rate: &Json) -> f64 {
    rate.as_f64().unwrap() * heat["window_ms"].as_f64().unwrap() / 1_000.0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hot_key_among_cold_ones_is_shown() {
    let server = Server::start("").await;
    let heat = server
        .window(370.0, async || {
            for at in 0..100 {
                server.put("hot", at).await.unwrap();
                if at % 2 == 0 {
                    server.put(&format!("cold_{at}"), at).await.unwrap();
                    server.get("cold").await;
                }
            }
            for _ in 0..10 {
                server.put("burning", 1).await.unwrap_err();
            }
        })
        .await;
    let writes = part(&heat, None, "write");
    let hot = &writes["keys"][0];
    assert_eq!(hot["key"], json!({ "S": "hot" }), "{heat}");
    assert!((times(&heat, &hot["units_per_s"]) - 100.0).abs() < 1e-6, "{heat}");
    assert_eq!((&hot["error_units_per_s"], &hot["shards"]), (&json!(0.0), &Json::Null));
    assert_eq!(hot["growing_sort_share"], 1.0);
    assert!((times(&heat, &writes["units_per_s"]) - 160.0).abs() < 1e-6);
    let burning = key(writes, "burning");
    assert!((times(&heat, &burning["throttled_per_s"]) - 10.0).abs() < 1e-6);
    assert!((times(&heat, &burning["throttled_by_partition_per_s"]) - 10.0).abs() < 1e-6);
    // All items have the same owner: the index's key is hotter than any of the table's.
    let index = part(&heat, Some("by-owner"), "write");
    assert!((times(&heat, &key(index, "o")["units_per_s"]) - 160.0).abs() < 1e-6);
    let read = key(part(&heat, None, "read"), "cold");
    assert!((times(&heat, &read["units_per_s"]) - 25.0).abs() < 1e-6);
    assert_eq!(read["same_page_share"], 1.0);
    // The history takes each window within a second.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let map = server.heat("/map?span=10m").await;
    assert_eq!((&map["step_ms"], &map["columns"]), (&json!(1_000), &json!(600)));
    let rows = map["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["key"] == json!({ "S": "hot" })).unwrap_or_else(|| panic!("{map}"));
    assert_eq!((&row["table"], &row["index"], &row["kind"]), (&json!("games"), &Json::Null, &json!("write")));
    let sum: f64 = row["units"].as_array().unwrap().iter().map(|cell| cell.as_f64().unwrap()).sum();
    // Once for each run of the traffic.
    let runs = (sum / 100.0).round();
    assert!(runs > 0.0 && (sum - 100.0 * runs).abs() < 0.1, "{sum}: {row}");
    assert_eq!(row["throttled"].as_array().unwrap().len(), 600);
    server.ask("/map?span=1h", "HTTP/1.1 400").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_transactions_queries_and_statements_are_counted() {
    let server = Server::start("[[rule]]\ntable = \"games\"\nstrategy = \"calculated\"\nshards = 4\n").await;
    let item = |key: &str, at: u64| json!({ "pk": { "S": key }, "sk": { "N": at.to_string() } });
    let heat = server
        .window(15.0, async || {
            let put = |at| json!({ "PutRequest": { "Item": item("batch", at) } });
            let batch = json!({ "RequestItems": { "games": (0..5).map(put).collect::<Vec<_>>() } });
            server.call(Operation::BatchWriteItem, &batch).await.unwrap();
            let keys: Vec<_> = (0..5).map(|at| item("batch", at)).collect();
            let batch = json!({ "RequestItems": { "games": { "Keys": keys } } });
            server.call(Operation::BatchGetItem, &batch).await.unwrap();
            let put = json!({ "Put": { "TableName": "games", "Item": item("transaction", 1) } });
            let delete = json!({ "Delete": { "TableName": "games", "Key": item("transaction", 2) } });
            server.call(Operation::TransactWriteItems, &json!({ "TransactItems": [put, delete] })).await.unwrap();
            let get = json!({ "Get": { "TableName": "games", "Key": item("transaction", 1) } });
            server.call(Operation::TransactGetItems, &json!({ "TransactItems": [get] })).await.unwrap();
            let query = json!({
                "TableName": "games", "KeyConditionExpression": "#p = :p AND sk > :s", "ExpressionAttributeNames": { "#p": "pk" },
                "ExpressionAttributeValues": { ":p": { "S": "queried" }, ":s": { "N": "1" } },
            });
            server.call(Operation::Query, &query).await.unwrap();
            let statement = json!({
                "Statement": "SELECT * FROM games WHERE pk = ?", "Parameters": [{ "S": "stated" }], "ConsistentRead": true,
            });
            server.call(Operation::ExecuteStatement, &statement).await.unwrap();
        })
        .await;
    let (reads, writes) = (part(&heat, None, "read"), part(&heat, None, "write"));
    for (part, name, units, throttled) in [
        (writes, "batch", 5.0, 1.0),
        (reads, "batch", 2.5, 0.0),
        (writes, "transaction", 4.0, 0.0),
        (reads, "transaction", 2.0, 0.0),
        // Each of the four shards takes the least.
        (reads, "queried", 2.0, 0.0),
        (reads, "stated", 4.0, 0.0),
    ] {
        let shown = key(part, name);
        assert!((times(&heat, &shown["units_per_s"]) - units).abs() < 1e-6, "{name}: {heat}");
        assert!((times(&heat, &shown["throttled_per_s"]) - throttled).abs() < 1e-6, "{name}: {heat}");
        assert_eq!(shown["shards"], 4);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_takes_its_load_by_batches_is_shown_in_each_window() {
    let server = Server::start("").await;
    let batch = |key: &str, of: u32| {
        let put = |at: u32| json!({ "PutRequest": { "Item": { "pk": { "S": key }, "sk": { "N": (of * 25 + at).to_string() } } } });
        json!({ "RequestItems": { "games": (0..25).map(put).collect::<Vec<_>>() } })
    };
    let write =
        async |key: &str, of: u32| server.call(Operation::BatchWriteItem, &batch(key, of)).await.unwrap();
    let units = |heat: &Json, name: &str| -> f64 {
        let parts = heat["parts"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|part| part["kind"] == "write" && part["index"].is_null());
        let keys = parts.flat_map(|part| part["keys"].as_array().unwrap());
        keys.filter(|key| key["key"] == json!({ "S": name }))
            .map(|key| key["units_per_s"].as_f64().unwrap())
            .sum()
    };
    // Some 2,000 items a second: those beyond 1,000 are drawn.
    let begun = Instant::now();
    let (mut windows, mut of) = (Vec::new(), 0_u32);
    let mut last = server.heat("").await["window"].as_u64();
    while windows.len() < 6 {
        write("hot", of).await;
        of += 1;
        tokio::time::sleep(Duration::from_millis(12)).await;
        let heat = server.heat("").await;
        if heat["window"].as_u64() != last {
            last = heat["window"].as_u64();
            windows.push(units(&heat, "hot"));
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{windows:?}");
    }
    // The first window was under way already.
    let about = 25.0 * of as f64 / begun.elapsed().as_secs_f64();
    assert!(
        windows[1..].iter().all(|seen| (about * 0.4..about * 2.5).contains(seen)),
        "{windows:?} of {about}"
    );
    // A burst is over: what comes now is counted item by item, within two seconds.
    let begun = Instant::now();
    loop {
        write("steady", of).await;
        of += 1;
        tokio::time::sleep(Duration::from_millis(90)).await;
        let heat = server.heat("").await;
        if units(&heat, "steady") > 100.0 && units(&heat, "hot") == 0.0 {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(8), "{heat}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_names_are_escaped_and_others_are_not_counted() {
    let server = Server::start("").await;
    let long = "x".repeat(2_048);
    let hostile = [
        "<script>alert(1)</script>",
        "\u{1b}[31mred\u{7}",
        "line\nbreak\r\n\r\n",
        "\"}],\u{0}\u{2028}",
        &long,
    ];
    // Five puts that an index takes, and five that take the item out of it again.
    let heat = server
        .window(20.0, async || {
            for name in hostile {
                server.put(name, 1).await.unwrap();
                // The same key in another spelling.
                let escaped: String = name.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
                let body = format!(
                    r#"{{ "TableName" : "games", "Item" : {{ "sk": {{"N":"1e0"}}, "pk" : {{ "S" : "{escaped}" }} }} }}"#
                );
                server.service.call(Operation::PutItem, Bytes::from(body)).await.unwrap();
            }
            let nowhere = json!({ "TableName": "nowhere", "Key": { "pk": { "S": "a" } } });
            let error = server.call(Operation::GetItem, &nowhere).await.unwrap_err();
            assert_eq!(error.code, Code::ResourceNotFoundException);
        })
        .await;
    let writes = part(&heat, None, "write");
    for name in hostile {
        // Written twice; the long key takes three units each time.
        let units = if name == long { 6.0 } else { 2.0 };
        assert!((times(&heat, &key(writes, name)["units_per_s"]) - units).abs() < 1e-6, "{name}: {heat}");
    }
    assert!(server.heat("?table=nowhere").await["parts"].as_array().unwrap().is_empty());
}

/// Units of each shard that were measured of a key; none where nothing was.
fn measured(heat: &Json, kind: &str, name: &str) -> Vec<f64> {
    let parts = heat["parts"].as_array().unwrap().iter();
    let keys = parts
        .filter(|part| part["kind"] == kind && part["index"].is_null())
        .flat_map(|part| part["keys"].as_array().unwrap());
    let of = keys.filter(|key| key["key"] == json!({ "S": name }));
    let shards = of.filter_map(|key| key["measured"].as_array()).flatten();
    shards.map(|shard| times(heat, &shard["units_per_s"])).collect()
}

/// Its shards, told by numbers and by binary keys as by strings.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shards_of_numbers_and_of_binary_keys_are_measured() {
    let server = Server::start("[[rule]]\ntable = \"*\"\nstrategy = \"calculated\"\nshards = 4\n").await;
    let hot = [("N", "-12.50", "-12.5"), ("B", "/wA=", "/wA=")];
    for (kind, _, _) in hot {
        let create = json!({
            "TableName": format!("games-{kind}"), "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{ "AttributeName": "pk", "AttributeType": kind }, { "AttributeName": "sk", "AttributeType": "N" }],
            "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }, { "AttributeName": "sk", "KeyType": "RANGE" }],
        });
        server.call(Operation::CreateTable, &create).await.unwrap();
    }
    let puts = async || {
        for sort in 0..16 {
            for (kind, key, _) in hot {
                let item = json!({ "pk": { kind: key }, "sk": { "N": sort.to_string() } });
                let put = json!({ "TableName": format!("games-{kind}"), "Item": item });
                server.call(Operation::PutItem, &put).await.unwrap();
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let of = |heat: &Json, kind: &str, key: &str| -> Vec<f64> {
        let parts = heat["parts"].as_array().unwrap().iter().filter(|part| part["kind"] == "write");
        let keys = parts.flat_map(|part| part["keys"].as_array().unwrap());
        let of = keys.filter(|one| one["key"] == json!({ kind: key }));
        let shards = of.filter_map(|one| one["measured"].as_array()).flatten();
        shards.map(|shard| times(heat, &shard["units_per_s"])).collect()
    };
    let busy = |heat: &Json| {
        hot.iter().all(|(kind, _, key)| {
            let units = of(heat, kind, key);
            units.len() == 4 && units.iter().filter(|units| **units > 1.0).count() > 1
        })
    };
    let begun = Instant::now();
    loop {
        puts().await;
        let heat = server.heat("").await;
        if busy(&heat) {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(40), "{heat}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_each_shard_of_a_hot_key_takes_is_measured() {
    const SHARDS: u16 = 4;
    let rule = format!("[[rule]]\ntable = \"games\"\nstrategy = \"calculated\"\nshards = {SHARDS}\n");
    let server = Server::start(&rule).await;
    let layout = Layout {
        strategy: Strategy::calculated(By::SortKey),
        shards: SHARDS,
        hash: Hash::JumpXxh3,
        version: 1,
    };
    let shard = |sort: u64| usize::from(layout.shard_of(Some(SortKey::N(&sort.to_string()))));
    // Twelve items of shard 2, four of shard 0, none of the others: no equal shares.
    let of_shard = |wanted: usize, count: usize| (0..).filter(move |sort| shard(*sort) == wanted).take(count);
    let sorts: Vec<u64> = of_shard(2, 12).chain(of_shard(0, 4)).collect();
    // Below 1,000 items a second, so that none is left to a draw.
    let puts = async || {
        for sort in &sorts {
            server.put("hot", *sort).await.unwrap();
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let heat = server
        .heat_when(puts, |heat| {
            let units = measured(heat, "write", "hot");
            units.len() == 4 && units[0] > 10.0
        })
        .await;
    let units = measured(&heat, "write", "hot");
    assert_eq!((units[1], units[3]), (0.0, 0.0), "{heat}");
    assert!((units[2] / units[0] - 3.0).abs() < 1.0, "{units:?}");
    let whole = times(&heat, &key(part(&heat, None, "write"), "hot")["units_per_s"]);
    // A call is counted before its request is, so a window may end between the two.
    assert!((units.iter().sum::<f64>() - whole).abs() <= 1.5, "{units:?} of {whole}");
    // A Query reads every shard.
    let query = json!({ "TableName": "games", "KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": { ":p": { "S": "hot" } } });
    let queries = async || {
        server.call(Operation::Query, &query).await.unwrap();
        tokio::time::sleep(Duration::from_millis(2)).await;
    };
    let heat =
        server.heat_when(queries, |heat| measured(heat, "read", "hot").iter().sum::<f64>() > 8.0).await;
    let units = measured(&heat, "read", "hot");
    assert!(units.iter().all(|shard| (shard - units[0]).abs() <= 0.5), "{units:?}");
    let whole = times(&heat, &key(part(&heat, None, "read"), "hot")["units_per_s"]);
    assert!((units.iter().sum::<f64>() - whole).abs() <= 2.0, "{units:?} of {whole}");
    // The map has the same, with the skew, and none for what was not sharded hot.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let map = server.heat("/map?span=10m").await;
    let rows = map["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["key"] == json!({ "S": "hot" }) && row["kind"] == "write").unwrap();
    let sum = |shard: usize| -> f64 {
        row["measured"][shard]["units"].as_array().unwrap().iter().map(|units| units.as_f64().unwrap()).sum()
    };
    assert_eq!((row["measured"].as_array().unwrap().len(), sum(1), sum(3)), (4, 0.0, 0.0), "{row}");
    assert!((sum(2) / sum(0) - 3.0).abs() < 1.0, "{row}");
    // A shard that the store throttles is told apart.
    let burning = async || {
        server.put("burning", sorts[0]).await.unwrap_err();
    };
    let heat =
        server.heat_when(burning, |heat| measured(heat, "write", "burning").iter().sum::<f64>() > 3.0).await;
    let shards = &key(part(&heat, None, "write"), "burning")["measured"];
    let throttled: Vec<bool> =
        (0..4).map(|at| shards[at]["throttled_per_s"].as_f64().unwrap() > 0.0).collect();
    assert_eq!(throttled, [false, false, true, false], "{heat}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_map_is_in_gzip_for_those_who_take_it() {
    let server = Server::start("").await;
    server
        .window(50.0, async || {
            for at in 0..25 {
                server.put(&format!("key_{at}"), 1).await.unwrap();
            }
        })
        .await;
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let plain = |body: &[u8]| serde_json::from_slice::<Json>(body).unwrap()["rows"].as_array().unwrap().len();
    let (head, packed) = server.get_with("/map?span=6h", "accept-encoding: br, gzip;q=0.9\r\n").await;
    assert!(head.contains("content-encoding: gzip") && head.contains("vary: accept-encoding"), "{head}");
    let mut inflated = Vec::new();
    flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut inflated).unwrap();
    assert!(plain(&inflated) >= 25);
    for refuses in [
        "",
        "accept-encoding: gzip;q=0\r\n",
        "accept-encoding: identity\r\n",
        "accept-encoding: gzip;q=nine\r\n",
    ] {
        let (head, body) = server.get_with("/map?span=6h", refuses).await;
        assert!(!head.contains("content-encoding") && head.contains("vary: accept-encoding"), "{head}");
        assert!(
            plain(&body) >= 25 && body.len() > 10 * packed.len(),
            "{} and {} bytes",
            body.len(),
            packed.len()
        );
    }
}
