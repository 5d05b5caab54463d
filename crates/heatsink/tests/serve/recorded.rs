//! A proxy before a store that keeps each request that reaches the store: operation and body.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

type Calls = Mutex<Vec<(String, Vec<u8>)>>;

/// The proxy. It ends with the process.
pub struct Recorder {
    pub endpoint: String,
    calls: Arc<Calls>,
}

impl Recorder {
    /// Before the store at this address.
    pub fn before(store: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let calls = Arc::<Calls>::default();
        let (store, kept) = (store.to_owned(), Arc::clone(&calls));
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (client, store, kept) = (client.unwrap(), store.clone(), Arc::clone(&kept));
                std::thread::spawn(move || pass_on(client, &store, &kept));
            }
        });
        Recorder { endpoint, calls }
    }

    /// What reached the store so far.
    pub fn calls(&self) -> Vec<(String, Vec<u8>)> {
        self.calls.lock().unwrap().clone()
    }
}

/// Requests of one connection, one after the other.
fn pass_on(client: TcpStream, store: &str, calls: &Calls) {
    let store = TcpStream::connect(store).unwrap();
    let (mut from_client, mut from_store) =
        (BufReader::new(client.try_clone().unwrap()), BufReader::new(store.try_clone().unwrap()));
    let (mut client, mut store) = (client, store);
    while let Some((head, body)) = message(&mut from_client) {
        let target = head.lines().find_map(|line| line.strip_prefix("x-amz-target: ")).unwrap();
        let operation = target.rsplit('.').next().unwrap().to_owned();
        calls.lock().unwrap().push((operation, body.clone()));
        store.write_all(&[head.as_bytes(), &body].concat()).unwrap();
        let (head, body) = message(&mut from_store).unwrap();
        if client.write_all(&[head.as_bytes(), &body].concat()).is_err() {
            return;
        }
    }
}

/// The head with its end, in the letters that came but for names of headers, and the body; `None`
/// at the end.
fn message(from: &mut BufReader<TcpStream>) -> Option<(String, Vec<u8>)> {
    let mut head = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        if from.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some((name, value)) = line.split_once(": ") {
            let name = name.to_lowercase();
            if name == "content-length" {
                length = value.trim().parse().unwrap();
            }
            line = format!("{name}: {value}");
        }
        head += &line;
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body).ok()?;
    Some((head, body))
}
