//! Figures and charts of a trial under way, from the reports of its hosts.

use crate::blocks::chart::SERIES;
use crate::figures::{nanos, per_second, plain, rate};
use crate::forms::markup;
use crate::language::Language;
use crate::said;
use crate::sections::over_time::attempt::Attempt;
use crate::sections::over_time::chart::{Line, OverTime};
use crate::sections::over_time::course::{Course, CourseStep};
use crate::sections::over_time::time_axis::TimeAxis;
use crate::subjects::live;
use crate::subjects::live::{LiveRate, ValueKind};
use linerate_model::Text;
use linerate_model::text;
use linerate_model::{IntervalReport, Span, TaskKind, Transport, TrialState};
use linerate_units::Nanos;
use maud::{Markup, html};

/// A trial under way with its repeats so far.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveTrial {
    /// The trial's name.
    pub name: String,
    /// The task that is measured.
    pub task: TaskKind,
    /// TCP or UDP; `None` for frames and copies.
    pub transport: Option<Transport>,
    /// Attempts, in the order they ran. The last may still run.
    pub attempts: Vec<LiveAttempt>,
}

/// An attempt at a trial under way.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveAttempt {
    /// Number of the run, from 1. A spoilt attempt and the one that repeats it have the same.
    pub run: u32,
    /// State of the attempt.
    pub state: TrialState,
    /// Reason why it does not count, if it does not.
    pub reason: Option<String>,
    /// Reports of its intervals, in the order of time.
    pub intervals: Vec<IntervalReport>,
}

impl LiveTrial {
    /// Returns the latest interval, `None` before the first of the attempt that runs.
    pub fn latest(&self) -> Option<&IntervalReport> {
        self.attempts.last()?.intervals.last()
    }
}

/// Returns the present figures, each with its unit: `941 Mbit/s`, `3 retransmits`. Empty before the first interval.
pub fn live_figures(lang: Language, trial: &LiveTrial) -> Vec<String> {
    let Some(now) = trial.latest() else { return Vec::new() };
    let main = match live(trial.task).rate {
        LiveRate::Payload if now.is_of_sender_alone() => {
            rate(now.sent_bps, "bit/s").map(|rate| said!(lang, "live-sent", "{rate} sent", rate = rate))
        }
        LiveRate::Payload => rate(now.received_bps, "bit/s"),
        LiveRate::Files => rate(now.received_bps / 8.0, "B/s"),
        LiveRate::Frames => {
            per_second(now.operations_per_s).map(|count| said!(lang, "live-frames", "{count} frames/s", count = count))
        }
        LiveRate::Requests => {
            per_second(now.operations_per_s).map(|count| said!(lang, "live-operations", "{count}/s", count = count))
        }
    };
    let busiest =
        now.hosts.iter().filter_map(|host| Some((host.busiest_thread?, &host.host))).max_by_key(|(share, _)| *share);
    let further = [
        now.warmup.then(|| said!(lang, "live-warm-up", "warm-up, excluded from results")),
        (now.retransmits > 0).then(|| {
            said!(
                lang,
                "live-retransmits",
                if count == 1 { "1 retransmit" } else { "{count} retransmits" },
                count = now.retransmits
            )
        }),
        (now.lost > 0).then(|| {
            said!(
                lang,
                "live-lost",
                if count == 1 { "1 datagram lost" } else { "{count} datagrams lost" },
                count = now.lost
            )
        }),
        now.srtt.map(|srtt| said!(lang, "live-round-trip", "round-trip time {srtt}", srtt = nanos(srtt.get()))),
        now.p99.map(|p99| said!(lang, "live-response", "p99 {p99}", p99 = nanos(p99.get()))),
        busiest.map(|(share, host)| {
            said!(
                lang,
                "live-busiest-thread",
                "busiest thread {share} % of a core (host {host})",
                share = share,
                host = plain(&host.0)
            )
        }),
    ];
    main.into_iter().chain(further.into_iter().flatten()).collect()
}

/// The charts of a trial under way: rate, what was lost or sent again, times. Empty before there is something to draw.
pub fn live_charts(lang: Language, trial: &LiveTrial) -> Markup {
    let attempts: Vec<Attempt<'_>> = trial.attempts.iter().map(|attempt| named(lang, attempt)).collect();
    let of = LiveCharts { lang, trial, attempts: &attempts };
    let sent_only = trial.latest().is_some_and(IntervalReport::is_of_sender_alone);
    let mut charts: Vec<OverTime<'_>> = Vec::new();
    for chart in live(trial.task).charts(trial.transport) {
        let what =
            if sent_only && chart.what == PAYLOAD { text!("live-payload-sent", "payload sent") } else { chart.what };
        charts.push(of.chart(what, chart.kind, [("", chart.value)]));
    }
    charts.push(of.chart(
        text!("over-time-srtt", "smoothed round-trip time"),
        ValueKind::Nanos,
        [("", |interval| time(interval.srtt))],
    ));
    let times: [(&str, Told); 2] = [("p50", |interval| time(interval.p50)), ("p99", |interval| time(interval.p99))];
    charts.push(of.chart(text!("over-time-response", "response time"), ValueKind::Nanos, times));
    let charts: Vec<OverTime<'_>> = charts.into_iter().map(OverTime::cut).collect();
    let has_window = charts.iter().any(|chart| chart.has_window);
    let Some(time) = TimeAxis::over(0, has_window, charts.iter().filter_map(OverTime::extent)) else { return html! {} };
    let charts = charts.into_iter().filter_map(|chart| chart.chart(lang, &time));
    html! { @for chart in charts { (markup::figure(lang, &chart)) } }
}

/// What the chart of a stream's payload shows.
const PAYLOAD: &Text = text!("charts-axis-payload", "payload at the receiver");

/// Value of an interval that is drawn, `None` if it was not reported.
type Told = fn(&IntervalReport) -> Option<f64>;

fn time(told: Option<Nanos>) -> Option<f64> {
    told.map(|time| time.get() as f64)
}

/// An attempt as charts name and colour it.
fn named(lang: Language, attempt: &LiveAttempt) -> Attempt<'static> {
    let run = attempt.run;
    let counts = !matches!(attempt.state, TrialState::Spoilt | TrialState::Failed);
    let class = if counts { SERIES[run.saturating_sub(1) as usize % SERIES.len()] } else { "spoilt" };
    let name = match attempt.reason.as_deref().map(|reason| plain(reason.trim_end_matches('.'))) {
        Some(reason) if !counts => {
            said!(lang, "live-run-not-counted", "run {run}, not counted: {reason}", run = run, reason = reason)
        }
        _ => said!(lang, "over-time-run", "run {run}", run = run),
    };
    Attempt::under_way(class, name, counts)
}

/// Context of the charts of a trial under way.
struct LiveCharts<'a> {
    lang: Language,
    trial: &'a LiveTrial,
    /// Attempts with their names and colours.
    attempts: &'a [Attempt<'a>],
}

impl<'a> LiveCharts<'a> {
    /// A chart with a line for each part of each attempt.
    fn chart<const PARTS: usize>(
        &self,
        what: &'static Text,
        kind: ValueKind,
        parts: [(&str, Told); PARTS],
    ) -> OverTime<'a> {
        let what = self.lang.text(what);
        let attempts = || self.attempts.iter().zip(&self.trial.attempts);
        let of_all = |length: fn(&LiveAttempt) -> i64| self.trial.attempts.iter().map(length).max().unwrap_or(0);
        // Until a warm-up has ended, time counts from the start.
        let has_window = live(self.trial.task).has_window && of_all(measured_us) > 0;
        let window_us = if has_window { of_all(measured_us) } else { of_all(end_us) };
        let line = |(part, (_, of)): (usize, &(&str, Told))| {
            let line = move |(attempt, reported): (&'a Attempt<'a>, &LiveAttempt)| {
                let zero_us = if has_window { end_us(reported) - measured_us(reported) } else { 0 };
                Line { attempt, part, course: course(reported, *of, zero_us, window_us) }
            };
            attempts().map(line).collect::<Vec<_>>()
        };
        OverTime {
            title: said!(
                self.lang,
                "over-time-title",
                "{name}: {what} over time",
                name = plain(&self.trial.name),
                what = what
            ),
            what,
            kind,
            limit: None,
            parts: if PARTS > 1 { parts.iter().map(|(name, _)| (*name).to_owned()).collect() } else { Vec::new() },
            has_window,
            lines: parts.iter().enumerate().flat_map(line).filter(|line| !line.course.steps.is_empty()).collect(),
        }
    }
}

/// Returns how long an attempt has run, in microseconds.
fn end_us(attempt: &LiveAttempt) -> i64 {
    attempt.intervals.last().map_or(0, |interval| us(interval.to))
}

/// Returns how long it has run since its warm-up, in microseconds.
fn measured_us(attempt: &LiveAttempt) -> i64 {
    let warmup = attempt.intervals.iter().rev().find(|interval| interval.warmup);
    end_us(attempt) - warmup.map_or(0, |interval| us(interval.to))
}

fn us(time: Nanos) -> i64 {
    (time.get() / 1_000) as i64
}

/// An attempt's values, counted from a moment at which a window of that length opened.
fn course(attempt: &LiveAttempt, of: Told, zero_us: i64, window_us: i64) -> Course {
    let step = |interval: &IntervalReport| {
        let span = Span { from_us: us(interval.from) - zero_us, to_us: us(interval.to) - zero_us };
        // A host that reported nothing did not count zero.
        let value = of(interval).filter(|value| value.is_finite() && !interval.is_unknown(*value))?;
        if span.to_us <= span.from_us {
            return None;
        }
        Some(CourseStep { span, value })
    };
    let steps = attempt.intervals.iter().filter_map(step).collect();
    Course { steps, window: Span { from_us: 0, to_us: window_us } }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(second: u64, warmup: bool) -> IntervalReport {
        IntervalReport {
            from: Nanos::from_secs(second),
            to: Nanos::from_secs(second + 1),
            warmup,
            received_bps: 1e9 + second as f64 * 1e6,
            retransmits: second,
            srtt: Some(Nanos::from_millis(7)),
            ..IntervalReport::default()
        }
    }

    fn trial(attempts: Vec<LiveAttempt>) -> LiveTrial {
        LiveTrial { name: "<tcp>".into(), task: TaskKind::Stream, transport: Some(Transport::Tcp), attempts }
    }

    fn attempt(run: u32, state: TrialState, warmup: u64, seconds: u64) -> LiveAttempt {
        let intervals = (0..seconds).map(|second| interval(second, second < warmup)).collect();
        LiveAttempt { run, state, reason: Some("too <busy>.".into()), intervals }
    }

    #[test]
    fn time_counts_from_the_end_of_the_warm_up() {
        let told = attempt(1, TrialState::Begins, 2, 5);
        let s = 1_000_000;
        assert_eq!((end_us(&told), measured_us(&told)), (5 * s, 3 * s));
        let course = course(&told, |interval| Some(interval.received_bps), 2 * s, 3 * s);
        let spans: Vec<(i64, i64)> = course.steps.iter().map(|step| (step.span.from_us, step.span.to_us)).collect();
        assert_eq!(spans, [(-2 * s, -s), (-s, 0), (0, s), (s, 2 * s), (2 * s, 3 * s)]);
        let range = course.range().expect("three steps in the window");
        assert_eq!((range.lowest, range.highest, range.steps), (1.002e9, 1.004e9, 3));
    }

    #[test]
    fn a_warm_up_is_drawn_from_the_start_until_a_window_has_opened() {
        let lang = Language::English;
        let drawn = |attempts| live_charts(lang, &trial(attempts)).into_string();
        let warming = drawn(vec![attempt(1, TrialState::Begins, 2, 2)]);
        assert!(warming.contains("seconds from the start") && !warming.contains("excluded"), "{warming}");
        let open = drawn(vec![attempt(1, TrialState::Begins, 2, 4)]);
        assert!(open.contains("seconds from the opening of the window") && open.contains("excluded"), "{open}");
        let next = drawn(vec![attempt(1, TrialState::Counted, 2, 4), attempt(2, TrialState::Begins, 2, 2)]);
        assert_eq!(next.matches("path class=\"run\"").count(), 12, "beside the first, in the time before its window");
    }

    #[test]
    fn each_attempt_has_a_line_and_a_spoilt_one_its_reason() {
        let lang = Language::English;
        assert_eq!(live_charts(lang, &trial(vec![attempt(1, TrialState::Begins, 0, 0)])).into_string(), "");
        let attempts = vec![
            attempt(1, TrialState::Counted, 1, 4),
            attempt(2, TrialState::Spoilt, 1, 4),
            attempt(2, TrialState::Begins, 1, 2),
        ];
        let drawn = live_charts(lang, &trial(attempts)).into_string();
        // Rate, retransmits and round-trip time, each for wide and for narrow screens.
        assert_eq!((drawn.matches("<svg").count(), drawn.matches("path class=\"run\"").count()), (6, 18));
        assert!(drawn.contains("run 2, not counted: too &lt;busy&gt;") && !drawn.contains("<tcp>"), "{drawn}");
        let udp = LiveTrial { transport: Some(Transport::Udp), ..trial(vec![attempt(1, TrialState::Begins, 0, 2)]) };
        assert!(!live_charts(lang, &udp).into_string().contains("retransmits"));
    }

    #[test]
    fn figures_are_those_of_the_latest_interval() {
        let lang = Language::English;
        assert!(live_figures(lang, &trial(vec![attempt(1, TrialState::Begins, 0, 0)])).is_empty());
        let now = trial(vec![attempt(1, TrialState::Counted, 0, 9), attempt(2, TrialState::Begins, 1, 2)]);
        assert_eq!(live_figures(lang, &now), ["1.00 Gbit/s", "1 retransmit", "round-trip time 7 ms"]);
        let mut sending = now.clone();
        let latest = sending.attempts.last_mut().and_then(|attempt| attempt.intervals.last_mut()).unwrap();
        let host = linerate_model::HostLoad { host: "a".into(), busiest_thread: None };
        (latest.received_bps, latest.sent_bps, latest.hosts) = (0.0, 1e8, vec![host.clone()]);
        assert_eq!(live_figures(lang, &sending)[0], "100 Mbit/s sent");
        assert!(live_charts(lang, &sending).into_string().contains("payload sent"));
        // Two hosts told, so nothing arrived.
        let latest = sending.attempts.last_mut().and_then(|attempt| attempt.intervals.last_mut()).unwrap();
        latest.hosts.push(host);
        assert_eq!(live_figures(lang, &sending)[0], "0 bit/s");
        let warming = trial(vec![attempt(2, TrialState::Begins, 1, 1)]);
        assert!(live_figures(lang, &warming).contains(&"warm-up, excluded from results".to_owned()));
    }
}
