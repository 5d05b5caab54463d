//! Which clients are known, by which secrets and tokens, and until when.

use heatsink_dynamo::Code::{
    ExpiredTokenException, IncompleteSignatureException, InvalidSignatureException,
    UnrecognizedClientException,
};
use heatsink_signature::{Client, UnfitClient, Verifier};

use crate::draft::{Draft, KEY, NOON, SECRET, judge, refusal};

fn with(client: Client) -> Verifier {
    Verifier::new("eu-west-1", [Client::new("OTHER", "other").unwrap(), client]).unwrap()
}

fn client() -> Client {
    Client::new(KEY, SECRET).unwrap()
}

#[test]
fn an_unknown_access_key_is_refused_whatever_signs_for_it() {
    for (key, secret) in [("GHOST", SECRET), ("GHOST", ""), ("", ""), (KEY.to_lowercase().as_str(), SECRET)] {
        let draft = Draft { key: key.to_owned(), secret: secret.to_owned(), ..Draft::good() };
        let (code, message) = refusal(judge(&with(client()), &draft.head(), &draft.body, NOON));
        assert_eq!(code, UnrecognizedClientException, "{key:?}");
        assert_eq!(message, "The security token included in the request is invalid.");
    }
}

#[test]
fn a_client_signs_for_itself_alone() {
    let draft = Draft { secret: "other".to_owned(), ..Draft::good() };
    assert_eq!(
        refusal(judge(&with(client()), &draft.head(), &draft.body, NOON)).0,
        InvalidSignatureException
    );
    let other = Draft { key: "OTHER".to_owned(), ..draft };
    assert_eq!(judge(&with(client()), &other.head(), &other.body, NOON).unwrap().id(), "OTHER");
}

#[test]
fn two_secrets_are_valid_while_they_are_rotated() {
    let verifier = with(client().with_former_secret("former").unwrap());
    for (secret, accepted) in [(SECRET, true), ("former", true), ("older", false), ("", false)] {
        let draft = Draft { secret: secret.to_owned(), ..Draft::good() };
        assert_eq!(judge(&verifier, &draft.head(), &draft.body, NOON).is_ok(), accepted, "{secret}");
    }
}

#[test]
fn a_key_of_one_day_signs_for_no_other() {
    let verifier = with(client());
    let on = |day: u64| {
        let (second, date) = (NOON + day * 86_400, format!("2026010{}", 1 + day));
        let draft = Draft::good().with("x-amz-date", &format!("{date}T120000Z")).with_scope(0, &date);
        (second, draft)
    };
    for day in [0, 1, 0, 2] {
        let (second, draft) = on(day);
        assert!(judge(&verifier, &draft.head(), &draft.body, second).is_ok(), "{day}");
        let (_, other) = on(day + 1);
        let signature = other.authorization().split("Signature=").nth(1).unwrap().to_owned();
        let right = draft.authorization();
        let mixed = format!("{}Signature={signature}", right.split("Signature=").next().unwrap());
        let judged = judge(&verifier, &draft.head_with(&mixed), &draft.body, second);
        assert_eq!(refusal(judged).0, InvalidSignatureException);
    }
}

#[test]
fn a_session_token_is_the_clients_own_or_none() {
    let (plain, tokened) = (with(client()), with(client().with_token("session/1==").unwrap()));
    for (token, of_plain, of_tokened) in [
        (None, true, false),
        (Some("session/1=="), false, true),
        (Some("session/1="), false, false),
        (Some("session/2=="), false, false),
    ] {
        // Signed, and added to what is signed.
        for add in [Draft::with, Draft::with_unsigned] {
            let draft =
                token.map_or_else(Draft::good, |token| add(Draft::good(), "x-amz-security-token", token));
            for (verifier, accepted) in [(&plain, of_plain), (&tokened, of_tokened)] {
                let judged = judge(verifier, &draft.head(), &draft.body, NOON);
                assert_eq!(judged.is_ok(), accepted, "{token:?}");
                if !accepted {
                    assert_eq!(refusal(judged).0, UnrecognizedClientException, "{token:?}");
                }
            }
        }
    }
    let mut twice = Draft::good().with_unsigned("x-amz-security-token", "session/1==");
    twice.unsigned.push(("x-amz-security-token".to_owned(), "another".to_owned()));
    let (code, message) = refusal(judge(&tokened, &twice.head(), &twice.body, NOON));
    assert_eq!(code, IncompleteSignatureException, "{message}");
    // Who has not the secret learns nothing of the token.
    let stranger = Draft { secret: "guess".to_owned(), ..Draft::good() };
    assert_eq!(refusal(judge(&tokened, &stranger.head(), &stranger.body, NOON)).0, InvalidSignatureException);
}

#[test]
fn credentials_hold_until_they_expire() {
    let verifier = with(client().expiring((NOON + 60) * 1000));
    let draft = Draft::good();
    let at = |now, draft: &Draft| judge(&verifier, &draft.head(), &draft.body, now);
    assert!(at(NOON + 59, &draft).is_ok());
    let (code, message) = refusal(at(NOON + 60, &draft));
    assert_eq!(code, ExpiredTokenException);
    assert_eq!(message, "The security token included in the request is expired");
    let stranger = Draft { secret: "guess".to_owned(), ..draft };
    assert_eq!(refusal(at(NOON + 60, &stranger)).0, InvalidSignatureException);
}

#[test]
fn clients_that_could_be_mistaken_are_refused_when_they_are_loaded() {
    for (key, sign) in [("AKID/20260101", '/'), ("AK ID", ' '), ("AK,ID", ','), ("AK=ID", '='), ("ÄKID", 'Ä')]
    {
        assert_eq!(Client::new(key, SECRET).err(), Some(UnfitClient::AccessKey(sign)), "{key}");
    }
    assert_eq!(Client::new("", SECRET).err(), Some(UnfitClient::Empty));
    assert_eq!(Client::new(KEY, "").err(), Some(UnfitClient::Empty));
    assert_eq!(client().with_former_secret("").err(), Some(UnfitClient::Empty));
    assert_eq!(client().with_token("").err(), Some(UnfitClient::Empty));
    let twice = Verifier::new("eu-west-1", [client(), Client::new(KEY, "another").unwrap()]);
    assert_eq!(twice.err(), Some(UnfitClient::Twice(KEY.to_owned())));
}
