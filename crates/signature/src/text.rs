//! Pieces of text, and bytes in hexadecimal.

/// Not `write!`: the formatting machinery costs as much as the hashes.
pub(crate) fn push(text: &mut String, parts: &[&str]) {
    parts.iter().for_each(|part| text.push_str(part));
}

pub(crate) fn push_hex(text: &mut String, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}

/// Reads 32 bytes in lower case, as every signer writes them: a signature has one spelling.
pub(crate) fn read_hex(text: &str) -> Option<[u8; 32]> {
    let digit = |byte: &u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; 32];
    if text.len() != 2 * bytes.len() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        let [high, low] = pair else { return None };
        *byte = digit(high)? << 4 | digit(low)?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_one_spelling() {
        let bytes = std::array::from_fn(|at| u8::try_from(at * 8 + 7).unwrap());
        let mut text = String::new();
        push_hex(&mut text, &bytes);
        assert_eq!(read_hex(&text), Some(bytes));
        assert_eq!(read_hex(&text.to_uppercase()), None);
        assert_eq!(read_hex(&text[1..]), None);
        assert_eq!(read_hex(&format!("{text}0")), None);
        assert_eq!(read_hex(&text.replace('f', "g")), None);
    }
}
