//! How commands find a running server of their user, and that nobody else's do.

use std::fs::Permissions;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::Output;

use crate::process::{Server, call, heatsink, run, scratch, send};

const TABLE: &str = r#"{"TableName":"scores","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],
    "AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}],"BillingMode":"PAY_PER_REQUEST"}"#;

/// Every command that asks a running server.
fn commands(server: &str) -> Vec<Vec<&str>> {
    let mut commands = vec![
        vec!["heatmap", "--output", "json", "--server", server],
        vec!["partitions", "scores", "--output", "json", "--server", server],
        vec!["reshard", "status", "--output", "json", "--server", server],
    ];
    if cfg!(feature = "top") {
        commands.push(vec!["top", "--output", "json", "--server", server]);
    }
    commands
}

fn ended(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn commands_find_a_server_in_memory_by_the_address_of_its_clients_or_by_its_socket() {
    let server = Server::start(&[]);
    assert_eq!(call(&server.endpoint(), "CreateTable", TABLE).0, 200);
    let (address, socket) = (server.address(), server.socket());
    let local = format!("localhost:{}", address.rsplit(':').next().unwrap());
    for at in [address.as_str(), &server.endpoint(), &local, socket.to_str().unwrap()] {
        for command in commands(at) {
            assert_eq!(ended(&run(&command)), (Some(0), String::new()), "{command:?}");
        }
    }
    let about = socket.symlink_metadata().unwrap();
    let folder = socket.parent().unwrap().symlink_metadata().unwrap();
    assert!(about.file_type().is_socket());
    assert_eq!((about.mode() & 0o777, folder.mode() & 0o777), (0o600, 0o700));
    assert_eq!(server.stop("TERM"), (Some(0), String::new()));
    assert!(!socket.exists(), "it goes with the server");
    for command in commands(&address) {
        let (code, said) = ended(&run(&command));
        assert!(
            code == Some(69) && said.contains("is `heatsink serve` running?"),
            "{command:?}: {code:?} {said}"
        );
    }
}

/// What a killed server leaves behind is in nobody's way.
#[test]
fn a_server_that_was_killed_is_followed_by_another_at_its_address() {
    let first = Server::start(&[]);
    let (address, socket) = (first.address(), first.socket());
    first.stop("KILL");
    assert!(socket.exists());
    let at = ["serve", "--listen", address.as_str(), "--output", "json"];
    let second = Server::of(heatsink().args(at));
    assert_eq!(second.socket(), socket);
    let status = ["reshard", "status", "--output", "json", "--server", address.as_str()];
    assert_eq!(ended(&run(&status)), (Some(0), String::new()));
    assert_eq!(second.stop("TERM"), (Some(0), String::new()));
}

#[test]
fn a_folder_that_others_can_use_has_no_socket() {
    let dir = scratch("socket-folder");
    let folder = dir.join("heatsink");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
    let mut command = heatsink();
    command.args(["serve", "--listen", "127.0.0.1:0", "--output", "json"]).env("XDG_RUNTIME_DIR", &dir);
    let server = Server::of(&mut command);
    assert!(!server.socket().starts_with(&dir), "it lies in the next folder");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    assert_eq!(server.stop("TERM"), (Some(0), String::new()));
    // Where there is no folder at all it serves, and says what does not work.
    std::fs::set_permissions(&dir, Permissions::from_mode(0o700)).unwrap();
    let file = dir.join("file");
    std::fs::write(&file, "").unwrap();
    let mut command = heatsink();
    command.args(["serve", "--listen", "127.0.0.1:0", "--output", "json"]);
    let server = Server::of(command.env("XDG_RUNTIME_DIR", &dir).env("TMPDIR", &file));
    assert_eq!(call(&server.endpoint(), "ListTables", "{}").0, 200);
    let (code, said) = server.stop("TERM");
    assert!(code == Some(0) && said.contains("will not find this server"), "{said}");
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn nobody_else_reaches_the_store_behind_a_server() {
    let server = Server::start(&[]);
    let (address, socket) = (server.address(), server.socket());
    // By the clients' address: what a web page, a proxy, or another user could send.
    let post = "POST /_heatsink/physical HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/x-amz-json-1.0\r\n\
        X-Amz-Target: DynamoDB_20120810.ListTables\r\nX-Amz-Date: 20260101T000000Z\r\nAuthorization: AWS4-HMAC-SHA256 \
        Credential=a/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0\r\nContent-Length: 2\r\n\r\n{}";
    assert_eq!(send(&address, post.as_bytes()), (404, "<UnknownOperationException/>\n".to_owned()));
    if !rustix::process::geteuid().is_root() {
        // Only the administrator can become another user.
        return;
    }
    let nobody =
        |command: &[&str]| ended(&heatsink().args(command).uid(65_534).gid(65_534).output().unwrap());
    for command in commands(&address) {
        let (code, said) = nobody(&command);
        assert!(code == Some(69) && said.contains("no server of this user"), "{command:?}: {code:?} {said}");
    }
    for command in commands(socket.to_str().unwrap()) {
        let (code, said) = nobody(&command);
        assert!(code == Some(69) && said.contains("ermission denied"), "{command:?}: {code:?} {said}");
    }
    assert_eq!(server.stop("TERM"), (Some(0), String::new()));
}
