//! Values in rows and columns as a heat map: rates between pairs of hosts, or results by two factors.

use crate::blocks::chart::Chart;
use crate::blocks::drawing::{Drawing, Field, Heat, MOST_COLUMNS};
use crate::blocks::table::Table;
use crate::figures::digits;
use crate::figures::values::{range, unit_of};
use crate::language::Language;
use crate::said;
use linerate_model::MeasureUnit;

/// Cap on rows and columns; the tables have all.
const MOST_ROWS: usize = 60;

/// A value, and what it says when it is pointed at.
pub type Told = (f64, String);

/// Values of one unit, by the names of rows and columns.
pub struct HeatMap {
    pub title: String,
    pub unit: MeasureUnit,
    /// Titles of rows and columns.
    pub titles: [String; 2],
    pub rows: Vec<String>,
    pub columns: Vec<String>,
    /// Values of each row; `None` for an unknown value.
    pub values: Vec<Vec<Option<Told>>>,
    /// Table of the same values.
    pub table: Table,
}

impl HeatMap {
    /// Returns the chart, `None` if there is nothing to compare or no room to print every value.
    pub fn chart(self, lang: Language) -> Option<Chart> {
        if self.columns.len() > MOST_COLUMNS || self.rows.len() > MOST_ROWS {
            return None;
        }
        let values = || self.values.iter().flatten().flatten().map(|(value, _)| *value);
        if values().count() < 2 || !values().all(f64::is_finite) {
            return None;
        }
        let low = values().reduce(f64::min)?;
        let high = values().reduce(f64::max)?;
        let (one, unit) = unit_of(self.unit, high);
        let field = |(value, label): Told| Field { value, figure: figure(value / one), label };
        let fields = self.values.into_iter().map(|row| row.into_iter().map(|told| told.map(field)).collect());
        let [row_title, column_title] = self.titles;
        let map = Heat { row_title, column_title, rows: self.rows, columns: self.columns, fields: fields.collect() };
        let title = said!(lang, "heat-map-title", "{title}, {unit}", title = self.title, unit = unit);
        let legend = said!(
            lang,
            "heat-map-legend",
            "the stronger the colour, the higher: {range}",
            range = range(lang, low, high, self.unit)
        );
        Some(Chart { drawing: Drawing::Heat(map), legend: vec![("heat", legend)], table: self.table, title })
    }
}

/// Three digits; what is something is not printed as nothing.
fn figure(value: f64) -> String {
    if value > 0.0 && value < 0.005 { "<0.01".to_owned() } else { digits(value, value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(columns: usize, values: &[f64]) -> HeatMap {
        HeatMap {
            title: "Loss".to_owned(),
            unit: MeasureUnit::Share,
            titles: ["from".to_owned(), "to".to_owned()],
            rows: vec!["a".to_owned(); values.len() / columns],
            columns: vec!["b".to_owned(); columns],
            values: values
                .chunks(columns)
                .map(|row| row.iter().map(|one| Some((*one, "x".to_owned()))).collect())
                .collect(),
            table: Table { caption: String::new(), columns: vec![], rows: vec![] },
        }
    }

    #[test]
    fn each_field_has_its_figure_and_the_highest_the_deepest_colour() {
        let chart = map(2, &[0.0, 0.000_01, 0.2, 0.941]).chart(Language::English).expect("a chart");
        assert_eq!(chart.title, "Loss, %");
        assert!(
            chart.legend[0].1.contains("0 % to 94.1 %") || chart.legend[0].1.contains("0 to 94.1 %"),
            "{:?}",
            chart.legend
        );
        let drawn = &chart.drawn().0;
        for part in [">0</text>", ">&lt;0.01</text>", ">20.0</text>", ">94.1</text>"] {
            assert!(drawn.contains(part), "{part}: {drawn}");
        }
        assert_eq!(drawn.matches("fill-opacity=\"0.06\"").count(), 2, "{drawn}");
        assert_eq!(drawn.matches("fill-opacity=\"0.55\"").count(), 1, "{drawn}");
    }

    #[test]
    fn without_room_or_figures_there_is_no_chart() {
        assert!(map(15, &[0.5; 30]).chart(Language::English).is_none(), "too many columns");
        assert!(map(1, &[0.5]).chart(Language::English).is_none(), "nothing to compare");
        assert!(map(2, &[0.5, f64::NAN]).chart(Language::English).is_none(), "no figure");
    }
}
