//! Files that `heatsink audit --file` reads: cut into values, and each value counted or refused.

use std::ops::ControlFlow;

use heatsink_heat::audit::Audit;
use heatsink_heat::audit::framing::{Frame, Framing};
use heatsink_heat::audit::records::{KeyNames, Records};

/// Reads the bytes as a file, in chunks of two sizes, which make no difference.
pub fn audit(data: &[u8]) {
    assert_eq!(read(data, 7), read(data, 4_096));
}

/// Frames, items, and patterns.
fn read(data: &[u8], chunk: usize) -> (u64, u64, usize) {
    let names = KeyNames { partition: "pk".to_owned(), sort: Some("sk".to_owned()) };
    let (mut records, mut audit) = (Records::new(Some(names)), Audit::default());
    let (mut frames, mut items) = (0, 0);
    let mut take = |_: u64, frame: Frame<'_>| {
        frames += 1;
        if let Frame::Value(value) = frame {
            items += records.read(value, &mut audit).unwrap_or(0);
        }
        ControlFlow::Continue(())
    };
    let mut framing = Framing::default();
    if data.chunks(chunk).try_for_each(|chunk| framing.push(chunk, &mut take)).is_continue() {
        let _ = framing.end(&mut take);
    }
    let report = audit.report("T");
    assert_eq!(report.items, items);
    (frames, items, report.patterns.len())
}
