//! Beside a server with a store of its own.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use heatsink_dynamo::Operation;
use heatsink_store::Store;
use heatsink_store::upstream::Endpoint;
use serde_json::{Value as Json, json};

use super::{ITEMS, Server, client, data, heatsink, local, pause, physical_keys};

/// Puts one item after another under `game` and reads each at once, until that is set. Returns how
/// many.
fn write_until(endpoint: Endpoint, done: &AtomicBool) -> usize {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = client(endpoint);
        let mut written = 0;
        while !done.load(Ordering::Relaxed) {
            let item = json!({ "pk": { "S": "game" }, "sk": { "S": format!("new {written:06}") } });
            let put = json!({ "TableName": "Scores", "Item": item });
            client.call(Operation::PutItem, Bytes::from(put.to_string())).await.unwrap();
            let get = json!({ "TableName": "Scores", "Key": item, "ConsistentRead": true });
            let found = client.call(Operation::GetItem, Bytes::from(get.to_string())).await.unwrap();
            let found: Json = serde_json::from_slice(&found).unwrap();
            assert_eq!(found["Item"], item, "after {written}");
            written += 1;
        }
        written
    })
}

#[test]
fn a_server_with_a_store_of_its_own_carries_out_what_is_asked_of_it() {
    let data = data("server");
    let place = data.parent().unwrap();
    let server = Server::start(&["--data", data.to_str().unwrap(), "--partitions", "off"]);
    let reshard = |server: &Server, args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_heatsink"));
        command.arg("reshard").args(args).args(["--server", &server.endpoint, "--output", "json"]);
        // It needs no credentials.
        let output = local(&mut command).env_remove("AWS_ACCESS_KEY_ID").current_dir(place).output().unwrap();
        let text = if output.status.success() { output.stdout } else { output.stderr };
        let text = String::from_utf8(text).unwrap();
        let last = text.lines().last().unwrap_or_default();
        let document: Json = serde_json::from_str(last).unwrap_or_else(|_| panic!("no JSON: {text}"));
        (output.status.code().unwrap(), document)
    };
    let (code, error) = reshard(&server, &["start", "Scores", "game", "--shards", "4", "--here"]);
    assert!(code == 64 && error.to_string().contains("--here"), "{code} {error}");
    // A client writes meanwhile.
    let endpoint = Endpoint::parse(&server.endpoint).unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let client = std::thread::spawn({
        let done = Arc::clone(&done);
        move || write_until(endpoint, &done)
    });
    let (code, report) = reshard(&server, &["start", "Scores", "game", "--shards", "4", "--wait"]);
    assert!(code == 0 && report["from"] == 1 && report["to"] == 4, "{code} {report}");
    done.store(true, Ordering::Relaxed);
    let written = client.join().unwrap();
    assert!(written > 20, "{written}");
    let (code, asked) = reshard(&server, &["start", "Scores", "taken", "--shards", "2"]);
    assert!(code == 0 && asked["gateways"] == 1, "{code} {asked}");
    let (code, status) = reshard(&server, &["status", "Scores"]);
    assert!(code == 0 && status["keys"][0]["shards"] == 4, "{code} {status}");

    // A gateway in front of another store shows it to nobody.
    let gateway = Server::start(&["--upstream", &server.endpoint, "--only-gateway"]);
    let (code, error) = reshard(&gateway, &["status"]);
    assert!(code == 64 && error.to_string().contains("say --upstream URL"), "{code} {error}");

    server.signal("TERM");
    let mut server = server;
    server.child.wait().unwrap();
    let keys = physical_keys(&data);
    let of_game = |key: &&String| *key == "game" || key.starts_with("game#~");
    assert_eq!(keys.iter().filter(of_game).count(), ITEMS + written);
    assert!(["game#~1", "game#~2", "game#~3"].iter().all(|key| keys.iter().any(|found| found == key)));
}

#[test]
fn a_server_goes_on_where_a_command_on_its_file_was_killed() {
    let data = data("killed-file");
    let place = data.parent().unwrap();
    let command = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_heatsink"));
        command.arg("reshard").current_dir(place).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let is_carried =
        || heatsink(&data, &["status"]).1["reshards"][0]["gateway"]["name"].as_str().map(str::to_owned);
    // Slower than a machine that is busy begins.
    let mut seconds = 1;
    let carrier = loop {
        let mut start = command();
        start.args(["start", "Scores", "game", "--shards", "4", "--rate", "8", "--data"]).arg(&data);
        let mut started = start.spawn().unwrap();
        pause(Duration::from_secs(seconds));
        started.kill().unwrap();
        assert_eq!(started.wait().unwrap().code(), None, "it had ended");
        match is_carried() {
            Some(carrier) => break carrier,
            None => seconds *= 2,
        }
    };
    assert!(carrier.starts_with("a command"), "{carrier}");
    let server = Server::start(&["--data", data.to_str().unwrap(), "--partitions", "off"]);
    for _ in 0..600 {
        let told = command()
            .args(["status", "Scores", "--output", "json", "--server", &server.endpoint])
            .stdout(Stdio::piped())
            .output()
            .unwrap();
        let told: Json = serde_json::from_slice(&told.stdout).unwrap();
        let key = &told["keys"][0];
        if key["shards"] == 4 && key["settled"] == true {
            return;
        }
        pause(Duration::from_millis(100));
    }
    panic!("the server did not go on");
}
