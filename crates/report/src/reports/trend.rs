//! The figure of the same command from run to run: where its level changed, and what else changed then.

use crate::blocks::axis::{Axis, Scale};
use crate::blocks::chart::{Chart, SERIES};
use crate::blocks::columns;
use crate::blocks::drawing::{Drawing, Point, Series};
use crate::blocks::table::Table;
use crate::column;
use crate::figures::values::{extremes, range, unit_of, value};
use crate::figures::{moment_short, plain};
use crate::forms::markup::figure;
use crate::language::Language;
use crate::said;
use linerate_method::statistics::{ChangePoint, FEWEST, change_points, median};
use linerate_model::{Headline, MeasureUnit};
use maud::Markup;
use std::collections::BTreeMap;

/// From this ratio of the highest to the lowest figure on, the axis is logarithmic.
const DECADES: f64 = 30.0;
/// Changes of software that are drawn and listed, the newest.
const MOST_MARKS: usize = 20;

/// A run as a trend shows it.
#[derive(Debug, Clone)]
pub struct TrendRun {
    /// Start of the run, in nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// The figure that stands for it.
    pub headline: Headline,
    /// The version of linerate that measured it.
    pub version: String,
    /// The operating system of each host, by the host's name.
    pub systems: BTreeMap<String, String>,
}

/// Trend of the runs of a command.
pub struct Trend {
    /// Sentences about it.
    pub answer: String,
    /// The changes of level, the newest first.
    pub changes: Vec<TrendChange>,
    /// Other versions of linerate and of the hosts' systems, the newest first.
    pub software: Vec<String>,
    chart: Option<Chart>,
}

/// A change of level.
#[derive(Debug, Clone, PartialEq)]
pub struct TrendChange {
    /// Index of the last run before it.
    pub before: usize,
    /// Index of the first run after it.
    pub after: usize,
    /// Change in words.
    pub text: String,
}

impl Trend {
    /// Returns the trend of runs, the oldest first. Runs count if their figure is firm and of the kind of the last
    /// one's.
    pub fn of(lang: Language, runs: &[TrendRun]) -> Self {
        let counted = counted(runs);
        let values: Vec<f64> = counted.iter().map(|(_, run)| run.headline.value).collect();
        let changes_found = change_points(&values);
        let levels = Levels::of(&values, &changes_found);
        let mut answer = answer(lang, &counted, &changes_found, &levels);
        if counted.len() < runs.len() {
            answer = format!(
                "{answer} {}",
                said!(
                    lang,
                    "trend-left-out",
                    if runs == 1 {
                        "Left out: one run whose figure is not firm or of another kind."
                    } else {
                        "Left out: {runs} runs whose figure is not firm or of another kind."
                    },
                    runs = runs.len() - counted.len()
                )
            );
        }
        let changes = changes_found.iter().enumerate().rev().map(|(number, change)| {
            let before = counted[change.at - 1];
            let after = counted[change.at];
            let text = said!(
                lang,
                "trend-change",
                "{moment}: {step}, p = {p}.",
                moment = moment_short(after.1.started_unix_ns),
                step = levels.step(number, after.1.headline.unit),
                p = format!("{:.3}", change.p)
            );
            let software = software(before.1, after.1);
            let text = if software.is_empty() {
                text
            } else {
                format!("{text} {}", said!(lang, "trend-with-it", "At the same time: {what}.", what = software))
            };
            TrendChange { before: before.0, after: after.0, text }
        });
        let marks = marks(&counted);
        Self {
            answer,
            changes: changes.collect(),
            software: marks.iter().rev().map(|(_, text)| text.clone()).collect(),
            chart: chart(lang, &counted, &changes_found, &levels, &marks),
        }
    }

    /// The chart with its figures as a table; nothing where there are fewer than two runs.
    pub fn chart(&self, lang: Language) -> Markup {
        self.chart.as_ref().map_or_else(|| maud::html! {}, |chart| figure(lang, chart))
    }
}

/// A run that counts, and its index among all.
type Counted<'a> = (usize, &'a TrendRun);

fn counted(runs: &[TrendRun]) -> Vec<Counted<'_>> {
    let Some(last) = runs.last().map(|run| &run.headline) else { return Vec::new() };
    let counts = |run: &TrendRun| {
        let Headline { firmness, value, .. } = &run.headline;
        run.headline.is_like(last) && firmness.is_firm() && value.is_finite() && *value >= 0.0
    };
    runs.iter().enumerate().filter(|(_, run)| counts(run)).collect()
}

/// The medians between changes, and where each begins and ends.
struct Levels(Vec<(usize, usize, f64)>);

impl Levels {
    fn of(values: &[f64], found: &[ChangePoint]) -> Self {
        let starts: Vec<usize> = std::iter::once(0).chain(found.iter().map(|change| change.at)).collect();
        let ends = starts[1..].iter().copied().chain([values.len()]);
        let level = |(from, to): (usize, usize)| Some((from, to, median(values[from..to].to_vec())?));
        Self(starts.iter().copied().zip(ends).filter_map(level).collect())
    }

    /// `941 Mbit/s → 800 Mbit/s (-15.0 %)`: the change of that number.
    fn step(&self, number: usize, unit: MeasureUnit) -> String {
        let before = self.0[number].2;
        let after = self.0[number + 1].2;
        let share = if before > 0.0 { format!(" ({:+.1} %)", (after / before - 1.0) * 100.0) } else { String::new() };
        format!("{} \u{2192} {}{share}", value(before, unit), value(after, unit))
    }
}

fn answer(lang: Language, counted: &[Counted<'_>], found: &[ChangePoint], levels: &Levels) -> String {
    let (Some((_, first)), Some((_, last))) = (counted.first(), counted.last()) else {
        return said!(lang, "trend-none", "No finished run of this command has a firm figure yet.");
    };
    let Headline { unit, quantity, result, .. } = &last.headline;
    let figure = said!(
        lang,
        "trend-figure",
        "{result}, {quantity}",
        result = plain(result),
        quantity = lang.text(quantity.text())
    );
    let newest = value(last.headline.value, *unit);
    let from = moment_short(first.started_unix_ns);
    let until = moment_short(last.started_unix_ns);
    let (low, high) = extremes(counted.iter().map(|(_, run)| run.headline.value)).unwrap_or_default();
    let between = range(lang, low, high, *unit);
    match (counted.len(), found.last()) {
        (1, _) => said!(
            lang,
            "trend-one",
            "{figure}: one run, {newest} at {moment}. A trend needs more runs: repeat the command.",
            figure = figure,
            newest = newest,
            moment = until
        ),
        (runs, _) if runs < FEWEST => {
            said!(
                lang,
                "trend-few",
                "{figure}: {runs} runs, {between}, the newest {newest}. A change is tested for from {fewest} runs on.",
                figure = figure,
                runs = runs,
                between = between,
                newest = newest,
                fewest = FEWEST
            )
        }
        (runs, None) => {
            let middle = levels.0.first().map(|(.., level)| value(*level, *unit)).unwrap_or_default();
            said!(
                lang,
                "trend-same",
                "{figure}: no change of level in {runs} runs since {from}. Median {median}, {between}.",
                figure = figure,
                runs = runs,
                from = from,
                median = middle,
                between = between
            )
        }
        (runs, Some(change)) => {
            let step = levels.step(found.len() - 1, *unit);
            let moment = moment_short(counted[change.at].1.started_unix_ns);
            let changes = found.len();
            said!(
                lang,
                "trend-changed",
                if changes == 1 {
                    "{figure}: the level changed at {moment}, {step}. This is the only change in {runs} runs since \
                     {from}."
                } else {
                    "{figure}: the level changed at {moment}, {step}. This is the last of {changes} changes in {runs} \
                     runs since {from}."
                },
                figure = figure,
                moment = moment,
                step = step,
                changes = changes,
                runs = runs,
                from = from
            )
        }
    }
}

/// Returns the differences in the software of two runs: `linerate 0.1.0 → 0.2.0, a: Linux 6.1 → Linux 6.12`.
fn software(before: &TrendRun, after: &TrendRun) -> String {
    let arrow = |name: &str, was: &str, is: &str| format!("{name} {} \u{2192} {}", plain(was), plain(is));
    let versions = (before.version != after.version).then(|| arrow("linerate", &before.version, &after.version));
    let systems = after.systems.iter().filter_map(|(host, is)| {
        let was = before.systems.get(host).filter(|was| *was != is)?;
        Some(arrow(&format!("{}:", plain(host)), was, is))
    });
    versions.into_iter().chain(systems).collect::<Vec<_>>().join(", ")
}

/// The newest changes of software: the position of the run after each, and what changed.
fn marks(counted: &[Counted<'_>]) -> Vec<(usize, String)> {
    let pairs = counted.windows(2).zip(1..);
    let changed = pairs.filter_map(|(pair, at)| {
        let what = software(pair[0].1, pair[1].1);
        (!what.is_empty()).then(|| (at, format!("{}: {what}", moment_short(pair[1].1.started_unix_ns))))
    });
    let all: Vec<_> = changed.collect();
    all[all.len().saturating_sub(MOST_MARKS)..].to_vec()
}

fn chart(
    lang: Language,
    counted: &[Counted<'_>],
    found: &[ChangePoint],
    levels: &Levels,
    marks: &[(usize, String)],
) -> Option<Chart> {
    let first = counted.first()?.1;
    let last = counted.last()?.1;
    if counted.len() < 2 {
        return None;
    }
    let unit = last.headline.unit;
    let seconds = |run: &TrendRun| run.started_unix_ns as f64 / 1e9;
    let spread = |run: &TrendRun| run.headline.range.filter(|(low, high)| low.is_finite() && high > low && *low >= 0.0);
    let all = counted.iter().flat_map(|(_, run)| {
        let (low, high) = spread(run).unwrap_or((run.headline.value, run.headline.value));
        [low, high]
    });
    let (low, high) = extremes(all)?;
    let what = lang.text(last.headline.quantity.text());
    let y = value_axis(lang, &what, unit, low, high);
    let bottom = low;
    let top = high;
    let x = dates(lang, seconds(first), seconds(last));
    let between = |at: usize| (seconds(counted[at - 1].1) + seconds(counted[at].1)) / 2.0;
    let told = |run: &TrendRun| {
        let figure = value(run.headline.value, unit);
        format!("{}: {figure}", moment_short(run.started_unix_ns))
    };
    let upright = |class, at: usize, label: String| Series {
        class,
        line: vec![(between(at), bottom), (between(at), top)],
        points: vec![Point { x: between(at), y: top, spread: None, label }],
    };
    let mut series: Vec<Series> = marks.iter().map(|(at, text)| upright("tester", *at, text.clone())).collect();
    series.extend(found.iter().enumerate().map(|(number, change)| {
        let moment = moment_short(counted[change.at].1.started_unix_ns);
        upright(SERIES[1], change.at, format!("{moment}: {}", levels.step(number, unit)))
    }));
    series.extend(levels.0.iter().map(|(from, to, level)| Series {
        class: "solid",
        line: vec![(seconds(counted[*from].1), *level), (seconds(counted[*to - 1].1), *level)],
        points: Vec::new(),
    }));
    let point = |(_, run): &Counted<'_>| Point {
        x: seconds(run),
        y: run.headline.value,
        spread: spread(run),
        label: told(run),
    };
    series.push(Series { class: SERIES[0], line: Vec::new(), points: counted.iter().map(point).collect() });
    let mut legend = vec![
        (SERIES[0], said!(lang, "trend-legend-run", "a run, with its lowest and highest repeat")),
        ("solid", said!(lang, "trend-legend-level", "median between changes")),
    ];
    legend.extend((!found.is_empty()).then(|| (SERIES[1], said!(lang, "trend-legend-change", "change of level"))));
    legend.extend(
        (!marks.is_empty())
            .then(|| ("tester", said!(lang, "trend-legend-software", "other version of linerate or of a system"))),
    );
    let title = said!(
        lang,
        "trend-title",
        "{result}: {quantity} over time",
        result = plain(&last.headline.result),
        quantity = what
    );
    let row = |(_, run): &Counted<'_>| {
        let (low, high) = run.headline.range.unzip();
        let systems: Vec<String> =
            run.systems.iter().map(|(host, system)| format!("{}: {}", plain(host), plain(system))).collect();
        vec![
            Some(moment_short(run.started_unix_ns)),
            Some(value(run.headline.value, unit)),
            low.map(|low| value(low, unit)),
            high.map(|high| value(high, unit)),
            Some(plain(&run.version)),
            (!systems.is_empty()).then(|| systems.join(", ")),
        ]
    };
    let table = Table {
        caption: title.clone(),
        columns: vec![
            column!("column-trend-began", "began", "when the run began (UTC)"),
            column!("column-trend-figure", "figure", "the first result of the run; of several repeats the median"),
            columns::RUNS_LOWEST,
            columns::RUNS_HIGHEST,
            column!("column-trend-version", "linerate", "the version that measured"),
            column!("column-trend-systems", "systems", "operating system of each host"),
        ],
        rows: counted.iter().rev().map(row).collect(),
    };
    Some(Chart { title, legend, drawing: Drawing::Lines { x, y, series }, table })
}

/// An axis for values from `low` to `high`; logarithmic where they span decades.
fn value_axis(lang: Language, what: &str, unit: MeasureUnit, low: f64, high: f64) -> Axis {
    let (one, name) = unit_of(unit, high);
    if low <= 0.0 || high / low < DECADES {
        return Axis::around(lang, what, (one, &name), low, high);
    }
    let first = (low / one).log10().floor() as i32;
    let last = (high / one).log10().ceil() as i32;
    let every = usize::try_from((last - first) / 6 + 1).unwrap_or(1);
    let ticks = (first..=last).step_by(every).map(|power| {
        let text = if power < 0 {
            format!("{:.*}", power.unsigned_abs() as usize, 10f64.powi(power))
        } else {
            format!("{}", 10f64.powi(power))
        };
        (10f64.powi(power) * one, text)
    });
    let scale = Scale::Log(10f64.powi(first) * one, 10f64.powi(last) * one);
    Axis { title: Axis::titled(lang, what, &name), scale, ticks: ticks.collect() }
}

/// An axis of dates (UTC) from one moment to another, seconds since 1970.
fn dates(lang: Language, first: f64, last: f64) -> Axis {
    const MINUTE: f64 = 60.0;
    const HOUR: f64 = 60.0 * MINUTE;
    const DAY: f64 = 24.0 * HOUR;
    const STEPS: [f64; 26] = [
        1.0,
        2.0,
        5.0,
        15.0,
        30.0,
        MINUTE,
        2.0 * MINUTE,
        5.0 * MINUTE,
        15.0 * MINUTE,
        30.0 * MINUTE,
        HOUR,
        2.0 * HOUR,
        4.0 * HOUR,
        12.0 * HOUR,
        DAY,
        2.0 * DAY,
        5.0 * DAY,
        10.0 * DAY,
        20.0 * DAY,
        50.0 * DAY,
        100.0 * DAY,
        200.0 * DAY,
        500.0 * DAY,
        1000.0 * DAY,
        5000.0 * DAY,
        50_000.0 * DAY,
    ];
    /// Ticks that have room for their texts.
    const MOST: f64 = 5.0;
    let room = ((last - first) * 0.03).max(1.0);
    let low = first - room;
    let high = last + room;
    let step = STEPS.into_iter().find(|step| (high - low) / step <= MOST).unwrap_or(STEPS[STEPS.len() - 1]);
    let format = match step {
        step if step < MINUTE => "%H:%M:%S",
        step if step < DAY && high - low < DAY => "%H:%M",
        step if step < DAY => "%d %H:%M",
        _ => "%Y-%m-%d",
    };
    let text = |seconds: f64, format: &str| {
        let time = jiff::Timestamp::from_second(seconds as i64);
        time.map_or_else(|_| String::new(), |time| time.strftime(format).to_string())
    };
    let counts = (low / step).ceil() as i64..=(high / step).floor() as i64;
    let ticks = counts.map(|count| count as f64 * step).map(|at| (at, text(at, format))).collect();
    let from = text(first, "%Y-%m-%d");
    let until = text(last, "%Y-%m-%d");
    let title = if from == until {
        said!(lang, "trend-axis-day", "Begin of the run on {day} (UTC)", day = from)
    } else {
        said!(lang, "trend-axis", "Begin of the run (UTC), from {from} to {until}", from = from, until = until)
    };
    Axis { title, scale: Scale::Between(low, high), ticks }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::{Firmness, Quantity};

    const DAY: u64 = 86_400_000_000_000;

    fn run(day: u64, value: f64) -> TrendRun {
        TrendRun {
            started_unix_ns: 1_795_253_400_000_000_000 + day * DAY,
            headline: Headline {
                result: "tcp".to_owned(),
                quantity: Quantity::PayloadBps,
                value,
                unit: MeasureUnit::BitsPerS,
                firmness: Firmness::Firm,
                range: Some((value * 0.99, value * 1.01)),
                link_share: None,
            },
            version: "0.1.0".to_owned(),
            systems: BTreeMap::from([("a".to_owned(), "Linux 6.1".to_owned())]),
        }
    }

    fn runs(values: impl IntoIterator<Item = f64>) -> Vec<TrendRun> {
        (0..).zip(values).map(|(day, value)| run(day, value)).collect()
    }

    /// The drawing for wide screens. That for narrow ones follows it, with the same marks.
    fn drawn(trend: &Trend) -> String {
        let chart = trend.chart(Language::English).into_string();
        chart.split("<div class=\"drawing narrow\">").next().unwrap_or_default().to_owned()
    }

    #[test]
    fn few_runs_are_told_in_words() {
        let of = |values: &[f64]| Trend::of(Language::English, &runs(values.iter().copied()));
        let none = of(&[]);
        assert_eq!(none.answer, "No finished run of this command has a firm figure yet.");
        assert_eq!(drawn(&none), "");
        let one = of(&[941e6]);
        assert_eq!(
            one.answer,
            "tcp, payload: one run, 941 Mbit/s at 2026-11-21 09:30. A trend needs more runs: repeat the command."
        );
        assert_eq!(drawn(&one), "", "a single point is no trend");
        let two = of(&[941e6, 800e6]);
        assert_eq!(
            two.answer,
            "tcp, payload: 2 runs, 800 to 941 Mbit/s, the newest 800 Mbit/s. A change is tested for from 12 runs on."
        );
        assert_eq!(drawn(&two).matches("class=\"mark\"").count(), 2, "each run is a point");
    }

    #[test]
    fn a_change_is_told_with_what_else_changed() {
        let mut all = runs((0..30).map(|at| if at < 18 { 941e6 } else { 800e6 } + f64::from(at % 3) * 1e5));
        for run in &mut all[18..] {
            run.version = "0.2.0".to_owned();
            run.systems.insert("a".to_owned(), "Linux 6.12<i>".to_owned());
        }
        let trend = Trend::of(Language::English, &all);
        assert_eq!(
            trend.answer,
            "tcp, payload: the level changed at 2026-12-09 09:30, 941.1 Mbit/s \u{2192} 800.1 Mbit/s (-15.0 %). \
             This is the only change in 30 runs since 2026-11-21 09:30."
        );
        let [change] = &trend.changes[..] else { panic!("{:?}", trend.changes) };
        assert_eq!((change.before, change.after), (17, 18));
        let software = "linerate 0.1.0 \u{2192} 0.2.0, a: Linux 6.1 \u{2192} Linux 6.12<i>";
        assert!(change.text.contains("p = 0.001") && change.text.ends_with(&format!("{software}.")), "{}", change.text);
        assert_eq!(trend.software, [format!("2026-12-09 09:30: {software}")]);
        let drawn = drawn(&trend);
        assert!(
            drawn.contains("class=\"s1\"") && drawn.contains("class=\"tester\"") && !drawn.contains("<i>"),
            "{drawn}"
        );
        assert_eq!(drawn.matches("<g class=\"solid\">").count(), 2, "a level on each side");
    }

    #[test]
    fn runs_that_cannot_be_held_against_the_last_are_left_out() {
        let mut all = runs((0..12).map(|at| 941e6 + f64::from(at % 3)));
        all[3].headline.firmness = Firmness::NotFirm { offered: None };
        all[4].headline.result = "udp".to_owned();
        let trend = Trend::of(Language::English, &all);
        assert!(
            trend.answer.ends_with("Left out: 2 runs whose figure is not firm or of another kind."),
            "{}",
            trend.answer
        );
        assert_eq!(drawn(&trend).matches("class=\"mark\"").count(), 10);
    }

    /// Runs within a second, within years, and over nine decades: all has its place.
    #[test]
    fn axes_hold_what_is_drawn() {
        for (first, last) in [(0.0, 0.0), (1e9, 1e9 + 3.0), (1e9, 1e9 + 5e4), (1e9, 1e9 + 1e6), (1e9, 3e9)] {
            let axis = dates(Language::English, first, last);
            let Scale::Between(low, high) = axis.scale else { panic!("not between") };
            assert!(low < first && last < high && axis.ticks.len() <= 6, "{first} {last}: {:?}", axis.ticks);
            assert!(!axis.ticks.is_empty(), "{first} {last}");
        }
        let axis = value_axis(Language::English, "payload", MeasureUnit::BitsPerS, 2.0, 3e9);
        let Scale::Log(low, high) = axis.scale else { panic!("not logarithmic") };
        assert!(low <= 2.0 && high >= 3e9 && (3..=7).contains(&axis.ticks.len()), "{:?}", axis.ticks);
        assert!(axis.ticks.iter().all(|(_, text)| text.len() <= 11), "{:?}", axis.ticks);
    }
}
