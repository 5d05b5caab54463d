//! Secrets and tokens of clients are in nothing that is shown.

use heatsink_signature::{Client, Verifier};

use crate::draft::{Draft, KEY, NOON, judge};

const SECRET: &str = "canary-secret";
const FORMER: &str = "canary-former";
const TOKEN: &str = "canary-token";

#[test]
fn neither_debug_nor_an_error_shows_what_is_secret() {
    let client = || {
        let client = Client::new(KEY, SECRET).unwrap().with_former_secret(FORMER).unwrap();
        client.with_token(TOKEN).unwrap().expiring(NOON * 1000)
    };
    let verifier = Verifier::new("eu-west-1", [client()]).unwrap();
    let good = Draft { secret: SECRET.to_owned(), ..Draft::good() };
    let drafts = [
        good.clone(),
        good.clone().with("x-amz-security-token", TOKEN),
        good.clone().with("x-amz-security-token", "another"),
        Draft { secret: "guess".to_owned(), ..good.clone() },
        Draft { key: "GHOST".to_owned(), ..good.clone() },
        good.clone().with_scope(1, "us-east-1"),
        good.with_unsigned("x-amz-security-token", TOKEN),
    ];
    let mut shown = format!("{:?} {verifier:?} {:?}", client(), Verifier::new("x", [client(), client()]));
    for draft in drafts {
        shown += &format!("{:?}", verifier.claim(&draft.head(), NOON * 1000));
        let error = judge(&verifier, &draft.head(), &draft.body, NOON).expect_err("it was accepted");
        shown += &format!("{error} {error:?} {:?}", error.body());
    }
    for canary in [SECRET, FORMER, TOKEN] {
        assert!(!shown.contains(canary), "{shown}");
    }
}
