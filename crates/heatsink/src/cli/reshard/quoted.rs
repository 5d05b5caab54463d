//! A word as a shell takes it.

use heatsink_dynamo::display::is_inert;

/// A word as a shell takes it; one with characters that a terminal would act on as bash and zsh
/// take it.
pub(in crate::cli) fn quoted(word: &str) -> String {
    if !word.chars().all(is_inert) {
        let escaped = word.chars().map(|c| match c {
            '\'' | '\\' => format!("\\{c}"),
            c if is_inert(c) => c.to_string(),
            c => c.to_string().bytes().map(|byte| format!("\\x{byte:02x}")).collect(),
        });
        return format!("$'{}'", escaped.collect::<String>());
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_act_on_is_escaped() {
        assert_eq!(quoted("a\n'b\\\u{1b}[31m\u{202e}"), r"$'a\x0a\'b\\\x1b[31m\xe2\x80\xae'");
    }
}
