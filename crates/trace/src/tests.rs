//! What is written is read again, and what is no trace is refused with its place.

use std::borrow::Cow;

use super::*;

fn access(us: u64) -> Access<'static> {
    Access {
        us,
        table: Cow::Borrowed("T"),
        index: None,
        op: Operation::Put,
        key: Some(Cow::Borrowed("game\n\u{1b}[31m\"x")),
        sort: Some(Cow::Borrowed("s")),
        grows: false,
        page: None,
        units: 1_000,
        bytes: 188,
        items: 0,
        strong: false,
        throttled: false,
        weight: 1,
    }
}

fn lines(lines: &[Line<'_>]) -> String {
    let mut out = Vec::new();
    lines.iter().for_each(|line| line.write(&mut out));
    String::from_utf8(out).unwrap()
}

fn whole() -> String {
    let query = Access {
        op: Operation::Query,
        sort: None,
        page: Some(Cow::Borrowed("9f")),
        index: Some(Cow::Borrowed("by-score")),
        items: 100,
        strong: true,
        throttled: true,
        weight: 32,
        ..access(4)
    };
    lines(&[
        Line::Trace(Header { version: VERSION, hashed: true, unix_millis: 7 }),
        Line::Table(Table { name: Cow::Borrowed("T"), sort_key: true, local_index: false }),
        Line::Access(access(5)),
        Line::Access(query),
        Line::End(End { us: 9, recorded: 2, dropped: 0, because: Ended::Stopped }),
    ])
}

fn fault(text: &str) -> String {
    read("t", text, false).map(|_| "no fault".to_owned()).unwrap_or_else(|fault| fault.to_string())
}

#[test]
fn what_is_written_is_read() {
    let text = whole();
    assert_eq!(text.lines().count(), 5, "no key ends a line: {text}");
    let trace = read("t", &text, false).unwrap();
    assert_eq!((trace.header.hashed, trace.tables.len(), trace.skipped), (true, 1, 0));
    assert_eq!(trace.accesses[1], access(5), "in the order of time");
    let query = &trace.accesses[0];
    assert_eq!(
        (query.us, query.weight, query.items, query.strong, query.throttled),
        (4, 32, 100, true, true)
    );
    assert_eq!(trace.end.unwrap().recorded, 2);
}

#[test]
fn what_is_no_trace_is_refused_with_its_line() {
    let whole = whole();
    assert_eq!(fault(&whole), "no fault");
    let newer = whole.replacen("\"version\":1", "\"version\":2,\"keys\":\"encrypted\"", 1);
    assert!(
        fault(&newer).starts_with("t:1: the trace has version 2, and this build reads version 1"),
        "{}",
        fault(&newer)
    );
    for other in ["", "\n", "0.1,put,k,s,5\n", "{}\n", "{\"trace\":{}}\n", "[]", "\u{0}"] {
        assert!(
            fault(other).starts_with("t:1: not a trace of `heatsink serve --record`"),
            "{other:?}: {}",
            fault(other)
        );
    }
    let twice = format!("{whole}{whole}");
    assert_eq!(fault(&twice), "t:6: a second trace begins here: a file holds one");
    let mixed = whole.replace("{\"end\"", "0.1,put,k,s,5\n{\"end\"");
    assert!(fault(&mixed).starts_with("t:5: cannot be read: "), "{}", fault(&mixed));
    assert_eq!(read("t", &mixed, true).unwrap().skipped, 1);
    let unknown = whole.replacen("\"units\"", "\"unitz\"", 1);
    assert!(fault(&unknown).starts_with("t:3: cannot be read: unknown field `unitz`"), "{}", fault(&unknown));
    for (member, absurd) in [
        ("\"units\":", "\"weight\":2147483648,\"units\":"),
        ("\"units\":", "\"weight\":0,\"units\":"),
        ("\"units\":", "\"units\":9999999999999"),
    ] {
        let absurd = whole.replacen(member, absurd, 1);
        assert!(fault(&absurd).starts_with("t:3: expected"), "{}", fault(&absurd));
    }
    let long = whole.replacen("{\"access\"", &format!("{}{{\"access\"", " ".repeat(LONGEST_LINE)), 1);
    assert_eq!(fault(&long), "t:3: longer than 64 KB: no line of a trace is");
    let none = lines(&[
        Line::Trace(Header { version: VERSION, ..Header::default() }),
        Line::End(End { us: 9, recorded: 0, dropped: 0, because: Ended::Limit }),
    ]);
    assert_eq!(fault(&none), "t:2: the trace holds no access");
}

#[test]
fn a_trace_that_is_cut_off_anywhere_is_refused_or_read_as_far_as_it_goes() {
    let whole = whole();
    for end in (0..whole.len() - 1).filter(|end| whole.is_char_boundary(*end)) {
        let cut = &whole[..end];
        assert_ne!(fault(cut), "no fault", "{cut:?}");
        if let Ok(trace) = read("t", cut, true) {
            assert!(trace.skipped > 0, "{cut:?}");
        }
    }
}
