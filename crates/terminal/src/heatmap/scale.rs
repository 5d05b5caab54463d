//! The colour of a load: matplotlib's "inferno" on a dark ground, in eleven stops. Its lightness
//! only rises, so it reads without colour too. The page of the admin address (`scale.js` in
//! `heatsink-gateway`) has the same stops and the same places.

/// The stops, from nothing to what one partition gives.
const STOPS: [[u8; 3]; 11] = [
    [0x00, 0x00, 0x04],
    [0x16, 0x0b, 0x39],
    [0x42, 0x0a, 0x68],
    [0x6a, 0x17, 0x6e],
    [0x93, 0x26, 0x67],
    [0xbc, 0x37, 0x54],
    [0xdd, 0x51, 0x3a],
    [0xf3, 0x78, 0x19],
    [0xfc, 0xa5, 0x0a],
    [0xf6, 0xd7, 0x46],
    [0xfc, 0xff, 0xa4],
];

/// Loads below this part of the scale are lifted to it: something is not nothing.
const FAINTEST: f64 = 0.08;

/// The place, 0 to 1, of a load that is this share of what one partition gives.
pub fn place(share: f64) -> f64 {
    if share > 0.0 { (FAINTEST + (1.0 - FAINTEST) * share).min(1.0) } else { 0.0 }
}

/// The colour at a place, as `#rrggbb`.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to the stops, and to a byte"
)]
pub fn colour(place: f64) -> String {
    let at = place.clamp(0.0, 1.0) * (STOPS.len() - 1) as f64;
    let low = (at.floor() as usize).min(STOPS.len() - 2);
    let (Some(from), Some(to)) = (STOPS.get(low), STOPS.get(low + 1)) else { return "#000004".to_owned() };
    from.iter().zip(to).fold("#".to_owned(), |text, (from, to)| {
        let (from, to) = (f64::from(*from), f64::from(*to));
        format!("{text}{:02x}", (from + (to - from) * (at - low as f64)).round() as u8)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_same_scale() {
        let page = include_str!("../../../gateway/src/http/page/scale.js");
        for [red, green, blue] in STOPS {
            assert!(page.contains(&format!("\"#{red:02x}{green:02x}{blue:02x}\"")));
        }
        assert_eq!(page.matches("\"#").count(), STOPS.len() + 2, "and black and white for text");
        assert!(page.contains(&format!("FAINTEST = {FAINTEST}")));
    }

    #[test]
    fn hotter_is_lighter() {
        let light = |colour: &str| {
            let part = |at: usize| f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap());
            0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
        };
        let all: Vec<f64> = (0..=100).map(|i| light(&colour(f64::from(i) / 100.0))).collect();
        assert!(all.windows(2).all(|pair| pair[0] <= pair[1] + 0.5), "{all:?}");
        assert_eq!(
            (colour(0.0), colour(1.0), colour(7.0)),
            ("#000004".into(), "#fcffa4".into(), "#fcffa4".into())
        );
        assert_eq!(place(0.0), 0.0);
        assert!(place(0.001) >= FAINTEST && place(0.5) < place(1.0) && place(9.0) == 1.0);
    }
}
