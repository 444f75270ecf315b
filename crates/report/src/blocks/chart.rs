//! A chart with its table.

use crate::blocks::axis::{Axis, Scale, latency_axis};
use crate::blocks::columns;
use crate::blocks::drawing::{Drawing, GroupPanel, Panels, Point, Series};
use crate::blocks::table::{Column, Table};
use crate::column;
use crate::figures::{grouped, nanos};
use crate::language::Language;
use crate::said;
use linerate_model::Latency;

/// A chart, what its colours mean, and the same figures as a table.
pub struct Chart {
    /// Title, which names the quantity.
    pub title: String,
    /// Style sheet class and meaning of each colour.
    pub legend: Vec<(&'static str, String)>,
    /// Drawing of the figures.
    pub(crate) drawing: Drawing,
    /// The figures that are drawn.
    pub table: Table,
}

impl Chart {
    /// Draws lines over two axes.
    pub fn lines(
        title: String,
        legend: Vec<(&'static str, String)>,
        table: Table,
        (x, y): (Axis, Axis),
        series: Vec<Series>,
    ) -> Self {
        Self { title, legend, drawing: Drawing::Lines { x, y, series }, table }
    }

    /// Draws plots of lines next to each other.
    pub fn panels(title: String, legend: Vec<(&'static str, String)>, table: Table, panels: Panels) -> Self {
        Self { title, legend, drawing: Drawing::Panels(panels), table }
    }

    /// Draws horizontal bars in groups.
    pub fn groups(
        title: String,
        legend: Vec<(&'static str, String)>,
        table: Table,
        x: Axis,
        panels: Vec<GroupPanel>,
    ) -> Self {
        Self { title, legend, drawing: Drawing::Groups { x, panels }, table }
    }

    /// Returns the chart as a line of text for forms that draw nothing, `None` if its table says more.
    pub fn in_a_line(&self) -> Option<String> {
        match &self.drawing {
            Drawing::Path(path) => Some(path.in_a_line()),
            _ => None,
        }
    }
}

/// Colours of series and of the places of loss, by the style sheet.
pub const SERIES: [&str; 8] = ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"];

/// Cumulative distributions of latency, each with its name; `one` is the key of the names' column. The share is drawn by its nines,
/// so that the tail can be seen.
pub(crate) fn distributions(
    lang: Language,
    title: String,
    one: Column,
    curves: Vec<(String, &Latency)>,
) -> Option<Chart> {
    let timed: Vec<_> =
        curves.into_iter().filter(|(_, l)| l.count > 0 && l.distribution.len() > 1).take(SERIES.len()).collect();
    let highest_count = timed.iter().map(|(_, l)| l.count).max()?;
    // One in `highest_count` is the finest share there is; five nines are enough for a reader.
    let nines = (highest_count as f64).log10().clamp(2.0, 5.0);
    let low = timed.iter().map(|(_, l)| l.min.max(1)).min()? as f64;
    let high = timed.iter().map(|(_, l)| l.max).max()? as f64;
    let x = latency_axis(lang, low, high);
    let y = Axis {
        title: said!(lang, "charts-axis-share-answered", "share answered within"),
        scale: Scale::Nines(nines),
        ticks: [
            (0.0, "0"),
            (0.5, "50 %"),
            (0.9, "90 %"),
            (0.99, "99 %"),
            (0.999, "99.9 %"),
            (0.9999, "99.99 %"),
            (0.99999, "99.999 %"),
        ]
        .into_iter()
        .filter(|(share, _)| -f64::log10(1.0 - share) <= nines + 1e-9)
        .map(|(share, text)| (share, text.to_owned()))
        .collect(),
    };
    let series: Vec<Series> = SERIES
        .into_iter()
        .zip(&timed)
        .map(|(class, (name, l))| {
            let named = [
                (l.p50, 0.5, "p50".to_owned()),
                (l.p90, 0.9, "p90".to_owned()),
                (l.p99, 0.99, "p99".to_owned()),
                (l.p999, 0.999, "p99.9".to_owned()),
                (l.max, 1.0, said!(lang, "charts-slowest", "slowest")),
            ];
            let point = |(time, share, percentile): (u64, f64, String)| Point {
                x: time as f64,
                y: share,
                spread: None,
                label: said!(
                    lang,
                    "charts-point-percentile",
                    "{name}: {percentile} {time} of {count} timed",
                    name = name,
                    percentile = percentile,
                    count = l.count,
                    time = nanos(time)
                ),
            };
            let start = (l.min.max(1) as f64, 0.0);
            let steps = l
                .distribution
                .iter()
                .filter(|(_, share)| share.is_finite())
                .map(|(time, share)| (*time as f64, *share));
            Series { class, line: std::iter::once(start).chain(steps).collect(), points: named.map(point).into() }
        })
        .collect();
    let row = |(name, l): &(String, &Latency)| {
        let times = [l.min, l.p50, l.p90, l.p99, l.p999, l.max].map(|time| Some(nanos(time)));
        [Some(name.clone()), Some(grouped(l.count))].into_iter().chain(times).collect()
    };
    let table = Table {
        caption: title.clone(),
        columns: vec![
            one,
            column!("column-timed", "timed", "how many were timed"),
            column!("column-fastest", "fastest", "the shortest"),
            columns::P50,
            columns::P90,
            columns::P99,
            columns::P999,
            column!("column-charts-slowest", "slowest", "the longest"),
        ],
        rows: timed.iter().map(row).collect(),
    };
    let legend = SERIES.into_iter().zip(&timed).map(|(class, (name, _))| (class, name.clone())).collect();
    Some(Chart { drawing: Drawing::Lines { x, y, series }, table, title, legend })
}
