//! What the series of a trial say of its window: whether the load was steady in it, and how far its rate ranged.

use crate::interval_rates::{Interval, judged_by, mean_rate};
use crate::terms;
use linerate_model::{Caveat, CaveatKind, MessageValue, RateRange, Series, SeriesQuantity, TrialResult, message};

/// A window is judged from so many intervals or more.
const FEWEST: usize = 8;
/// The first and the second part of a steady window differ by at most this share of the larger one ...
const DIFFERENCE: f64 = 0.2;
/// ... or by at most so many standard errors: more than two, because neighbouring intervals are alike.
const ERRORS: f64 = 3.0;
/// A rate with a range below this share of its mean is given as one figure.
const RANGE: f64 = 0.25;

/// The intervals of `series` within its window. Short ones at its edges are left out: their rates vary most.
pub(crate) fn intervals(series: &Series, quantity: SeriesQuantity) -> Option<Vec<Interval>> {
    let counts = series.track(quantity)?.iter().zip(series.spans()).zip(series.in_window());
    let inside = counts.filter(|(_, inside)| *inside);
    let all: Vec<Interval> =
        inside.map(|((count, span), _)| Interval { count: *count as f64, seconds: span.seconds() }).collect();
    let longest = all.iter().map(|interval| interval.seconds).fold(0.0, f64::max);
    Some(all.into_iter().filter(|interval| interval.seconds > longest / 2.0).collect())
}

/// A window whose second half differs from its first by more than chance explains, in words. Frames and copies have no window.
pub(crate) fn unsteady(result: &TrialResult) -> Option<Caveat> {
    result.trial.window()?;
    // The slow start of TCP is a part of what a volume takes.
    if result.trial.volume().is_some() {
        return None;
    }
    let (bytes, unit) = judged_by(result.trial.task());
    let (quantity, did) = match bytes {
        true => (SeriesQuantity::ReceivedBytes, terms::RECEIVED),
        false => (SeriesQuantity::Operations, terms::COMPLETED),
    };
    result.series.iter().filter(|series| series.load == 0).find_map(|session| {
        let all = intervals(&session.series, quantity).filter(|all| all.len() >= FEWEST)?;
        let (first, second) = all.split_at(all.len() / 2);
        let ((one, error_one), (other, error_other)) = (mean_rate(first, unit), mean_rate(second, unit));
        let apart = (one - other).abs();
        (apart > DIFFERENCE * one.max(other) && apart > ERRORS * error_one.hypot(error_other)).then(|| {
            if one == 0.0 {
                let text = message!(
                    "caveat-not-steady-at-first",
                    "host {host} {did} nothing in the first half of the window: the load was not steady, and the \
                     figure depends on when it was measured; warm up longer (--warmup) or measure longer (--time)",
                    host = &session.host,
                    did
                );
                return Caveat::new(CaveatKind::NotSteady, text);
            }
            let text = message!(
                "caveat-not-steady",
                "host {host} {did} {share} {more} in the second half of the window than in the first: the load \
                 was not steady, and the figure depends on when it was measured; warm up longer (--warmup) or \
                 measure longer (--time)",
                host = &session.host,
                did,
                share = MessageValue::percent(apart / one, 0),
                more = if other > one { terms::MORE } else { terms::LESS }
            );
            Caveat::new(CaveatKind::NotSteady, text)
        })
    })
}

/// How far the rate of the receiving host ranged within the window, over all runs; none where that is little, or where several hosts
/// received.
pub(crate) fn rate_range(runs: &[&TrialResult]) -> Option<RateRange> {
    let mut rates = Vec::new();
    for run in runs {
        let measured = run.series.iter().filter(|series| series.load == 0);
        let mut receivers = measured.filter_map(|one| intervals(&one.series, SeriesQuantity::ReceivedBytes));
        rates.extend(receivers.next().unwrap_or_default().into_iter().map(|interval| interval.rate() * 8.0));
        if receivers.next().is_some() {
            return None;
        }
    }
    if rates.len() < FEWEST {
        return None;
    }
    rates.sort_by(f64::total_cmp);
    let at = |share: f64| rates[((rates.len() - 1) as f64 * share).round() as usize];
    let range = RateRange { p5_bps: at(0.05), p95_bps: at(0.95) };
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    (range.p95_bps - range.p5_bps > RANGE * mean).then_some(range)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::tests::{stream_of, trial};
    use linerate_model::{SessionSeries, Track, Transport};
    use linerate_units::{ByteCount, Nanos};

    const TENTH: i64 = 100_000;

    /// A trial in which `b` received at rates, bytes a second, that follow the time in seconds from the opening of a window of 3 s.
    fn received(bytes_per_s: impl Fn(f64) -> f64) -> TrialResult {
        let mut result = trial(1_000, 0);
        stream_of(&mut result.trial).net.transport = Transport::Tcp;
        let at_us: Vec<i64> = (-4..=30).map(|tenth| tenth * TENTH).collect();
        let value = |at: &i64| (bytes_per_s((*at - TENTH / 2) as f64 / 1e6) / 10.0) as u64;
        let values = at_us.iter().map(value).collect();
        let track = Track { quantity: SeriesQuantity::ReceivedBytes, subject: String::new(), values };
        let window = Nanos::from_secs(3);
        let series = Series { window, from_us: -5 * TENTH, at_us, tracks: vec![track], ..Series::default() };
        result.series = vec![SessionSeries { load: 0, host: "b".into(), series }];
        result
    }

    /// 20 and 200 Mbit/s for 300 ms each.
    fn alternating(s: f64) -> f64 {
        if s.rem_euclid(0.6) < 0.3 { 2.5e6 } else { 25e6 }
    }

    #[test]
    fn a_rate_that_grows_or_falls_is_not_steady() {
        let grown = unsteady(&received(|s| 1e6 * (1.0 + s.max(0.0)))).expect("it grows");
        assert_eq!(grown.kind, CaveatKind::NotSteady);
        assert!(grown.text.starts_with("host b received 86 % more in the second half"), "{}", grown.text);
        let late = unsteady(&received(|s| if s < 1.6 { 0.0 } else { 1e7 })).expect("it begins late");
        assert!(late.text.starts_with("host b received nothing in the first half"), "{}", late.text);
        let fallen = unsteady(&received(|s| if s < 1.0 { 4e7 } else { 1e7 })).expect("it falls");
        assert!(fallen.text.contains(" % less "), "{}", fallen.text);
    }

    #[test]
    fn a_rate_that_keeps_its_mean_is_steady() {
        assert_eq!(unsteady(&received(|_| 1e7)), None);
        assert_eq!(unsteady(&received(alternating)), None);
        let warms_up = |s: f64| if s < 0.0 { 1e5 } else { 1e7 };
        assert_eq!(unsteady(&received(warms_up)), None, "the warm-up is not judged");
        let mut volume = received(|s| 1e6 * (1.0 + s.max(0.0)));
        stream_of(&mut volume.trial).volume = Some(ByteCount::new(1));
        assert_eq!(unsteady(&volume), None, "slow start is a part of a volume");
        // A few bytes differ by chance.
        assert_eq!(unsteady(&received(|s| if s < 1.5 { 1e4 } else { 2e4 })), None);
        let mut short = received(|s| 1e6 * (1.0 + s.max(0.0)));
        short.series[0].series.window = Nanos::from_millis(700);
        assert_eq!(unsteady(&short), None, "too few intervals");
    }

    #[test]
    fn the_range_of_a_rate_that_varies_is_known() {
        let (varies, constant) = (received(alternating), received(|_| 1e7));
        let range = rate_range(&[&varies, &varies]).expect("it varies");
        assert!((range.p5_bps / 20e6 - 1.0).abs() < 0.01 && (range.p95_bps / 200e6 - 1.0).abs() < 0.01, "{range:?}");
        assert_eq!(rate_range(&[&constant]), None);
        let mut both_ways = varies.clone();
        both_ways.series.push(SessionSeries { host: "a".into(), ..varies.series[0].clone() });
        assert_eq!(rate_range(&[&both_ways]), None, "two hosts received");
        assert_eq!(rate_range(&[&trial(1_000, 0)]), None, "nothing was sampled");
    }
}
