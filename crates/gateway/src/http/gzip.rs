//! Bodies in gzip: requests that come so, and answers to clients that take them so.
//!
//! As DynamoDB does, small answers are sent as they are, and `x-amz-crc32` is that of the bytes on the wire (seen in the SDKs, which check it
//! before they decompress).

use std::io::{Read, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use http::HeaderMap;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING};

/// The smallest answer worth compressing, in bytes: a smaller one fits into one packet anyway. DynamoDB's own threshold is not
/// published.
const WORTHWHILE: usize = 1024;

/// A request body that could not be had.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// It is not what its `Content-Encoding` says.
    Malformed,
    /// It is larger than allowed once it is decompressed.
    TooLarge,
}

/// The body of a request, decompressed if it says that it is gzip, of at most `limit` bytes.
pub(super) fn read(headers: &HeaderMap, body: Bytes, limit: usize) -> Result<Bytes, Unreadable> {
    match headers.get(CONTENT_ENCODING).map(|encoding| encoding.as_bytes()) {
        None => return Ok(body),
        Some(encoding) if encoding.eq_ignore_ascii_case(b"identity") => return Ok(body),
        Some(encoding) if encoding.eq_ignore_ascii_case(b"gzip") => {}
        Some(_) => return Err(Unreadable::Malformed),
    }
    let mut plain = Vec::new();
    let one_more = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    MultiGzDecoder::new(&*body).take(one_more).read_to_end(&mut plain).map_err(|_| Unreadable::Malformed)?;
    if plain.len() > limit { Err(Unreadable::TooLarge) } else { Ok(Bytes::from(plain)) }
}

/// Whether the client takes gzip.
pub(super) fn wanted(headers: &HeaderMap) -> bool {
    let given = headers.get_all(ACCEPT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
    given.flat_map(|value| value.split(',')).any(|one| {
        let (name, quality) = one.split_once(';').unwrap_or((one, ""));
        let refused = quality.trim().strip_prefix("q=").is_some_and(|quality| quality.parse() == Ok(0.0_f32));
        name.trim().eq_ignore_ascii_case("gzip") && !refused
    })
}

/// The body in gzip, if that is worthwhile.
pub(super) fn write(body: &Bytes) -> Option<Bytes> {
    if body.len() < WORTHWHILE {
        return None;
    }
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
    encoder.write_all(body).ok()?;
    encoder.finish().ok().map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: http::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    #[test]
    fn a_compressed_body_is_read_within_its_limit() {
        let plain = Bytes::from("a".repeat(5000));
        let packed = write(&plain).unwrap();
        assert!(packed.len() < 100);
        let gzip = headers(CONTENT_ENCODING, "GZip");
        assert_eq!(read(&gzip, packed.clone(), 5000), Ok(plain.clone()));
        assert_eq!(read(&gzip, packed.clone(), 4999), Err(Unreadable::TooLarge));
        assert_eq!(read(&gzip, packed.slice(..packed.len() - 9), 5000), Err(Unreadable::Malformed));
        assert_eq!(read(&gzip, plain.clone(), 5000), Err(Unreadable::Malformed));
        assert_eq!(read(&headers(CONTENT_ENCODING, "br"), plain.clone(), 5000), Err(Unreadable::Malformed));
        assert_eq!(read(&headers(CONTENT_ENCODING, "identity"), plain.clone(), 1), Ok(plain.clone()));
        assert_eq!(read(&HeaderMap::new(), plain.clone(), 1), Ok(plain));
    }

    #[test]
    fn gzip_is_sent_to_those_who_take_it() {
        for (value, takes) in
            [("gzip", true), ("br, GZIP;q=0.5", true), ("identity", false), ("gzip;q=0", false), ("", false)]
        {
            assert_eq!(wanted(&headers(ACCEPT_ENCODING, value)), takes, "{value}");
        }
        assert!(!wanted(&HeaderMap::new()));
        assert_eq!(write(&Bytes::from("a".repeat(1023))), None);
    }
}
