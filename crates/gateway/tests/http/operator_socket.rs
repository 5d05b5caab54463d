//! The socket of the operator's commands: what is told and done there, and for whom.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use heatsink_control::Rules;
use heatsink_gateway::{Status, http};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::client::post;
use crate::server::{limits, service, until};
use crate::store::Double;

struct Socket {
    path: PathBuf,
    store: Double,
    stop: oneshot::Sender<()>,
    done: JoinHandle<()>,
}

/// A socket in a folder of the test's own, of a server that shows its store or does not.
async fn socket(name: &str, shows_store: bool) -> Socket {
    let store = Double::default();
    let (service, env) = service(Arc::new(store.clone()), Rules::default(), limits()).await;
    let folder = std::env::temp_dir().join(format!("heatsink-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir(&folder).unwrap();
    let path = folder.join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let shown = shows_store.then(|| Arc::new(store.clone()) as _);
    let done =
        tokio::spawn(http::serve_operator(listener, Arc::new(Status::of(&service)), shown, env, async {
            let _ = stopped.await;
        }));
    Socket { path, store, stop, done }
}

/// The whole answer to a request, until the server closes the connection.
async fn ask(socket: &Path, request: &[u8]) -> String {
    let mut stream = UnixStream::connect(socket).await.unwrap();
    stream.write_all(request).await.unwrap();
    let mut answer = String::new();
    // One that is not answered is reset.
    let _ = stream.read_to_string(&mut answer).await;
    answer
}

fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").into_bytes()
}

fn physical(operation: &str) -> Vec<u8> {
    let text = String::from_utf8(post(operation, br#"{"TableName":"abc"}"#)).unwrap();
    text.replacen("POST / HTTP/1.1\r\n", "POST /_heatsink/physical HTTP/1.1\r\nconnection: close\r\n", 1)
        .into_bytes()
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_are_told_what_operators_are_and_reach_a_store_that_is_shown() {
    let shown = socket("shown", true).await;
    let heat = ask(&shown.path, &get("/_heatsink/heat")).await;
    assert!(heat.starts_with("HTTP/1.1 200") && heat.contains("\"parts\":[]"), "{heat}");
    assert!(ask(&shown.path, &get("/_heatsink/nothing")).await.starts_with("HTTP/1.1 404"));
    assert!(
        ask(&shown.path, &post("GetItem", b"{}")).await.starts_with("HTTP/1.1 404"),
        "no client's protocol"
    );
    assert_eq!(shown.store.calls("GetItem"), 0);
    let read = ask(&shown.path, &physical("GetItem")).await;
    assert!(read.starts_with("HTTP/1.1 200") && read.ends_with(r#"{"Item":{}}"#), "{read}");
    assert!(ask(&shown.path, &physical("NoSuchOperation")).await.starts_with("HTTP/1.1 400"));
    assert_eq!(shown.store.calls("GetItem"), 1);
    // It ends with what is under way.
    shown.store.hold(Duration::from_millis(500));
    let path = shown.path.clone();
    let write = tokio::spawn(async move { ask(&path, &physical("PutItem")).await });
    until("the write is under way", || shown.store.calls("PutItem") == 1).await;
    shown.stop.send(()).unwrap();
    let written = write.await.unwrap();
    assert!(written.starts_with("HTTP/1.1 200"), "{written}");
    shown.done.await.unwrap();

    let hidden = socket("hidden", false).await;
    // Each time: what is refused is read before.
    for _ in 0..50 {
        let refused = ask(&hidden.path, &physical("GetItem")).await;
        assert!(
            refused.contains("AccessDeniedException") && refused.contains("another endpoint"),
            "{refused}"
        );
    }
    assert_eq!(hidden.store.calls("GetItem"), 0);
}

/// Another user of the machine is not answered, not even where the socket's folder and mode let it
/// in.
#[tokio::test(flavor = "multi_thread")]
async fn another_user_is_not_answered() {
    const NOBODY: u32 = 65_534;
    if !rustix::process::geteuid().is_root() {
        // Only the administrator can become another user.
        return;
    }
    let open = socket("open", true).await;
    std::fs::set_permissions(&open.path, std::fs::Permissions::from_mode(0o666)).unwrap();
    let path = open.path.clone();
    let asked = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let user = rustix::process::Uid::from_raw(NOBODY);
        // Of this thread alone.
        rustix::thread::set_thread_res_uid(user, user, user).unwrap();
        let mut answers = Vec::new();
        for request in [get("/_heatsink/heat"), physical("GetItem")] {
            let mut stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
            let mut answer = String::new();
            let _ = stream.write_all(&request);
            let _ = stream.read_to_string(&mut answer);
            answers.push(answer);
        }
        answers
    });
    assert_eq!(asked.join().unwrap(), ["", ""]);
    assert_eq!(open.store.calls("GetItem"), 0);
    assert!(ask(&open.path, &physical("GetItem")).await.starts_with("HTTP/1.1 200"));
}
