//! Latency under load: the requests that time a path, idle and next to a load.

use crate::beside;
use crate::latency::latency_of;
use crate::statistics::summary;
use crate::transfer::rate;
use linerate_model::{
    AddedDelay, Caveat, CaveatKind, Counts, DelayGrade, Histogram, IpVersion, LoadedLatency, MessageValue, PathCounts,
    RoundTripsPerMinute, Task, TaskKind, Transactions, Transport, TrialResult, layer_bytes, message, tcp_overhead,
};
use linerate_units::BitRate;

/// Of the round trips of a minute the slowest twentieth is left out: TMP of draft-ietf-ippm-responsiveness-04 section 4.2.
const TRIMMED: f64 = 0.95;
const MINUTE_NS: f64 = 60e9;
/// Above this share, requests that this host could not send in time are worth a caveat.
const UNSENT_BEARABLE: f64 = 0.005;

/// Above this share of the stream's rate, probes take a visible part of the path.
const PROBE_SHARE: f64 = 0.01;

/// What the probes of one run were answered: alone, and beside the load.
struct Pair<'a> {
    idle: Vec<&'a Transactions>,
    loaded: Vec<&'a Transactions>,
}

/// The probes of each run: those that ran alone before it, and those beside its load.
fn pairs<'a>(runs: &[&'a TrialResult], idle: &[&'a TrialResult]) -> Vec<Pair<'a>> {
    let both = idle.iter().zip(runs);
    both.map(|(idle, run)| Pair { idle: timing_requests(idle), loaded: timing_requests(run) }).collect()
}

fn asked(paths: &[PathCounts]) -> Vec<&Transactions> {
    paths.iter().filter_map(|path| path.client.transactions.as_ref()).collect()
}

/// Returns the requests that timed the path in a run: next to its load, or alone.
fn timing_requests(run: &TrialResult) -> Vec<&Transactions> {
    match beside::counts(run, TaskKind::Transact) {
        Some(Counts::Flows(paths)) => asked(paths),
        _ => Vec::new(),
    }
}

/// Requests beside the load of a run that were answered or failed.
pub(crate) fn probes_beside(run: &TrialResult) -> u64 {
    timing_requests(run).iter().map(|asked| asked.completed + asked.failed).sum()
}

/// What the probes beside the load of a run were answered; none where none were timed.
pub(crate) fn loaded(run: &TrialResult) -> Option<Histogram> {
    let (all, _) = timed(&timing_requests(run));
    (all.count() > 0).then_some(all)
}

/// What the probes of all runs amount to; none where none were timed. `idle` are the runs of the probe alone.
pub(crate) fn loaded_latency(
    transport: Transport,
    runs: &[&TrialResult],
    idle: &[&TrialResult],
) -> Option<LoadedLatency> {
    let pairs = pairs(runs, idle);
    let (idle, idle_unanswered) = timed(pairs.iter().flat_map(|pair| &pair.idle));
    let (loaded, loaded_unanswered) = timed(pairs.iter().flat_map(|pair| &pair.loaded));
    if idle.count() == 0 || loaded.count() == 0 {
        return None;
    }
    let p50_runs = pairs.iter().map(|pair| added(&timed(&pair.idle).0, &timed(&pair.loaded).0, 0.5) as f64);
    let p50 = added(&idle, &loaded, 0.5);
    // The buffer delay of RFC 6349; the average is that of all requests, those without an answer included.
    let baseline = idle.quantile(0.5) as f64;
    Some(LoadedLatency {
        transport,
        idle_ns: latency_of(&idle),
        loaded_ns: latency_of(&loaded),
        idle_unanswered,
        loaded_unanswered,
        added_ns: AddedDelay {
            p50,
            p90: added(&idle, &loaded, 0.9),
            p99: added(&idle, &loaded, 0.99),
            p50_runs: summary(p50_runs.collect())?,
        },
        rpm: RoundTripsPerMinute {
            idle: MINUTE_NS / idle.trimmed_mean(TRIMMED),
            loaded: MINUTE_NS / loaded.trimmed_mean(TRIMMED),
        },
        buffer_delay_percent: (loaded.mean() - baseline) / baseline * 100.0,
        grade: DelayGrade::of(p50),
    })
}

/// All requests' times and how many of them had no answer. What was due and could not be sent has none either: to leave
/// it out would hide the stall that kept it back.
fn timed<'a>(all: impl IntoIterator<Item = &'a &'a Transactions>) -> (Histogram, u64) {
    let (mut times, mut unanswered) = (Histogram::default(), 0);
    for asked in all {
        times.merge(&asked.latency);
        unanswered += asked.failed + asked.not_sent;
    }
    times.record_many(LoadedLatency::UNANSWERED.get().max(times.max()), unanswered);
    (times, unanswered)
}

fn added(idle: &Histogram, loaded: &Histogram, share: f64) -> i64 {
    // A histogram ends at 100 s.
    loaded.quantile(share) as i64 - idle.quantile(share) as i64
}

/// Returns a caveat if the probes of `runs` took a share of the path that shows in the figure of a stream of `stream` bit/s on the wire.
pub(crate) fn probe_share(ip: IpVersion, stream: f64, runs: &[&TrialResult]) -> Option<Caveat> {
    let shares = runs.iter().filter_map(|run| {
        let load = beside::load(&run.trial, TaskKind::Transact)?;
        let (Task::Transact(probe), Some(window)) = (&load.task, load.timing.window()) else { return None };
        // Requests and responses have the same size, so each direction carries the same.
        let payload = probe.request_bytes.get();
        let wire = match probe.net.transport {
            Transport::Tcp => payload + u64::from(tcp_overhead(ip).1),
            Transport::Udp => layer_bytes(Transport::Udp, ip, payload, u32::from(u16::MAX)).2,
        };
        Some(rate(probes_beside(run) * wire * 8, window.measure.get()))
    });
    let probes = shares.fold(0.0, f64::max);
    (probes > stream * PROBE_SHARE).then(|| {
        let text = message!(
            "caveat-probe-share",
            "the requests that time the path took {probes} of it on the wire in each direction, {percent} % as much as the stream, \
             which therefore reached less; measure without --loaded-latency for the throughput alone",
            probes = BitRate::per_second(probes as u64),
            percent = MessageValue::number(probes / stream * 100.0, 0)
        );
        Caveat::new(CaveatKind::ProbeShare, text)
    })
}

/// The doubts about latency under load.
pub(crate) fn doubts(result: &LoadedLatency, runs: &[&TrialResult], idle: &[&TrialResult]) -> Vec<Caveat> {
    let mut found = Vec::new();
    if result.added_ns.p50 < 0 {
        let text = message!(
            "caveat-idle-slower",
            "the idle path answered later than the loaded one: its latency includes the time to wake cores that \
             sleep between requests; compare the loaded latency, or keep the cores awake"
        );
        found.push(Caveat::new(CaveatKind::IdleWakeup, text));
    }
    let pairs = pairs(runs, idle);
    let probes = pairs.iter().flat_map(|pair| pair.idle.iter().chain(&pair.loaded));
    let unsent: u64 = probes.map(|asked| asked.not_sent).sum();
    let due = result.idle_ns.count + result.loaded_ns.count;
    if unsent as f64 > due as f64 * UNSENT_BEARABLE {
        let text = message!(
            "caveat-probes-not-sent",
            "{unsent} of {due} requests that time the path could not be sent when they were due and count as \
             unanswered: the asking host was held up; measure when it is less busy",
            unsent = unsent,
            due = due
        );
        found.push(Caveat::new(CaveatKind::BelowOfferedRate, text));
    }
    found
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::beside::{idle_trial, with_load};
    use crate::transfer::tests::{spec, trial};
    use linerate_model::{EndCounts, StreamTask, TransactTask, Window};
    use linerate_units::{ByteCount, Nanos};

    pub(crate) const MS: u64 = 1_000_000;

    fn probe() -> TransactTask {
        TransactTask::beside(&StreamTask::plain(Transport::Udp, ByteCount::new(1_000)), Transport::Udp)
    }

    pub(crate) fn asked(times_ns: &[u64], failed: u64) -> Transactions {
        let mut latency = Histogram::default();
        times_ns.iter().for_each(|time| latency.record(*time));
        Transactions { completed: times_ns.len() as u64, failed, latency, ..Transactions::default() }
    }

    /// A run of the probe alone, and one beside a load.
    pub(crate) fn run(idle: Transactions, loaded: Transactions) -> (TrialResult, TrialResult) {
        let counts = |asked| {
            let client = EndCounts { transactions: Some(asked), ..EndCounts::default() };
            let server = EndCounts::default();
            Counts::Flows(vec![PathCounts { client, server, forward_loss: None, backward_loss: None }])
        };
        let cell = with_load(spec(), Task::Transact(probe()));
        let alone = idle_trial(&cell).expect("there is a probe");
        let idle = TrialResult { trial: alone, counts: vec![counts(idle)], ..trial(0, 0) };
        let mut beside = TrialResult { trial: cell, ..trial(1_000, 0) };
        beside.counts.push(counts(loaded));
        (idle, beside)
    }

    fn found(runs: &[(TrialResult, TrialResult)]) -> Option<LoadedLatency> {
        let (idle, loaded): (Vec<_>, Vec<_>) = runs.iter().map(|(idle, loaded)| (idle, loaded)).unzip();
        loaded_latency(Transport::Udp, &loaded, &idle)
    }

    fn near(value: f64, truth: f64) -> bool {
        (value - truth).abs() <= truth.abs() * 2e-3
    }

    /// RFC 6349 has the example of 25 ms that grow to 32 ms: a buffer delay of 28 %.
    #[test]
    fn the_figures_are_those_of_their_sources() {
        let result = found(&[run(asked(&[25 * MS; 100], 0), asked(&[32 * MS; 100], 0))]).expect("timed");
        assert!(near(result.buffer_delay_percent, 28.0), "{}", result.buffer_delay_percent);
        assert!(near(result.added_ns.p50 as f64, 7e6) && near(result.added_ns.p99 as f64, 7e6), "{result:?}");
        // 60 s / 25 ms and 60 s / 32 ms.
        assert!(near(result.rpm.idle, 2_400.0) && near(result.rpm.loaded, 1_875.0), "{:?}", result.rpm);
        assert_eq!(result.grade, DelayGrade::A);
    }

    #[test]
    fn round_trips_a_minute_leave_out_the_slowest_twentieth() {
        let mut times = vec![20 * MS; 95];
        times.extend([900 * MS; 5]);
        let result = found(&[run(asked(&[20 * MS], 0), asked(&times, 0))]).expect("timed");
        assert!(near(result.rpm.loaded, 3_000.0), "{:?}", result.rpm);
        // The mean has them.
        assert!(near(result.buffer_delay_percent, 220.0), "{}", result.buffer_delay_percent);
    }

    #[test]
    fn what_got_no_answer_is_the_slowest_of_all() {
        let loaded = asked(&[20 * MS; 95], 5);
        let result = found(&[run(asked(&[20 * MS; 100], 0), loaded.clone())]).expect("timed");
        assert_eq!((result.idle_unanswered, result.loaded_unanswered, result.loaded_ns.count), (0, 5, 100));
        assert_eq!(result.added_ns.p50, 0);
        assert!(near(result.added_ns.p99 as f64, 980e6), "{:?}", result.added_ns);
        // With more than half unanswered the median is theirs.
        let result = found(&[run(asked(&[20 * MS; 100], 0), asked(&[20 * MS; 95], 105))]).expect("timed");
        assert_eq!(result.grade, DelayGrade::F);
        // Where an answer took longer than the engine waits otherwise, no answer is no quicker.
        let mut slow = asked(&[3_000 * MS; 50], 50);
        slow.not_sent = 50;
        let result = found(&[run(asked(&[20 * MS], 0), slow)]).expect("timed");
        assert!(near(result.loaded_ns.max as f64, 3e9) && result.loaded_unanswered == 100, "{:?}", result.loaded_ns);
    }

    #[test]
    fn runs_are_merged_and_told_apart() {
        let runs = [(10, 110), (10, 130), (10, 120)]
            .map(|(idle, loaded)| run(asked(&[idle * MS; 50], 0), asked(&[loaded * MS; 50], 0)));
        let result = found(&runs).expect("timed");
        let of_runs = &result.added_ns.p50_runs;
        assert_eq!((result.loaded_ns.count, of_runs.runs), (150, 3));
        assert!(near(of_runs.median, 110e6) && near(of_runs.low, 100e6) && near(of_runs.high, 120e6), "{of_runs:?}");
    }

    #[test]
    fn nothing_timed_is_no_figure() {
        assert_eq!(loaded_latency(Transport::Udp, &[&trial(1_000, 0)], &[]), None);
        assert_eq!(found(&[run(asked(&[MS], 0), asked(&[], 0))]), None);
    }

    #[test]
    fn a_path_that_is_quicker_under_load_is_doubted() {
        let runs = [run(asked(&[90_000; 50], 0), asked(&[40_000; 50], 0))];
        let result = found(&runs).expect("timed");
        assert_eq!(result.grade, DelayGrade::APlus);
        let kinds: Vec<_> =
            doubts(&result, &[&runs[0].1], &[&runs[0].0]).into_iter().map(|caveat| caveat.kind).collect();
        assert_eq!(kinds, [CaveatKind::IdleWakeup]);
    }

    #[test]
    fn probes_that_take_a_visible_share_of_the_path_have_a_caveat() {
        let (_, loaded) = run(asked(&[MS; 98], 0), asked(&[MS; 98], 0));
        let seconds = loaded.trial.loads[1].timing.window().expect("a window").measure.as_secs_f64();
        // 64 bytes of payload with 28 of headers in 38 of Ethernet.
        let taken = 98.0 * 130.0 * 8.0 / seconds;
        assert_eq!(probe_share(IpVersion::V4, taken * 101.0, &[&loaded]), None);
        let caveat = probe_share(IpVersion::V4, taken * 4.0, &[&loaded]).expect("a fifth of the path");
        assert!(caveat.text.contains("25 % as much as the stream"), "{}", caveat.text);
    }

    #[test]
    fn requests_that_could_not_be_sent_are_told() {
        let mut loaded = asked(&[MS; 98], 0);
        loaded.not_sent = 2;
        let runs = [run(asked(&[MS; 100], 0), loaded)];
        let found = doubts(&found(&runs).expect("timed"), &[&runs[0].1], &[&runs[0].0]);
        assert!(found.iter().any(|caveat| caveat.text.starts_with("2 of 200 ")), "{found:?}");
    }

    #[test]
    fn the_probes_window_lies_within_the_loads() {
        assert_eq!(idle_trial(&spec()), None);
        let cell = with_load(spec(), Task::Transact(probe()));
        let load = cell.window().expect("a window");
        let Window { warmup, measure } = cell.loads[1].timing.window().expect("a window");
        // UDP rests for 100 ms between warm-up and window.
        assert!(warmup.longest() > load.warmup.longest() + Nanos::from_millis(100));
        assert!(warmup.longest() + measure < load.longest());
        let idle = idle_trial(&cell).expect("there is a probe");
        assert_eq!(idle.window().map(|window| window.measure), Some(measure), "both phases weigh the same");
        assert_eq!((idle.task(), idle.loads.len()), (&cell.loads[1].task, 1));
        assert_eq!((idle.name.as_str(), idle.proves), ("udp 1000 idle", None));
    }
}
