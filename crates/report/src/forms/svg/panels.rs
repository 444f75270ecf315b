//! Small multiples: plots next to each other over the same axes, each under its name. Only the outer ones have the figures of the axes.

use super::at;
use super::layout::{Layout, apart, columns_in, widest};
use super::lines::{drawn, left_of};
use crate::blocks::drawing::Panels;
use crate::wording::wrap::cut;
use maud::{Markup, html};

/// Room above for the title of the vertical axis, above each plot for its name, and below one for the figures of its axis.
const TITLE: f64 = 22.0;
const NAME: f64 = 24.0;
const FIGURES: f64 = 26.0;
/// Room below for the title of the horizontal axis.
const BELOW: f64 = 20.0;
/// Space between plots in a row, and between rows.
const BESIDE: f64 = 22.0;
const UNDER: f64 = 10.0;

/// The plots in rows.
pub(super) fn panels(title: &str, layout: Layout, chart: &Panels) -> Markup {
    let Panels { x, y, panels, .. } = chart;
    let left = left_of(layout, y);
    let right = layout.right();
    let tall = match layout {
        Layout::Wide => 160.0,
        Layout::Narrow => 112.0,
    };
    let width_of = |columns: usize| (right - left - BESIDE * (columns as f64 - 1.0)) / columns as f64;
    let columns = match layout {
        Layout::Wide => chart.columns.max(1),
        // Two on a phone, where their names fit.
        Layout::Narrow if widest(panels.iter().map(|panel| panel.name.as_str())) <= width_of(2) => {
            chart.columns.clamp(1, 2)
        }
        Layout::Narrow => 1,
    };
    let width = width_of(columns);
    // The axis' figures stand where no plot is below.
    let is_lowest = |index: usize| index + columns >= panels.len();
    let mut bottom = TITLE + layout.further_lines(&y.title);
    let bottoms: Vec<f64> = (0..panels.len())
        .step_by(columns)
        .map(|first| {
            let is_outer = is_lowest((first + columns).min(panels.len()) - 1);
            let lower = bottom + NAME + tall;
            bottom = lower + if is_outer { FIGURES } else { UNDER };
            lower
        })
        .collect();
    let height = bottom + BELOW + layout.further_lines(&x.title);
    html! {
        svg.multiples viewBox=(format!("0 0 {} {}", layout.width(), at(height))) role="group" aria-label=(title) {
            (layout.title_above(&y.title))
            @for (index, panel) in panels.iter().enumerate() {
                @let (column, bottom) = (index % columns, bottoms[index / columns]);
                @let start = left + (width + BESIDE) * column as f64;
                @let px = |value: f64| start + x.scale.place(value) * width;
                @let py = |value: f64| bottom - y.scale.place(value) * tall;
                text.name x=(at(start)) y=(at(bottom - tall - 8.0)) { (cut(&panel.name, columns_in(width))) }
                @for (value, text) in &y.ticks {
                    line.grid x1=(at(start)) x2=(at(start + width)) y1=(at(py(*value))) y2=(at(py(*value))) {}
                    @if column == 0 { text.tick x=(at(start - 8.0)) y=(at(py(*value) + 4.0)) text-anchor="end" { (text) } }
                }
                @for (place, text) in apart(x, px) {
                    line.notch x1=(at(place)) x2=(at(place)) y1=(at(bottom)) y2=(at(bottom + 5.0)) {}
                    @if is_lowest(index) { text.tick x=(at(place)) y=(at(bottom + 19.0)) text-anchor="middle" { (text) } }
                }
                line.axis x1=(at(start)) x2=(at(start + width)) y1=(at(bottom)) y2=(at(bottom)) {}
                (drawn(&panel.series, &px, &py))
            }
            (layout.title_below(&x.title, (left + right) / 2.0, bottom + 12.0))
        }
    }
}
