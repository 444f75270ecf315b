//! How often one trial is run: a fixed number of times, or until its mean is known well enough.

use crate::statistics::confidence_interval;
use linerate_model::Repeats;

/// What the runs so far call for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Need {
    /// Another run.
    More,
    /// No more: as many as asked, or the interval is narrow enough.
    Enough,
    /// No more: the bound is reached with the interval still this wide (half of it, as a share of the mean).
    Exhausted(f64),
}

/// Decides from the figures of the runs so far.
pub(crate) fn need(repeats: &Repeats, figures: &[f64]) -> Need {
    let runs = figures.len() as u32;
    match *repeats {
        Repeats::Times(times) if runs < times => Need::More,
        Repeats::Times(_) => Need::Enough,
        Repeats::Until { confidence_percent, within, at_least, at_most } => {
            // Two runs that agree by chance give an interval that means nothing.
            if runs < at_least.max(3) {
                return Need::More;
            }
            let width =
                confidence_interval(figures, confidence_percent).map_or(f64::INFINITY, |i| i.relative_half_width());
            match () {
                () if width <= within => Need::Enough,
                () if runs < at_most => Need::More,
                () => Need::Exhausted(width),
            }
        }
    }
}

/// The most runs there can be.
pub(crate) fn at_most(repeats: &Repeats) -> u32 {
    match *repeats {
        Repeats::Times(times) => times,
        Repeats::Until { at_least, at_most, .. } => at_most.max(at_least).max(3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNTIL: Repeats = Repeats::Until { confidence_percent: 95.0, within: 0.025, at_least: 3, at_most: 6 };

    #[test]
    fn stops_when_narrow_and_not_before_three() {
        assert_eq!(need(&UNTIL, &[100.0, 100.0]), Need::More);
        assert_eq!(need(&UNTIL, &[100.0, 100.1, 99.9]), Need::Enough);
        assert_eq!(need(&UNTIL, &[100.0, 150.0, 80.0]), Need::More);
    }

    #[test]
    fn gives_up_at_the_bound_and_says_how_wide() {
        let Need::Exhausted(width) = need(&UNTIL, &[100.0, 150.0, 80.0, 100.0, 150.0, 80.0]) else {
            panic!("six runs are the bound")
        };
        assert!(width > 0.2 && width < 0.5, "{width}");
        assert_eq!(need(&UNTIL, &[0.0, 0.0, 0.0, 0.0, 0.0, 0.0]), Need::Exhausted(f64::INFINITY));
    }
}
