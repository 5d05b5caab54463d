//! One connection, from its first byte to its close.
//!
//! Not here: the answer to a request (`door`).

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use heatsink_env::Env;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::door::{Door, Peer};
use super::exchange::Exchange;
use super::hangup::hung_up;
use super::socket::{Socket, end_writing};

/// How long, and how many bytes, the server still reads after an answer that closes the connection.
/// Closing with unread bytes resets the connection, and the answer may be lost.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 4 * 1024 * 1024;

/// hyper answers a malformed head (400) and one that is too large (431), but closes without an
/// answer if a head ends too early or takes too long. These answers have no body, like hyper's.
const INCOMPLETE: &[u8] = b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
const LATE: &[u8] = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// Serves a connection until either side ends it, or until it is idle once `drain` has changed. A
/// `surplus` connection gets one error.
pub(super) async fn attend<D: Door>(
    stream: TcpStream,
    http: &http1::Builder,
    door: &Arc<D>,
    surplus: bool,
    mut drain: watch::Receiver<()>,
) {
    // Answers are one small write each; Nagle would hold them back.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    let shared = door.shared();
    let stream = Arc::new(stream);
    let exchange = Arc::new(Exchange::default());
    let socket = Socket::new(
        Arc::clone(&stream),
        Arc::clone(&exchange),
        shared.limits.answer_read,
        Arc::clone(&shared.budget),
        Arc::clone(&shared.env),
    );
    let peer = Arc::new(Peer { surplus, exchange: Arc::clone(&exchange) });
    let answer = service_fn(|request| {
        peer.exchange.set_heard();
        let (door, peer) = (Arc::clone(door), Arc::clone(&peer));
        async move { Ok::<_, Infallible>(door.answer(request, &peer).await) }
    });
    let mut connection = http.serve_connection(TokioIo::new(socket), answer);
    let ended = {
        let mut gone = pin!(hung_up(&stream, &exchange, &*shared.env));
        let mut silent = pin!(silence(&exchange, shared.first_head, &*shared.env));
        let mut told = pin!(drain.changed());
        let mut draining = false;
        loop {
            tokio::select! {
                biased;
                ended = &mut connection => break ended,
                // The sender has sent, or is gone: in both cases it is time to end.
                _ = &mut told, if !draining => {
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
        let _ = stream.set_zero_linger();
        return;
    }
    let answered = match &ended {
        Ok(()) => exchange.is_cut(),
        Err(error) => {
            tracing::debug!(%error, "connection ended");
            let begun = !connection.into_parts().read_buf.is_empty();
            if error.is_timeout() && begun {
                shared.counts.late_heads.increment(1);
            }
            match (error.is_timeout(), error.is_incomplete_message()) {
                (true, _) if begun => stream.try_write(LATE).is_ok(),
                (_, true) if begun => stream.try_write(INCOMPLETE).is_ok(),
                _ => error.is_parse(),
            }
        }
    };
    if answered && end_writing(&stream).is_ok() {
        linger(&stream).await;
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
async fn linger(stream: &TcpStream) {
    let take = async {
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
    };
    // Not through Env: a bound on an I/O wait.
    let _ = tokio::time::timeout(LINGER, take).await;
}
