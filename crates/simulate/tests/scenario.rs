//! Scenario files and traces: what is refused, and that the words name line and field.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions included")]

use heatsink_simulate::scenario::{Loaded, json_schema};
use heatsink_simulate::shipped::{SHIPPED, shipped};
use heatsink_simulate::simulate;
use proptest::prelude::*;

const GOOD: &str = r#"about = "x"
duration = "10s"

[[table]]
name = "T"
mode = "on-demand"

[[workload]]
name = "w"
table = "T"
operation = "put"
rate = 100
key = "k"
"#;

fn none(_: &str) -> std::io::Result<String> {
    Err(std::io::ErrorKind::NotFound.into())
}

fn fault(text: &str) -> String {
    Loaded::read("s.toml", text, &mut none, false)
        .map(|_| "no fault".to_owned())
        .unwrap_or_else(|fault| fault.to_string())
}

/// The fault when `old` of the good scenario is `new`.
fn with(old: &str, new: &str) -> String {
    assert!(GOOD.contains(old));
    fault(&GOOD.replace(old, new))
}

#[test]
fn faults_name_line_and_field() {
    assert_eq!(fault(GOOD), "no fault");
    let rate = "expected requests per second, more than 0 and at most 10 million";
    for (new, value) in [
        ("0", "floating point `0.0`"),
        ("-5", "floating point `-5.0`"),
        ("inf", "floating point `inf`"),
        ("nan", "floating point `NaN`"),
        ("1e12", "floating point `1000000000000.0`"),
    ] {
        let found = with("rate = 100", &format!("rate = {new}"));
        assert_eq!(found, format!("s.toml:12: workload[1].rate: invalid value: {value}, {rate}"));
    }
    for (old, new, expected) in [
        (
            "rate = 100",
            "rate = \"many\"",
            "s.toml:12: workload[1].rate: invalid type: string \"many\", expected requests per second",
        ),
        ("rate = 100", "", "s.toml:8: workload[1].rate: missing; expected requests per second"),
        (
            "rate = 100",
            "rate = { growth = { from = 1, factor = 2, every = \"0s\" } }",
            "s.toml:12: workload[1].rate: growth: expected every to be at least 1s",
        ),
        (
            "rate = 100",
            "rate = { curve = [[\"5s\", 1], [\"1s\", 2]] }",
            "s.toml:12: workload[1].rate: curve: expected points in order of time",
        ),
        (
            "rate = 100",
            "rate = 100\nburst = { rate = 5, every = \"1s\", lasts = \"1s\" }",
            "s.toml:13: workload[1].burst: expected lasts to be more than 0s",
        ),
        ("\"10s\"", "\"0s\"", "s.toml:2: duration: expected at least 1s"),
        (
            "\"10s\"",
            "\"400d\"",
            "s.toml:2: duration: invalid value: string \"400d\", expected a length of time",
        ),
        ("\"10s\"", "\"99999999999999999999d\"", "s.toml:2: duration: invalid value"),
        (
            "\"10s\"",
            "\"10s\"\nstep = \"20s\"",
            "s.toml:3: step: expected a length from 100ms to the duration",
        ),
        ("duration", "duratoin", "s.toml:2: duratoin: unknown field `duratoin`"),
        ("\"on-demand\"", "\"on-request\"", "s.toml:6: table[1].mode: unknown variant `on-request`"),
        ("\"on-demand\"", "\"provisioned\"", "s.toml:6: table[1].mode: \"provisioned\" needs read and write"),
        ("table = \"T\"", "table = \"U\"", "s.toml:10: workload[1].table: there is no [[table]] named \"U\""),
        (
            "key = \"k\"",
            "key = { zipf = { prefix = \"k\", keys = 0 } }",
            "s.toml:13: workload[1].key.zipf.keys: invalid value: integer `0`, expected a whole number from 1 to",
        ),
        (
            "key = \"k\"",
            "key = { sequential = { prefix = \"k\", keys = 9 } }",
            "s.toml:8: workload[1].items: missing; a sequential load needs",
        ),
        (
            "key = \"k\"",
            "key = { file = { path = \"no.txt\", order = \"as-is\" } }",
            "s.toml:13: workload[1].key: cannot read no.txt",
        ),
        (
            "key = \"k\"",
            "key = \"k\"\ntrace = \"t\"",
            "s.toml:11: workload[1].operation: not together with trace",
        ),
        (
            "key = \"k\"",
            "key = \"k\"\nstart = \"10s\"",
            "s.toml:14: workload[1].start: the workload would never run",
        ),
        (
            "key = \"k\"",
            "key = \"k\"\nitem_bytes = 409601",
            "s.toml:14: workload[1].item_bytes: invalid value: integer `409601`",
        ),
        (
            "key = \"k\"",
            "key = \"k\"\n[[remedy]]\nkind = \"write-sharding\"",
            "s.toml:15: remedy[1].kind: needs shards",
        ),
        (
            "key = \"k\"",
            "key = \"k\"\n[[remedy]]\nkind = \"write-sharding\"\nshards = 1001",
            "s.toml:16: remedy[1].shards: invalid value",
        ),
        ("about = \"x\"", "about = ", "s.toml:1: "),
    ] {
        let found = with(old, new);
        assert!(found.starts_with(expected), "{found}\n{expected}");
    }
}

#[test]
fn what_takes_too_much_is_refused_with_the_figure_and_the_way_out() {
    let many = "key = { uniform = { prefix = \"k\", keys = 10_000_000 } }";
    let sharded = format!("{many}\n[[remedy]]\nkind = \"write-sharding\"\nshards = 1000");
    let found = with("key = \"k\"", &sharded);
    assert_eq!(
        found,
        "s.toml:16: remedy[1].shards: that takes about 81 GB of memory; expected at most 4.0 GB: fewer shards or fewer keys"
    );
    // Ten million keys alone are fine, and so are a thousand shards of some.
    assert_eq!(with("key = \"k\"", many), "no fault");
    assert_eq!(with("key = \"k\"", &sharded.replace("10_000_000", "100_000")), "no fault");
    let parts = format!("{many}\npart = {{ uniform = {{ prefix = \"p\", keys = 10_000_000 }} }}");
    let copies = (0..5).map(|nth| {
        format!("[[workload]]\nname = \"w{nth}\"\ntable = \"T\"\noperation = \"put\"\nrate = 1\n{parts}\n")
    });
    let found = with("key = \"k\"", &format!("{parts}\n{}", copies.collect::<String>()));
    assert!(found.contains("of memory; expected at most 4.0 GB: fewer keys, parts"), "{found}");
    let wide = "[[table]]\nname = \"U\"\nmode = \"provisioned\"\nread = 10_000_000\nwrite = 10_000_000\n[[workload]]";
    let steps = GOOD.replace("\"10s\"", "\"200s\"\nstep = \"100ms\"").replace("[[workload]]", wide);
    let remedies = "[[remedy]]\nkind = \"adaptive-capacity\"\n".repeat(4);
    let found = fault(&format!("{steps}{remedies}"));
    assert!(found.starts_with("s.toml:3: step: that takes about"), "{found}");
    let long = GOOD.replace("\"10s\"", "\"31d\"").replace("rate = 100\n", "rate = 1_000_000\n");
    let found = fault(&long.replace("key = \"k\"", many));
    let expected =
        "s.toml:12: workload[1].rate: all runs together would draw about 2,678 billion requests one by one";
    assert!(found.starts_with(expected), "{found}");
    // Requests that wait for their next attempt, of many keys and of one.
    let again = |rate: &str, key: &str| {
        let client = "[client]\nreoffer = true\n[[table]]";
        let offered = GOOD.replacen("[[table]]", client, 1).replace("\"10s\"", "\"5m\"");
        fault(&offered.replace("rate = 100\n", &format!("rate = {rate}\n")).replace("key = \"k\"", key))
    };
    let found = again("1_000_000", many);
    assert!(found.contains("client: that takes about") && found.contains("of memory"), "{found}");
    assert!(found.contains("fewer attempts"), "{found}");
    assert_eq!(again("5_000", many), "no fault");
    assert_eq!(again("1_000_000", "key = \"k\"\nsort = \"one\""), "no fault");
    // The same rate on one item is counted many at a time.
    assert_eq!(fault(&long.replace("key = \"k\"", "key = \"k\"\nsort = \"one\"")), "no fault");
}

#[test]
fn fields_that_contradict_each_other_are_named() {
    let remedy = |lines: &str| with("key = \"k\"", &format!("key = \"k\"\n[[remedy]]\n{lines}"));
    for (found, expected) in [
        (with("key = \"k\"", "key = \"k\"\nlimit = 5"), "workload[1].limit: only a query"),
        (with("key = \"k\"", "key = \"k\"\nconsistency = \"strong\""), "workload[1].consistency: only reads"),
        (
            with("key = \"k\"", "key = \"k\"\nend = \"11s\""),
            "workload[1].end: that is after the end of the run",
        ),
        (with("\"put\"", "\"scan\""), "workload[1].key: a scan reads all keys"),
        (
            fault(&GOOD.replace("\"put\"", "\"query\"\nindex = \"i\"\nconsistency = \"strong\"")),
            "workload[1].consistency: a global index answers eventually consistent reads only",
        ),
        (remedy("kind = \"nothing\"\nshards = 2"), "remedy[1].shards: only write-sharding"),
        (remedy("kind = \"write-sharding\"\nshards = 2\nttl = \"1s\""), "remedy[1].ttl: only read-cache"),
        (remedy("kind = \"raise-capacity\"\nwrite = 5"), "remedy[1].kind: no table is provisioned"),
        (remedy("kind = \"on-demand\""), "remedy[1].kind: no table is provisioned"),
        (remedy("kind = \"range\""), "remedy[1].kind: needs shards: how many ranges"),
        (remedy("kind = \"range\"\nshards = 65"), "remedy[1].shards: expected at most 64 ranges"),
        (
            with("key = \"k\"", "key = \"k\"\nsort = \"one\"\n[[remedy]]\nkind = \"range\"\nshards = 2"),
            "remedy[1].kind: no workload has several sort keys in a key of a table",
        ),
        (remedy("kind = \"gateway-cache\""), "remedy[1].kind: no workload reads the same page or item again"),
        (remedy("kind = \"combine\""), "remedy[1].kind: needs a workload of puts, updates or deletes"),
        (
            fault(&format!(
                "{}[[remedy]]\nkind = \"gateway-cache\"\nmax_age = \"11s\"",
                GOOD.replace("\"put\"", "\"query\"")
            )),
            "remedy[1].max_age: expected 1ms to 10s",
        ),
        (
            with(
                "key = \"k\"",
                "key = \"k\"\nsort = \"one\"\n[[remedy]]\nkind = \"combine\"\nlatency = \"0s\"",
            ),
            "remedy[1].latency: expected more than 0s",
        ),
        (
            remedy("kind = \"range\"\nshards = 2\ngateways = 2"),
            "remedy[1].gateways: only gateway-cache and combine",
        ),
        (remedy("kind = \"nothing\"\nmax_age = \"1s\""), "remedy[1].max_age: only gateway-cache"),
        (with("key = \"k\"", "key = \"k\"\npage = \"first\""), "workload[1].page: only a query reads one"),
    ] {
        assert!(found.contains(expected), "{found}\n{expected}");
    }
    let trace = "[[workload]]\nname = \"w\"\ntable = \"T\"\ntrace = \"t\"\n";
    let head = GOOD.split("[[workload]]").next().unwrap();
    for field in ["start = \"1s\"", "end = \"2s\"", "item_bytes = 5", "limit = 5", "window = 5"] {
        assert!(fault(&format!("{head}{trace}{field}\n")).contains("not together with trace"), "{field}");
    }
}

#[test]
fn lines_after_the_end_are_counted_and_not_offered() {
    let scenario = "about = \"x\"\nduration = \"10s\"\n[[table]]\nname = \"T\"\nmode = \"on-demand\"\n\
        [[workload]]\nname = \"w\"\ntable = \"T\"\ntrace = \"t.csv\"\n";
    let read = |lines: &'static str| Loaded::read("s.toml", scenario, &mut |_| Ok(lines.to_owned()), false);
    let report =
        simulate(&read("0,put,k,,9\n9.9,put,k,,9\n10,put,k,,9\n12,put,k,,9\n").unwrap(), &mut |_| {});
    assert_eq!((report.runs[0].offered, report.late_lines), (2, 2));
    let none = read("10,put,k,,9\n").unwrap_err().to_string();
    assert_eq!(none, "s.toml:9: workload[1].trace: all 1 requests of t.csv come after the end of the run");
}

#[test]
fn a_trace_with_a_bad_line_stops_or_is_counted() {
    let scenario = GOOD.replace("operation = \"put\"\nrate = 100\nkey = \"k\"", "trace = \"t.csv\"");
    let read =
        |trace: &'static str, skip| Loaded::read("s.toml", &scenario, &mut |_| Ok(trace.to_owned()), skip);
    let good = "# recorded\n0.1,put,k,a,100\n\n0.2,get,k,a,100\n";
    assert_eq!(read(good, false).unwrap().skipped, 0);
    for (bad, problem) in [
        ("0.1,put,k,a,100\n0.2,put,k\n", "t.csv:2: 3 fields; expected seconds,operation,key,sort,bytes"),
        ("0.1,put,k,a,100\nx,put,k,a,1\n", "t.csv:2: seconds: expected a number"),
        ("0.1,put,k,a,100\n-1,put,k,a,1\n", "t.csv:2: seconds: expected a number"),
        ("0.1,put,k,a,100\n0.05,put,k,a,1\n", "t.csv:2: seconds: earlier than the line above"),
        ("0.1,put,k,a,100\n0.2,sing,k,a,1\n", "t.csv:2: operation: \"sing\""),
        ("0.1,put,k,a,100\n0.2,put,,a,1\n", "t.csv:2: key: empty"),
        ("0.1,put,k,a,100\n0.2,put,k,a,-1\n", "t.csv:2: bytes: expected"),
    ] {
        let fault = read(bad, false).unwrap_err().to_string();
        assert!(fault.starts_with(problem), "{fault}\n{problem}");
        let loaded = read(bad, true).unwrap();
        assert_eq!(loaded.skipped, 1);
        let report = simulate(&loaded, &mut |_| {});
        assert_eq!((report.skipped_lines, report.runs[0].offered), (1, 1));
    }
    assert_eq!(read("bad\n", true).unwrap_err().to_string(), "t.csv:1: the trace holds no request");
}

#[test]
fn every_shipped_scenario_reads() {
    for (name, _) in SHIPPED {
        let loaded = shipped(name).unwrap();
        assert_eq!(loaded.map(|loaded| loaded.name).map_err(|fault| fault.to_string()).as_deref(), Ok(*name));
    }
    assert!(shipped("no such").is_none());
}

#[test]
fn the_published_json_schema_is_the_one_in_force() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scenario.schema.json");
    if std::env::var_os("WRITE_SCHEMA").is_some() {
        std::fs::write(path, json_schema()).unwrap();
    }
    let published = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(
        published,
        json_schema(),
        "write it anew: WRITE_SCHEMA=1 cargo test -p heatsink-simulate --test simulate scenario"
    );
}

proptest! {
    #[test]
    fn any_text_has_an_answer(
        text in "(\\[\\[(table|workload|remedy)\\]\\]\n|name|mode|kind|rate|key|duration|operation| = |\"put\"|\"on-demand\"|\\{|\\}|\\[|[a-z\"#\n0-9.-]){0,60}",
        trace in "([0-9.,a-z\n]|put|get){0,60}",
    ) {
        let _ = Loaded::read("f", &text, &mut |_| Ok(trace.clone()), false);
        let _ = heatsink_simulate::scenario::trace::read("t", &trace, true);
    }
}
