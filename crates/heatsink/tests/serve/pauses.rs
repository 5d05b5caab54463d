//! Reloads under load: no request fails, and none waits for them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rcgen::KeyPair;

use crate::certified::{ca, send};
use crate::reload::{GENERATION, REFUSED, until};
use crate::secured::{Files, address};

/// Clients that ask one request after the other.
const ASKING: usize = 4;
/// Reloads of each kind that is asked for by a signal.
const RELOADS: usize = 4;
const LONG: Duration = Duration::from_millis(50);

const TABLE: &str = r#"{"TableName":"board","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}],
    "AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"S"}],"BillingMode":"PAY_PER_REQUEST"}"#;
const GET: &str = r#"{"TableName":"board","Key":{"pk":{"S":"a"},"sk":{"S":"b"}}}"#;

/// Rules with that many clients that nobody is, and those that ask.
fn rules(shards: usize, others: usize) -> String {
    let mut text = format!(
        "[[rule]]\ntable = \"board\"\nstrategy = \"calculated\"\nshards = 4\n\
         [[rule]]\ntable = \"later*\"\nstrategy = \"calculated\"\nshards = {shards}\n"
    );
    for id in
        (0..ASKING).map(|nth| format!("asking{nth}")).chain((0..others).map(|nth| format!("other{nth}")))
    {
        text += &format!("[[client]]\nid = \"{id}\"\ncertificate = \"spiffe://a/{id}\"\n");
    }
    text
}

/// When a request began, and how long it took.
type Took = (Instant, Duration);

/// The longest of them, and how many took too long.
fn longest(all: &[&Took]) -> (Duration, usize) {
    let most = all.iter().map(|(_, took)| *took).max().unwrap_or_default();
    (most, all.iter().filter(|(_, took)| *took > LONG).count())
}

#[test]
fn reloads_fail_no_request_and_hold_none_up() {
    let files = Files::new("pauses");
    let write = |name: &str, text: &str| std::fs::write(files.path(name), text).unwrap();
    write("rules.toml", &rules(2, 100));
    write("clients.pem", &files.ca.pem());
    let path = |name| files.path(name).display().to_string();
    let server = files.start(&["--tls-client-ca", &path("clients.pem"), "--rules", &path("rules.toml")]);
    let at = address(&server);
    let mut first = files.connect_as(&at, Some((&files.ca, "spiffe://a/other0")));
    assert_eq!(send(&mut first, "CreateTable", TABLE).0, 200);
    let over = AtomicBool::new(false);
    let (took, reloads) = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..ASKING)
            .map(|nth| {
                let (files, at, over) = (&files, &at, &over);
                scope.spawn(move || {
                    let name = format!("spiffe://a/asking{nth}");
                    let mut stream = files.connect_as(at, Some((&files.ca, &name)));
                    let mut all: Vec<Took> = Vec::new();
                    while !over.load(Ordering::Relaxed) {
                        let begun = Instant::now();
                        let (status, told) = send(&mut stream, "GetItem", GET);
                        all.push((begun, begun.elapsed()));
                        assert_eq!(status, 200, "{told}");
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    all
                })
            })
            .collect();
        let mut reloads: Vec<(Instant, Instant)> = Vec::new();
        let mut reload = |asked: bool, change: &dyn Fn()| {
            let (begun, generation) = (Instant::now(), server.metric(GENERATION));
            change();
            if asked {
                server.signal("HUP");
            }
            until(&server, GENERATION, generation + 1.0);
            reloads.push((begun, Instant::now()));
            std::thread::sleep(Duration::from_millis(300));
        };
        for nth in 1..=RELOADS {
            reload(true, &|| files.renew());
            reload(true, &|| write("rules.toml", &rules(2, 100 + nth)));
            reload(true, &|| write("rules.toml", &rules(2 + nth, 100)));
            reload(true, &|| write("clients.pem", &(files.ca.pem() + &ca().pem())));
        }
        // By what is in the files alone.
        reload(false, &|| files.renew());
        reload(false, &|| write("rules.toml", &rules(2, 100)));
        // One that is wrong.
        write("key.pem", &KeyPair::generate().unwrap().serialize_pem());
        let refused = server.metric(REFUSED);
        server.signal("HUP");
        until(&server, REFUSED, refused + 1.0);
        over.store(true, Ordering::Relaxed);
        let took: Vec<Took> = asking.into_iter().flat_map(|asking| asking.join().unwrap()).collect();
        (took, reloads)
    });
    let meanwhile = |one: &&Took| reloads.iter().any(|(from, until)| one.0 < *until && one.0 + one.1 > *from);
    let (during, between): (Vec<&Took>, Vec<&Took>) = took.iter().partition(meanwhile);
    let ((most, long), (calm_most, calm_long)) = (longest(&during), longest(&between));
    println!(
        "{} reloads, {} requests, none failed; meanwhile {} requests, the longest {most:.1?}, {long} over {LONG:?}; \
         between them {}, the longest {calm_most:.1?}, {calm_long} over {LONG:?}",
        reloads.len(),
        took.len(),
        during.len(),
        between.len()
    );
    assert!(during.len() > 10 * reloads.len(), "{} requests met a reload", during.len());
    // A reload that holds requests up holds all clients up each time; a busy machine does so now and
    // then.
    assert!(long < ASKING * reloads.len() / 2, "{long} requests waited for {} reloads", reloads.len());
    let (_, log) = server.stop("TERM");
    assert!(log.contains("it is not the key of the certificate"), "{log}");
    std::fs::remove_dir_all(&files.dir).unwrap();
}
