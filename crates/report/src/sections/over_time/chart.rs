//! Charts over time: a line for each attempt, a limit, and the figures as a table.

use super::attempt::{self, Attempt};
use super::course::{Course, CourseStep, extent, usual_interval};
use super::time_axis::TimeAxis;
use crate::blocks::axis::{Axis, latency_axis};
use crate::blocks::chart::Chart;
use crate::blocks::columns;
use crate::blocks::drawing::{Drawing, PLOT, Trace, Traces};
use crate::blocks::table::Table;
use crate::column;
use crate::figures::{nanos, per_second, percent, rate};
use crate::language::Language;
use crate::said;
use crate::subjects::live::ValueKind;
use linerate_model::Span;
use linerate_units::ByteCount;

/// Shorter steps are merged, pixels at full width.
const NARROWEST_STEP: f64 = 2.0;
/// Factor above all values from which a limit is named and not drawn: the lines would lie flat.
const LIMIT_REACH: f64 = 4.0;
/// Past this ratio a linear axis would hide the quickest responses.
const LINEAR_REACH: f64 = 20.0;

/// The line of an attempt, or one of its two.
pub(crate) struct Line<'a> {
    pub(crate) attempt: &'a Attempt<'a>,
    /// Index of the chart's part that it shows.
    pub(crate) part: usize,
    pub(crate) course: Course,
}

/// A value that cannot be exceeded.
pub(crate) struct Bound {
    pub(crate) value: f64,
    /// Text for the legend and for the line.
    pub(crate) meaning: String,
    pub(crate) label: String,
}

/// Chart over time before it is drawn.
pub(crate) struct OverTime<'a> {
    pub(crate) title: String,
    /// Name of the values, for the axis.
    pub(crate) what: String,
    pub(crate) kind: ValueKind,
    pub(crate) limit: Option<Bound>,
    /// Names of the parts of each attempt: none if it has one line, else two, of which the second is broad and pale.
    pub(crate) parts: Vec<String>,
    pub(crate) has_window: bool,
    pub(crate) lines: Vec<Line<'a>>,
}

impl OverTime<'_> {
    /// Leaves out the part of a warm-up that is longer than the window. A chart that shows nothing above zero gets no lines.
    pub(crate) fn cut(mut self) -> Self {
        for line in self.lines.iter_mut().filter(|_| self.has_window) {
            line.course = line.course.without_early_warm_up();
        }
        if self.highest() <= 0.0 {
            self.lines.clear();
        }
        self
    }

    /// From the first to the last moment of its lines.
    pub(crate) fn extent(&self) -> Option<Span> {
        extent(self.lines.iter().map(|line| &line.course))
    }

    fn highest(&self) -> f64 {
        self.lines.iter().flat_map(|line| line.course.steps.iter().map(|step| step.value)).fold(0.0, f64::max)
    }

    /// Returns the chart, `None` if nothing was measured or all of it is zero.
    pub(crate) fn chart(mut self, lang: Language, time: &TimeAxis) -> Option<Chart> {
        let shortest_us = (time.span.seconds() * 1e6 / PLOT * NARROWEST_STEP) as i64;
        for line in &mut self.lines {
            line.course = line.course.merged(shortest_us);
        }
        let extent = self.extent()?;
        let values = || self.lines.iter().flat_map(|line| line.course.steps.iter().map(|step| step.value));
        let highest = self.highest();
        if highest <= 0.0 {
            return None;
        }
        let lowest = values().filter(|value| *value > 0.0).fold(highest, f64::min);
        let (is_drawn, limit) = match &self.limit {
            Some(limit) => (limit.value <= highest * LIMIT_REACH, Some(limit)),
            None => (false, None),
        };
        let top = limit.filter(|_| is_drawn).map_or(highest, |limit| limit.value.max(highest));
        let mut y = self.kind.axis(lang, &self.what, lowest, top);
        let every = usual_interval(self.lines.iter().map(|line| &line.course));
        y.title = said!(lang, "over-time-every", "{axis}, every {interval}", axis = y.title, interval = every);
        let x = time.axis(lang);

        let mut legend = attempt::legend(lang, &self.attempts());
        legend.extend(["solid", "pale"].into_iter().zip(&self.parts).map(|(class, part)| (class, part.clone())));
        if let Some(limit) = limit {
            let meaning = if is_drawn {
                limit.meaning.clone()
            } else {
                said!(
                    lang,
                    "over-time-above",
                    "{limit}: {value}, above the chart",
                    limit = limit.meaning,
                    value = self.kind.show(limit.value)
                )
            };
            legend.push(("limit", meaning));
        }
        let window = self.lines.first().map(|line| line.course.window).filter(|_| self.has_window);
        if window.is_some_and(|window| extent.from_us < window.from_us || extent.to_us > window.to_us) {
            legend.push((
                "outside",
                said!(lang, "over-time-outside", "outside the measured window, excluded from results"),
            ));
        }
        let outages: Vec<(f64, f64)> = self.attempts().into_iter().flat_map(Attempt::outages).map(seconds).collect();
        if !outages.is_empty() {
            legend.push(("outage", said!(lang, "over-time-outage", "outage: the path carried nothing")));
        }
        let window = window.map(seconds);
        let table = self.table(lang);
        let limit = limit.filter(|_| is_drawn).map(|limit| (limit.value, limit.label.clone()));
        let traces = self.traces(lang);
        Some(Chart {
            title: self.title,
            legend,
            drawing: Drawing::Steps(Traces { x, group: time.group, y, window, outages, limit, traces }),
            table,
        })
    }

    /// The attempts, each once.
    fn attempts(&self) -> Vec<&Attempt<'_>> {
        let mut all: Vec<&Attempt<'_>> = Vec::new();
        for line in &self.lines {
            if !all.iter().any(|known| std::ptr::eq(*known, line.attempt)) {
                all.push(line.attempt);
            }
        }
        all
    }

    /// Returns the lines in the order in which they are drawn: pale ones below the others, and spoilt attempts below
    /// those that count.
    fn traces(&self, lang: Language) -> Vec<Trace> {
        let mut lines: Vec<&Line<'_>> = self.lines.iter().collect();
        lines.sort_by_key(|line| (std::cmp::Reverse(line.part), line.attempt.class != "spoilt"));
        let trace = |line: &Line<'_>| {
            let pale = if line.part == 0 { "" } else { " pale" };
            Trace {
                class: format!("{}{pale}", line.attempt.class),
                label: self.label(lang, line),
                stretches: line.course.steps.iter().map(CourseStep::stretch).collect(),
            }
        };
        lines.into_iter().map(trace).collect()
    }

    fn name(&self, line: &Line<'_>) -> String {
        match self.parts.get(line.part) {
            Some(part) => format!("{}, {part}", line.attempt.name),
            None => line.attempt.name.clone(),
        }
    }

    /// Returns the text shown when a line is pointed at.
    fn label(&self, lang: Language, line: &Line<'_>) -> String {
        let Some(range) = line.course.range() else { return self.name(line) };
        said!(
            lang,
            "over-time-point",
            "{name}: median {median}, lowest {lowest}, highest {highest}",
            name = self.name(line),
            median = self.kind.show(range.median),
            lowest = self.kind.show(range.lowest),
            highest = self.kind.show(range.highest)
        )
    }

    /// Returns a table of what each line reaches within the window.
    fn table(&self, lang: Language) -> Table {
        let row = |line: &Line<'_>| {
            let range = line.course.range();
            let figures = range.map(|range| [range.lowest, range.median, range.highest]);
            let figures = (0..3).map(|at| figures.map(|figures| self.kind.show(figures[at])));
            let steps = range.map(|range| range.steps.to_string());
            std::iter::once(Some(self.name(line))).chain(figures).chain([steps]).collect()
        };
        Table {
            caption: if self.has_window {
                said!(lang, "over-time-table", "{title}, within the measured window", title = self.title)
            } else {
                self.title.clone()
            },
            columns: vec![
                columns::OVER_TIME_RUN,
                column!("column-over-time-lowest", "lowest", "the lowest interval of the measured window"),
                column!("column-over-time-median", "median", "the interval in the middle of the measured window"),
                column!("column-over-time-highest", "highest", "the highest interval of the measured window"),
                column!(
                    "column-over-time-intervals",
                    "intervals",
                    "the intervals that are drawn of the measured window"
                ),
            ],
            rows: self.lines.iter().map(row).collect(),
        }
    }
}

/// Returns the edges of a span, seconds.
fn seconds(span: Span) -> (f64, f64) {
    (span.from_us as f64 / 1e6, span.to_us as f64 / 1e6)
}

impl ValueKind {
    pub(crate) fn show(self, value: f64) -> String {
        let text = match self {
            Self::BitsPerSecond => rate(value, "bit/s"),
            Self::BytesPerSecond => rate(value, "B/s"),
            Self::PerSecond => per_second(value).map(|value| format!("{value}/s")),
            Self::Share => percent(value),
            Self::Bytes => Some(ByteCount::new(value.round() as u64).to_string()),
            Self::Segments => per_second(value),
            Self::Nanos => Some(nanos(value.round() as u64)),
        };
        text.unwrap_or_else(|| crate::figures::MISSING.to_owned())
    }

    /// An axis past `top`. It begins at zero, unless response times differ by much: `lowest` is the smallest.
    fn axis(self, lang: Language, what: &str, lowest: f64, top: f64) -> Axis {
        match self {
            Self::BitsPerSecond => Axis::rate(lang, what, "bit/s", top),
            Self::BytesPerSecond => Axis::rate(lang, what, "B/s", top),
            Self::PerSecond => Axis::rate(lang, what, "/s", top),
            Self::Share => Axis::share(lang, what, top),
            Self::Bytes => Axis::rate(lang, what, "B", top),
            Self::Segments => Axis::rate(lang, what, "", top),
            Self::Nanos if top / lowest > LINEAR_REACH => {
                let axis = latency_axis(lang, lowest, top);
                Axis { title: said!(lang, "over-time-logarithmic", "{what} (logarithmic)", what = what), ..axis }
            }
            Self::Nanos => Axis::time(what, top),
        }
    }
}
