//! The suffix codec for partition keys that are numbers: logical keys to physical ones and back,
//! injective over all keys and shards.
//!
//! A number has 38 digits, and keys that people use have few. A key below 10^20 in magnitude, with
//! at most six digits behind the point, **has room**: in shard k of 1 to 9,999 its digits 7 to 12
//! behind the point are a fixed marker, and 13 to 16 are k. `12.5` in shard 3 is
//! `12.5000007095510003`. Shard 0 is the number itself. Other numbers have no room, and stay whole.
//!
//! As canonical text a physical key is its logical key and a suffix, so what reads one gets a part
//! of it, as of a string. Every key here is such text ([`canonical`]).
//!
//! A number that is written like a shard is one: there are no digits left to escape a client's own.

use std::borrow::Cow;

use heatsink_dynamo::Number;

/// What the digits 7 to 12 behind the point are.
const MARKER: &str = "709551";
/// The most digits before the point of a key that has room.
const WHOLE: usize = 20;
/// The most behind it.
const FRACTION: usize = 6;
/// The digits of a shard.
const SHARD: usize = 4;
/// The highest shard that they can say.
const MOST: u16 = 9_999;

/// A number in its canonical text: no exponent, no needless zeros. `None` for what is no number.
pub fn canonical(text: &str) -> Option<Cow<'_, str>> {
    if is_canonical(text.as_bytes()) {
        return Some(Cow::Borrowed(text));
    }
    Number::parse(text).ok().map(|number| Cow::Owned(number.to_string()))
}

/// Whether that is surely canonical: of texts that are, nearly all are short.
fn is_canonical(text: &[u8]) -> bool {
    let Some((whole, fraction)) = parts(text) else { return false };
    let is_whole = whole == b"0" || whole.first().is_some_and(|first| *first != b'0');
    let is_zero = whole == b"0" && fraction.is_empty();
    let ends = fraction.last().is_none_or(|last| *last != b'0');
    whole.len() + fraction.len() <= WHOLE + FRACTION + MARKER.len() + SHARD
        && is_whole
        && ends
        && text.last().is_some_and(u8::is_ascii_digit)
        && !(is_zero && text.first() == Some(&b'-'))
}

/// Whether a key can have shards.
pub fn has_room(key: &[u8]) -> bool {
    parts(key).is_some_and(|(whole, fraction)| whole.len() <= WHOLE && fraction.len() <= FRACTION)
}

/// What has to be appended to a logical key to make it the physical key of `shard`. Empty for shard
/// 0; `None` where the key has no room for it.
pub fn suffix(logical: &[u8], shard: u16) -> Option<String> {
    if shard == 0 {
        return Some(String::new());
    }
    let (_, fraction) = parts(logical).filter(|_| has_room(logical) && shard <= MOST)?;
    let point = if fraction.is_empty() { "." } else { "" };
    let zeros = "0".repeat(FRACTION - fraction.len());
    let suffix = format!("{point}{zeros}{MARKER}{shard:04}");
    Some(suffix.trim_end_matches('0').to_owned())
}

/// The logical key that a number is a shard of, a part of it, and that shard, at least 1.
pub fn split_shard(physical: &[u8]) -> Option<(&[u8], u16)> {
    let (whole, fraction) = parts(physical)?;
    let (own, rest) = fraction.split_at_checked(FRACTION)?;
    let digits = rest.strip_prefix(MARKER.as_bytes())?;
    if whole.len() > WHOLE || digits.len() > SHARD {
        return None;
    }
    let digit = |at: usize| digits.get(at).map_or(0, |digit| u16::from(digit - b'0'));
    let shard = (0..SHARD).fold(0, |sum, at| sum * 10 + digit(at));
    let kept = own.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1);
    let point = usize::from(kept == 0);
    let logical = physical.get(..physical.len() - fraction.len() + kept - point)?;
    // There is no -0: of 0 no shard is negative.
    (shard > 0 && logical != b"-0").then_some((logical, shard))
}

/// The digits before the point and behind it.
fn parts(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let end = digits.iter().position(|byte| *byte == b'.');
    let (whole, fraction) = match end {
        Some(end) => (digits.get(..end)?, digits.get(end + 1..)?),
        None => (digits, &b""[..]),
    };
    let are_digits = |text: &[u8]| text.iter().all(u8::is_ascii_digit);
    (!whole.is_empty() && are_digits(whole) && are_digits(fraction)).then_some((whole, fraction))
}
