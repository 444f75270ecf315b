//! Which load next: in steps up to the first that is not held, then by halves to the peak.

use super::load::Loads;
use linerate_model::CurveMiss;

/// Past the closed loop's rate the loads grow by this factor, in case that was low.
const PAST_SCALE: f64 = 1.1;
/// So many times the closed loop's rate is the most that is offered: the scale was wrong, or nothing limits.
const MOST: f64 = 4.0;
/// A load is believed not to be held once so many runs say so.
const SURE: u32 = 2;
/// The lowest load that is worth offering, as a part of a step.
const LOWEST: f64 = 8.0;
/// Significant digits of a load.
const DIGITS: i32 = 3;

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Offer so many operations a second, for the first time or again.
    Offer(u64),
    /// The peak is known as narrowly as asked, or cannot be found.
    Done,
}

/// The next step, where `scale` is what a closed loop reaches.
pub(super) fn next(scale: f64, loads: &Loads) -> Next {
    let step = (scale / f64::from(loads.plan.steps.max(1))).max(1.0);
    let (held, missed) = loads.bracket();
    if let Some((ops, point)) = &missed {
        if point.runs < SURE {
            return Next::Offer(*ops);
        }
        match point.missed {
            // Who answers nothing, twice, is gone.
            Some(CurveMiss::Silence) => return Next::Done,
            // What fails at the lowest load does not fail by load.
            Some(CurveMiss::Errors) if held.is_none() => return Next::Done,
            _ => (),
        }
    }
    let held = held.map(|(ops, _)| ops);
    match missed.map(|(ops, _)| ops) {
        None => {
            // Loads are rounded: the step that was held last is the nearest.
            let next = held.map_or(0.0, |held| held as f64 / step).round() + 1.0;
            let load = match held {
                Some(held) if next > f64::from(loads.plan.steps.max(1)) => held as f64 * PAST_SCALE,
                _ => step * next,
            };
            let load = neat(load).max(held.map_or(1, |held| held + 1));
            if load as f64 > scale * MOST && held.is_some() { Next::Done } else { Next::Offer(load) }
        }
        Some(missed) => {
            let low = held.unwrap_or(0);
            let narrow = loads.plan.width.as_f64() * missed as f64;
            let middle = neat((low + missed) as f64 / 2.0);
            let closed = (missed - low) as f64 <= narrow || middle <= low || middle >= missed;
            // With next to no load, nothing waits: what is past the cap then is past it at any load.
            let hopeless = low == 0 && missed as f64 <= (step / LOWEST).max(1.0);
            if closed || hopeless { Next::Done } else { Next::Offer(middle) }
        }
    }
}

/// `value` to so many significant digits, as names of loads should read.
fn neat(value: f64) -> u64 {
    let power = 10f64.powi((value.max(1.0).log10().floor() as i32 + 1 - DIGITS).max(0));
    ((value / power).round() * power).max(1.0) as u64
}

#[cfg(test)]
mod tests {
    use super::neat;

    #[test]
    fn loads_read_well() {
        assert_eq!([0.3, 7.4, 999.6, 12_345.0, 98_765.0].map(neat), [1, 7, 1_000, 12_300, 98_800]);
    }
}
