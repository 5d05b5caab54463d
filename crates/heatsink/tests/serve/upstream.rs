//! One Heatsink as the upstream of another: a real process, over real sockets, signed.

use crate::process::{Server, call};

#[test]
fn forwards_to_another_endpoint_and_keeps_its_errors() {
    let store = Server::start(&["--partitions", "off"]);
    let gateway = Server::start(&["--upstream", &store.endpoint()]);
    assert!(gateway.printed().contains(&store.endpoint()), "{}", gateway.printed());
    let endpoint = gateway.endpoint();
    assert_eq!(call(&endpoint, "CreateTable", crate::TABLE).0, 200);
    let put = r#"{"TableName":"scores","Item":{"pk":{"S":"a"},"n":{"N":"1"}},"ConditionExpression":"attribute_not_exists(pk)"}"#;
    assert_eq!(call(&endpoint, "PutItem", put), (200, "{}".to_owned()));
    // The same bytes from both: nothing is added, and the item is really there.
    for (operation, body) in [
        ("GetItem", r#"{"TableName":"scores","Key":{"pk":{"S":"a"}}}"#),
        ("GetItem", r#"{"TableName":"scores","Key":{"pk":{"N":"1"}}}"#),
        ("GetItem", r#"{"TableName":"missing","Key":{"pk":{"S":"a"}}}"#),
        ("PutItem", put),
        ("Scan", r#"{"TableName":"scores"}"#),
        ("ListTables", "{}"),
    ] {
        assert_eq!(
            call(&endpoint, operation, body),
            call(&store.endpoint(), operation, body),
            "{operation} {body}"
        );
    }
    // The upstream goes away, and comes back as an error that says nothing was done.
    assert_eq!(store.stop("INT").0, Some(0));
    let (status, body) = call(&endpoint, "PutItem", put);
    assert_eq!(status, 503, "{body}");
    assert!(body.contains("ServiceUnavailable") && body.contains("cannot be reached"), "{body}");
    assert_eq!(gateway.stop("TERM").0, Some(0));
}
