//! Batching changes no count: every run of two scenarios, with equal requests offered at once and
//! one by one.

use crate::scenario::Loaded;
use crate::shipped::SHIPPED;
use crate::simulation::run;

fn same(name: &str, duration: &str) {
    let (_, text) = SHIPPED.iter().find(|(known, _)| *known == name).unwrap();
    let text = text.replace("duration = \"15m\"", duration).replace("step = \"10s\"", "step = \"5s\"");
    let text = text.replace("every = \"5m\", lasts = \"30s\"", "every = \"20s\", lasts = \"5s\"");
    let loaded = Loaded::read(name, &text, &mut |_| Err(std::io::ErrorKind::NotFound.into()), false).unwrap();
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
    same("leaderboard", "duration = \"40s\"");
}

#[test]
fn batches_change_no_count_of_votes_and_their_index() {
    same("votes", "duration = \"60s\"");
}
