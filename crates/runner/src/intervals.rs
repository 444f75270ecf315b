//! Progress reports of the hosts of a running trial, combined in intervals.

use linerate_model::{HostLoad, HostName, IntervalReport, LatencyBuckets, Meter, SessionProgress};
use linerate_units::Nanos;
use std::collections::BTreeMap;

/// Combines the progress of a trial's hosts. The intervals of all hosts have the same edges, at which their counts are
/// interpolated, so that an interval's bytes, length and rate agree, however late the reports arrive.
#[derive(Debug, Clone)]
pub struct Intervals {
    every: Nanos,
    number: u32,
    /// Beginning of the current interval.
    from: Nanos,
    /// Earliest end of the current interval.
    next: Nanos,
    hosts: BTreeMap<HostName, Reports>,
}

/// Reports of one host.
#[derive(Debug, Clone, Default)]
struct Reports {
    /// Counts at the beginning of the interval.
    edge: SessionProgress,
    /// Reports since then, in the order of time.
    since: Vec<SessionProgress>,
    /// Time from the beginning of the load to the opening of the host's window.
    opened: Option<Nanos>,
}

impl Reports {
    fn last(&self) -> &SessionProgress {
        self.since.last().unwrap_or(&self.edge)
    }

    fn take(&mut self, progress: &SessionProgress) {
        // A report that was overtaken adds nothing.
        if progress.running <= self.last().running {
            return;
        }
        if let (None, Some(measured)) = (self.opened, progress.measured) {
            self.opened = Some(Nanos::new(progress.running.get().saturating_sub(measured.get())));
        }
        self.since.push(progress.clone());
    }

    /// Returns the counts at `to`, interpolated between the reports before and after. `None` if the host has not
    /// reported that far.
    fn at(&self, to: Nanos) -> Option<SessionProgress> {
        let after = self.since.iter().position(|report| report.running >= to)?;
        let before = after.checked_sub(1).map_or(&self.edge, |before| &self.since[before]);
        let next = &self.since[after];
        if next.running == to {
            return Some(next.clone());
        }
        let length = next.running.get() - before.running.get();
        let part = to.get() - before.running.get();
        let between = |before: u64, after: u64| {
            let grown = u128::from(after.saturating_sub(before)) * u128::from(part) / u128::from(length.max(1));
            before.saturating_add(u64::try_from(grown).unwrap_or(u64::MAX))
        };
        let then = &before.meter;
        let now = &next.meter;
        Some(SessionProgress {
            running: to,
            meter: Meter {
                sent_bytes: between(then.sent_bytes, now.sent_bytes),
                received_bytes: between(then.received_bytes, now.received_bytes),
                operations: between(then.operations, now.operations),
                retransmits: between(then.retransmits, now.retransmits),
                lost: between(then.lost, now.lost),
            },
            srtt: next.srtt,
            busiest_thread: next.busiest_thread,
            ..before.clone()
        })
    }

    /// Begins the next interval at `to`, with the counts `edge`.
    fn begin(&mut self, to: Nanos, edge: SessionProgress) {
        self.edge = edge;
        self.since.retain(|report| report.running > to);
    }
}

impl Intervals {
    /// Prepares intervals of length `every` for attempt number `number` of a run, in which `hosts` take part.
    pub fn new<'a>(every: Nanos, number: u32, hosts: impl IntoIterator<Item = &'a HostName>) -> Self {
        let hosts = hosts.into_iter().map(|host| (host.clone(), Reports::default())).collect();
        Self { every, number, from: Nanos::default(), next: every, hosts }
    }

    /// Takes a report of `host`. Returns the interval that ends with it.
    pub fn take(&mut self, host: &HostName, progress: &SessionProgress) -> Option<IntervalReport> {
        self.hosts.entry(host.clone()).or_default().take(progress);
        // The slowest host ends the interval, so that the counts of all hosts are in it. A host without a report for a
        // whole interval is not waited for.
        let times = self.hosts.values().map(|reports| reports.last().running).filter(|running| !running.is_zero());
        let slowest = times.clone().min()?;
        let fastest = times.max()?;
        let to = slowest.max(Nanos::new(fastest.get().saturating_sub(self.every.get())));
        // Computed in one step, because a host may report any number.
        let every = self.every.get().max(1);
        let to = Nanos::new(to.get() / every * every);
        (to >= self.next).then(|| self.end(to))
    }

    /// Returns the unfinished interval at the end of the trial. `None` if nothing was reported since the previous one.
    pub fn rest(&mut self) -> Option<IntervalReport> {
        let to = self.hosts.values().map(|reports| reports.last().running).max()?;
        if to <= self.from {
            return None;
        }
        // The last report of each host in this interval is dated to its end.
        let from = self.from;
        for last in self.hosts.values_mut().filter_map(|reports| reports.since.last_mut()) {
            if last.running > from {
                last.running = to;
            }
        }
        Some(self.end(to))
    }

    fn end(&mut self, to: Nanos) -> IntervalReport {
        let mut report = IntervalReport { number: self.number, from: self.from, to, ..IntervalReport::default() };
        let mut latency = LatencyBuckets::default();
        for (host, reports) in &mut self.hosts {
            let Some(now) = reports.at(to) else {
                report.silent.push(host.clone());
                let last = &reports.last().meter;
                report.total_received_bytes += last.received_bytes;
                report.total_operations += last.operations;
                continue;
            };
            // After a gap only the part within this interval counts.
            let then = reports.at(self.from).unwrap_or_else(|| reports.edge.clone());
            let grown = |of: fn(&Meter) -> u64| of(&now.meter).saturating_sub(of(&then.meter));
            report.received_bytes += grown(|meter| meter.received_bytes);
            report.sent_bytes += grown(|meter| meter.sent_bytes);
            report.operations += grown(|meter| meter.operations);
            report.retransmits += grown(|meter| meter.retransmits);
            report.lost += grown(|meter| meter.lost);
            report.total_received_bytes += now.meter.received_bytes;
            report.total_operations += now.meter.operations;
            report.warmup |= reports.opened.is_none_or(|opened| opened > self.from);
            report.srtt = report.srtt.max(now.srtt);
            if let Some(counts) = &now.latency {
                latency.merge(&counts.since(reports.edge.latency.as_ref().unwrap_or(&LatencyBuckets::default())));
            }
            report.hosts.push(HostLoad { host: host.clone(), busiest_thread: now.busiest_thread });
            reports.begin(to, now);
        }
        let seconds = (to - self.from).as_secs_f64();
        let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        report.received_bps = per_second(report.received_bytes) * 8.0;
        report.sent_bps = per_second(report.sent_bytes) * 8.0;
        report.operations_per_s = per_second(report.operations);
        report.p50 = latency.quantile(0.5);
        report.p99 = latency.quantile(0.99);
        self.from = to;
        self.next = Nanos::new(to.get().saturating_add(self.every.get()));
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(running_ms: u64, measured_ms: Option<u64>, meter: Meter) -> SessionProgress {
        let measured = measured_ms.map(Nanos::from_millis);
        SessionProgress { running: Nanos::from_millis(running_ms), measured, meter, ..SessionProgress::default() }
    }

    fn received(bytes: u64) -> Meter {
        Meter { received_bytes: bytes, ..Meter::default() }
    }

    #[test]
    fn host_with_an_absurd_time_delays_nothing() {
        let mut intervals = Intervals::new(Nanos::from_secs(1), 0, []);
        let absurd = SessionProgress { running: Nanos::new(u64::MAX), ..SessionProgress::default() };
        intervals.take(&"a".into(), &absurd).expect("an interval is over");
    }

    #[test]
    fn interval_ends_when_all_hosts_have_reported_it() {
        let mut intervals = Intervals::new(Nanos::from_secs(1), 3, []);
        let a = "a".into();
        let b = "b".into();
        for ms in [200, 400, 600, 800] {
            let sent = Meter { sent_bytes: ms * 1_000, retransmits: ms / 200, ..Meter::default() };
            assert_eq!(intervals.take(&a, &told(ms, None, sent)), None);
            assert_eq!(intervals.take(&b, &told(ms, None, received(ms * 1_000))), None);
        }
        let sent = Meter { sent_bytes: 1_010_000, retransmits: 5, ..Meter::default() };
        assert_eq!(intervals.take(&a, &told(1_010, Some(10), sent)), None, "b has not reported it");
        let report = intervals.take(&b, &told(1_000, Some(0), received(1_000_000))).expect("a second is over");
        assert_eq!((report.number, report.from, report.to), (3, Nanos::default(), Nanos::from_secs(1)));
        assert_eq!((report.received_bytes, report.received_bps, report.retransmits), (1_000_000, 8e6, 4));
        assert!(report.warmup && report.sent_bytes == 1_000_000 && report.sent_bps == 8e6);

        let report = intervals.take(&b, &told(2_000, Some(1_000), received(3_000_000)));
        assert_eq!(report, None, "a lags behind");
        let report =
            intervals.take(&b, &told(3_010, Some(2_010), received(5_020_000))).expect("it is not waited for longer");
        assert_eq!((report.to, report.received_bps, report.silent), (Nanos::from_secs(2), 16e6, vec![a.clone()]));
        assert!(!report.warmup && report.sent_bytes == 0);
        assert_eq!(report.total_received_bytes, 3_000_000);
        assert_eq!(intervals.take(&b, &told(3_500, Some(2_500), received(5_500_000))), None);
        let rest = intervals.rest().expect("1.5 s more");
        assert_eq!((rest.to, rest.received_bytes), (Nanos::from_millis(3_500), 2_500_000));
    }

    /// The control connection of b is cut for two seconds, in which its data go on.
    #[test]
    fn host_without_reports_is_named_and_counts_when_it_is_back() {
        let (a, b) = ("a".into(), "b".into());
        let mut intervals = Intervals::new(Nanos::from_secs(1), 0, [&a, &b]);
        let mut reports = Vec::new();
        for ms in (250..=6_000).step_by(250) {
            let sent = Meter { sent_bytes: ms * 1_000, ..Meter::default() };
            reports.extend(intervals.take(&a, &told(ms, Some(ms), sent)));
            if !(1_500..3_500).contains(&ms) {
                reports.extend(intervals.take(&b, &told(ms, Some(ms), received(ms * 1_000))));
            }
        }
        for report in &reports {
            let seconds = (report.to - report.from).as_secs_f64();
            assert_eq!(report.received_bytes as f64 * 8.0 / seconds, report.received_bps, "{report:?}");
            let is_silent = report.silent == [b.clone()];
            assert!(is_silent && report.received_bytes == 0 || report.received_bps == 8e6, "{report:?}");
        }
        assert!(reports.iter().any(|report| report.silent == [b.clone()]), "{reports:?}");
        assert_eq!(reports.last().expect("intervals").total_received_bytes, 6_000_000);
    }

    #[test]
    fn host_that_never_reports_is_named() {
        let (a, b) = ("a".into(), "b".into());
        let mut intervals = Intervals::new(Nanos::from_secs(1), 0, [&a, &b]);
        let report = intervals.take(&a, &told(1_000, Some(1_000), Meter::default())).expect("over");
        assert_eq!(report.silent, [b]);
    }

    #[test]
    fn a_load_that_is_measured_from_its_start_has_no_warm_up() {
        let mut intervals = Intervals::new(Nanos::from_secs(1), 0, []);
        let report = intervals.take(&"a".into(), &told(1_000, Some(1_000), received(1))).expect("over");
        assert!(!report.warmup);
    }

    #[test]
    fn response_times_are_those_of_the_interval() {
        let mut intervals = Intervals::new(Nanos::from_secs(1), 0, []);
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
