//! One connection, from its first byte to its close.
//!
//! Not here: the answer to a request (`door`), TLS handshakes (`handshakes`).

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use heatsink_env::Env;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt;
use tokio::sync::watch;

use super::door::{Door, Peer, Shared};
use super::exchange::Exchange;
use super::hangup::hung_up;
use super::reply;
use super::shown::Shown;
use super::socket::Socket;
use super::stream::Stream;
use super::tls::ServerTls;
use super::transport::{Secured, Transport};

/// How long, and how many bytes, the server still reads after an answer that closes the connection.
/// Closing with unread bytes resets the connection, and the answer may be lost.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 4 * 1024 * 1024;
/// How long a connection that was accepted right before the listener closed may take for its first
/// request. Who has just connected is about to ask.
const FIRST_REQUEST: Duration = Duration::from_secs(1);

/// hyper answers a malformed head (400) and one that is too large (431), but closes without an
/// answer if a head ends too early or takes too long. These answers have no body, like hyper's.
const INCOMPLETE: &[u8] = b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
const LATE: &[u8] = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// A client that is connected, and secured where the listener has TLS.
pub(super) struct Connected {
    stream: Arc<Stream>,
    exchange: Arc<Exchange>,
    secured: Option<Secured>,
    shown: Option<Shown>,
    transport: Transport,
}

impl Connected {
    /// A client whose bytes come as they are.
    pub(super) fn plain(stream: Stream, shared: &Shared) -> Self {
        let (stream, exchange, socket) = begin(stream, shared);
        Connected { stream, exchange, secured: None, shown: None, transport: Transport::Plain(socket) }
    }

    /// A client that has gone through the handshake of TLS; `None` for one that has not.
    pub(super) async fn secured(stream: Stream, tls: &ServerTls, shared: &Shared) -> Option<Self> {
        let (stream, exchange, socket) = begin(stream, shared);
        let (secured, shown) =
            shared.handshakes.run(socket, tls, &shared.limits, &shared.counts, &*shared.env).await?;
        let secured = Secured::new(secured);
        let transport = Transport::Tls(secured.clone());
        Some(Connected { stream, exchange, secured: Some(secured), shown, transport })
    }
}

fn begin(stream: Stream, shared: &Shared) -> (Arc<Stream>, Arc<Exchange>, Socket) {
    stream.send_at_once();
    let (stream, exchange) = (Arc::new(stream), Arc::new(Exchange::default()));
    let socket = Socket::new(
        Arc::clone(&stream),
        Arc::clone(&exchange),
        shared.limits.answer_read,
        Arc::clone(&shared.budget),
        Arc::clone(&shared.env),
    );
    (stream, exchange, socket)
}

/// Serves a connection until either side ends it, or until it is idle once `drain` has changed. A
/// `surplus` connection gets one error.
pub(super) async fn attend<D: Door>(
    connected: Connected,
    http: &http1::Builder,
    door: &Arc<D>,
    surplus: bool,
    mut drain: watch::Receiver<()>,
) {
    let Connected { stream, exchange, secured, shown, transport } = connected;
    let shared = door.shared();
    let peer = Arc::new(Peer { surplus, exchange: Arc::clone(&exchange), shown });
    let answer = service_fn(|request| {
        peer.exchange.set_heard();
        let (door, peer) = (Arc::clone(door), Arc::clone(&peer));
        async move {
            let answer = door.answer(request, &peer).await;
            // Whoever asks next does so elsewhere before this listener closes, and again with a
            // certificate that holds.
            let is_last = door.is_stopping() || peer.ends_soon(door.shared());
            Ok::<_, Infallible>(if is_last { reply::closing(answer) } else { answer })
        }
    });
    let mut connection = http.serve_connection(TokioIo::new(transport), answer);
    let ended = {
        let mut gone = pin!(hung_up(&stream, secured.as_ref(), &exchange, &*shared.env));
        let mut silent = pin!(silence(&exchange, shared.first_head, &*shared.env));
        let mut told = pin!(async {
            // The sender has sent, or is gone: in both cases it is time to end.
            let _ = drain.changed().await;
            if !exchange.is_heard() {
                shared.env.sleep(FIRST_REQUEST).await;
            }
        });
        let mut draining = false;
        loop {
            tokio::select! {
                biased;
                ended = &mut connection => break ended,
                () = &mut told, if !draining => {
                    draining = true;
                    std::pin::Pin::new(&mut connection).graceful_shutdown();
                }
                // Dropping the connection drops the request in progress.
                () = &mut gone => return,
                () = &mut silent => return,
            }
        }
    };
    if exchange.is_stalled() {
        shared.counts.untaken_answers.increment(1);
        tracing::debug!("closed a connection whose client takes no answer");
        // Otherwise the kernel continues to send what it has buffered.
        stream.forget_buffered();
        return;
    }
    let parts = connection.into_parts();
    let mut last: &[u8] = b"";
    let answered = match &ended {
        Ok(()) => exchange.is_cut(),
        Err(error) => {
            tracing::debug!(%error, "connection ended");
            let begun = !parts.read_buf.is_empty();
            if error.is_timeout() && begun {
                shared.counts.late_heads.increment(1);
            }
            match (error.is_timeout(), error.is_incomplete_message()) {
                (true, _) if begun => last = LATE,
                (_, true) if begun => last = INCOMPLETE,
                _ => {}
            }
            !last.is_empty() || error.is_parse()
        }
    };
    let mut transport = parts.io.into_inner();
    if answered {
        close(transport, &stream, last).await;
    } else if secured.is_some() {
        // So that the client can tell the end from a cut. Not through Env: a bound on an I/O wait.
        let _ = tokio::time::timeout(LINGER, transport.shutdown()).await;
    }
}

/// Sends the `last` bytes and the end of them, and takes what the client still sends.
async fn close(mut transport: Transport, stream: &Stream, last: &[u8]) {
    let end = async {
        transport.write_all(last).await?;
        transport.flush().await?;
        transport.shutdown().await
    };
    // Not through Env: bounds on I/O waits.
    if let Ok(Ok(())) = tokio::time::timeout(LINGER, end).await {
        let _ = tokio::time::timeout(LINGER, take_rest(stream)).await;
    }
}

/// Resolves where no head has come whole within `first`. Never resolves after a head, nor without a
/// bound.
async fn silence(exchange: &Exchange, first: Option<Duration>, env: &dyn Env) {
    if let Some(first) = first {
        env.sleep(first).await;
        if !exchange.is_heard() {
            return;
        }
    }
    std::future::pending().await
}

/// Reads and drops what the client still sends.
async fn take_rest(stream: &Stream) {
    let (mut left, mut piece) = (LINGER_BYTES, vec![0; 16 * 1024]);
    while stream.readable().await.is_ok() {
        match stream.try_read(&mut piece) {
            Ok(0) => return,
            Ok(read) if read > left => return,
            Ok(read) => left -= read,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}
