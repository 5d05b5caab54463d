//! Reading a request body within its limits.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};

/// How reading a body ended.
#[derive(Debug)]
pub(super) enum Read {
    /// All of it.
    Whole(Bytes),
    /// It is larger than allowed; nothing of it was kept.
    TooLarge,
}

/// The client went away, or took too long: there is nobody to answer.
#[derive(Debug)]
pub(super) struct Abandoned;

impl std::fmt::Display for Abandoned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the request body did not arrive")
    }
}

impl std::error::Error for Abandoned {}

/// Reads a body of at most `limit` bytes within `patience`.
pub(super) async fn read(body: Incoming, limit: usize, patience: Duration) -> Result<Read, Abandoned> {
    tokio::time::timeout(patience, collect(body, limit)).await.unwrap_or(Err(Abandoned))
}

async fn collect(mut body: Incoming, limit: usize) -> Result<Read, Abandoned> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > limit {
        return discard(body, limit).await;
    }
    // Most bodies arrive in one piece and are passed on without a copy.
    let Some(first) = data(&mut body).await? else { return Ok(Read::Whole(Bytes::new())) };
    if body.is_end_stream() && first.len() <= limit {
        return Ok(Read::Whole(first));
    }
    // `announced` is the client's word: believe at most 64 KB of it before the bytes are here.
    let mut whole = BytesMut::with_capacity(announced.clamp(first.len(), first.len().max(64 * 1024)));
    whole.extend_from_slice(&first);
    while whole.len() <= limit {
        match data(&mut body).await? {
            Some(more) => whole.extend_from_slice(&more),
            None => return Ok(Read::Whole(whole.freeze())),
        }
    }
    drop(whole);
    discard(body, limit).await
}

/// Takes in up to `limit` further bytes and forgets them. Most clients read no answer before they have sent their
/// whole body, and closing on unread bytes resets the connection under the answer. What is larger still is cut off.
async fn discard(mut body: Incoming, limit: usize) -> Result<Read, Abandoned> {
    let mut left = limit.saturating_mul(2);
    while let Some(piece) = data(&mut body).await? {
        match left.checked_sub(piece.len()) {
            Some(rest) => left = rest,
            None => break,
        }
    }
    Ok(Read::TooLarge)
}

async fn data(body: &mut Incoming) -> Result<Option<Bytes>, Abandoned> {
    loop {
        match body.frame().await {
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
            Some(Err(_)) => return Err(Abandoned),
            None => return Ok(None),
        }
    }
}
