//! Whether the path sets the pace of TCP: what arrives keeps to one rate while the congestion window grows and shrinks.
//!
//! A loss-based TCP fills the queue of a slow path until something is dropped. Its rate does not follow its window then, because what
//! exceeds the path's rate waits or is lost. A short queue adds too little to the round trip to be seen, but the arrivals stay as regular as
//! the path. Loss by chance halves the window on a path with room, and the rate follows: over 100 ms it varies by a third and more.

use crate::transfer::transfers;
use linerate_model::{HostName, Series, SeriesQuantity, TrialResult};

/// Samples in the window: a second in intervals of 100 ms has ten, of which the two at its edges may be cut.
const FEWEST_SAMPLES: usize = 8;
/// Arrivals keep to a rate if they deviate by at most this share of it, and by the packet that a border of an interval takes from the next.
const DEVIATION: f64 = 0.1;
const DEVIATION_PACKETS: f64 = 0.6;
/// The fastest samples of the delivery rate are above the mean by at most this factor on a path that is full throughout.
const FASTEST: f64 = 1.15;
/// A window that varies by this factor would make the rate vary if it set it.
const WINDOW_VARIES: f64 = 1.15;
/// The rates of more flows add up to a steady sum whatever limits each of them.
const MOST_FLOWS: usize = 4;

/// The pace of TCP in one window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pace {
    /// How regularly packets arrived.
    pub(crate) arrivals: Regularity,
    /// The 95th percentile of the delivery rate that TCP samples, as a multiple of the mean rate.
    pub(crate) fastest: f64,
    /// The 95th percentile of the congestion window, as a multiple of the 5th.
    pub(crate) window: f64,
}

impl Pace {
    /// Returns the pace of a run with one sending and one receiving host; `None` if it was not sampled often enough.
    pub(super) fn of_run(run: &TrialResult) -> Option<Self> {
        let [transfer] = transfers(run)[..] else { return None };
        let series =
            |host: &HostName| run.series.iter().find(|one| one.load == 0 && one.host == *host).map(|one| &one.series);
        let interface = transfer.receiver.interface.as_deref()?;
        Self::of(series(transfer.from)?, series(transfer.to)?, interface, transfer.sender.flows.len())
    }

    /// Returns the pace of `flows` between the hosts of these series; `interface` is the receiver's.
    pub(super) fn of(sender: &Series, receiver: &Series, interface: &str, flows: usize) -> Option<Self> {
        let mut arrivals = receiver.tracks_of(SeriesQuantity::InterfaceReceivedPackets);
        let packets = in_window(receiver, &arrivals.find(|track| track.subject == interface)?.values);
        let track = |quantity| sender.track(quantity).map(|values| in_window(sender, values));
        let (window, delivered) = (track(SeriesQuantity::CongestionWindow)?, track(SeriesQuantity::DeliveryRate)?);
        let transmitted = mean_rate(&track(SeriesQuantity::TransmittedBytes)?) * 8.0 / 1e3;
        if flows > MOST_FLOWS || packets.len() < FEWEST_SAMPLES || window.len() < FEWEST_SAMPLES || transmitted <= 0.0 {
            return None;
        }
        let levels = |samples: &[Sample]| samples.iter().map(|sample| sample.value).collect::<Vec<f64>>();
        let (window, delivered) = (levels(&window), levels(&delivered));
        Some(Self {
            arrivals: Regularity::of(&packets),
            fastest: percentile(delivered, 0.95) / transmitted,
            window: percentile(window.clone(), 0.95) / percentile(window, 0.05).max(1.0),
        })
    }

    /// Returns the pace of a full path with 40 packets in an interval.
    #[cfg(test)]
    pub(crate) fn steady() -> Self {
        Self { arrivals: Regularity { deviation: 0.04, packets: 40.0 }, fastest: 1.01, window: 1.7 }
    }

    /// Whether the path sets the pace, and not the congestion window.
    pub(crate) fn is_the_paths(&self) -> bool {
        self.arrivals.keeps_a_rate() && self.fastest <= FASTEST && self.window >= WINDOW_VARIES
    }
}

/// How regularly packets came, interval by interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Regularity {
    /// Standard deviation of the packets of an interval, as a share of their mean.
    pub(crate) deviation: f64,
    /// Mean number of packets of an interval.
    packets: f64,
}

impl Regularity {
    fn of(packets: &[Sample]) -> Self {
        let mean = packets.iter().map(|sample| sample.value).sum::<f64>() / packets.len() as f64;
        let rate = mean_rate(packets);
        let squares = packets.iter().map(|sample| (sample.value - rate * sample.seconds).powi(2)).sum::<f64>();
        Self { deviation: (squares / packets.len() as f64).sqrt() / mean.max(f64::MIN_POSITIVE), packets: mean }
    }

    /// Whether the packets came as regularly as a full line lets them go.
    fn keeps_a_rate(&self) -> bool {
        self.deviation * self.packets <= DEVIATION * self.packets + DEVIATION_PACKETS
    }
}

/// Whether the packets that came back to the sender kept to a rate in all `runs`: acknowledgements that exceed the rate of a slow return path.
/// Chance loses its share of them at any rate, and their number varies with the data.
pub(super) fn returns_keep_a_rate(runs: &[&TrialResult]) -> bool {
    !runs.is_empty() && runs.iter().all(|run| returned(run).is_some_and(|came| came.keeps_a_rate()))
}

/// Returns how regularly packets came back to the sender of a run; `None` if they were not sampled often enough.
fn returned(run: &TrialResult) -> Option<Regularity> {
    let [transfer] = transfers(run)[..] else { return None };
    let series = &run.series.iter().find(|one| one.load == 0 && one.host == *transfer.from)?.series;
    let mut tracks = series.tracks_of(SeriesQuantity::InterfaceReceivedPackets);
    let track = tracks.find(|track| Some(&track.subject) == transfer.sender.interface.as_ref())?;
    let came = in_window(series, &track.values);
    (came.len() >= FEWEST_SAMPLES).then(|| Regularity::of(&came))
}

/// A value of a series, and the length of its interval.
#[derive(Debug, Clone, Copy)]
struct Sample {
    value: f64,
    seconds: f64,
}

/// Returns the samples of a track within the window. Short intervals at its edges are left out.
fn in_window(series: &Series, values: &[u64]) -> Vec<Sample> {
    let inside = values.iter().zip(series.spans()).zip(series.in_window()).filter(|(_, inside)| *inside);
    let samples: Vec<Sample> =
        inside.map(|((value, span), _)| Sample { value: *value as f64, seconds: span.seconds() }).collect();
    let longest = samples.iter().map(|sample| sample.seconds).fold(0.0, f64::max);
    samples.into_iter().filter(|sample| sample.seconds > longest / 2.0).collect()
}

/// Returns the mean growth per second of a counter.
fn mean_rate(samples: &[Sample]) -> f64 {
    let seconds = samples.iter().map(|sample| sample.seconds).sum::<f64>();
    samples.iter().map(|sample| sample.value).sum::<f64>() / seconds.max(f64::MIN_POSITIVE)
}

/// Returns the value below which this share of `values` lies; zero if there are none.
fn percentile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1) as f64;
    values.get((last * share).round() as usize).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::tests::trial;
    use linerate_model::{SessionSeries, Track};
    use linerate_units::Nanos;

    /// Returns the pace of a window of 2 s in intervals of 100 ms, of packets of 1,448 payload bytes.
    fn pace(flows: usize, packets: &[u64], delivery_kbps: &[u64], window: &[u64]) -> Option<Pace> {
        let track = |quantity, subject: &str, values: &[u64]| Track {
            quantity,
            subject: subject.into(),
            values: values.iter().copied().cycle().take(20).collect(),
        };
        let series = |tracks| Series {
            window: Nanos::from_secs(2),
            at_us: (1..=20).map(|tenth| tenth * 100_000).collect(),
            tracks,
            ..Series::default()
        };
        let transmitted: Vec<u64> = packets.iter().map(|count| count * 1_448).collect();
        let sender = series(vec![
            track(SeriesQuantity::DeliveryRate, "", delivery_kbps),
            track(SeriesQuantity::CongestionWindow, "", window),
            track(SeriesQuantity::TransmittedBytes, "", &transmitted),
        ]);
        let receiver = series(vec![track(SeriesQuantity::InterfaceReceivedPackets, "eth0", packets)]);
        Pace::of(&sender, &receiver, "eth0", flows)
    }

    /// Drawn from `lab --device path,rate=600kbit/s,queue=8000,delay=20ms` and `rate=5Mbit/s,queue=10000,delay=1ms`, CUBIC.
    #[test]
    fn arrivals_as_regular_as_a_full_path_are_its_pace_whatever_the_window_does() {
        for (packets, kbps, window) in [
            (vec![5, 5, 5, 5, 5, 5, 5, 4], vec![565, 565, 565, 440], vec![5, 6, 7, 8]),
            (vec![40, 41, 40, 40, 41, 36], vec![4_700, 4_690, 3_100], vec![4, 5, 6, 7]),
        ] {
            let pace = pace(1, &packets, &kbps, &window).expect("it was sampled");
            assert!(pace.is_the_paths(), "{pace:?}");
        }
    }

    /// Drawn from `lab --device path,loss=1%,delay=10ms`, CUBIC.
    #[test]
    fn a_rate_that_follows_its_window_is_not_the_paths() {
        let packets = [53, 70, 35, 30, 61, 80, 44];
        let kbps = [6_000, 8_400, 4_000, 3_500, 7_100, 9_300, 5_000];
        let saws = pace(1, &packets, &kbps, &[11, 15, 7, 6, 12, 18, 9]).expect("it was sampled");
        assert!(!saws.is_the_paths(), "{saws:?}");
    }

    /// A congestion window near its plateau, a sum of many flows and a short window show nothing.
    #[test]
    fn a_steady_rate_is_no_evidence_without_a_window_that_varies() {
        let plateau = pace(1, &[50], &[5_790], &[12]).expect("it was sampled");
        assert!(!plateau.is_the_paths(), "{plateau:?}");
        assert_eq!(pace(16, &[50], &[5_790], &[8, 12]), None);
    }

    /// Drawn from `lab` with `links.a.path.rate = "128kbit/s"`, and with `links.a.path.loss = "20%"`, CUBIC.
    #[test]
    fn acknowledgements_of_a_slow_return_path_keep_to_its_rate_and_those_lost_by_chance_do_not() {
        let of = |packets: &[u64]| {
            let mut run = trial(1_000, 0);
            let values: Vec<u64> = packets.iter().copied().cycle().take(20).collect();
            let at_us = (1..=20).map(|tenth| tenth * 100_000).collect();
            let track = Track { quantity: SeriesQuantity::InterfaceReceivedPackets, subject: "eth0".into(), values };
            let series = Series { window: Nanos::from_secs(2), at_us, tracks: vec![track], ..Series::default() };
            run.series = vec![SessionSeries { load: 0, host: "a".into(), series }];
            returns_keep_a_rate(&[&run])
        };
        assert!(of(&[18, 21, 15, 17, 22, 14, 18, 17, 19, 17, 18, 18]));
        assert!(!of(&[809, 3, 1_494, 792, 367, 1_403, 933, 972, 1_453, 1_229, 1_442, 879]));
        assert!(!returns_keep_a_rate(&[&trial(1_000, 0)]), "nothing was sampled");
    }
}
