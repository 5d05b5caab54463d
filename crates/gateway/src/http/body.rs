//! Reading a request body within its limits.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};

use crate::budget::Held;

/// Why a body could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// It is larger than allowed.
    TooLarge,
    /// The bodies of all connections fill their share of the memory budget.
    NoRoom,
    /// It did not arrive in time.
    Late,
    /// Its framing differs from its head, or it ends too early.
    Broken,
    /// It is not what its `Content-Encoding` says.
    Malformed,
}

/// Reads a body of at most `limit` bytes within `patience`. The bytes that are kept are counted in
/// `held`; a refused body keeps none. `see` is given each piece as it comes.
pub(super) async fn read(
    mut body: impl Body<Data = Bytes> + Unpin,
    limit: usize,
    patience: Duration,
    held: &mut Held,
    see: &mut (dyn FnMut(&[u8]) + Send),
) -> Result<Bytes, Unread> {
    let reading = async {
        match collect(&mut body, limit, held, see).await {
            Err(why @ (Unread::TooLarge | Unread::NoRoom)) => {
                discard(&mut body, limit).await?;
                Err(why)
            }
            done => done,
        }
    };
    tokio::time::timeout(patience, reading).await.unwrap_or(Err(Unread::Late))
}

/// Reads a body of at most `limit` bytes within `patience` of which nothing is kept. `see` is given
/// each piece as it comes.
pub(super) async fn hear(
    mut body: Incoming,
    limit: usize,
    patience: Duration,
    see: &mut (dyn FnMut(&[u8]) + Send),
) -> Result<(), Unread> {
    let hearing = async {
        let mut left = limit;
        while let Some(piece) = data(&mut body).await? {
            let Some(rest) = left.checked_sub(piece.len()) else {
                discard(&mut body, limit).await?;
                return Err(Unread::TooLarge);
            };
            left = rest;
            see(&piece);
        }
        Ok(())
    };
    tokio::time::timeout(patience, hearing).await.unwrap_or(Err(Unread::Late))
}

/// Reads and drops an unwanted body, within `patience` and up to twice `limit` bytes.
pub(super) async fn skip(mut body: Incoming, limit: usize, patience: Duration) {
    // Errors of the body do not change the answer.
    let _ = tokio::time::timeout(patience, discard(&mut body, limit)).await;
}

async fn collect(
    body: &mut (impl Body<Data = Bytes> + Unpin),
    limit: usize,
    held: &mut Held,
    see: &mut (dyn FnMut(&[u8]) + Send),
) -> Result<Bytes, Unread> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > limit {
        return Err(Unread::TooLarge);
    }
    // Most bodies arrive in one piece and are passed on without a copy. From a socket that is at most
    // its buffer, from this program as much as there is.
    let Some(first) = data(body).await? else { return Ok(Bytes::new()) };
    see(&first);
    if body.is_end_stream() && first.len() <= limit {
        return if held.reach(first.len()) { Ok(first) } else { Err(Unread::NoRoom) };
    }
    // `announced` is the client's claim: allocate at most 64 KB for it before the bytes are here.
    let mut whole = BytesMut::with_capacity(announced.clamp(first.len(), first.len().max(64 * 1024)));
    whole.extend_from_slice(&first);
    drop(first);
    while whole.len() <= limit {
        if !held.reach(whole.capacity()) {
            return Err(Unread::NoRoom);
        }
        match data(body).await? {
            Some(more) => {
                see(&more);
                whole.extend_from_slice(&more);
            }
            None => return Ok(whole.freeze()),
        }
    }
    Err(Unread::TooLarge)
}

/// Reads up to twice `limit` further bytes and drops them. Most clients read no answer before they
/// have sent their whole body, and closing with unread bytes resets the connection before the
/// answer is read. A larger body is cut off.
async fn discard(body: &mut (impl Body<Data = Bytes> + Unpin), limit: usize) -> Result<(), Unread> {
    let mut left = limit.saturating_mul(2);
    while let Some(piece) = data(body).await? {
        match left.checked_sub(piece.len()) {
            Some(rest) => left = rest,
            None => break,
        }
    }
    Ok(())
}

async fn data(body: &mut (impl Body<Data = Bytes> + Unpin)) -> Result<Option<Bytes>, Unread> {
    loop {
        match body.frame().await {
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
            Some(Err(_)) => return Err(Unread::Broken),
            None => return Ok(None),
        }
    }
}
