//! A webhook is told what is done about hot keys, and harms nothing where it does not work.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::process::{PATIENCE, Server, call, run, scratch};
use crate::reload::{GENERATION, REFUSED, until};

const TABLE: &str = r#"{"TableName":"board","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}],
    "AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"S"}],"BillingMode":"PAY_PER_REQUEST"}"#;
const TAKEN: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
const DELIVERED: &str = "heatsink_webhook_events_total{outcome=\"delivered\"}";

/// A webhook that gives these answers, the last one for good: nothing for an empty one, the end of
/// the connection for `close`. Its URL, and the requests that it is sent.
fn webhook(answers: &'static [&'static str]) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/canary?canary=1", listener.local_addr().unwrap());
    let (told, sent) = channel();
    std::thread::spawn(move || {
        let mut nth = 0;
        while let Ok((mut connection, _)) = listener.accept() {
            let mut request = [0; 8192];
            while let Ok(bytes @ 1..) = connection.read(&mut request) {
                if told.send(String::from_utf8_lossy(&request[..bytes]).into_owned()).is_err() {
                    return;
                }
                let answer = answers[nth.min(answers.len() - 1)];
                nth += 1;
                if answer == "close" || connection.write_all(answer.as_bytes()).is_err() {
                    break;
                }
            }
        }
    });
    (url, sent)
}

fn event(sent: &Receiver<String>) -> (String, serde_json::Value) {
    let request = sent.recv_timeout(PATIENCE).unwrap();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), serde_json::from_str(body).unwrap())
}

/// A rules file with that webhook, whose token lies beside it.
fn write(dir: &Path, url: &str) -> PathBuf {
    let (file, token) = (dir.join("rules.toml"), dir.join("token"));
    std::fs::write(&token, "bearer-canary\n").unwrap();
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::write(&file, format!("[webhook]\nurl = \"{url}\"\ntoken_file = \"token\"\n")).unwrap();
    file
}

fn reshard(server: &Server, shards: &str) {
    let address = server.address();
    let args =
        ["reshard", "start", "board", "g", "--shards", shards, "--server", &address, "--yes", "--wait"];
    let done = run(&args);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn the_end_of_a_reshard_is_posted_until_it_is_taken_and_later_to_another_url() {
    let dir = scratch("webhook");
    let (url, sent) = webhook(&["HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n", "close", TAKEN]);
    let file = write(&dir, &url);
    let server = Server::start(&["--rules", file.to_str().unwrap()]);
    assert_eq!(call(&server.endpoint(), "CreateTable", TABLE).0, 200);
    reshard(&server, "4");
    let (head, first) = event(&sent);
    assert!(head.starts_with("POST /canary?canary=1 HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("authorization: Bearer bearer-canary"), "{head}");
    for (name, value) in [("event", "ended"), ("table", "board"), ("key", "g"), ("outcome", "moved")] {
        assert_eq!(first[name], value, "{first}");
    }
    assert_eq!(first["shards"], 4);
    assert!(first["sentence"].as_str().unwrap().contains("4 shards") && first["gateway"].is_string());
    assert_eq!(event(&sent).1, first, "the same, with its id");
    assert_eq!(event(&sent).1, first);
    until(&server, DELIVERED, 1.0);
    // Another one, without a restart. One that is wrong is refused by name, and the one before stays.
    let (other, to_other) = webhook(&[TAKEN]);
    let file = write(&dir, &other);
    std::fs::set_permissions(dir.join("token"), std::fs::Permissions::from_mode(0o644)).unwrap();
    server.signal("HUP");
    until(&server, REFUSED, 1.0);
    std::fs::set_permissions(dir.join("token"), std::fs::Permissions::from_mode(0o600)).unwrap();
    server.signal("HUP");
    until(&server, GENERATION, 2.0);
    reshard(&server, "2");
    assert_eq!(event(&to_other).1["shards"], 2);
    assert!(sent.try_recv().is_err());
    // Without one nobody is told.
    std::fs::write(&file, "").unwrap();
    server.signal("HUP");
    until(&server, GENERATION, 3.0);
    reshard(&server, "3");
    assert!(to_other.recv_timeout(Duration::from_millis(300)).is_err());
    let (code, log) = server.stop("TERM");
    assert_eq!(code, Some(0));
    assert!(log.contains("the webhook takes no events") && log.contains("takes events again"), "{log}");
    assert!(log.contains("rules.toml:3: webhook.token_file:") && log.contains("chmod 600"), "{log}");
    assert!(!log.contains("canary"), "{log}");
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn one_that_hangs_holds_up_no_request_no_reshard_and_no_stop() {
    let dir = scratch("webhook-hangs");
    let (url, sent) = webhook(&[""]);
    let file = write(&dir, &url);
    let server = Server::start(&["--rules", file.to_str().unwrap()]);
    assert_eq!(call(&server.endpoint(), "CreateTable", TABLE).0, 200);
    reshard(&server, "4");
    event(&sent);
    reshard(&server, "2");
    assert_eq!(call(&server.endpoint(), "ListTables", "{}").0, 200);
    let begun = Instant::now();
    assert_eq!(server.stop("TERM").0, Some(0));
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_start_with_a_wrong_one_is_refused_by_file_line_and_field() {
    let dir = scratch("webhook-wrong");
    let file = write(&dir, "https://hooks.example/canary");
    for (token, said) in [(Some("\n"), "it holds no token"), (None, "the file that it names cannot be read")]
    {
        match token {
            Some(text) => std::fs::write(dir.join("token"), text).unwrap(),
            None => std::fs::remove_file(dir.join("token")).unwrap(),
        }
        let refused = run(&["serve", "--listen", "127.0.0.1:0", "--rules", file.to_str().unwrap()]);
        let log = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(64), "{log}");
        assert!(log.contains("rules.toml:3: webhook.token_file: ") && log.contains(said), "{log}");
    }
    std::fs::write(&file, "[webhook]\nurl = \"http://hooks.example/canary\"\n").unwrap();
    let refused = run(&["serve", "--listen", "127.0.0.1:0", "--rules", file.to_str().unwrap()]);
    let log = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(64), "{log}");
    assert!(log.contains("rules.toml:2: webhook.url: ") && !log.contains("canary"), "{log}");
    std::fs::remove_dir_all(dir).unwrap();
}
