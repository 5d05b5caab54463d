//! An answer of HTTP on a connection that is closed behind it: the status and the body, or none.
//!
//! Not here: what is asked (`ask_server`, `server_store`).

use std::io;

use bytes::Bytes;

/// The status and the body of an answer that has come whole.
///
/// # Errors
/// For one that was cut, or is none of HTTP with a length.
pub fn read(answer: Bytes) -> io::Result<(u16, Bytes)> {
    parsed(answer).ok_or_else(|| io::Error::other("it is not a whole answer of HTTP"))
}

fn parsed(answer: Bytes) -> Option<(u16, Bytes)> {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(answer.get(..end)?).ok()?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let mut headers = lines.filter_map(|line| line.split_once(':'));
    let (_, length) = headers.find(|(name, _)| name.eq_ignore_ascii_case("content-length"))?;
    let body = answer.slice(end + 4..);
    let length: usize = length.trim().parse().ok()?;
    (body.len() == length).then_some((status, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_was_cut_is_none() {
        let whole = "HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\n{}";
        assert_eq!(parsed(Bytes::from(whole)), Some((400, Bytes::from("{}"))));
        for end in 0..whole.len() {
            assert_eq!(parsed(Bytes::copy_from_slice(&whole.as_bytes()[..end])), None, "{end}");
        }
    }
}
