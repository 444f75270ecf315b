//! The course of what a verdict weighs, for its readers: the charted quantities, and what the hosts saw of themselves meanwhile.

use super::attempt::{self, Sampled};
use super::chart::{Line, OverTime};
use super::course::Course;
use super::{LoadCharts, MEASURED};
use crate::figures::plain;
use crate::language::Language;
use crate::said;
use crate::subjects::live::ValueKind;
use linerate_model::Text;
use linerate_model::text;
use linerate_model::{HostName, Measurement, Record, Series, SeriesQuantity as Quantity};

/// Window of a run, quantity by quantity.
pub(crate) struct EvidenceRun {
    /// Number of the run.
    pub(crate) run: String,
    /// Length of its window, in seconds.
    pub(crate) seconds: f64,
    pub(crate) rows: Vec<CourseRow>,
}

/// A quantity over a window.
pub(crate) struct CourseRow {
    /// Name of the quantity, with its host if several have one.
    pub(crate) what: String,
    /// Values in equal parts of the window, as shares of the highest; `None` if nothing was measured.
    pub(crate) shares: Vec<Option<f64>>,
    /// The lowest and the highest of the sampled values, with their units.
    pub(crate) lowest: String,
    pub(crate) highest: String,
}

/// Returns the median run by the first quantity that is charted, with `values` values of each quantity; `None` if
/// nothing was sampled. Quantities that were zero throughout are left out.
pub(crate) fn evidence(lang: Language, record: &Record, result: &Measurement, values: usize) -> Option<EvidenceRun> {
    let attempts = attempt::of_trial(lang, record, &result.name);
    let trial = record.trials.iter().map(|attempt| &attempt.trial).find(|trial| trial.name == result.name)?;
    let of = LoadCharts { lang, result, attempts: &attempts, load: MEASURED };
    let mut all = of.task(record, trial.task());
    let middle = middle_run(&all)?;
    let chosen = middle.attempt;
    let window = middle.course.window;
    all.extend(of.at_hosts());
    let rows = all.iter().flat_map(|one| {
        let lines = one.lines.iter().filter(|line| std::ptr::eq(line.attempt, chosen));
        lines.filter_map(|line| CourseRow::of(one, line, values))
    });
    Some(EvidenceRun { run: chosen.name.clone(), seconds: window.seconds(), rows: rows.collect() })
}

/// The run in the middle of those that count, by the first chart.
pub(crate) fn middle_run<'b, 'a>(charts: &'b [OverTime<'a>]) -> Option<&'b Line<'a>> {
    let counted = charts.first()?.lines.iter().filter(|line| line.attempt.is_counted && line.part == 0);
    let mut runs: Vec<(&Line<'_>, f64)> =
        counted.filter_map(|line| Some((line, line.course.range()?.median))).collect();
    runs.sort_by(|one, other| one.1.total_cmp(&other.1));
    runs.get(runs.len().checked_sub(1)? / 2).map(|(line, _)| *line)
}

impl CourseRow {
    fn of(chart: &OverTime<'_>, line: &Line<'_>, values: usize) -> Option<Self> {
        let range = line.course.range().filter(|range| range.highest > 0.0)?;
        let part = chart.parts.get(line.part).map_or(String::new(), |part| format!(" {part}"));
        Some(Self {
            what: format!("{}{part}", chart.what),
            shares: line.course.in_parts(values).map(|value| Some(value? / range.highest)).collect(),
            lowest: chart.kind.show(range.lowest),
            highest: chart.kind.show(range.highest),
        })
    }
}

impl<'a> LoadCharts<'a> {
    /// Returns samples that hosts took of themselves: congestion windows, queues of interfaces, the busiest core, and
    /// the core with most soft interrupts.
    fn at_hosts(self) -> Vec<OverTime<'a>> {
        let tracked = |quantity| self.hosts(move |sampled| sampled.series.tracks_of(quantity).next().is_some());
        let each = |hosts: Vec<&'a HostName>, what: &'static Text, kind, of: fn(Sampled<'a>) -> Option<Course>| {
            hosts.into_iter().map(move |host| {
                let lines = self.attempts.iter().filter_map(|attempt| self.line_of(attempt, host, 0, of)).collect();
                let chart = self.of(what, kind, lines);
                let what = said!(
                    self.lang,
                    "over-time-on-host",
                    "{title}, host {host}",
                    title = chart.what,
                    host = plain(&host.0)
                );
                OverTime { what, ..chart }
            })
        };
        let windows = each(
            tracked(Quantity::CongestionWindow),
            text!("over-time-congestion-window", "congestion window, segments"),
            ValueKind::Segments,
            |sampled| sampled.level(Quantity::CongestionWindow),
        );
        let queues = each(
            tracked(Quantity::QdiscBacklog),
            text!("over-time-backlog", "queue of the interface"),
            ValueKind::Bytes,
            |sampled| {
                let values = summed(sampled.series, Quantity::QdiscBacklog);
                Some(Course::level(sampled.series, sampled.offset_us, &values))
            },
        );
        let busy = each(
            tracked(Quantity::CoreUser),
            text!("over-time-busiest-core", "busiest core"),
            ValueKind::Share,
            |sampled| Some(of_cores(sampled, &[Quantity::CoreUser, Quantity::CoreSystem, Quantity::CoreSoftirq])),
        );
        let interrupts = each(
            tracked(Quantity::CoreSoftirq),
            text!("over-time-softirq", "soft interrupts of a core"),
            ValueKind::Share,
            |sampled| Some(of_cores(sampled, &[Quantity::CoreSoftirq])),
        );
        windows.chain(queues).chain(busy).chain(interrupts).collect()
    }
}

/// Returns the sum of all tracks of a quantity.
pub(crate) fn summed(series: &Series, quantity: Quantity) -> Vec<u64> {
    let mut sums = vec![0; series.at_us.len()];
    for track in series.tracks_of(quantity) {
        sums.iter_mut().zip(&track.values).for_each(|(sum, value)| *sum += value);
    }
    sums
}

/// In each interval the share of it that the core with most of these times spent so.
fn of_cores(sampled: Sampled<'_>, times: &[Quantity]) -> Course {
    let mut highest = vec![0; sampled.series.at_us.len()];
    for core in sampled.series.tracks_of(times[0]) {
        let mut micros = vec![0; highest.len()];
        let tracks = times.iter().flat_map(|time| sampled.series.tracks_of(*time));
        for track in tracks.filter(|track| track.subject == core.subject) {
            micros.iter_mut().zip(&track.values).for_each(|(sum, value)| *sum += value);
        }
        highest.iter_mut().zip(micros).for_each(|(highest, value): (&mut u64, u64)| *highest = value.max(*highest));
    }
    // Microseconds a second.
    Course::per_second(sampled.series, sampled.offset_us, Some(&highest)).times(1e-6)
}
