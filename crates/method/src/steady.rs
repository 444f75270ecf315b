//! When a load is steady, so that its window may open.

use crate::interval_rates::{Interval, judged_by, mean_rate};
use linerate_model::{HostName, SessionProgress, Trial, Warmup};
use linerate_units::Nanos;
use std::collections::{BTreeMap, VecDeque};

/// No load is steady before this time.
const SHORTEST: Nanos = Nanos::from_millis(500);
/// No load is steady before so many of its round trips: TCP has to leave slow start.
const ROUND_TRIPS: u64 = 10;
/// The time judged is this long ...
const JUDGED: Nanos = Nanos::from_millis(400);
/// ... and so many round trips, whichever is longer.
const JUDGED_ROUND_TRIPS: u64 = 8;
/// The fewest rates in each part of the time judged.
const RATES: usize = 3;
/// The mean rates of the two parts differ by at most this share of the larger one, or by no more than chance explains.
const DIFFERENCE: f64 = 0.05;
/// The largest difference that chance may explain, as a share.
const MOST_DIFFERENCE: f64 = 0.2;
/// Chance explains a difference of so many standard errors.
const ERRORS: f64 = 2.0;

/// Nanoseconds since the load began, and what was done by then.
type Point = (u64, u64);

/// Follows the warm-up of a trial and says when its window may open.
///
/// The time judged is cut into two equal parts. A load is steady when the mean rates of both parts differ by at most 5 %, or by at most
/// two standard errors of the difference. Growth is then not steady, but a rate that varies about one mean is.
#[derive(Debug, Clone)]
pub struct SteadyState {
    at_most: Nanos,
    /// Whether bytes at receivers are judged, else operations completed.
    bytes: bool,
    /// Size of what arrives at a time, in bytes or operations.
    unit: f64,
    round_trip: Nanos,
    hosts: BTreeMap<HostName, VecDeque<Point>>,
    running: Nanos,
}

impl SteadyState {
    /// Follows `trial`; none if the length of its warm-up is fixed.
    pub fn of(trial: &Trial) -> Option<Self> {
        let Warmup::Steady { at_most, .. } = trial.window()?.warmup else { return None };
        let (bytes, unit) = judged_by(trial.task());
        let (round_trip, running) = (Nanos::default(), Nanos::default());
        Some(Self { at_most, bytes, unit, round_trip, hosts: BTreeMap::new(), running })
    }

    /// Takes what `host` told of the measured load.
    pub fn take(&mut self, host: &HostName, progress: &SessionProgress) {
        self.running = self.running.max(progress.running);
        self.round_trip = self.round_trip.max(progress.srtt.unwrap_or_default());
        let done = if self.bytes { progress.meter.received_bytes } else { progress.meter.operations };
        let judged = self.judged().get();
        let points = self.hosts.entry(host.clone()).or_default();
        let now = progress.running.get();
        if points.back().is_none_or(|(last, _)| *last < now) {
            points.push_back((now, done));
        }
        while points.get(1).is_some_and(|(second, _)| second + judged < now) {
            points.pop_front();
        }
    }

    /// Whether the window is to open.
    pub fn is_over(&self) -> bool {
        self.running >= self.at_most || self.is_steady()
    }

    /// Whether the load is steady.
    pub fn is_steady(&self) -> bool {
        let earliest = SHORTEST.get().max(ROUND_TRIPS * self.round_trip.get());
        let mut busy = self.hosts.values().filter(|points| points.back().is_some_and(|(_, done)| *done > 0)).peekable();
        self.running.get() >= earliest && busy.peek().is_some() && busy.all(|points| self.keeps_its_rate(points))
    }

    fn judged(&self) -> Nanos {
        JUDGED.max(Nanos::new(JUDGED_ROUND_TRIPS * self.round_trip.get()))
    }

    fn keeps_its_rate(&self, points: &VecDeque<Point>) -> bool {
        let (Some((begin, _)), Some((end, _))) = (points.front(), points.back()) else { return false };
        let middle = begin + (end - begin) / 2;
        if end - begin < self.judged().get() * 9 / 10 {
            return false;
        }
        let steps = points.iter().zip(points.iter().skip(1));
        let (first, second): (Vec<_>, Vec<_>) = steps.partition(|((_, _), (at, _))| *at <= middle);
        match (self.part(&first), self.part(&second)) {
            (Some((one, error_one)), Some((other, error_other))) => {
                let (apart, larger) = ((one - other).abs(), one.max(other));
                let by_chance = ERRORS * error_one.hypot(error_other);
                apart <= DIFFERENCE * larger
                    || (apart <= by_chance && apart <= MOST_DIFFERENCE.max(self.grain(larger, begin, end)) * larger)
            }
            _ => false,
        }
    }

    /// Two standard errors of a count by chance in one part of the time judged, as a share of the count. At a few requests per second,
    /// two parts differ by more than [`MOST_DIFFERENCE`].
    fn grain(&self, rate: f64, begin: &u64, end: &u64) -> f64 {
        let count = rate / self.unit * (end - begin) as f64 / 2e9;
        ERRORS * (2.0 / count.max(1.0)).sqrt()
    }

    /// The mean rate of a part, per second, and its standard error; none where too little was told.
    fn part(&self, steps: &[(&Point, &Point)]) -> Option<(f64, f64)> {
        let interval = |((from, before), (to, after)): &(&Point, &Point)| Interval {
            count: after.saturating_sub(*before) as f64,
            seconds: (to - from) as f64 / 1e9,
        };
        let intervals: Vec<Interval> = steps.iter().map(interval).collect();
        (intervals.len() >= RATES).then(|| mean_rate(&intervals, self.unit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::{Meter, StreamTask, Task, Timing, TransactTask, Transport};
    use linerate_units::ByteCount;

    const TOLD_EVERY_MS: u64 = 50;

    /// After how many milliseconds the window opens, of a load that has done `done` by then.
    fn opens(task: Task, srtt_ms: u64, done: impl Fn(f64) -> f64) -> u64 {
        let stream = matches!(task, Task::Stream(_));
        let trial = Trial::new("t", task, Timing::when_steady(Nanos::from_secs(3)));
        let mut steady = SteadyState::of(&trial).expect("its warm-up ends when it is steady");
        for step in 0.. {
            let running = Nanos::from_millis(step * TOLD_EVERY_MS);
            let count = done(running.as_secs_f64()) as u64;
            let meter = match stream {
                true => Meter { received_bytes: count, ..Meter::default() },
                false => Meter { operations: count, ..Meter::default() },
            };
            let srtt = Some(Nanos::from_millis(srtt_ms));
            steady.take(&"b".into(), &SessionProgress { running, meter, srtt, ..SessionProgress::default() });
            steady.take(&"a".into(), &SessionProgress { running, ..SessionProgress::default() });
            if steady.is_over() {
                return step * TOLD_EVERY_MS;
            }
        }
        unreachable!("it opens after 10 s in any case")
    }

    fn tcp() -> Task {
        Task::Stream(StreamTask::plain(Transport::Tcp, ByteCount::new(1 << 20)))
    }

    #[test]
    fn a_constant_rate_is_steady_after_500_ms() {
        assert_eq!(opens(tcp(), 1, |s| s * 1e8), 500);
        let udp = Task::Stream(StreamTask::plain(Transport::Udp, ByteCount::new(64)));
        assert_eq!(opens(udp, 0, |s| s * 1e7), 500);
        assert_eq!(opens(Task::Transact(TransactTask::plain(Transport::Tcp)), 0, |s| s * 20_000.0), 500);
        let slow = opens(Task::Transact(TransactTask::plain(Transport::Tcp)), 0, |s| s * 25.0);
        assert!(slow <= 1_000, "25 requests a second: {slow} ms");
    }

    #[test]
    fn growth_is_not_steady() {
        // Slow start doubles the rate every round trip of 150 ms, until the line is full after ten of them.
        let grown = |s: f64| if s < 1.5 { 1e5 * 2f64.powf(s / 0.15) } else { 1e8 + (s - 1.5) * 5e8 };
        let opened = opens(tcp(), 150, grown);
        assert!((2_500..4_500).contains(&opened), "{opened} ms");
        let opened = opens(tcp(), 1, |s| s * s * 1e8);
        assert!(opened >= 4_000, "a rate that grows evenly, by 5 % in 200 ms after 4 s: {opened} ms");
    }

    #[test]
    fn a_rate_that_varies_about_one_mean_is_steady() {
        // 20 and 200 Mbit/s for 300 ms each.
        let alternating = |s: f64| {
            let (whole, rest) = ((s / 0.6).floor(), s % 0.6);
            whole * 0.3 * 27.5e6 + rest.min(0.3) * 2.5e6 + (rest - 0.3).max(0.0) * 25e6
        };
        assert!(opens(tcp(), 1, alternating) < 10_000);
    }

    #[test]
    fn ten_round_trips_are_waited_for_and_ten_seconds_at_the_most() {
        let opened = opens(tcp(), 400, |s| s * 1e8);
        assert!((4_000..4_200).contains(&opened), "{opened} ms");
        assert_eq!(opens(tcp(), 1, |_| 0.0), 10_000);
    }
}
