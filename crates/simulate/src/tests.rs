//! Batching changes no count: every run of two scenarios, with equal requests offered at once and
//! one by one.

use crate::scenario::Loaded;
use crate::shipped::SHIPPED;
use crate::simulation::run;

fn shipped(name: &str, duration: &str) {
    let (_, text) = SHIPPED.iter().find(|(known, _)| *known == name).unwrap();
    let text = text.replace("duration = \"15m\"", duration).replace("step = \"10s\"", "step = \"5s\"");
    let text = text.replace("every = \"5m\", lasts = \"30s\"", "every = \"20s\", lasts = \"5s\"");
    same(name, &text);
}

fn same(name: &str, text: &str) {
    let loaded = Loaded::read(name, text, &mut |_| Err(std::io::ErrorKind::NotFound.into()), false).unwrap();
    for remedy in &loaded.scenario.remedy {
        let [at_once, one_by_one] =
            [true, false].map(|batches| run(&loaded, Some(remedy), batches, &mut |_| {}));
        assert!(at_once.offered > 10_000);
        let json = |run: &crate::Run| serde_json::to_string(run).unwrap();
        assert_eq!(json(&at_once), json(&one_by_one), "{name} {:?}", remedy.kind);
    }
}

#[test]
fn batches_change_no_count_of_the_leaderboard() {
    shipped("leaderboard", "duration = \"40s\"");
}

#[test]
fn batches_change_no_count_of_votes_and_their_index() {
    shipped("votes", "duration = \"60s\"");
}

#[test]
fn batches_change_no_count_of_what_is_not_sent() {
    let key = "{ uniform = { prefix = \"k\", keys = 3 } }";
    let load = |name: &str, operation: &str, rest: &str| {
        format!(
            "[[workload]]\nname = \"{name}\"\ntable = \"T\"\noperation = \"{operation}\"\nrate = 3_000\nkey = {key}\n{rest}\n"
        )
    };
    let remedies =
        ["range\"\nshards = 3", "gateway-cache\"\nmax_age = \"70ms\"", "combine\"\nlatency = \"20ms\""];
    let text = format!(
        "about = \"x\"\nduration = \"20s\"\n[client]\nreoffer = true\n[[table]]\nname = \"T\"\nmode = \"on-demand\"\n{}{}{}{}",
        load("put", "put", ""),
        load("add", "update", "sort = \"one\"\nitem_bytes = 5_000"),
        load("page", "query", "limit = 100"),
        remedies.map(|remedy| format!("[[remedy]]\nkind = \"{remedy}\n")).concat(),
    );
    same("what is not sent", &text);
}
