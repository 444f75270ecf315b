//! Charts of single runs, for results that have several: their spread is seen where a median hides it.

use crate::blocks::axis::Axis;
use crate::blocks::chart::{Chart, SERIES};
use crate::blocks::columns;
use crate::blocks::drawing::{Drawing, Run, Strip, Strips};
use crate::blocks::table::{Column, Table};
use crate::column;
use crate::figures::values::{extremes, value};
use crate::figures::{percent, plain};
use crate::language::Language;
use crate::said;
use linerate_method::statistics::median;
use linerate_model::{MeasureUnit, Measurement, Record};

/// Row cap.
const MOST: usize = 60;
/// The unit of the axis: a hundredth.
const PERCENT: (f64, &str) = (0.01, "%");

/// A result with its runs.
pub struct Runs {
    pub name: String,
    /// Style sheet class: the colour.
    pub class: &'static str,
    pub unit: MeasureUnit,
    /// Value of each run, in the order in which they were made.
    pub values: Vec<f64>,
    /// Median of the runs before, of which these are shares; `None` if they are shares of their own median.
    pub before: Option<f64>,
}

/// Results that belong together, under a name if there are others.
pub struct Group {
    pub name: String,
    pub members: Vec<Runs>,
}

/// The runs of a record's results.
pub(crate) fn of_record(lang: Language, record: &Record) -> Option<Chart> {
    let runs = |result: &Measurement| Runs {
        name: plain(&result.name),
        class: SERIES[0],
        unit: result.quantity.unit(),
        values: result.main.values.clone(),
        before: None,
    };
    let group = Group { name: String::new(), members: record.results.iter().map(runs).collect() };
    let legend = vec![(SERIES[0], said!(lang, "runs-legend", "a point for each run, with the median"))];
    chart(lang, said!(lang, "runs-title", "Each run against the median"), columns::RESULT, vec![group], legend)
}

/// Results that have several runs, each run as a share of their median, so that all have one scale. What is a share itself is drawn
/// as it is: of a loss the median is often nothing.
pub fn chart(
    lang: Language,
    title: String,
    one: Column,
    groups: Vec<Group>,
    legend: Vec<(&'static str, String)>,
) -> Option<Chart> {
    let groups = several(groups);
    let all = || groups.iter().flat_map(|group| &group.members);
    let (low, high) = extremes(all().flat_map(|runs| runs.values.iter().map(|value| runs.place(*value))))?;
    let relative = all().any(Runs::is_relative);
    if !relative && high == 0.0 {
        return None;
    }
    let what = match (relative, all().any(|runs| runs.before.is_some())) {
        (true, true) => said!(lang, "runs-axis-before", "share of the median before"),
        (true, false) => said!(lang, "runs-axis", "share of the median"),
        (false, _) => title.clone(),
    };
    let strips = groups.iter().map(|group| Strips {
        name: group.name.clone(),
        members: group.members.iter().map(|runs| runs.strip(lang)).collect(),
    });
    let drawing = Drawing::Strips { x: Axis::around(lang, &what, PERCENT, low, high), groups: strips.collect() };
    let rows = groups.iter().flat_map(|group| group.members.iter().map(move |runs| runs.row(&group.name)));
    let table = Table {
        caption: title.clone(),
        columns: vec![
            one,
            column!(
                "column-runs-median",
                "median",
                "the middle run; of an even number of runs the mean of the middle two"
            ),
            columns::RUNS_LOWEST,
            columns::RUNS_HIGHEST,
            column!("column-runs-each", "each run", "every run, in the order in which they were made"),
        ],
        rows: rows.collect(),
    };
    Some(Chart { title, legend, drawing, table })
}

/// Returns the groups that can be drawn, as many as a reader looks at.
fn several(groups: Vec<Group>) -> Vec<Group> {
    let mut left = MOST;
    let mut drawn = Vec::new();
    for Group { name, members } in groups {
        let members: Vec<Runs> = members.into_iter().filter(Runs::is_drawn).take(left).collect();
        left -= members.len();
        if !members.is_empty() {
            drawn.push(Group { name, members });
        }
    }
    drawn
}

impl Runs {
    fn median(&self) -> f64 {
        median(self.values.clone()).unwrap_or(0.0)
    }

    fn is_relative(&self) -> bool {
        self.unit != MeasureUnit::Share
    }

    fn is_drawn(&self) -> bool {
        let sane = self.values.iter().all(|value| value.is_finite() && *value >= 0.0);
        sane && self.values.len() > 1 && (!self.is_relative() || self.base() > 0.0)
    }

    /// The value that runs are divided by.
    fn base(&self) -> f64 {
        self.before.unwrap_or_else(|| self.median())
    }

    /// Returns the place of a value on the axis.
    fn place(&self, value: f64) -> f64 {
        if self.is_relative() { value / self.base() } else { value }
    }

    fn strip(&self, lang: Language) -> Strip {
        let run = |(index, reached): (usize, &f64)| {
            let share = percent(self.place(*reached)).filter(|_| self.is_relative());
            let text = value(*reached, self.unit);
            let label = match (share, self.before) {
                (Some(share), None) => {
                    said!(
                        lang,
                        "runs-point-share",
                        "{name}, run {run}: {value}, {share} of the median",
                        name = self.name,
                        run = index + 1,
                        value = text,
                        share = share
                    )
                }
                (Some(share), Some(_)) => {
                    said!(
                        lang,
                        "runs-point-share-before",
                        "{name}, run {run}: {value}, {share} of the median before",
                        name = self.name,
                        run = index + 1,
                        value = text,
                        share = share
                    )
                }
                (None, _) => said!(
                    lang,
                    "runs-point",
                    "{name}, run {run}: {value}",
                    name = self.name,
                    run = index + 1,
                    value = text
                ),
            };
            Run { value: self.place(*reached), label }
        };
        let middle = value(self.median(), self.unit);
        let label = said!(
            lang,
            "runs-point-median",
            "{name}: {value}, the median of {count} runs",
            name = self.name,
            value = middle,
            count = self.values.len()
        );
        Strip {
            name: self.name.clone(),
            class: self.class,
            runs: self.values.iter().enumerate().map(run).collect(),
            median: Run { value: self.place(self.median()), label },
            figure: middle,
        }
    }

    fn row(&self, group: &str) -> Vec<Option<String>> {
        let name = if group.is_empty() { self.name.clone() } else { format!("{group}, {}", self.name) };
        let show = |reached: f64| value(reached, self.unit);
        let (low, high) = extremes(self.values.iter().copied()).unzip();
        let each: Vec<String> = self.values.iter().map(|reached| show(*reached)).collect();
        vec![Some(name), Some(show(self.median())), low.map(show), high.map(show), Some(each.join(", "))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(unit: MeasureUnit, values: &[f64]) -> Vec<Group> {
        let runs = Runs { name: "x".to_owned(), class: "s0", unit, values: values.to_vec(), before: None };
        vec![Group { name: "group".to_owned(), members: vec![runs] }]
    }

    fn of(unit: MeasureUnit, values: &[f64]) -> Option<Chart> {
        chart(Language::English, "Runs".to_owned(), columns::CELL, runs(unit, values), vec![])
    }

    #[test]
    fn every_run_is_a_point_beside_the_median() {
        let chart = of(MeasureUnit::BitsPerS, &[90e6, 100e6, 101e6, 102e6]).expect("a chart");
        let drawn = &chart.drawn().0;
        assert_eq!(drawn.matches("class=\"mark\"").count(), 4, "{drawn}");
        assert_eq!(drawn.matches("class=\"median\"").count(), 1, "{drawn}");
        for said in [
            "x, run 1: 90 Mbit/s, 89.6 % of the median",
            "x: 100.5 Mbit/s, the median of 4 runs",
            "share of the median, %",
        ] {
            assert!(drawn.contains(said), "{said}: {drawn}");
        }
        let row: Vec<String> = chart.table.rows[0].iter().flatten().cloned().collect();
        assert_eq!(row[..4], ["group, x", "100.5 Mbit/s", "90 Mbit/s", "102 Mbit/s"]);
        assert_eq!(row[4], "90 Mbit/s, 100 Mbit/s, 101 Mbit/s, 102 Mbit/s");
    }

    #[test]
    fn a_loss_is_drawn_as_it_is_even_where_the_median_lost_nothing() {
        let chart = of(MeasureUnit::Share, &[0.0, 0.0, 0.02]).expect("a chart");
        let drawn = chart.drawn().0;
        assert!(drawn.contains("x, run 3: 2.0 %"), "{drawn}");
        assert!(of(MeasureUnit::Share, &[0.0, 0.0]).is_none(), "nothing to see");
    }

    #[test]
    fn of_one_run_or_none_that_can_be_drawn_there_is_no_chart() {
        assert!(of(MeasureUnit::BitsPerS, &[1e6]).is_none());
        assert!(of(MeasureUnit::BitsPerS, &[0.0, 0.0, 1e6]).is_none(), "no share of nothing");
        assert!(of(MeasureUnit::Nanos, &[1e6, f64::NAN]).is_none());
    }
}
