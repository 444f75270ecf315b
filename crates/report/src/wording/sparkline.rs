//! Sparklines: a mark for each value in a line of text.

/// Marks of a sparkline, from low to high.
pub(crate) const MARKS: [char; 8] =
    ['\u{2581}', '\u{2582}', '\u{2583}', '\u{2584}', '\u{2585}', '\u{2586}', '\u{2587}', '\u{2588}'];

/// Marks for terminals that show only ASCII.
pub(crate) const ASCII_MARKS: [char; 8] = ['_', '.', '-', '~', '=', '+', '*', '#'];

/// Returns a mark for each value, given as a share of the highest, and a space for a missing value.
pub(crate) fn sparkline(shares: &[Option<f64>]) -> String {
    let mark = |share: f64| MARKS[((share.clamp(0.0, 1.0) * 8.0) as usize).min(7)];
    shares.iter().map(|share| share.map_or(' ', mark)).collect()
}
