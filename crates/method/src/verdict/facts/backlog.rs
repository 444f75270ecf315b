//! Which way a queue stands: on the way to the receiver, or on the way back.
//!
//! What was sent and has not arrived is on the way there. Both ends count bytes on one axis of time, so at each moment the bytes on
//! the way are known; divided by the rate they are the time that a byte takes to the receiver (Little's law). The rest of the
//! round trip is the way back.

use super::median;
use crate::transfer::transfers;
use linerate_model::{HostName, Series, SeriesQuantity, TrialResult};

/// Fewer moments within the window do not tell.
const FEWEST: usize = 5;

/// How long data and acknowledgements took, medians over the runs, seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct OneWay {
    /// From the sender's kernel to the receiving program.
    pub(crate) there: f64,
    /// The rest of the round trip.
    pub(crate) back: f64,
}

impl OneWay {
    /// The times of TCP between two hosts with one path and comparable clocks; none otherwise.
    pub(crate) fn of(runs: &[&TrialResult]) -> Option<Self> {
        let each: Vec<Self> = runs.iter().filter_map(|run| Self::of_run(run)).collect();
        (!each.is_empty()).then(|| Self {
            there: median(each.iter().map(|one| one.there)),
            back: median(each.iter().map(|one| one.back)),
        })
    }

    fn of_run(run: &TrialResult) -> Option<Self> {
        let [one] = transfers(run)[..] else { return None };
        let tcp = one.sender.flows.iter().any(|flow| flow.tcp.is_some());
        let clocks = [one.from, one.to].map(|host| run.clocks.contains_key(host));
        if !tcp || one.from != one.to && clocks != [true, true] {
            return None;
        }
        let offsets = run.series_offsets_us();
        let of_host = |host: &HostName| {
            let mut all = run.series.iter().zip(&offsets);
            all.find(|(one, _)| one.load == 0 && one.host == *host).map(|(one, offset)| (&one.series, *offset))
        };
        let ((sender, sender_at), (receiver, receiver_at)) = (of_host(one.from)?, of_host(one.to)?);
        // What TCP itself sent: the program's own count lags by what it is about to hand over.
        let (sent, srtt) = (sender.track(SeriesQuantity::TransmittedBytes)?, sender.track(SeriesQuantity::Srtt)?);
        let arrived = Cumulative::of(receiver, receiver_at)?;
        let (mut transmitted, mut there, mut back) = (0, Vec::new(), Vec::new());
        for (at, inside) in sender.in_window().enumerate() {
            transmitted += sent[at];
            let now = sender.at_us[at] + sender_at;
            let (Some(came), Some(rate)) = (arrived.at(now), arrived.rate_around(now)) else { continue };
            if !inside || rate <= 0.0 {
                continue;
            }
            let on_the_way = (transmitted as f64 - came).max(0.0);
            let (round_trip, forward) = (srtt[at] as f64 / 1e6, on_the_way / rate);
            there.push(forward.min(round_trip));
            back.push((round_trip - forward).max(0.0));
        }
        (there.len() >= FEWEST).then(|| Self { there: median(there.into_iter()), back: median(back.into_iter()) })
    }
}

/// Bytes received by each moment, seen on the common axis.
struct Cumulative {
    /// Moment in microseconds, and bytes received by then.
    points: Vec<(i64, f64)>,
}

impl Cumulative {
    fn of(series: &Series, offset: i64) -> Option<Self> {
        let received = series.track(SeriesQuantity::ReceivedBytes)?;
        let mut all = 0.0;
        let mut points = vec![(series.from_us + offset, 0.0)];
        points.extend(series.at_us.iter().zip(received).map(|(at, bytes)| {
            all += *bytes as f64;
            (at + offset, all)
        }));
        Some(Self { points })
    }

    /// Bytes received by `now`, in between by the rate of the interval; none outside of the series.
    fn at(&self, now: i64) -> Option<f64> {
        let [(from, before), (to, after)] = self.around(now)?;
        Some(before + (after - before) * (now - from) as f64 / (to - from).max(1) as f64)
    }

    /// Bytes a second in the interval that `now` lies in.
    fn rate_around(&self, now: i64) -> Option<f64> {
        let [(from, before), (to, after)] = self.around(now)?;
        Some((after - before) * 1e6 / (to - from).max(1) as f64)
    }

    fn around(&self, now: i64) -> Option<[(i64, f64); 2]> {
        let next = self.points.partition_point(|(at, _)| *at < now);
        Some([*self.points.get(next.checked_sub(1)?)?, *self.points.get(next)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::tests::{paths_of, stream_of, trial};
    use linerate_model::{ClockOffset, FlowCounts, SessionSeries, TcpFlow, Track, Transport};
    use linerate_units::Nanos;

    /// 1 MB/s that take so long there and back, milliseconds; the receiver's clock is 5 s ahead and began to sample 30 ms later.
    fn run(there: i64, back: i64) -> TrialResult {
        let mut run = trial(9_000, 0);
        stream_of(&mut run.trial).net.transport = Transport::Tcp;
        let tcp = Some(TcpFlow::default());
        paths_of(&mut run)[0].client.flows = vec![FlowCounts { tcp, ..FlowCounts::default() }];
        const TENTH: i64 = 100_000;
        let track = |quantity, values| Track { quantity, subject: String::new(), values };
        let times: Vec<i64> = (1..=20).map(|tenth| tenth * TENTH).collect();
        let window = Nanos::from_secs(2);
        let sender = Series {
            opened_ns: 1_000_000_000,
            window,
            at_us: times.clone(),
            tracks: vec![
                track(SeriesQuantity::TransmittedBytes, vec![100_000; 20]),
                track(SeriesQuantity::Srtt, vec![(there + back) as u64 * 1_000; 20]),
            ],
            ..Series::default()
        };
        let late = 30_000;
        let received_by = |at: i64| (at + late - there * 1_000).max(0) as u64;
        let earlier = |at: i64| if at > TENTH { received_by(at - TENTH) } else { 0 };
        let received = times.iter().map(|at| received_by(*at) - earlier(*at)).collect();
        let receiver = Series {
            opened_ns: 6_030_000_000,
            window,
            from_us: 0,
            at_us: times,
            tracks: vec![track(SeriesQuantity::ReceivedBytes, received)],
            ..Series::default()
        };
        run.series = vec![
            SessionSeries { load: 0, host: "a".into(), series: sender },
            SessionSeries { load: 0, host: "b".into(), series: receiver },
        ];
        let clock = |offset_ns| ClockOffset { offset_ns, uncertainty: Nanos::new(20_000), exchanges: 8 };
        run.clocks = [("a".into(), clock(0)), ("b".into(), clock(5_000_000_000))].into();
        run
    }

    #[test]
    fn a_queue_is_found_on_the_way_that_it_stands_on() {
        for (there, back) in [(80, 10), (10, 80), (45, 45)] {
            let found = OneWay::of(&[&run(there, back)]).expect("both series");
            assert!((found.there - there as f64 / 1e3).abs() < 2e-3, "{there} ms there: {found:?}");
            assert!((found.back - back as f64 / 1e3).abs() < 2e-3, "{back} ms back: {found:?}");
        }
    }

    #[test]
    fn without_comparable_clocks_there_is_none() {
        let mut unknown = run(80, 10);
        unknown.clocks.clear();
        assert_eq!(OneWay::of(&[&unknown]), None);
        assert_eq!(OneWay::of(&[&trial(9_000, 0)]), None);
    }
}
