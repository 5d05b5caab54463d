//! `Host` has to be a name of this machine, or one that the operator added.

use heatsink_gateway::http::Hosts;

use crate::client::{Answer, Client, post};
use crate::server::{limits, server_for};

/// A request with this line and these headers before the rest.
fn asked(line: &str, hosts: &str) -> Vec<u8> {
    let get = String::from_utf8(post("GetItem", br#"{"TableName":"abc"}"#)).unwrap();
    let text = get.replacen("POST / HTTP/1.1\r\nhost: localhost\r\n", &format!("{line}\r\n{hosts}"), 1);
    text.into_bytes()
}

#[tokio::test]
async fn a_page_that_lets_its_name_resolve_to_this_machine_gets_nothing() {
    let server = server_for(limits(), Hosts::and(&["heatsink.internal"]).unwrap()).await;
    let send = async |line: &str, hosts: &str| -> Answer {
        Client::to(server.address).await.send(&asked(line, hosts)).await
    };
    let post = "POST / HTTP/1.1";
    for host in
        ["localhost", "localhost:8000", "127.0.0.1:8000", "[::1]:8000", "HEATSINK.internal:80", "a.localhost"]
    {
        assert_eq!(send(post, &format!("host: {host}\r\n")).await.status, 200, "{host}");
    }
    let served = server.store.calls("GetItem");
    for host in ["evil.example", "evil.example:8000", "localhost.evil.example", "192.168.0.1", "0.0.0.0", ""]
    {
        let refused = send(post, &format!("host: {host}\r\n")).await;
        assert_eq!((refused.status, refused.error().as_str()), (400, "AccessDeniedException"), "{host}");
        assert!(refused.text().contains("--allow-host"), "{}", refused.text());
    }
    // For every path and method, and where the request line says otherwise than the header.
    for line in ["GET / HTTP/1.1", "OPTIONS / HTTP/1.1", "POST /any HTTP/1.1"] {
        assert_eq!(send(line, "host: evil.example\r\n").await.error(), "AccessDeniedException", "{line}");
    }
    for line in ["GET /_heatsink/metrics HTTP/1.1", "POST /_heatsink/physical HTTP/1.1"] {
        let refused = send(line, "host: evil.example\r\n").await;
        assert_eq!(refused.error(), "AccessDeniedException", "{line}");
        assert!(refused.text().contains("--allow-host"), "{}", refused.text());
    }
    let absolute = send("POST http://evil.example/ HTTP/1.1", "host: localhost\r\n").await;
    assert_eq!(absolute.error(), "AccessDeniedException");
    for hosts in ["", "host: localhost\r\nhost: localhost\r\n", "host: localhost\r\nhost: evil.example\r\n"] {
        let refused = send(post, hosts).await;
        assert_eq!((refused.status, refused.error().as_str()), (400, "ValidationException"), "{hosts:?}");
    }
    assert_eq!(server.store.calls("GetItem"), served);
    // HTTP/1.0 has no Host, and no browser speaks it.
    assert_eq!(send("POST / HTTP/1.0", "").await.status, 200);
    assert_eq!(send("POST / HTTP/1.0", "host: evil.example\r\n").await.error(), "AccessDeniedException");
}
