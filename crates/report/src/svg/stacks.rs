//! Shares over time: for each run areas that lie on each other and together come to one.

use super::steps::{Stretch, seconds_below};
use super::{Axis, BARS_TOP, RIGHT, WIDTH, at, reachable};
use maud::{Markup, html};

/// Height of a run's name, of its areas, and of the axis below all.
const NAME: f64 = 28.0;
const AREA: f64 = 84.0;
const BELOW: f64 = 58.0;
const LEFT: f64 = 12.0;

/// A share of a run.
pub(crate) struct StackedShare {
    /// Style sheet class: the colour.
    pub(crate) class: &'static str,
    /// What it says when it is pointed at.
    pub(crate) label: String,
    /// Its upper edge: its own share with those of all shares below it, 0 to 1.
    pub(crate) tops: Vec<Stretch>,
}

/// A run.
pub(crate) struct StackedRun {
    pub(crate) name: String,
    /// The lowest first.
    pub(crate) shares: Vec<StackedShare>,
}

/// Runs below each other over one axis of time.
pub(crate) struct StackedRuns {
    pub(crate) x: Axis,
    pub(crate) runs: Vec<StackedRun>,
}

/// Areas of all runs.
pub(super) fn stacks(title: &str, chart: &StackedRuns) -> Markup {
    let bottom = BARS_TOP + (NAME + AREA) * chart.runs.len() as f64;
    let height = bottom + BELOW;
    html! {
        svg.over-time viewBox=(format!("0 0 {WIDTH} {height}")) role="group" aria-label=(title) {
            @for (index, run) in chart.runs.iter().enumerate() {
                @let top = BARS_TOP + (NAME + AREA) * index as f64 + NAME;
                text.name x=(at(LEFT)) y=(at(top - 8.0)) { (run.name) }
                // A share reaches down to the base. Those below it are drawn over it.
                @for share in run.shares.iter().rev() {
                    g class=(share.class) {
                        (reachable(&share.label, html! { path.area d=(area(&chart.x, &share.tops, top)) {} }))
                    }
                }
                line.axis x1=(at(LEFT)) x2=(at(RIGHT)) y1=(at(top + AREA)) y2=(at(top + AREA)) {}
            }
            (seconds_below(&chart.x, LEFT, bottom))
        }
    }
}

/// The area between steps and their base.
fn area(x: &Axis, tops: &[Stretch], top: f64) -> String {
    let px = |value: f64| at(LEFT + x.scale.place(value) * (RIGHT - LEFT));
    let base = at(top + AREA);
    let mut path = String::new();
    let mut end: Option<f64> = None;
    for stretch in tops {
        if end != Some(stretch.from) {
            if end.is_some() {
                path.push_str(&format!("V{base}Z"));
            }
            path.push_str(&format!("M{} {base}", px(stretch.from)));
        }
        path.push_str(&format!("V{}H{}", at(top + AREA * (1.0 - stretch.value.clamp(0.0, 1.0))), px(stretch.to)));
        end = Some(stretch.to);
    }
    if end.is_some() {
        path.push_str(&format!("V{base}Z"));
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::Scale;

    #[test]
    fn an_area_is_closed_at_a_gap() {
        let x = Axis { title: String::new(), scale: Scale::Between(0.0, 10.0), ticks: vec![] };
        let stretch = |from, to, value| Stretch { from, to, value };
        let path = area(&x, &[stretch(0.0, 1.0, 1.0), stretch(1.0, 2.0, 0.5), stretch(4.0, 5.0, 0.0)], 0.0);
        assert_eq!(path, "M12 84V0H81V42H150V84ZM288 84V84H357V84Z");
        assert_eq!(area(&x, &[], 0.0), "");
    }
}
