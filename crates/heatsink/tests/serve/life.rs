//! The life of a server: how it becomes ready, leads its clients elsewhere, and is followed by
//! another one on the same address.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::process::{PATIENCE, Server, heatsink, post, run, scratch, send};

const LIST: &str = "DynamoDB_20120810.ListTables";

/// A request that lets its connection go on.
fn kept() -> Vec<u8> {
    let request = String::from_utf8(post(LIST, b"{}")).unwrap();
    request.replacen("connection: close\r\n", "", 1).into_bytes()
}

/// One answer: its head and body.
fn answer(stream: &mut impl Read) -> String {
    let (mut read, mut byte) = (Vec::new(), [0]);
    while !read.ends_with(b"}") {
        assert_eq!(stream.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&read));
        read.push(byte[0]);
    }
    String::from_utf8(read).unwrap()
}

fn ready(server: &Server) -> (u16, String) {
    let request = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    send(&server.admin(), request)
}

#[test]
fn a_lame_duck_serves_on_and_sends_its_clients_elsewhere() {
    let server = Server::start(&["--admin", "127.0.0.1:0", "--lame-duck", "3"]);
    let mut old = TcpStream::connect(server.address()).unwrap();
    old.write_all(&kept()).unwrap();
    assert!(!answer(&mut old).contains("connection: close"));
    assert_eq!(ready(&server).0, 200);
    assert_eq!(run(&["health", "--server", &server.address()]).status.code(), Some(0));
    assert_eq!(run(&["health", "--server", &server.admin()]).status.code(), Some(0));
    let told = Instant::now();
    server.signal("TERM");
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(ready(&server), (503, "the gateway is stopping\n".to_owned()));
    for at in [server.address(), server.admin()] {
        let health = run(&["health", "--server", &at]);
        let said = String::from_utf8(health.stderr).unwrap();
        assert_eq!(
            (health.status.code(), said.contains("the gateway is stopping")),
            (Some(1), true),
            "{said}"
        );
    }
    // Old connections and new ones are served, and end with their answer.
    let mut new = TcpStream::connect(server.address()).unwrap();
    for stream in [&mut old, &mut new] {
        stream.write_all(&kept()).unwrap();
        let mut rest = String::new();
        stream.read_to_string(&mut rest).unwrap();
        assert!(rest.starts_with("HTTP/1.1 200") && rest.contains("connection: close"), "{rest}");
    }
    let address = server.address();
    assert_eq!(server.wait(), (Some(0), String::new()));
    assert!(told.elapsed() >= Duration::from_secs(3));
    assert!(TcpStream::connect(&address).is_err());
    assert_eq!(run(&["health", "--server", &address]).status.code(), Some(69));
}

#[test]
fn a_second_signal_ends_a_lame_duck() {
    let server = Server::start(&["--lame-duck", "60"]);
    server.signal("TERM");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(server.stop("TERM").0, Some(143));
}

#[test]
fn the_end_of_standard_input_ends_it_where_it_is_told_so() {
    let start = |flags: &[&str]| {
        let (held, passed) = UnixStream::pair().unwrap();
        let mut command = heatsink();
        command.args(["serve", "--output", "json", "--listen", "127.0.0.1:0"]).args(flags);
        (held, Server::passing(&mut command, Stdio::from(OwnedFd::from(passed))))
    };
    let (mut held, mut server) = start(&["--end-with-stdin"]);
    // What comes in is passed over.
    held.write_all(b"anything\n").unwrap();
    let mut idle = TcpStream::connect(server.address()).unwrap();
    idle.write_all(&kept()).unwrap();
    answer(&mut idle);
    assert!(server.runs());
    drop(held);
    assert_eq!(server.wait().0, Some(0));

    let (held, mut server) = start(&[]);
    drop(held);
    std::thread::sleep(Duration::from_millis(300));
    assert!(server.runs());
    assert_eq!(server.stop("TERM").0, Some(0));
}

#[test]
fn a_hangup_never_kills() {
    let mut server = Server::start(&[]);
    for _ in 0..3 {
        server.signal("HUP");
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(server.runs());
    assert_eq!(send(&server.address(), &post(LIST, b"{}")).0, 200);
    assert!(server.metric("heatsink_config_generation") >= 2.0);
    assert_eq!(server.stop("TERM").0, Some(0));
}

#[test]
fn a_unix_socket_is_listened_on() {
    let dir = scratch("unix");
    let path = dir.join("clients.sock");
    let at = format!("unix:{}", path.display());
    let start = || Server::of(heatsink().args(["serve", "--output", "json", "--listen", &at]));
    let server = start();
    assert_eq!(server.endpoint(), at);
    let ask = || {
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(&post(LIST, b"{}")).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    };
    ask();
    let health = run(&["health", "--server", &at]);
    assert_eq!(health.status.code(), Some(0), "{}", String::from_utf8_lossy(&health.stderr));
    let taken = run(&["serve", "--listen", &at]);
    assert_eq!(taken.status.code(), Some(69), "{}", String::from_utf8_lossy(&taken.stderr));
    // What a killed one leaves behind is in nobody's way.
    server.stop("KILL");
    assert!(path.exists());
    let server = start();
    ask();
    assert_eq!(server.stop("TERM").0, Some(0));
    assert!(!path.exists());
    std::fs::remove_dir_all(dir).unwrap();
}

/// Asks again and again on new connections while `change` runs: how many were answered, and how
/// many were not.
fn asked_while(address: &str, change: impl FnOnce()) -> (usize, Vec<String>) {
    let (over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let failed = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut failed = Vec::new();
                    while !over.load(Ordering::Relaxed) {
                        match ask_once(address) {
                            Ok(()) => drop(answered.fetch_add(1, Ordering::Relaxed)),
                            Err(why) => failed.push(why),
                        }
                    }
                    failed
                })
            })
            .collect();
        change();
        over.store(true, Ordering::Relaxed);
        asking.into_iter().flat_map(|asking| asking.join().unwrap()).collect()
    });
    (answered.into_inner(), failed)
}

fn ask_once(address: &str) -> Result<(), String> {
    let mut stream = TcpStream::connect(address).map_err(|error| format!("connect: {error}"))?;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(&post(LIST, b"{}")).map_err(|error| format!("write: {error}"))?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(|error| format!("read: {error}"))?;
    if answer.starts_with("HTTP/1.1 200") { Ok(()) } else { Err(answer) }
}

#[test]
fn a_successor_on_the_same_port_takes_over_without_a_refused_connection() {
    let first = Server::start(&["--reuse-port", "--lame-duck", "1"]);
    let address = first.address();
    let mut second = None;
    let (answered, failed) = asked_while(&address, || {
        std::thread::sleep(Duration::from_millis(300));
        let next = ["serve", "--output", "json", "--listen", &address, "--reuse-port"];
        second = Some(Server::of(heatsink().args(next)));
        assert_eq!(first.stop("TERM").0, Some(0));
        std::thread::sleep(Duration::from_millis(300));
    });
    assert!(answered > 20, "{answered}");
    // The system resets connections that it gives the old listener in the microseconds in which that
    // closes (but with net.ipv4.tcp_migrate_req), some while they connect: one of each client at most.
    // It refuses none.
    let is_reset = |why: &String| !why.starts_with("connect") || why.contains("reset");
    assert!(failed.iter().all(is_reset), "{failed:?}");
    assert!(failed.len() <= 4, "{} of {answered} failed: {failed:?}", failed.len());
    let mut second = second.unwrap();
    assert!(second.runs());
    assert_eq!(run(&["health", "--server", &address]).status.code(), Some(0), "commands reach the second");
}

#[test]
fn a_socket_of_the_service_manager_outlives_its_servers() {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap().to_string();
    let start = || {
        let passed: OwnedFd = socket.try_clone().unwrap().into();
        let mut command = heatsink();
        let program = command.get_program().to_owned();
        let mut shell = std::process::Command::new("sh");
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        command = shell;
        let script = "exec 3<&0 </dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" serve --output json";
        command.arg("-c").arg(script).arg(program);
        Server::passing(&mut command, Stdio::from(passed))
    };
    let first = start();
    assert_eq!(first.address(), address);
    let mut third = None;
    let (answered, failed) = asked_while(&address, || {
        std::thread::sleep(Duration::from_millis(300));
        // Clients wait until the next one is there.
        assert_eq!(first.stop("TERM").0, Some(0));
        let second = start();
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(second.stop("TERM").0, Some(0));
        third = Some(start());
        std::thread::sleep(Duration::from_millis(300));
    });
    assert!(answered > 20, "{answered}");
    assert!(failed.is_empty(), "{} of {answered} failed: {:?}", failed.len(), failed.first());
    assert_eq!(third.unwrap().stop("TERM").0, Some(0));
}

#[test]
fn the_service_manager_is_told() {
    let dir = scratch("notify");
    let path = dir.join("notify.sock");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let told = || {
        let mut text = [0; 256];
        let length = manager.recv(&mut text).unwrap();
        String::from_utf8_lossy(&text[..length]).into_owned()
    };
    let mut command = heatsink();
    command.args(["serve", "--output", "json", "--listen", "127.0.0.1:0"]).env("NOTIFY_SOCKET", &path);
    let server = Server::of(&mut command);
    assert_eq!(told(), "READY=1");
    server.signal("HUP");
    let reloading = told();
    let at = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=");
    assert!(at.is_some_and(|at| at.parse::<u64>().is_ok()), "{reloading}");
    assert_eq!(told(), "READY=1");
    server.signal("TERM");
    assert_eq!(told(), "STOPPING=1");
    assert_eq!(server.wait().0, Some(0));
    std::fs::remove_dir_all(dir).unwrap();
}
