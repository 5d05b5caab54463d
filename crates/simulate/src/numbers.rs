//! Formats numbers for people.

/// Whole, with commas: `12,345`.
pub fn grouped(number: f64) -> String {
    let whole = format!("{:.0}", number.abs());
    let mut text = String::with_capacity(whole.len() + whole.len() / 3 + 1);
    if number <= -0.5 {
        text.push('-');
    }
    for (nth, digit) in whole.chars().enumerate() {
        if nth > 0 && (whole.len() - nth).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share in percent, with one decimal where that tells anything.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        small if small < 0.1 => "< 0.1 %".to_owned(),
        percent => format!("{percent:.1} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_people_read_them() {
        assert_eq!(
            [0.0, 999.4, 1_000.0, 1_234_567.0, -12_345.0].map(grouped),
            ["0", "999", "1,000", "1,234,567", "-12,345"]
        );
        assert_eq!([0.0, 0.000_2, 0.05, 0.786].map(percent), ["0 %", "< 0.1 %", "5.0 %", "78.6 %"]);
    }
}
