//! Lines and points over two axes.

use super::layout::{Layout, apart, widest};
use super::{BELOW, at, reachable};
use crate::blocks::axis::Axis;
use crate::blocks::drawing::Series;
use maud::{Markup, html};

/// Top of the plot.
const TOP: f64 = 34.0;
/// Left edge of the plot where there is room: that of charts below each other is the same.
const LEFT: f64 = 74.0;

/// Lines over two axes.
pub(super) fn lines(title: &str, layout: Layout, x: &Axis, y: &Axis, all: &[Series]) -> Markup {
    let left = left_of(layout, y);
    let right = layout.right();
    let width = layout.width();
    let top = TOP + layout.further_lines(&y.title);
    let tall = match layout {
        Layout::Wide => 276.0,
        Layout::Narrow => 190.0,
    };
    let bottom = top + tall;
    let height = bottom + BELOW + layout.further_lines(&x.title);
    let px = |value: f64| left + x.scale.place(value) * (right - left);
    let py = |value: f64| bottom - y.scale.place(value) * tall;
    html! {
        svg viewBox=(format!("0 0 {width} {height}")) role="group" aria-label=(title) {
            @for (value, text) in &y.ticks {
                line.grid x1=(at(left)) x2=(at(right)) y1=(at(py(*value))) y2=(at(py(*value))) {}
                text.tick x=(at(left - 8.0)) y=(at(py(*value) + 4.0)) text-anchor="end" { (text) }
            }
            @for (place, text) in apart(x, px) {
                line.notch x1=(at(place)) x2=(at(place)) y1=(at(bottom)) y2=(at(bottom + 5.0)) {}
                text.tick x=(at(place)) y=(at(bottom + 20.0)) text-anchor="middle" { (text) }
            }
            line.axis x1=(at(left)) x2=(at(right)) y1=(at(bottom)) y2=(at(bottom)) {}
            (layout.title_below(&x.title, (left + right) / 2.0, bottom + BELOW - 8.0))
            (layout.title_above(&y.title))
            (drawn(all, &px, &py))
        }
    }
}

/// Lines and points, at the places that `px` and `py` give their values.
pub(super) fn drawn(all: &[Series], px: &dyn Fn(f64) -> f64, py: &dyn Fn(f64) -> f64) -> Markup {
    html! {
        @for series in all {
            g class=(series.class) {
                @let line: Vec<String> =
                    series.line.iter().map(|(x, y)| format!("{},{}", at(px(*x)), at(py(*y)))).collect();
                polyline.line points=(line.join(" ")) {}
                @for point in &series.points {
                    @if let Some((low, high)) = point.spread {
                        path.whisker d=(format!(
                            "M{0} {1}H{2}M{3} {1}V{4}M{0} {4}H{2}",
                            at(px(point.x) - 5.0), at(py(low)), at(px(point.x) + 5.0), at(px(point.x)), at(py(high))
                        )) {}
                    }
                    (reachable(&point.label, html! {
                        circle.hit cx=(at(px(point.x))) cy=(at(py(point.y))) r="14" {}
                        circle.mark cx=(at(px(point.x))) cy=(at(py(point.y))) r="4.5" {}
                    }))
                }
            }
        }
    }
}

/// Returns the left edge of the plot, right of the figures of its vertical axis.
pub(super) fn left_of(layout: Layout, y: &Axis) -> f64 {
    match layout {
        Layout::Wide => LEFT,
        Layout::Narrow => (widest(y.ticks.iter().map(|(_, text)| text.as_str())) + 12.0).max(24.0),
    }
}
