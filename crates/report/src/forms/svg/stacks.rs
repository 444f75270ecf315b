//! Shares over time: for each run areas that lie on each other and together come to one.

use super::layout::{Layout, columns_in};
use super::steps::{edges, plot, seconds_below, time_of};
use super::{BARS_TOP, BELOW, at, reachable};
use crate::blocks::drawing::{StackedRuns, Stretch};
use crate::wording::wrap::cut;
use maud::{Markup, html};

/// Height of a run's name, and of its areas.
const NAME: f64 = 24.0;
const AREA: f64 = 84.0;

/// Areas of all runs.
pub(super) fn stacks(title: &str, layout: Layout, chart: &StackedRuns) -> Markup {
    let ((left, right), width) = (edges(layout), layout.width());
    let bottom = BARS_TOP + (NAME + AREA) * chart.runs.len() as f64;
    let height = bottom + BELOW + layout.further_lines(&chart.x.title);
    let px = |value: f64| left + chart.x.scale.place(value) * (right - left);
    html! {
        svg.over-time viewBox=(format!("0 0 {width} {height}")) role="group" aria-label=(title)
            data-time=(time_of(layout, &chart.x, chart.group)) data-plot=(plot(BARS_TOP, bottom)) {
            @for (index, run) in chart.runs.iter().enumerate() {
                @let top = BARS_TOP + (NAME + AREA) * index as f64 + NAME;
                text.name x=(at(left)) y=(at(top - 8.0)) { (cut(&run.name, columns_in(right - left))) }
                // A share reaches down to the base. Those below it are drawn over it.
                @for share in run.shares.iter().rev() {
                    g class=(share.class) {
                        (reachable(&share.label, html! { path.area d=(area(&share.tops, px, top)) {} }))
                    }
                }
                line.axis x1=(at(left)) x2=(at(right)) y1=(at(top + AREA)) y2=(at(top + AREA)) {}
            }
            (seconds_below(layout, &chart.x, bottom))
        }
    }
}

/// The area between steps and their base.
fn area(tops: &[Stretch], px: impl Fn(f64) -> f64, top: f64) -> String {
    let base = at(top + AREA);
    let mut path = String::new();
    let mut end: Option<f64> = None;
    for stretch in tops {
        if end != Some(stretch.from) {
            if end.is_some() {
                path.push_str(&format!("V{base}Z"));
            }
            path.push_str(&format!("M{} {base}", at(px(stretch.from))));
        }
        path.push_str(&format!("V{}H{}", at(top + AREA * (1.0 - stretch.value.clamp(0.0, 1.0))), at(px(stretch.to))));
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

    #[test]
    fn an_area_is_closed_at_a_gap() {
        let stretch = |from, to, value| Stretch { from, to, value };
        let path = area(&[stretch(0.0, 1.0, 1.0), stretch(1.0, 2.0, 0.5), stretch(4.0, 5.0, 0.0)], |at| at * 10.0, 0.0);
        assert_eq!(path, "M0 84V0H10V42H20V84ZM40 84V84H50V84Z");
        assert_eq!(area(&[], |at| at, 0.0), "");
    }
}
