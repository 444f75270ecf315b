//! Latency under load: how a trial is probed, and what the probes amount to.

use crate::measure::latency_of;
use crate::statistics::summary;
use linerate_model::{
    AddedDelay, Caveat, CaveatKind, DelayGrade, Histogram, LoadedLatency, ProbeResult, RoundTripsPerMinute, Timing,
    TransactSpec, Transactions, TrialResult, TrialSpec, Workload,
};
use linerate_units::Nanos;

/// Probes on the idle path begin to count after this: the first ones find cold caches.
const IDLE_WARMUP: Nanos = Nanos::from_millis(200);
/// Probes beside the load count from so long after its warm-up on, ...
const LATER: Nanos = Nanos::from_millis(150);
/// ... and until so long before its end: UDP rests for 100 ms before its window, and the two trials' starts differ by what
/// a request to an agent takes.
const EARLIER: Nanos = Nanos::from_millis(50);
/// Of the round trips of a minute the slowest twentieth is left out: TMP of draft-ietf-ippm-responsiveness-04 section 4.2.
const TRIMMED: f64 = 0.95;
const MINUTE_NS: f64 = 60e9;
/// Above this share, requests that this host could not send in time are worth a word.
const UNSENT_BEARABLE: f64 = 0.005;

/// The trials that time the path of another one.
#[derive(Debug, Clone, PartialEq)]
pub struct Probing {
    /// Run first, alone.
    pub idle: TrialSpec,
    /// Run beside the load, started with it: its window lies within that of the load.
    pub loaded: TrialSpec,
}

impl Probing {
    /// How `spec` is probed; none if it is not to be.
    pub fn of(spec: &TrialSpec) -> Option<Self> {
        let probe = spec.probe.as_ref()?;
        let measure = spec.timing.measure - (LATER + EARLIER);
        let trial = |warmup| TrialSpec {
            workload: Workload::Transact(probe.clone()),
            timing: Timing { warmup, measure },
            probe: None,
            ..spec.clone()
        };
        Some(Self { idle: trial(IDLE_WARMUP), loaded: trial(spec.timing.warmup + LATER) })
    }
}

/// Puts together what the two trials counted.
pub fn probed(idle: &TrialResult, loaded: &TrialResult) -> ProbeResult {
    let asked = |trial: &TrialResult| trial.paths.iter().filter_map(|path| path.opener.transactions.clone()).collect();
    ProbeResult { idle: asked(idle), loaded: asked(loaded) }
}

/// What the probes of all runs amount to; none where none were timed.
pub(crate) fn loaded_latency(probe: &TransactSpec, runs: &[&TrialResult]) -> Option<LoadedLatency> {
    let probes: Vec<&ProbeResult> = runs.iter().filter_map(|run| run.probe.as_ref()).collect();
    let (idle, idle_unanswered) = timed(probes.iter().flat_map(|probe| &probe.idle));
    let (loaded, loaded_unanswered) = timed(probes.iter().flat_map(|probe| &probe.loaded));
    if idle.count() == 0 || loaded.count() == 0 {
        return None;
    }
    let p50_runs = probes.iter().map(|probe| added(&timed(&probe.idle).0, &timed(&probe.loaded).0, 0.5) as f64);
    let p50 = added(&idle, &loaded, 0.5);
    // The buffer delay of RFC 6349; the average is that of all requests, those without an answer included.
    let baseline = idle.quantile(0.5) as f64;
    Some(LoadedLatency {
        transport: probe.transport,
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
fn timed<'a>(all: impl IntoIterator<Item = &'a Transactions>) -> (Histogram, u64) {
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

/// The doubts about latency under load.
pub(crate) fn doubts(result: &LoadedLatency, runs: &[&TrialResult]) -> Vec<Caveat> {
    let mut found = Vec::new();
    if result.added_ns.p50 < 0 {
        let text = "the idle path answered later than the loaded one: cores that sleep between requests take time to wake, and \
                    the idle latency has it; compare the loaded latency, or keep the cores awake";
        found.push(Caveat::new(CaveatKind::IdleWakeup, text));
    }
    let probes =
        runs.iter().filter_map(|run| run.probe.as_ref()).flat_map(|probe| probe.idle.iter().chain(&probe.loaded));
    let unsent: u64 = probes.map(|asked| asked.not_sent).sum();
    let due = result.idle_ns.count + result.loaded_ns.count;
    if unsent as f64 > due as f64 * UNSENT_BEARABLE {
        let text = format!(
            "{unsent} of {due} requests that time the path could not be sent when they were due and count as unanswered: the \
             asking host was held up; measure when it is less busy"
        );
        found.push(Caveat::new(CaveatKind::BelowOfferedRate, text));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::tests::{spec, trial};
    use linerate_model::{StreamSpec, Transport};
    use linerate_units::ByteCount;

    const MS: u64 = 1_000_000;

    fn probe() -> TransactSpec {
        TransactSpec::beside(&StreamSpec::plain(Transport::Udp, ByteCount::new(1_000)), Transport::Udp)
    }

    fn asked(times_ns: &[u64], failed: u64) -> Transactions {
        let mut latency = Histogram::default();
        times_ns.iter().for_each(|time| latency.record(*time));
        Transactions { completed: times_ns.len() as u64, failed, latency, ..Transactions::default() }
    }

    fn run(idle: Transactions, loaded: Transactions) -> TrialResult {
        TrialResult { probe: Some(ProbeResult { idle: vec![idle], loaded: vec![loaded] }), ..trial(1_000, 0) }
    }

    fn found(runs: &[TrialResult]) -> Option<LoadedLatency> {
        loaded_latency(&probe(), &runs.iter().collect::<Vec<_>>())
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
        assert_eq!(found(&[trial(1_000, 0)]), None);
        assert_eq!(found(&[run(asked(&[MS], 0), asked(&[], 0))]), None);
    }

    #[test]
    fn a_path_that_is_quicker_under_load_is_doubted() {
        let runs = [run(asked(&[90_000; 50], 0), asked(&[40_000; 50], 0))];
        let result = found(&runs).expect("timed");
        assert_eq!(result.grade, DelayGrade::APlus);
        let kinds: Vec<_> = doubts(&result, &[&runs[0]]).into_iter().map(|caveat| caveat.kind).collect();
        assert_eq!(kinds, [CaveatKind::IdleWakeup]);
    }

    #[test]
    fn requests_that_could_not_be_sent_are_told() {
        let mut loaded = asked(&[MS; 98], 0);
        loaded.not_sent = 2;
        let runs = [run(asked(&[MS; 100], 0), loaded)];
        let found = doubts(&found(&runs).expect("timed"), &[&runs[0]]);
        assert!(found.iter().any(|caveat| caveat.text.starts_with("2 of 200 ")), "{found:?}");
    }

    #[test]
    fn the_probes_window_lies_within_the_loads() {
        assert_eq!(Probing::of(&spec()), None);
        let spec = TrialSpec { probe: Some(probe()), ..spec() };
        let probing = Probing::of(&spec).expect("probed");
        let load = spec.timing;
        let Timing { warmup, measure } = probing.loaded.timing;
        // UDP rests for 100 ms between warm-up and window.
        assert!(warmup > load.warmup + Nanos::from_millis(100));
        assert!(warmup + measure < load.warmup + load.measure);
        assert_eq!(probing.idle.timing.measure, measure, "both phases weigh the same");
        assert_eq!((probing.idle.paths, probing.idle.probe), (spec.paths, None));
    }
}
