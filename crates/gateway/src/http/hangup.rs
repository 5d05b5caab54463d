//! Detects that a client has gone while its request is processed.
//!
//! A client that resets the connection is detected at once. A client that closes it looks like one
//! that has only ended its own side and waits for its answers: TCP tells them apart only when
//! something is sent. So while its request is processed such a client gets `100 Continue`, which
//! HTTP/1.1 allows before any answer and clients skip (RFC 9110, section 15.2). A client that has
//! closed resets the connection; one that waits reads on.

use std::future::{pending, poll_fn};
use std::io;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use futures::future::select;
use heatsink_env::Env;
use tokio::io::Interest;

use super::exchange::Exchange;
use super::stream::Stream;
use super::transport::Secured;

/// How often a client that has ended its side is probed.
const AGAIN: Duration = Duration::from_millis(500);

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Resolves once the client cannot take an answer any more. `secured`: TLS over the stream, where
/// there is TLS.
pub(super) async fn hung_up(stream: &Stream, secured: Option<&Secured>, exchange: &Exchange, env: &dyn Env) {
    let closed = async {
        // Out-of-band data also resolves this, and has no meaning here.
        match stream.ready(Interest::PRIORITY).await {
            Ok(ready) if !ready.is_read_closed() => pending().await,
            Ok(_) => {}
            Err(_) => return,
        }
        loop {
            env.sleep(AGAIN).await;
            if exchange.is_between_answers() {
                match send(stream, secured).await {
                    Ok(written) if written == CONTINUE.len() => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    // The client is gone, or has received half a line.
                    Ok(_) | Err(_) => return,
                }
            }
        }
    };
    select(pin!(stream.ready(Interest::ERROR)), pin!(closed)).await;
}

/// Sends the probe if it can be sent now.
async fn send(stream: &Stream, secured: Option<&Secured>) -> io::Result<usize> {
    let Some(secured) = secured else { return stream.try_write(CONTINUE) };
    poll_fn(|cx| {
        Poll::Ready(match secured.poll_send(cx, CONTINUE) {
            Poll::Ready(sent) => sent,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        })
    })
    .await
}
