//! What hosts tell while a trial runs, put together in intervals.

use linerate_model::{HostLoad, HostName, IntervalReport, LatencyBuckets, SessionProgress};
use linerate_units::Nanos;
use std::collections::BTreeMap;

/// Puts the progress of a trial's hosts together. Each host's interval ends with the last it told, and its rate is over its own time;
/// so an interval is as exact as the hosts' counts, however late they are heard of.
#[derive(Debug, Clone)]
pub struct Intervals {
    every: Nanos,
    number: u32,
    /// Where the interval that is under way began and ends.
    from: Nanos,
    next: Nanos,
    hosts: BTreeMap<HostName, Told>,
}

/// What a host told.
#[derive(Debug, Clone, Default)]
struct Told {
    /// At the end of the interval before.
    before: SessionProgress,
    last: SessionProgress,
}

impl Intervals {
    /// Intervals of `every` of attempt number `number` of a run.
    pub fn new(every: Nanos, number: u32) -> Self {
        Self { every, number, from: Nanos::default(), next: every, hosts: BTreeMap::new() }
    }

    /// Takes what `host` told. Returns the interval that has ended with it.
    pub fn take(&mut self, host: &HostName, progress: &SessionProgress) -> Option<IntervalReport> {
        self.hosts.entry(host.clone()).or_default().last = progress.clone();
        // The slowest host ends the interval, so that the counts of all hosts are in it. A host without news for a whole interval is
        // not waited for.
        let slowest = self.hosts.values().map(|told| told.last.running).min().unwrap_or_default();
        let fastest = self.hosts.values().map(|told| told.last.running).max().unwrap_or_default();
        (slowest >= self.next || fastest >= self.next + self.every).then(|| self.end())
    }

    /// The interval that is under way when the trial ends; none if nothing was told since the one before.
    pub fn rest(&mut self) -> Option<IntervalReport> {
        let news = self.hosts.values().any(|told| told.last.running > told.before.running);
        news.then(|| self.end())
    }

    fn end(&mut self) -> IntervalReport {
        let to = self.hosts.values().map(|told| told.last.running).max().unwrap_or_default();
        let mut report = IntervalReport { number: self.number, from: self.from, to, ..IntervalReport::default() };
        let mut latency = LatencyBuckets::default();
        for (host, Told { before, last }) in &mut self.hosts {
            let seconds = (last.running - before.running).as_secs_f64();
            let (now, then) = (&last.meter, &before.meter);
            let grown = |now: u64, then: u64| now.saturating_sub(then);
            let per_second = |grown: u64| if seconds > 0.0 { grown as f64 / seconds } else { 0.0 };
            let received = grown(now.received_bytes, then.received_bytes);
            let sent = grown(now.sent_bytes, then.sent_bytes);
            let operations = grown(now.operations, then.operations);
            report.received_bytes += received;
            report.sent_bytes += sent;
            report.operations += operations;
            report.received_bps += per_second(received) * 8.0;
            report.sent_bps += per_second(sent) * 8.0;
            report.operations_per_s += per_second(operations);
            report.retransmits += grown(now.retransmits, then.retransmits);
            report.lost += grown(now.lost, then.lost);
            report.total_received_bytes += now.received_bytes;
            report.total_operations += now.operations;
            report.warmup |=
                before.measured.is_none() && last.measured.is_none_or(|since| since + before.running < last.running);
            report.srtt = report.srtt.max(last.srtt);
            if let Some(counts) = &last.latency {
                latency.merge(&counts.since(before.latency.as_ref().unwrap_or(&LatencyBuckets::default())));
            }
            report.hosts.push(HostLoad { host: host.clone(), busiest_thread: last.busiest_thread });
            before.clone_from(last);
        }
        (report.p50, report.p99) = (latency.quantile(0.5), latency.quantile(0.99));
        self.from = to;
        // In one step: what a host tells may be any number.
        let over = to.get() / self.every.get().max(1);
        self.next = self.next.max(Nanos::new(over.saturating_add(1).saturating_mul(self.every.get())));
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::Meter;

    fn told(running_ms: u64, measured_ms: Option<u64>, meter: Meter) -> SessionProgress {
        let measured = measured_ms.map(Nanos::from_millis);
        SessionProgress { running: Nanos::from_millis(running_ms), measured, meter, ..SessionProgress::default() }
    }

    fn received(bytes: u64) -> Meter {
        Meter { received_bytes: bytes, ..Meter::default() }
    }

    #[test]
    fn a_host_that_tells_an_absurd_time_holds_nothing_up() {
        let mut intervals = Intervals::new(Nanos::from_secs(1), 0);
        let absurd = SessionProgress { running: Nanos::new(u64::MAX), ..SessionProgress::default() };
        intervals.take(&"a".into(), &absurd).expect("an interval is over");
    }

    #[test]
    fn an_interval_ends_when_all_hosts_have_told_of_it() {
        let mut intervals = Intervals::new(Nanos::from_secs(1), 3);
        let (a, b) = ("a".into(), "b".into());
        for ms in [200, 400, 600, 800] {
            let sent = Meter { sent_bytes: ms * 1_000, retransmits: ms / 200, ..Meter::default() };
            assert_eq!(intervals.take(&a, &told(ms, None, sent)), None);
            assert_eq!(intervals.take(&b, &told(ms, None, received(ms * 1_000))), None);
        }
        let sent = Meter { sent_bytes: 1_010_000, retransmits: 5, ..Meter::default() };
        assert_eq!(intervals.take(&a, &told(1_010, Some(10), sent)), None, "b has not told of it");
        let report = intervals.take(&b, &told(1_000, Some(0), received(1_000_000))).expect("a second is over");
        assert_eq!((report.number, report.from, report.to), (3, Nanos::default(), Nanos::from_millis(1_010)));
        assert_eq!((report.received_bytes, report.received_bps, report.retransmits), (1_000_000, 8e6, 5));
        assert!(report.warmup && (report.sent_bps - 8e6).abs() < 1.0);

        let report = intervals.take(&b, &told(2_000, Some(1_000), received(3_000_000)));
        assert_eq!(report, None, "a lags behind");
        let report =
            intervals.take(&b, &told(3_010, Some(2_010), received(5_020_000))).expect("it is not waited for longer");
        assert!(!report.warmup && (report.received_bps - 16e6).abs() < 1e-6, "{report:?}");
        assert_eq!(report.total_received_bytes, 5_020_000);
        assert_eq!(intervals.rest(), None);
        assert_eq!(intervals.take(&b, &told(3_500, Some(2_500), received(5_500_000))), None);
        assert_eq!(intervals.rest().expect("half a second more").received_bytes, 480_000);
    }

    #[test]
    fn a_load_that_is_measured_from_its_start_has_no_warm_up() {
        let mut intervals = Intervals::new(Nanos::from_secs(1), 0);
        let report = intervals.take(&"a".into(), &told(1_000, Some(1_000), received(1))).expect("over");
        assert!(!report.warmup);
    }

    #[test]
    fn response_times_are_those_of_the_interval() {
        let mut intervals = Intervals::new(Nanos::from_secs(1), 0);
        let counts = |fast: u64, slow: u64| {
            let mut all = [0; LatencyBuckets::COUNT];
            all[LatencyBuckets::bucket(50_000)] = fast;
            all[LatencyBuckets::bucket(5_000_000)] = slow;
            Some(LatencyBuckets::of(&all))
        };
        let first = SessionProgress { latency: counts(100, 0), ..told(1_000, None, Meter::default()) };
        let report = intervals.take(&"a".into(), &first).expect("over");
        assert!(report.warmup && report.p99.is_some_and(|p99| p99 < Nanos::new(100_000)), "{report:?}");
        let second = SessionProgress { latency: counts(110, 90), ..told(2_000, None, Meter::default()) };
        let report = intervals.take(&"a".into(), &second).expect("over");
        assert!(report.p50.is_some_and(|p50| p50 > Nanos::new(4_000_000)), "{report:?}");
    }
}
