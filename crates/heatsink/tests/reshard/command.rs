//! `heatsink reshard` as an operator runs it, on a data file and beside gateways in processes of their own: words, JSON, exit codes, what is refused.
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use bytes::Bytes;
use heatsink_dynamo::Operation;
use heatsink_env::{Env, RealEnv};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use heatsink_store::upstream::{Bounds, Endpoint, Upstream};
use serde_json::{Value as Json, json};

const ITEMS: usize = 60;

/// A data file with items under `game`, one under a name that looks like a shard of `taken`, and a table without a sort key.
pub(super) fn data(name: &str) -> PathBuf {
    let place = std::env::temp_dir().join(format!("heatsink-reshard-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&place);
    std::fs::create_dir_all(&place).unwrap();
    let path = place.join("data.db");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Embedded::file(&path).unwrap();
        let call = async |operation, body: Json| {
            store.call(operation, Bytes::from(body.to_string())).await.unwrap();
        };
        let attribute = |name: &str| json!({ "AttributeName": name, "AttributeType": "S" });
        let key = |name: &str, kind: &str| json!({ "AttributeName": name, "KeyType": kind });
        for (table, keys) in [("Scores", vec!["pk", "sk"]), ("Flat", vec!["pk"])] {
            let schema: Vec<Json> = keys.iter().zip(["HASH", "RANGE"]).map(|(name, kind)| key(name, kind)).collect();
            let attributes: Vec<Json> = keys.iter().map(|name| attribute(name)).collect();
            let body = json!({
                "TableName": table, "BillingMode": "PAY_PER_REQUEST", "KeySchema": schema, "AttributeDefinitions": attributes,
            });
            call(Operation::CreateTable, body).await;
        }
        for number in 0..ITEMS {
            let item = json!({ "pk": { "S": "game" }, "sk": { "S": format!("{number:03}") } });
            call(Operation::PutItem, json!({ "TableName": "Scores", "Item": item })).await;
        }
        let item = json!({ "pk": { "S": "taken#~2" }, "sk": { "S": "a" } });
        call(Operation::PutItem, json!({ "TableName": "Scores", "Item": item })).await;
    });
    path
}

/// The exit code, and the JSON document on stdout or stderr.
pub(super) fn heatsink(data: &Path, args: &[&str]) -> (i32, Json) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heatsink"));
    command.arg("reshard").args(args).arg("--data").arg(data).args(["--output", "json"]);
    let output = command.current_dir(data.parent().unwrap()).stdin(Stdio::null()).output().unwrap();
    let text = if output.status.success() { output.stdout } else { output.stderr };
    let text = String::from_utf8(text).unwrap();
    let last = text.lines().last().unwrap_or_default();
    let document = serde_json::from_str(last).unwrap_or_else(|_| panic!("no JSON: {text}"));
    (output.status.code().unwrap(), document)
}

fn physical_keys(data: &Path) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Embedded::file(data).unwrap();
        let (mut keys, mut scan) = (Vec::new(), json!({ "TableName": "Scores" }));
        loop {
            let page = store.call(Operation::Scan, Bytes::from(scan.to_string())).await.unwrap();
            let page: Json = serde_json::from_slice(&page).unwrap();
            let items = page["Items"].as_array().unwrap().iter();
            keys.extend(items.map(|item| item["pk"]["S"].as_str().unwrap().to_owned()));
            match page.get("LastEvaluatedKey") {
                Some(last) => scan["ExclusiveStartKey"] = last.clone(),
                None => return keys,
            }
        }
    })
}

#[test]
fn a_key_goes_to_four_shards_and_back() {
    let data = data("back");
    let start = |shards: &str, more: &[&str]| {
        let args = [&["start", "Scores", "game", "--shards", shards], more].concat();
        heatsink(&data, &args)
    };
    let (code, plan) = start("4", &["--dry-run"]);
    assert_eq!((code, &plan["items"], &plan["from"], &plan["to"]), (0, &json!(ITEMS), &json!(1), &json!(4)));
    let next = format!("heatsink reshard start Scores game --data {} --shards 4", data.display());
    assert_eq!(plan["next_steps"], json!([next]));
    assert_eq!(heatsink(&data, &["status", "Scores"]).1["keys"], json!([]), "a dry run writes nothing");

    let (code, report) = start("4", &[]);
    let moved = report["moved"].as_u64().unwrap();
    assert_eq!((code, &report["from"], &report["to"]), (0, &json!(1), &json!(4)));
    let keys = physical_keys(&data);
    assert_eq!(keys.iter().filter(|key| key.starts_with("game#~")).count() as u64, moved);
    assert_eq!(keys.iter().filter(|key| key.starts_with("game")).count(), ITEMS);
    assert!(
        ["game", "game#~1", "game#~2", "game#~3"].iter().all(|key| keys.iter().any(|found| found == key))
    );
    let status = heatsink(&data, &["status", "Scores"]).1;
    assert_eq!((&status["keys"][0]["shards"], &status["keys"][0]["moves"]), (&json!(4), &Json::Null));
    assert_eq!(start("4", &[]).1["already"], true);

    assert_eq!(start("1", &[]).1["moved"], moved);
    let keys = physical_keys(&data);
    assert_eq!(keys.iter().filter(|key| *key == "game").count(), ITEMS);
    assert!(!keys.iter().any(|key| key.starts_with("game#~")));
}

#[test]
fn what_cannot_be_is_refused_and_nothing_is_half_changed() {
    let data = data("refused");
    let refused = |args: &[&str], code: i32, why: &str| {
        let (found, error) = heatsink(&data, args);
        let text = error.to_string();
        assert!(found == code && text.contains(why), "{args:?}: exit {found}, {text}");
    };
    refused(&["start", "Nowhere", "game", "--shards", "4"], 64, "no table Nowhere");
    refused(&["start", "Flat", "game", "--shards", "4"], 64, "has no sort key");
    refused(&["start", "Scores", "game", "--shards", "0"], 64, "1 to 1000 shards");
    refused(&["start", "Scores", "game", "--shards", "1001"], 64, "1 to 1000 shards");
    // A client's own item lies under a name that a shard would have.
    refused(&["start", "Scores", "taken", "--shards", "4"], 1, "taken#~2");
    let status = heatsink(&data, &["status", "Scores"]).1;
    assert_eq!(
        (&status["keys"][0]["shards"], &status["keys"][0]["reserved"]),
        (&json!(1), &json!(1)),
        "{status}"
    );
    assert!(physical_keys(&data).contains(&"taken#~2".to_owned()));
    // With fewer shards that name is the client's own.
    assert_eq!(heatsink(&data, &["start", "Scores", "taken", "--shards", "2"]).0, 0);
}

#[test]
fn a_table_with_rules_that_is_not_on_record_with_them_is_refused() {
    let data = data("ruled");
    let rules = "[[rule]]\ntable = \"Scores\"\nkeys = \"other*\"\nstrategy = \"calculated\"\nshards = 4\n";
    std::fs::write(data.with_file_name("heatsink.toml"), rules).unwrap();
    let (code, refused) = heatsink(&data, &["start", "Scores", "game", "--shards", "4"]);
    assert_eq!(code, 64, "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("heatsink adopt Scores"), "{refused}");
    assert_eq!(heatsink(&data, &["status", "Scores"]).1["keys"], json!([]), "nothing is on record");
}

fn put(data: &Path, key: &str, sort: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Embedded::file(data).unwrap();
        let item = json!({ "TableName": "Scores", "Item": { "pk": { "S": key }, "sk": { "S": sort } } });
        store.call(Operation::PutItem, Bytes::from(item.to_string())).await.unwrap();
    });
}

/// A writer that bypasses Heatsink put it there: nobody may delete the only copy.
#[test]
fn an_item_that_lies_in_the_wrong_shard_alone_is_kept_and_ends_the_move() {
    let data = data("misplaced");
    assert_eq!(heatsink(&data, &["start", "Scores", "game", "--shards", "4"]).0, 0);
    // Of so many some belong to another shard than the first.
    for number in 0..20 {
        put(&data, "game", &format!("bypassing-{number}"));
    }
    let before = physical_keys(&data).len();
    let (code, error) = heatsink(&data, &["start", "Scores", "game", "--shards", "8"]);
    assert!(code == 1 && error.to_string().contains("verify --repair"), "{code} {error}");
    assert_eq!(physical_keys(&data).len(), before, "nothing was deleted");
    assert_eq!(heatsink(&data, &["status", "Scores"]).1["keys"][0]["shards"], 4);
}

/// A copy whose item lies in its place is what an earlier move left, and is cleared.
#[test]
fn an_old_copy_is_cleared() {
    let data = data("orphan");
    assert_eq!(heatsink(&data, &["start", "Scores", "game", "--shards", "4"]).0, 0);
    for number in 0..ITEMS {
        put(&data, "game", &format!("{number:03}"));
    }
    let (code, report) = heatsink(&data, &["start", "Scores", "game", "--shards", "8"]);
    assert_eq!(code, 0, "{report}");
    assert_eq!(physical_keys(&data).iter().filter(|key| key.starts_with("game")).count(), ITEMS);
}

#[test]
fn a_recorded_key_with_the_name_of_a_shard_is_not_taken_over() {
    let data = data("nested");
    assert_eq!(heatsink(&data, &["start", "Scores", "hot#~1", "--shards", "4"]).0, 0);
    let (code, error) = heatsink(&data, &["start", "Scores", "hot", "--shards", "4"]);
    assert!(code == 1 && error.to_string().contains("is itself a key on record"), "{code} {error}");
    let (code, error) = heatsink(&data, &["start", "Scores", "hot#~1#~2", "--shards", "4"]);
    assert!(code == 64 && error.to_string().contains("physical key of a shard"), "{code} {error}");
}

#[test]
fn strategies_that_single_keys_cannot_have_are_refused_by_name() {
    let data = data("strategies");
    for (strategy, why) in [
        ("time_bucket", "needs a rule"),
        ("template", "needs a rule"),
        ("none", "--shards 1"),
        ("moon", "`random` or `counter`"),
    ] {
        let (code, error) =
            heatsink(&data, &["start", "Scores", "game", "--shards", "4", "--strategy", strategy]);
        assert!(code == 64 && error.to_string().contains(why), "{strategy}: {code} {error}");
    }
    let part = ["start", "Scores", "game", "--shards", "4", "--separator", "1", "--part", "0"];
    assert_eq!(heatsink(&data, &part).0, 0);
    // As it is laid out already; by the whole sort key it is not.
    assert_eq!(heatsink(&data, &["start", "Scores", "game", "--shards", "4"]).1["already"], true);
    let (code, report) =
        heatsink(&data, &["start", "Scores", "game", "--shards", "4", "--strategy", "random"]);
    assert!(code == 0 && report["moved"].as_u64().unwrap() > 0, "{report}");
    assert_eq!(physical_keys(&data).iter().filter(|key| key.starts_with("game")).count(), ITEMS);
}

#[test]
fn a_dry_run_says_what_it_takes() {
    let data = data("plan");
    let plan = heatsink(&data, &["start", "Scores", "game", "--shards", "4", "--dry-run"]).1;
    let phases =
        ["RESERVE", "PREPARE", "HOLD", "CHECK (only if some request was not answered)", "MOVE", "STABLE"];
    assert_eq!(plan["phases"], json!(phases));
    let number = |name: &str| plan[name].as_f64().unwrap_or_else(|| panic!("{name}: {plan}"));
    assert_eq!((number("to_move"), number("write_units")), (45.0, 45.0 * 12.0));
    assert!(number("bytes_to_move") > 0.0 && number("dollars") > 0.0 && number("stall_millis") > 0.0);
    assert_eq!(number("longest_stall_millis"), 32_600.0);
    let empty = heatsink(&data, &["start", "Scores", "nobody", "--shards", "4", "--dry-run"]).1;
    assert_eq!((&empty["items"], &empty["to_move"]), (&json!(0), &json!(0)));
}

#[test]
fn a_table_with_time_to_live_says_what_differs_and_is_resharded() {
    let data = data("expiry");
    let set = |enabled: bool| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let specification = json!({ "Enabled": enabled, "AttributeName": "gone" });
            let body = json!({ "TableName": "Scores", "TimeToLiveSpecification": specification });
            let store = Embedded::file(&data).unwrap();
            store.call(Operation::UpdateTimeToLive, Bytes::from(body.to_string())).await.unwrap();
        });
    };
    let plan = ["start", "Scores", "game", "--shards", "4", "--dry-run"];
    assert_eq!(heatsink(&data, &plan).1["time_to_live"], Json::Null);
    set(true);
    assert_eq!(heatsink(&data, &plan).1["time_to_live"], "gone");
    let mut command = Command::new(env!("CARGO_BIN_EXE_heatsink"));
    let told = command.arg("reshard").args(plan).arg("--data").arg(&data).output().unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(told.contains("The table has time to live") && told.contains("\"gone\""), "{told}");
    let (code, report) = heatsink(&data, &plan[..5]);
    assert!(code == 0 && report["to"] == 4 && report["moved"].as_u64() > Some(0), "{report}");
    assert!(physical_keys(&data).iter().any(|key| key == "game#~1"));
}

#[test]
fn many_keys_are_named_in_a_file_or_by_how_they_begin() {
    let data = data("many");
    let file = data.with_file_name("keys");
    std::fs::write(&file, "game\nnobody\n\ngame\n").unwrap();
    let file = file.to_str().unwrap();
    let start = |more: &[&str]| heatsink(&data, &[&["start", "Scores", "--shards", "2"], more].concat());
    let plan = start(&["--file", file, "--dry-run"]).1;
    assert_eq!((plan["keys"].as_array().unwrap().len(), &plan["items"]), (2, &json!(ITEMS)));
    let report = start(&["--file", file]).1;
    assert_eq!(report["moved"].as_array().unwrap().len(), 2, "{report}");
    // Physical keys are read as the key that they are of.
    let report = start(&["--prefix", "ga"]).1;
    assert_eq!((&report["already"], &report["items_read"]), (&json!(["game"]), &json!(ITEMS + 1)));
    let (code, error) = start(&["--prefix", "zz"]);
    assert!(code == 64 && error.to_string().contains("61 items were read"), "{error}");
    std::fs::write(file, (0..1_001).map(|number| format!("{number}\n")).collect::<String>()).unwrap();
    let (code, error) = start(&["--file", file]);
    assert!(code == 64 && error.to_string().contains("1000 at most"), "{error}");
    let report = heatsink(&data, &["back", "Scores", "--all"]).1;
    assert_eq!(report["moved"].as_array().unwrap().len(), 2, "{report}");
    assert!(physical_keys(&data).iter().filter(|key| key.starts_with("game")).all(|key| key == "game"));
    assert_eq!(heatsink(&data, &["back", "Scores", "--all"]).1["moved"], Json::Null);
}

fn pause(time: Duration) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { RealEnv.sleep(time).await });
}

/// A store that gateways of other processes share, and the rules that they have.
pub(super) struct Town {
    place: PathBuf,
    pub(super) store: Server,
}

pub(super) struct Server {
    pub(super) child: Child,
    pub(super) endpoint: String,
}

impl Server {
    pub(super) fn start(args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_heatsink"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--output", "json"]).args(args);
        local(&mut command).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let printed: Json = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?}"));
        Server { child, endpoint: printed["endpoint"].as_str().unwrap().to_owned() }
    }

    pub(super) fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([&format!("-{signal}"), &id]).status().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The command without any AWS configuration but fake credentials.
pub(super) fn local(command: &mut Command) -> &mut Command {
    command
        .env("AWS_ACCESS_KEY_ID", "local")
        .env("AWS_SECRET_ACCESS_KEY", "local")
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .env("AWS_CONFIG_FILE", "/dev/null")
        .env("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
        .env_remove("AWS_REGION")
        .env_remove("AWS_PROFILE")
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
}

impl Town {
    fn new(name: &str) -> Self {
        Town::settled(&data(name))
    }

    /// The store in this file, and a registry that everybody knows.
    pub(super) fn settled(data: &Path) -> Self {
        // The registry is there, and nobody is left who has not noticed it.
        let mut thaw = Command::new(env!("CARGO_BIN_EXE_heatsink"));
        let thawed = local(thaw.args(["freeze", "--thaw", "--data"]).arg(data)).output().unwrap();
        assert!(thawed.status.success());
        Town::over(data)
    }

    /// The store in this file.
    fn over(data: &Path) -> Self {
        let place = data.parent().unwrap().to_owned();
        let fence =
            "rule = []\n[fence]\nlease = \"4s\"\nheartbeat = \"1s\"\npoll = \"200ms\"\nstraggler = \"1s\"\n";
        std::fs::write(place.join("fence.toml"), fence).unwrap();
        // To the store the gateways' registry is a table as any other.
        std::fs::write(place.join("store.toml"), "rule = []\n[fence]\nregistry = \"other.registry\"\n")
            .unwrap();
        let rules = place.join("store.toml");
        let args =
            ["--data", data.to_str().unwrap(), "--partitions", "off", "--rules", rules.to_str().unwrap()];
        let store = Server::start(&args);
        Town { place, store }
    }

    fn rules(&self) -> String {
        self.place.join("fence.toml").to_str().unwrap().to_owned()
    }

    /// A gateway, registered.
    pub(super) fn gateway(&self) -> Server {
        Server::start(&["--upstream", &self.store.endpoint, "--rules", &self.rules()])
    }

    /// The exit code of a command, and its JSON document.
    pub(super) fn run(&self, args: &[&str]) -> (i32, Json) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_heatsink"));
        command.args(args).args([
            "--upstream",
            &self.store.endpoint,
            "--rules",
            &self.rules(),
            "--output",
            "json",
        ]);
        let output = local(&mut command).output().unwrap();
        let text = if output.status.success() { output.stdout } else { output.stderr };
        let text = String::from_utf8(text).unwrap();
        let last = text.lines().last().unwrap_or_default();
        let document = serde_json::from_str(last).unwrap_or_else(|_| panic!("no JSON: {text}"));
        (output.status.code().unwrap(), document)
    }

    /// Where the store is, as a command that is run next has to say it.
    pub(super) fn words(&self) -> String {
        format!(" --upstream {} --rules {}", self.store.endpoint, self.rules())
    }

    pub(super) fn reshard(&self, args: &[&str]) -> (i32, Json) {
        self.run(&[&["reshard"], args].concat())
    }

    /// The reshard of a table that is asked for, once it is so.
    fn until(&self, what: &str, is: impl Fn(&Json) -> bool) -> Json {
        self.until_of("Scores", what, is)
    }

    pub(super) fn until_of(&self, table: &str, what: &str, is: impl Fn(&Json) -> bool) -> Json {
        for _ in 0..1_000 {
            let status = self.reshard(&["status", table]).1;
            if is(&status["reshards"][0]) {
                return status;
            }
            pause(Duration::from_millis(50));
        }
        panic!("{what}: {}", self.reshard(&["status", table]).1);
    }

    /// A request past the gateways.
    pub(super) fn past(&self, operation: Operation, body: &Json) -> Json {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let client = client(Endpoint::parse(&self.store.endpoint).unwrap());
            let answer = client.call(operation, Bytes::from(body.to_string())).await.unwrap();
            serde_json::from_slice(&answer).unwrap()
        })
    }
}

#[test]
fn a_gateway_carries_out_what_the_command_asks_for() {
    let town = Town::new("asked");
    let start = |more: &[&str]| town.reshard(&[&["start", "Scores"], more].concat());
    let (code, error) = start(&["game", "--shards", "4"]);
    assert!(code == 69 && error.to_string().contains("--here"), "{code} {error}");
    assert_eq!(town.reshard(&["status"]).1["reshards"], json!([]), "nothing was written");
    assert_eq!(start(&["game", "--shards", "2", "--here"]).1["to"], 2);

    let gateway = town.gateway();
    let (code, asked) = start(&["game", "--shards", "4"]);
    assert_eq!((code, &asked["asked"], &asked["gateways"]), (0, &json!(["game"]), &json!(1)));
    let next = ["status Scores", "pause Scores game", "cancel Scores game"]
        .map(|step| format!("heatsink reshard {step}{}", town.words()));
    assert_eq!(asked["next_steps"], json!(next));
    let (code, report) = start(&["game", "--shards", "4", "--wait"]);
    assert!(code == 0 && report["to"] == 4, "{code} {report}");
    let (code, report) = start(&["--prefix", "g", "--shards", "8", "--wait"]);
    assert_eq!(
        (code, &report["moved"][0]["from"], &report["moved"][0]["to"]),
        (0, &json!(4), &json!(8)),
        "{report}"
    );
    // An item of a client stands in the way: the gateway says so, and nothing has changed.
    let (code, error) = start(&["taken", "--shards", "4", "--wait"]);
    assert!(code == 1 && error.to_string().contains("taken#~2"), "{code} {error}");
    let status = town.until("that it stopped", |one| one["key"] == "game" || one["ended"]["as"] == "stopped");
    let next = format!("start Scores taken{} --shards 4", town.words());
    assert!(status["next_steps"].to_string().contains(&next), "{status}");
    assert_eq!(start(&["taken", "--shards", "2", "--wait"]).0, 0);
    let (code, report) = town.reshard(&["back", "Scores", "--all", "--wait"]);
    assert_eq!((code, report["moved"].as_array().unwrap().len()), (0, 2), "{report}");
    let keys = town.reshard(&["status", "Scores"]).1["keys"].clone();
    assert!(keys.as_array().unwrap().iter().all(|key| key["shards"] == 1), "{keys}");
    assert_eq!(town.run(&["freeze"]).0, 0);
    let (code, error) = start(&["game", "--shards", "4"]);
    assert!(code == 1 && error.to_string().contains("--thaw"), "{code} {error}");
    gateway.signal("TERM");
}

#[test]
fn the_first_reshard_of_a_store_finds_the_gateways_that_run_without_a_registry() {
    let town = Town::over(&data("first"));
    let _gateways = [town.gateway(), town.gateway()];
    let (code, asked) = town.reshard(&["start", "Scores", "game", "--shards", "4"]);
    assert_eq!((code, &asked["asked"]), (0, &json!(["game"])), "{asked}");
    assert_eq!(town.reshard(&["status"]).1["reshards"][0]["key"], "game");
}

#[test]
fn what_is_asked_for_can_be_paused_resumed_and_taken_back() {
    let town = Town::new("taken-back");
    let gateway = town.gateway();
    let change = |what: &str| town.reshard(&[what, "Scores", "game"]);
    for what in ["pause", "resume", "cancel"] {
        let (code, error) = change(what);
        assert!(code == 64 && error.to_string().contains("no reshard of the key"), "{code} {error}");
    }
    // It carries nothing out for now.
    gateway.signal("STOP");
    let start = |shards: &str| town.reshard(&["start", "Scores", "game", "--shards", shards]);
    assert_eq!(start("4").0, 0);
    assert_eq!(start("4").0, 0, "the same again is no other reshard");
    let (code, error) = start("8");
    assert!(code == 64 && error.to_string().contains("asked for already"), "{code} {error}");
    let (code, error) = town.reshard(&["start", "Scores", "game", "--shards", "4", "--here"]);
    assert!(
        code == 64 && error.to_string().contains("reshard cancel Scores game --upstream"),
        "{code} {error}"
    );
    assert_eq!(change("pause").1["pause"], json!(["game"]));
    let status = town.reshard(&["status", "Scores"]).1;
    assert_eq!((&status["reshards"][0]["paused"], &status["keys"]), (&json!(true), &json!([])));
    let next = format!("heatsink reshard resume Scores game{}", town.words());
    assert_eq!(status["next_steps"], json!([next]));
    assert_eq!(change("resume").1["resume"], json!(["game"]));
    assert_eq!(change("cancel").1["removed"], json!(["game"]));
    assert_eq!(town.reshard(&["status"]).1["reshards"], json!([]));
    gateway.signal("CONT");

    // Past the point of no return.
    let slow = ["start", "Scores", "game", "--shards", "4", "--rate", "40"];
    assert_eq!(town.reshard(&slow).0, 0);
    town.until("that items move", |one| one["items_moved"].as_u64() > Some(0));
    let (code, error) = change("cancel");
    let text = error.to_string();
    let back = format!("reshard start Scores game{} --shards 1", town.words());
    assert!(code == 1 && text.contains(&back) && text.contains("pause"), "{code} {text}");
}

#[test]
fn another_gateway_goes_on_where_one_was_killed() {
    let town = Town::new("killed");
    let first = town.gateway();
    assert_eq!(town.reshard(&["start", "Scores", "game", "--shards", "4", "--rate", "60"]).0, 0);
    town.until("that items move", |one| one["items_moved"].as_u64() > Some(0));
    drop(first);
    let second = town.gateway();
    let (code, report) =
        town.reshard(&["start", "Scores", "game", "--shards", "4", "--rate", "60", "--wait"]);
    assert!(code == 0 && report["to"] == 4, "{code} {report}");
    second.signal("TERM");
    let status = town.reshard(&["status", "Scores"]).1;
    assert_eq!((&status["keys"][0]["shards"], &status["keys"][0]["settled"]), (&json!(4), &json!(true)));
}

fn client(endpoint: Endpoint) -> Upstream {
    let keys = SharedCredentialsProvider::new(Credentials::new("local", "local", None, None, "test"));
    Upstream::with(endpoint, Bounds::default(), Arc::new(RealEnv), "local".to_owned(), keys).unwrap()
}

/// Puts one item after another under `game` and reads each at once, until that is set. Returns how many.
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
    assert!(code == 69 && error.to_string().contains("another endpoint"), "{code} {error}");

    server.signal("TERM");
    let mut server = server;
    server.child.wait().unwrap();
    let keys = physical_keys(&data);
    let of_game = |key: &&String| *key == "game" || key.starts_with("game#~");
    assert_eq!(keys.iter().filter(of_game).count(), ITEMS + written);
    assert!(["game#~1", "game#~2", "game#~3"].iter().all(|key| keys.iter().any(|found| found == key)));
}
