//! Globs for table names and logical keys: `*` is any run of characters, `?` is one character, all
//! else is itself.
//!
//! Own code, not a crate: keys often hold `[`, `{` and `\`, which fuller glob languages give a
//! meaning; keys can be binary; and a rule that an earlier rule covers must be found, which needs
//! [`Glob::covers`].

/// A compiled glob. Matches bytes, so that binary keys have an answer too: there `?` takes one
/// byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob {
    text: String,
    tokens: Vec<Token>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    /// Exactly this byte.
    Byte(u8),
    /// One character.
    One,
    /// Any run of characters, the empty one included.
    Any,
}

impl Glob {
    /// Compiles a glob. Every text is one.
    pub fn new(text: &str) -> Self {
        let mut tokens = Vec::with_capacity(text.len());
        for byte in text.bytes() {
            match byte {
                b'?' => {
                    // Wildcards next to each other are kept as `?…?*`: one spelling for one
                    // meaning.
                    let stars = tokens.iter().rev().take_while(|token| **token == Token::Any).count();
                    tokens.insert(tokens.len() - stars, Token::One);
                }
                b'*' if tokens.last() == Some(&Token::Any) => {}
                b'*' => tokens.push(Token::Any),
                byte => tokens.push(Token::Byte(byte)),
            }
        }
        Glob { text: text.to_owned(), tokens }
    }

    /// The glob as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The texts before, between and behind its wildcards, some of them empty: all that it matches
    /// begins with the first, ends with the last and holds the others; and so does every glob that
    /// it covers, in one of these texts.
    pub fn literals(&self) -> impl Iterator<Item = &[u8]> {
        self.text.as_bytes().split(|byte| matches!(byte, b'*' | b'?'))
    }

    /// Whether it holds no wildcard: it names exactly one thing.
    pub fn is_exact(&self) -> bool {
        self.tokens.iter().all(|token| matches!(token, Token::Byte(_)))
    }

    /// Whether it matches everything.
    pub fn is_any(&self) -> bool {
        self.tokens == [Token::Any]
    }

    /// Whether it matches `subject` as a whole. Time is at most the product of both lengths.
    pub fn matches(&self, subject: &[u8]) -> bool {
        let (mut token, mut at) = (0, 0);
        // Where to go on when a literal fails: just after the last `*`, one character further into
        // the subject.
        let mut retry: Option<(usize, usize)> = None;
        loop {
            match self.tokens.get(token) {
                Some(Token::Any) => {
                    token += 1;
                    if token == self.tokens.len() {
                        return true;
                    }
                    retry = Some((token, at));
                    continue;
                }
                Some(Token::One) if at < subject.len() => {
                    token += 1;
                    at += character(&subject[at..]);
                    continue;
                }
                Some(Token::Byte(byte)) if subject.get(at) == Some(byte) => {
                    token += 1;
                    at += 1;
                    continue;
                }
                None if at == subject.len() => return true,
                _ => {}
            }
            match retry {
                Some((after, from)) if from < subject.len() => {
                    let from = from + character(&subject[from..]);
                    retry = Some((after, from));
                    (token, at) = (after, from);
                }
                _ => return false,
            }
        }
    }

    /// Whether everything that `other` matches is matched by this one too. Never wrongly true;
    /// false in some cases that hold only because a `?` here meets a `*` there that cannot stay
    /// empty alone (`?*a` and `*aa`).
    pub fn covers(&self, other: &Glob) -> bool {
        // Row by row over this glob's tokens: covered[j] says whether the tokens so far cover the
        // first j of `other`.
        let mut covered: Vec<bool> =
            std::iter::once(true).chain(other.tokens.iter().map(|_| false)).collect();
        for token in &self.tokens {
            let mut next = vec![false; covered.len()];
            next[0] = *token == Token::Any && covered[0];
            for (j, theirs) in other.tokens.iter().enumerate() {
                next[j + 1] = match token {
                    Token::Any => covered[j + 1] || next[j],
                    Token::One => {
                        covered[j] && (*theirs == Token::One || matches!(theirs, Token::Byte(0..=0x7f)))
                    }
                    Token::Byte(_) => covered[j] && theirs == token,
                };
            }
            covered = next;
        }
        covered.last() == Some(&true)
    }
}

/// Bytes of the first character; 1 where it is not UTF-8. `rest` is not empty.
fn character(rest: &[u8]) -> usize {
    let width = match rest[0] {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    };
    match rest.get(..width) {
        Some(bytes) if std::str::from_utf8(bytes).is_ok() => width,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition, by recursion over characters: what the loop above must equal.
    fn plainly(glob: &[char], subject: &[char]) -> bool {
        match (glob.first(), subject.first()) {
            (None, None) => true,
            (Some('*'), _) => {
                plainly(&glob[1..], subject) || (!subject.is_empty() && plainly(glob, &subject[1..]))
            }
            (Some('?'), Some(_)) => plainly(&glob[1..], &subject[1..]),
            (Some(a), Some(b)) => a == b && plainly(&glob[1..], &subject[1..]),
            _ => false,
        }
    }

    fn chars(text: &str) -> Vec<char> {
        text.chars().collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn matching_equals_its_definition(glob in "[aé*?]{0,8}", subject in "[aéb]{0,8}") {
            prop_assert_eq!(Glob::new(&glob).matches(subject.as_bytes()), plainly(&chars(&glob), &chars(&subject)));
        }

        #[test]
        fn a_covered_glob_matches_nothing_more(a in "[abé*?]{0,5}", b in "[abé*?]{0,5}", subject in "[abéc]{0,6}") {
            let (a, b) = (Glob::new(&a), Glob::new(&b));
            if a.covers(&b) && b.matches(subject.as_bytes()) {
                prop_assert!(a.matches(subject.as_bytes()));
            }
        }

        #[test]
        fn any_bytes_have_an_answer(glob in ".{0,12}", subject in prop::collection::vec(any::<u8>(), 0..20)) {
            let _ = Glob::new(&glob).matches(&subject);
            prop_assert!(Glob::new("*").matches(&subject));
        }
    }

    #[test]
    fn covering_is_found_where_people_write_it() {
        for (a, b) in [
            ("*", "*"),
            ("*", ""),
            ("*", "?x*"),
            ("game_*", "game_x"),
            ("game_*", "game_*_eu"),
            ("a?c", "abc"),
            ("*a*", "*a*a*"),
        ] {
            assert!(Glob::new(a).covers(&Glob::new(b)), "{a} covers {b}");
        }
        for (a, b) in
            [("", "*"), ("?", "*"), ("game_x", "game_*"), ("game_*", "*"), ("a?", "a"), ("a*b", "a*c")]
        {
            assert!(!Glob::new(a).covers(&Glob::new(b)), "{a} does not cover {b}");
        }
    }

    #[test]
    fn brackets_and_backslashes_are_themselves() {
        assert!(Glob::new(r"game[1]\{x}*").matches(br"game[1]\{x}y"));
        assert!(!Glob::new("game[1]").matches(b"game1"));
        assert!(Glob::new("a?").matches("aé".as_bytes()));
        assert!(!Glob::new("a?").matches(b"a"));
    }
}
