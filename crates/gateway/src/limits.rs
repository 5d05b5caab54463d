//! Limits on what a client may request, and on how long it may take.

use std::time::Duration;

/// Limits on connections, requests, and what all of them hold together. The defaults are what
/// `heatsink serve` uses.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The largest request body in bytes. DynamoDB's own is 16 MB.
    pub body: usize,
    /// The largest request head (request line and headers) in bytes; at least 8,192.
    pub head: usize,
    /// How long a connection may take to send a whole request head. A connection that is kept alive
    /// and sends nothing is closed after the same time.
    pub head_read: Duration,
    /// How long a client may take to send a request body, from the end of its head.
    pub body_read: Duration,
    /// How long a request may take from its last byte to its answer. Retries of throttled shards
    /// stay within it.
    pub request: Duration,
    /// How long a client may take no byte of a waiting answer. One second if other requests wait
    /// for room in `memory`, or three quarters of it are held.
    pub answer_read: Duration,
    /// How long a client may take for the handshake of TLS.
    pub handshake: Duration,
    /// The most handshakes of TLS under way. One more ends the oldest.
    pub handshakes: usize,
    /// The most connections. One more gets `ServiceUnavailable` and is closed.
    pub connections: usize,
    /// The most requests in progress, including writes whose clients have gone. One more gets
    /// `ThrottlingException`.
    pub requests: usize,
    /// The most bytes that all requests hold together: bodies, which may fill half; calls to the
    /// store, with the memory to parse them; answers that clients have not taken yet. Up to 64 KB
    /// of each request are not counted.
    pub memory: usize,
    /// How long a request waits for room in [`Limits::memory`], first come first served. Then it
    /// gets `ThrottlingException`. A body that arrives does not wait; a request that may have
    /// written already, and the answer of a write, continue without room.
    pub memory_wait: Duration,
    /// How long requests in flight may continue after a shutdown was requested.
    pub drain: Duration,
    /// The cost limit of one request, for the store and this process.
    pub cost: Cost,
}

/// How much of the store one request may use.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// The most physical calls that run concurrently; at least 1. The others wait.
    pub at_once: usize,
    /// The most physical calls of a request.
    pub calls: usize,
    /// The most bytes that these calls and the store's answers may hold.
    pub bytes: usize,
}

impl Default for Cost {
    fn default() -> Self {
        Cost { at_once: 128, calls: 100_000, bytes: 512 * 1024 * 1024 }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            body: 16 * 1024 * 1024,
            head: 64 * 1024,
            head_read: Duration::from_secs(60),
            body_read: Duration::from_secs(30),
            request: Duration::from_secs(30),
            answer_read: Duration::from_secs(30),
            handshake: Duration::from_secs(10),
            handshakes: 256,
            connections: 1000,
            requests: 500,
            memory: 512 * 1024 * 1024,
            memory_wait: Duration::from_secs(5),
            drain: Duration::from_secs(30),
            cost: Cost::default(),
        }
    }
}
