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
/// What follows the digits before the point, up to the marker, if nothing of it is the key's own.
const POINT_TO_MARKER: &str = ".000000709551";
/// The most digits before the point of a key that has room.
const WHOLE: usize = 20;
/// The most behind it.
const FRACTION: usize = 6;
/// The digits of a shard.
const SHARD: usize = 4;
/// The highest shard that they can say.
const MOST: u16 = 9_999;
/// The most digits behind the point of a physical key.
const LONGEST: usize = FRACTION + MARKER.len() + SHARD;

/// A number in its canonical text: no exponent, no needless zeros. `None` for what is no number.
pub fn canonical(text: &str) -> Option<Cow<'_, str>> {
    if is_canonical(text.as_bytes()) {
        return Some(Cow::Borrowed(text));
    }
    Number::parse(text).ok().map(|number| Cow::Owned(number.to_string()))
}

/// Whether that is surely canonical: of texts that are, nearly all are short.
fn is_canonical(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    if digits.len() > WHOLE + 1 + LONGEST {
        return false;
    }
    // One look at each byte: every key of every request comes through here.
    let mut point = None;
    for (at, byte) in digits.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {}
            b'.' if point.is_none() => point = Some(at),
            _ => return false,
        }
    }
    let is_whole = |whole: &[u8]| matches!(whole, b"0" | [b'1'..=b'9', ..]);
    match point {
        None => is_whole(digits) && text != b"-0",
        Some(point) => {
            digits.get(..point).is_some_and(is_whole) && matches!(digits.last(), Some(b'1'..=b'9'))
        }
    }
}

/// Whether a key can have shards.
pub fn has_room(key: &[u8]) -> bool {
    let (whole, fraction) = parts(key);
    whole <= WHOLE && fraction <= FRACTION
}

/// What has to be appended to a logical key to make it the physical key of `shard`. Empty for shard
/// 0; `None` where the key has no room for it.
pub fn suffix(logical: &[u8], shard: u16) -> Option<String> {
    if shard == 0 {
        return Some(String::new());
    }
    if shard > MOST || !has_room(logical) {
        return None;
    }
    let (_, fraction) = parts(logical);
    // The point, where there is none yet, and the zeros up to the marker.
    let begin = if fraction == 0 { 0 } else { 1 + fraction };
    let mut suffix = String::with_capacity(1 + LONGEST);
    suffix.push_str(POINT_TO_MARKER.get(begin..)?);
    // Zeros at the end are no canonical text.
    let (mut rest, mut place) = (shard, 1000);
    while rest > 0 {
        suffix.push(char::from_digit(u32::from(rest / place), 10)?);
        (rest, place) = (rest % place, place / 10);
    }
    Some(suffix)
}

/// The logical key that a number is a shard of, a part of it, and that shard, at least 1.
pub fn split_shard(physical: &[u8]) -> Option<(&[u8], u16)> {
    let (whole, fraction) = parts(physical);
    // Most keys end here.
    if fraction <= FRACTION + MARKER.len() || fraction > LONGEST || whole > WHOLE {
        return None;
    }
    let (own, rest) = physical.split_at_checked(physical.len() - fraction + FRACTION)?;
    let digits =
        rest.strip_prefix(MARKER.as_bytes()).filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
    let digit = |at: usize| digits.get(at).map_or(0, |digit| u16::from(digit - b'0'));
    let shard = (0..SHARD).fold(0, |sum, at| sum * 10 + digit(at));
    // The point goes where no digit is left behind it.
    let own_zeros = own.iter().rev().take(FRACTION).take_while(|digit| **digit == b'0').count();
    let point = usize::from(own_zeros == FRACTION);
    let logical = own.get(..own.len() - own_zeros - point)?;
    // There is no -0: of 0 no shard is negative.
    (shard > 0 && logical != b"-0").then_some((logical, shard))
}

/// How many digits of a canonical text stand before the point and behind it.
fn parts(text: &[u8]) -> (usize, usize) {
    let digits = text.len() - usize::from(text.first() == Some(&b'-'));
    match text.iter().rposition(|byte| *byte == b'.') {
        Some(point) => (digits - (text.len() - point), text.len() - point - 1),
        None => (digits, 0),
    }
}
