//! gzip: compressed request bodies, and compressed answers for clients that accept them.
//!
//! As in DynamoDB, small answers are not compressed, and `x-amz-crc32` is the checksum of the bytes
//! on the wire (seen in the SDKs, which check it before they decompress).

use std::io::{Read, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use http::HeaderMap;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING};

use super::body::Unread;
use crate::budget::Held;

/// The smallest answer to compress, in bytes: a smaller one fits into one packet anyway. DynamoDB's
/// own threshold is not published.
const WORTHWHILE: usize = 1024;

/// How much is inflated or deflated before the task yields, in bytes of plain text: about a
/// millisecond.
const STEP: usize = 256 * 1024;
/// The most members of one gzip body. Each costs some microseconds even if it is empty, and SDKs
/// send one.
const MEMBERS: usize = 1000;

/// The body of a request, decompressed if it is gzip, of at most `limit` bytes, which are counted
/// in `held`.
pub(super) async fn read(
    headers: &HeaderMap,
    body: Bytes,
    limit: usize,
    held: &mut Held,
) -> Result<Bytes, Unread> {
    match headers.get(CONTENT_ENCODING).map(|encoding| encoding.as_bytes()) {
        None => return Ok(body),
        Some(encoding) if encoding.eq_ignore_ascii_case(b"identity") => return Ok(body),
        Some(encoding) if encoding.eq_ignore_ascii_case(b"gzip") => {}
        Some(_) => return Err(Unread::Malformed),
    }
    let (mut plain, mut rest, mut members) = (Vec::new(), &*body, 0);
    while !rest.is_empty() || members == 0 {
        members += 1;
        if members > MEMBERS {
            return Err(Unread::Malformed);
        }
        let mut member = GzDecoder::new(rest);
        loop {
            // One byte more than the limit shows that there is more.
            let most = STEP.min(limit.saturating_sub(plain.len()).saturating_add(1));
            let mut step = (&mut member).take(u64::try_from(most).unwrap_or(u64::MAX));
            let read = step.read_to_end(&mut plain).map_err(|_| Unread::Malformed)?;
            if read == 0 {
                break;
            }
            if plain.len() > limit {
                return Err(Unread::TooLarge);
            }
            if !held.reach(body.len().saturating_add(plain.capacity())) {
                return Err(Unread::NoRoom);
            }
            tokio::task::yield_now().await;
        }
        rest = member.into_inner();
    }
    Ok(Bytes::from(plain))
}

/// Whether the client accepts gzip, and would not rather have the answer as it is (RFC 9110,
/// section 12.5.3). What is not well-formed counts as not sent. A client that refuses both gets the
/// answer as it is.
pub(super) fn wanted(headers: &HeaderMap) -> bool {
    let (mut gzip, mut any, mut identity) = (None, None, None);
    let given = headers.get_all(ACCEPT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
    for one in given.flat_map(|value| value.split(',')) {
        let (name, weight) =
            one.split_once(';').map_or((one, Some(MOST_WANTED)), |(name, weight)| (name, quality(weight)));
        let Some(weight) = weight else { continue };
        match name.trim().to_ascii_lowercase().as_str() {
            "gzip" | "x-gzip" => gzip = gzip.max(Some(weight)),
            "*" => any = any.max(Some(weight)),
            "identity" => identity = Some(weight),
            _ => {}
        }
    }
    let gzip = gzip.or(any).unwrap_or_default();
    gzip > 0 && gzip >= identity.unwrap_or_default()
}

/// The weight of what is wanted most, in thousandths.
const MOST_WANTED: u16 = 1_000;

/// A weight in thousandths: `q=` and a number from 0 to 1 with at most three digits behind its
/// point (RFC 9110, section 12.4.2).
fn quality(weight: &str) -> Option<u16> {
    let weight = weight.trim();
    let number = weight.strip_prefix("q=").or_else(|| weight.strip_prefix("Q="))?;
    let (whole, digits) = number.split_once('.').unwrap_or((number, ""));
    if digits.len() > 3 || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let part: u16 = format!("{digits:0<3}").parse().ok()?;
    match (whole, part) {
        ("0", part) => Some(part),
        ("1", 0) => Some(MOST_WANTED),
        _ => None,
    }
}

/// The body in gzip, if it is large enough.
pub(super) async fn write(body: &Bytes) -> Option<Bytes> {
    if body.len() < WORTHWHILE {
        return None;
    }
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
    for (number, piece) in body.chunks(STEP).enumerate() {
        if number > 0 {
            tokio::task::yield_now().await;
        }
        encoder.write_all(piece).ok()?;
    }
    encoder.finish().ok().map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use heatsink_env::ManualEnv;

    use super::*;
    use crate::Limits;
    use crate::budget::{Budget, Of, UNCOUNTED};

    fn headers(name: http::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    /// A budget whose bodies may hold so many bytes.
    fn budget(bodies: usize) -> Arc<Budget> {
        let limits = Limits { memory: 2 * bodies, ..Limits::default() };
        Budget::new(&limits, Arc::new(ManualEnv::seeded(1)))
    }

    async fn read(headers: &HeaderMap, body: Bytes, limit: usize) -> Result<Bytes, Unread> {
        super::read(headers, body, limit, &mut budget(1 << 30).hold(Of::Requests)).await
    }

    #[tokio::test]
    async fn a_compressed_body_is_read_within_its_limit() {
        let plain = Bytes::from("a".repeat(5000));
        let packed = write(&plain).await.unwrap();
        assert!(packed.len() < 100);
        let gzip = headers(CONTENT_ENCODING, "GZip");
        assert_eq!(read(&gzip, packed.clone(), 5000).await, Ok(plain.clone()));
        assert_eq!(read(&gzip, packed.clone(), 4999).await, Err(Unread::TooLarge));
        assert_eq!(read(&gzip, packed.slice(..packed.len() - 9), 5000).await, Err(Unread::Malformed));
        assert_eq!(read(&gzip, plain.clone(), 5000).await, Err(Unread::Malformed));
        assert_eq!(read(&gzip, Bytes::new(), 5000).await, Err(Unread::Malformed));
        assert_eq!(read(&headers(CONTENT_ENCODING, "br"), plain.clone(), 5000).await, Err(Unread::Malformed));
        assert_eq!(read(&headers(CONTENT_ENCODING, "identity"), plain.clone(), 1).await, Ok(plain.clone()));
        assert_eq!(read(&HeaderMap::new(), plain.clone(), 1).await, Ok(plain));
    }

    #[tokio::test]
    async fn a_body_of_several_members_is_read_and_of_very_many_is_not() {
        let gzip = headers(CONTENT_ENCODING, "gzip");
        let one = write(&Bytes::from("ab".repeat(1000))).await.unwrap();
        let three = Bytes::from([&one[..], &one, &one].concat());
        assert_eq!(read(&gzip, three.clone(), 6000).await, Ok(Bytes::from("ab".repeat(3000))));
        assert_eq!(read(&gzip, three, 5999).await, Err(Unread::TooLarge));
        let nothing = GzEncoder::new(Vec::new(), Compression::fast()).finish().unwrap();
        assert_eq!(read(&gzip, Bytes::from(nothing.repeat(MEMBERS)), 10).await, Ok(Bytes::new()));
        assert_eq!(read(&gzip, Bytes::from(nothing.repeat(MEMBERS + 1)), 10).await, Err(Unread::Malformed));
    }

    #[tokio::test]
    async fn what_a_body_inflates_to_is_counted() {
        let gzip = headers(CONTENT_ENCODING, "gzip");
        let bomb = write(&Bytes::from(vec![b' '; 32 * UNCOUNTED])).await.unwrap();
        assert!(bomb.len() < UNCOUNTED / 4);
        let mut held = budget(16 * UNCOUNTED).hold(Of::Requests);
        assert_eq!(super::read(&gzip, bomb.clone(), 64 * UNCOUNTED, &mut held).await, Err(Unread::NoRoom));
        drop(held);
        let large = budget(128 * UNCOUNTED);
        let mut held = large.hold(Of::Requests);
        assert!(super::read(&gzip, bomb, 64 * UNCOUNTED, &mut held).await.is_ok());
        assert!(!large.hold(Of::Requests).reach(128 * UNCOUNTED), "it is counted as long as it is held");
    }

    #[tokio::test]
    async fn gzip_is_sent_to_those_who_take_it() {
        for (value, takes) in
            [("gzip", true), ("br, GZIP;q=0.5", true), ("identity", false), ("gzip;q=0", false), ("", false)]
        {
            assert_eq!(wanted(&headers(ACCEPT_ENCODING, value)), takes, "{value}");
        }
        let rfc_9110 = [
            ("*", true),
            ("x-gzip", true),
            ("compress, gzip", true),
            ("gzip;q=1.0, identity; q=0.5, *;q=0", true),
            ("gzip ; Q=0.001", true),
            ("identity;q=0, gzip;q=0.2", true),
            ("*;q=0", false),
            ("*, gzip;q=0", false),
            ("gzip;q=0.000", false),
            ("gzip;q=0.5, identity", false),
            ("deflate, br;q=1", false),
            // Not well-formed.
            ("gzip;q=", false),
            ("gzip;q=2", false),
            ("gzip;q=1.001", false),
            ("gzip;q=0.1234", false),
            ("gzip;q=-1", false),
            ("gzip;q=0x1", false),
            ("gzip;level=9", false),
            ("gzip;q=1;q=0", false),
            (";;,,;q=", false),
        ];
        for (value, takes) in rfc_9110 {
            assert_eq!(wanted(&headers(ACCEPT_ENCODING, value)), takes, "{value}");
        }
        let mut twice = headers(ACCEPT_ENCODING, "br");
        twice.append(ACCEPT_ENCODING, "gzip".parse().unwrap());
        assert!(wanted(&twice));
        let unreadable = http::HeaderValue::from_bytes(b"gzip\xff").unwrap();
        assert!(!wanted(&HeaderMap::from_iter([(ACCEPT_ENCODING, unreadable)])));
        assert!(!wanted(&HeaderMap::new()));
        assert_eq!(write(&Bytes::from("a".repeat(1023))).await, None);
    }
}
