//! Each rule by itself. Nearly every request here has a right signature: what refuses it is the
//! rule.

use heatsink_dynamo::Code::{
    IncompleteSignatureException, InvalidSignatureException, MissingAuthenticationTokenException,
};

use crate::draft::{Draft, KEY, NOON, SECRET, judge, refusal, sha256, verifier};

const MISMATCH: &str = "The request signature we calculated does not match";

#[track_caller]
pub fn refused(draft: &Draft, code: heatsink_dynamo::Code, message: &str) {
    let (given, text) = draft.refusal();
    assert_eq!(given, code, "{text}");
    assert!(text.contains(message), "{text}");
}

#[test]
fn a_request_of_a_known_client_is_accepted() {
    assert_eq!(Draft::good().judged().unwrap().id(), KEY);
    let more = Draft::good()
        .with("amz-sdk-invocation-id", "5b1c")
        .with("content-encoding", "gzip")
        .with("x-amz-content-sha256", &sha256(&Draft::good().body))
        .with_unsigned("user-agent", "any  thing")
        .with_unsigned("x-amzn-trace-id", "Root=1");
    assert_eq!(more.judged().unwrap().id(), KEY);
    let streams = Draft::good().with("x-amz-target", "DynamoDBStreams_20120810.GetRecords");
    assert!(streams.judged().is_ok());
}

#[test]
fn the_body_that_came_is_hashed_whatever_a_header_says() {
    let good = Draft::good();
    let said = sha256(&good.body);
    let mut other = Draft { payload: Some(said.clone()), ..good.with("x-amz-content-sha256", &said) };
    assert!(other.judged().is_ok());
    other.body.push(b' ');
    refused(&other, InvalidSignatureException, MISMATCH);
}

#[test]
fn every_header_of_aws_that_is_sent_is_signed() {
    for (name, value) in [
        ("x-amz-target", "DynamoDB_20120810.DeleteItem"),
        ("x-amz-date", "20260101T120000Z"),
        ("x-amz-content-sha256", "UNSIGNED-PAYLOAD"),
        ("x-amz-something-new", "1"),
    ] {
        let draft = Draft::good().with_unsigned(name, value);
        refused(&draft, IncompleteSignatureException, &format!("'{name}' must be a 'SignedHeader'"));
    }
}

#[test]
fn the_encoding_of_the_body_is_signed() {
    let draft = Draft::good().with_unsigned("content-encoding", "gzip");
    refused(&draft, IncompleteSignatureException, "'content-encoding' must be a 'SignedHeader'");
}

#[test]
fn there_is_exactly_one_host_date_and_target() {
    for name in ["host", "x-amz-date", "x-amz-target"] {
        let expected = format!("Exactly one '{name}' header is required");
        refused(&Draft::good().without(name), IncompleteSignatureException, &expected);
        let mut twice = Draft::good();
        let value = twice.headers.iter().find(|(known, _)| known == name).unwrap().1.clone();
        twice.headers.push((name.to_owned(), value));
        twice.headers.sort();
        refused(&twice, IncompleteSignatureException, &expected);
    }
}

#[test]
fn there_is_exactly_one_authorization() {
    let mut head = Draft::good().head();
    head.headers.remove("authorization");
    let (code, message) = refusal(judge(&verifier(), &head, b"", NOON));
    assert_eq!(code, MissingAuthenticationTokenException, "{message}");
    let twice = Draft::good().with_unsigned("authorization", "AWS4-HMAC-SHA256 Credential=a");
    refused(&twice, IncompleteSignatureException, "Exactly one 'authorization' header is required");
}

#[test]
fn a_signed_header_has_one_value_with_one_spelling() {
    let mut twice = Draft::good().with("content-language", "a");
    twice.headers.insert(1, ("content-language".to_owned(), "b".to_owned()));
    refused(&twice, IncompleteSignatureException, "Exactly one 'content-language'");
    for value in ["two  spaces", "a\ttab", " before", "after "] {
        let draft = Draft::good().with("x-amz-user-agent", value);
        refused(&draft, IncompleteSignatureException, "The value of the signed header 'x-amz-user-agent'");
    }
}

#[test]
fn names_of_signed_headers_have_one_spelling() {
    let names = |names: &[&str]| Draft {
        names: Some(names.iter().map(|name| (*name).to_owned()).collect()),
        ..Draft::good()
    };
    for wrong in [
        &["host", "content-type", "x-amz-date", "x-amz-target"][..],
        &["Content-Type", "host", "x-amz-date", "x-amz-target"],
        &["content-type", "host", "host", "x-amz-date", "x-amz-target"],
        &["", "content-type", "host", "x-amz-date", "x-amz-target"],
    ] {
        refused(&names(wrong), IncompleteSignatureException, "SignedHeaders must be names in lower case");
    }
    let absent = names(&["content-type", "host", "x-amz-date", "x-amz-hidden", "x-amz-target"]);
    refused(&absent, IncompleteSignatureException, "Exactly one 'x-amz-hidden' header is required");
}

#[test]
fn the_scopes_day_is_the_day_of_the_date() {
    let draft = Draft::good().with_scope(0, "20260102");
    refused(
        &draft,
        InvalidSignatureException,
        "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: '20260102' != '20260101', from '20260101T120000Z'.",
    );
}

#[test]
fn region_service_and_terminator_are_ours() {
    for (part, value, message) in [
        (
            1,
            "us-east-1",
            "Credential should be scoped to a valid region, not 'us-east-1'. Sign for 'eu-west-1'",
        ),
        (2, "s3", "Credential should be scoped to correct service: 'dynamodb'. "),
        (
            3,
            "aws5_request",
            "Credential should be scoped with a valid terminator: 'aws4_request', not 'aws5_request'.",
        ),
    ] {
        refused(&Draft::good().with_scope(part, value), InvalidSignatureException, message);
    }
    let six = Draft::good().with_scope(1, "eu-west-1/x");
    refused(&six, IncompleteSignatureException, "Credential must have exactly 5 slash-delimited elements");
}

#[test]
fn clocks_are_at_most_fifteen_minutes_apart() {
    let (verifier, draft) = (verifier(), Draft::good());
    let at = |now| judge(&verifier, &draft.head(), &draft.body, now);
    for now in [NOON - 900, NOON, NOON + 900] {
        assert!(at(now).is_ok(), "{now}");
    }
    assert_eq!(
        refusal(at(NOON + 901)),
        (
            InvalidSignatureException,
            "Signature expired: 20260101T120000Z is now earlier than 20260101T120001Z (20260101T121501Z - 15 min.)"
                .to_owned()
        )
    );
    assert_eq!(
        refusal(at(NOON - 901)),
        (
            InvalidSignatureException,
            "Signature not yet current: 20260101T120000Z is still later than 20260101T115959Z (20260101T114459Z + 15 min.)"
                .to_owned()
        )
    );
    for date in ["2026-01-01T12:00:00Z", "20260101T120000", "20260101T250000Z", "20260101"] {
        refused(
            &Draft::good().with("x-amz-date", date),
            IncompleteSignatureException,
            "Date must be in ISO-8601",
        );
    }
}

#[test]
fn credentials_in_the_query_are_refused_alone_and_beside_a_header() {
    let query = "/?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=00";
    for uri in [query, "/?X-Amz-Credential=x", "/?AWSAccessKeyId=x", "/?", "/?a=b"] {
        let draft = Draft { uri: uri.to_owned(), ..Draft::good() };
        refused(&draft, IncompleteSignatureException, "Requests with a query are not served");
        let mut alone = draft.head();
        alone.headers.remove("authorization");
        let (code, message) = refusal(judge(&verifier(), &alone, &draft.body, NOON));
        assert_eq!(code, IncompleteSignatureException, "{message}");
        assert!(message.contains("presigned"), "{message}");
    }
}

#[test]
fn bodies_that_are_not_signed_whole_are_refused_by_name() {
    for word in [
        "UNSIGNED-PAYLOAD",
        "STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
        "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
        "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD-TRAILER",
    ] {
        let draft =
            Draft { payload: Some(word.to_owned()), ..Draft::good().with("x-amz-content-sha256", word) };
        refused(&draft, IncompleteSignatureException, word);
        refused(
            &Draft { payload: Some(word.to_owned()), ..Draft::good() },
            InvalidSignatureException,
            MISMATCH,
        );
    }
}

#[test]
fn other_algorithms_are_refused_by_name() {
    for algorithm in ["AWS4-ECDSA-P256-SHA256", "AWS4-HMAC-SHA1", "AWS3-HTTPS"] {
        let draft = Draft { algorithm, ..Draft::good() };
        refused(&draft, IncompleteSignatureException, &format!("Unsupported AWS 'algorithm': '{algorithm}'"));
    }
    let authorized = |text: &str| {
        let draft = Draft::good();
        refusal(judge(&verifier(), &draft.head_with(text), &draft.body, NOON))
    };
    assert!(authorized("AWS AKID:c2lnbmF0dXJl").1.contains("Unsupported AWS 'algorithm': 'AWS'"));
    for other in ["Basic YTpi", "Bearer AWS4-HMAC-SHA256", ""] {
        assert_eq!(authorized(other).0, MissingAuthenticationTokenException, "{other}");
    }
}

#[test]
fn the_header_has_its_three_parameters_once_and_nothing_else() {
    let draft = Draft::good();
    let right = draft.authorization();
    let judged = |text: &str| judge(&verifier(), &draft.head_with(text), &draft.body, NOON);
    assert!(judged(&right.replace(", ", ",")).is_ok());
    let signature = right.split("Signature=").nth(1).unwrap();
    for wrong in [
        right.replace("Credential=", "credential="),
        right.replace("SignedHeaders=", ""),
        format!("{right}, Signature={signature}"),
        format!("{right}, More=1"),
        format!("{right},"),
        right.replace(signature, &signature.to_uppercase()),
        right.replace(signature, &signature[1..]),
        right.replace(signature, ""),
        "AWS4-HMAC-SHA256".to_owned(),
    ] {
        assert_eq!(refusal(judged(&wrong)).0, IncompleteSignatureException, "{wrong}");
    }
}

#[test]
fn only_post_to_the_root_is_signed() {
    refused(&Draft { method: "GET", ..Draft::good() }, InvalidSignatureException, MISMATCH);
    refused(&Draft { uri: "/x".to_owned(), ..Draft::good() }, InvalidSignatureException, MISMATCH);
    let named = |uri: &str| {
        let mut head = Draft::good().head();
        head.uri = uri.parse().unwrap();
        judge(&verifier(), &head, &Draft::good().body, NOON)
    };
    assert!(named("http://127.0.0.1:8000/").is_ok());
    assert!(refusal(named("http://127.0.0.2:8000/")).1.contains("another host"));
}

#[test]
fn what_is_signed_is_compared_to_the_letter() {
    let mut changed = Draft::good();
    changed.secret = format!("{SECRET}x");
    refused(&changed, InvalidSignatureException, MISMATCH);
    let (draft, verifier) = (Draft::good(), verifier());
    for (name, value) in [
        ("x-amz-target", "DynamoDB_20120810.DeleteItem"),
        ("host", "127.0.0.2:8000"),
        ("x-amz-date", "20260101T120001Z"),
        ("content-type", "application/json"),
    ] {
        let mut head = draft.head();
        head.headers.insert(name, value.parse().unwrap());
        let (code, message) = refusal(judge(&verifier, &head, &draft.body, NOON));
        assert_eq!(code, InvalidSignatureException, "{message}");
        assert!(message.contains(MISMATCH), "{message}");
    }
}
