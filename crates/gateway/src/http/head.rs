//! How large a request head is. hyper refuses one that does not fit into its buffer, which grows beyond its limit by what one read brings.

use http::request::Parts;

/// The bytes of a head: its line, its headers, and what stands between them.
pub(super) fn size(head: &Parts) -> usize {
    let target = head.uri.path_and_query().map_or(0, |target| target.as_str().len());
    let authority = head.uri.authority().map_or(0, |authority| authority.as_str().len());
    let line = head.method.as_str().len() + target + authority + " HTTP/1.1\r\n ".len();
    let headers = head.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    line + headers.sum::<usize>() + "\r\n".len()
}
