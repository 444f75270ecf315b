//! Delay of one way and its variation, from the timestamps of a reflector.
//!
//! The clocks of the two ends differ by an offset that is known within bounds only: from the trial's exchanges with the agents, and
//! from each probe, as no packet arrives before it was sent. Delays are therefore ranges. Their variation needs no offset.

use super::way::{ProbedRun, nanos, quantile};
use crate::statistics::median;
use linerate_model::{Hop, OneWayDelay};

/// Returns the one-way delay of a way over all its runs. `None` without timestamps of a reflector.
pub(super) fn delay(runs: &[ProbedRun<'_>]) -> Option<OneWayDelay> {
    let all: Vec<RunDelay> = runs.iter().filter_map(RunDelay::of).collect();
    let middle = |of: fn(&RunDelay) -> f64| median(all.iter().map(of).collect()).map(nanos);
    let far_ends = || runs.iter().filter_map(|run| run.way.far_end());
    Some(OneWayDelay {
        p50_low: middle(|run| run.low)?,
        p50_high: middle(|run| run.high)?,
        variation_p99: middle(|run| run.variation_p99)?,
        variation_p50: middle(|run| run.variation_p50)?,
        inter_packet: middle(|run| run.inter_packet)?,
        loss: loss(far_ends()),
    })
}

/// Returns the share of probes that did not reach the far end. `None` if it does not count them.
fn loss<'a>(far_ends: impl Iterator<Item = &'a Hop>) -> Option<f64> {
    let counted: Vec<(u64, u64)> = far_ends.filter_map(|hop| Some((hop.sent, hop.reflected?))).collect();
    let sent: u64 = counted.iter().map(|(sent, _)| sent).sum();
    let reflected: u64 = counted.iter().map(|(_, reflected)| reflected).sum();
    (sent > 0).then(|| sent.saturating_sub(reflected) as f64 / sent as f64)
}

/// Delays of one run, nanoseconds.
struct RunDelay {
    low: f64,
    high: f64,
    variation_p50: f64,
    variation_p99: f64,
    inter_packet: f64,
}

impl RunDelay {
    fn of(run: &ProbedRun<'_>) -> Option<Self> {
        let samples = &run.way.far_end()?.samples;
        let times: Vec<[f64; 2]> =
            samples.iter().filter_map(|sample| Some(sample.one_way?.map(|time| time as f64))).collect();
        let there: Vec<f64> = times.iter().map(|[there, _]| *there).collect();
        let least = there.iter().copied().min_by(f64::total_cmp)?;
        let least_back = times.iter().map(|[_, back]| *back).min_by(f64::total_cmp)?;
        // Offset of the far clock: no delay is negative, neither there nor back.
        let possible = [-least_back, least];
        let estimated = run.clock.map(|clock| {
            let (offset, uncertainty) = (clock.offset_ns as f64, clock.uncertainty.get() as f64);
            [possible[0].max(offset - uncertainty), possible[1].min(offset + uncertainty)]
        });
        // An estimate that contradicts the probes is wrong.
        let [offset_low, offset_high] = estimated.filter(|[low, high]| low <= high).unwrap_or(possible);
        let steps = there.windows(2).map(|pair| (pair[1] - pair[0]).abs());
        let inter_packet = steps.sum::<f64>() / (there.len().max(2) - 1) as f64;
        let mut sorted = there;
        sorted.sort_by(f64::total_cmp);
        let middle = quantile(&sorted, 0.5)?;
        Some(Self {
            low: middle - offset_high,
            high: middle - offset_low,
            variation_p50: middle - least,
            variation_p99: quantile(&sorted, 0.99)? - least,
            inter_packet,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::{ClockOffset, HopSample, ProbePacket, ProbedWay};
    use linerate_units::Nanos;
    use std::net::{IpAddr, Ipv4Addr};

    const MS: i64 = 1_000_000;

    /// Returns a way with these delays there and back. The clock of its far end is `offset` ahead.
    fn way(offset: i64, delays: &[(i64, i64)]) -> ProbedWay {
        let sample = |(index, (there, back)): (usize, &(i64, i64))| HopSample {
            at: Nanos::from_millis(index as u64 * 100),
            delay: Some(Nanos::new((there + back) as u64)),
            one_way: Some([there + offset, back - offset]),
        };
        let samples: Vec<HopSample> = delays.iter().enumerate().map(sample).collect();
        let (sent, answered) = (samples.len() as u64 + 2, samples.len() as u64);
        let hop =
            Hop { ttl: 2, is_far_end: true, sent, answered, reflected: Some(answered + 1), samples, ..Hop::default() };
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        ProbedWay {
            packet: ProbePacket::Udp,
            given_up: Vec::new(),
            source: address,
            destination: address,
            hops: vec![hop],
            path_mtu: None,
            sent,
            sent_bytes: sent * 140,
            rejected: 0,
        }
    }

    fn of(way: &ProbedWay, clock: Option<ClockOffset>) -> OneWayDelay {
        delay(&[ProbedRun { way, clock }]).expect("the reflector stamped its replies")
    }

    #[test]
    fn asymmetric_delay_lies_within_the_range_whatever_the_offset() {
        let delays = [(30 * MS, 5 * MS), (31 * MS, 5 * MS), (30 * MS, 6 * MS)];
        for offset in [0, 7_000 * MS, -86_400_000 * MS] {
            let way = way(offset, &delays);
            // Without clocks, the range is as wide as the least round trip.
            let blind = of(&way, None);
            assert!(blind.p50_low <= Nanos::from_millis(30) && Nanos::from_millis(30) <= blind.p50_high, "{blind:?}");
            assert_eq!(blind.p50_high.get() - blind.p50_low.get(), 35 * MS as u64);
            // An estimate that is 40 us off, and says so.
            let clock = ClockOffset { offset_ns: offset + 40_000, uncertainty: Nanos::new(50_000), exchanges: 8 };
            let known = of(&way, Some(clock));
            assert!(known.p50_low <= Nanos::from_millis(30) && Nanos::from_millis(30) <= known.p50_high, "{known:?}");
            assert_eq!(known.p50_high.get() - known.p50_low.get(), 100_000);
            assert_eq!((known.variation_p50, known.variation_p99), (blind.variation_p50, blind.variation_p99));
            assert_eq!((known.variation_p99, known.inter_packet), (Nanos::from_millis(1), Nanos::from_millis(1)));
        }
    }

    #[test]
    fn clock_estimate_that_contradicts_the_probes_is_not_used() {
        let way = way(0, &[(30 * MS, 5 * MS); 4]);
        let clock = ClockOffset { offset_ns: 90 * MS, uncertainty: Nanos::new(1_000), exchanges: 8 };
        let delay = of(&way, Some(clock));
        assert_eq!((delay.p50_low, delay.p50_high), (Nanos::new(0), Nanos::from_millis(35)));
    }

    #[test]
    fn loss_has_a_direction() {
        // Of six probes five arrived and four were answered.
        let delay = of(&way(0, &[(MS, MS); 4]), None);
        assert_eq!(delay.loss, Some(1.0 / 6.0));
    }
}
