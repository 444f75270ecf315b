//! Horizontal bars of one or more pieces over one axis.

use super::layout::Layout;
use super::rows::Rows;
use super::{BARS_TOP, BELOW, at, axis_below, reachable, whisker};
use crate::blocks::axis::Axis;
use crate::blocks::drawing::Bar;
use maud::{Markup, html};

/// Height of one bar with its space.
const BAR: f64 = 34.0;

/// Horizontal bars over one axis.
pub(super) fn bars(title: &str, layout: Layout, x: &Axis, all: &[Bar]) -> Markup {
    // Figures stand at the end of their bar: leave room for the longest.
    let rows = Rows::of(layout, x, all.iter().map(|bar| &*bar.name), all.iter().map(|bar| &*bar.figure), 0.0);
    let left = rows.left;
    let right = rows.right;
    let width = layout.width();
    let px = |value: f64| left + x.scale.place(value) * (right - left);
    let row = BAR + rows.head();
    let bottom = BARS_TOP + row * all.len() as f64;
    let height = bottom + BELOW + layout.further_lines(&x.title);
    html! {
        svg viewBox=(format!("0 0 {width} {height}")) role="group" aria-label=(title) {
            (axis_below(layout, x, left, right, bottom))
            line.axis x1=(at(left)) x2=(at(left)) y1=(at(BARS_TOP)) y2=(at(bottom)) {}
            @for (index, bar) in all.iter().enumerate() {
                @let head = BARS_TOP + row * index as f64;
                @let top = head + rows.head() + 6.0;
                @let middle = top + (BAR - 12.0) / 2.0;
                (rows.name("name", &bar.name, &bar.figure, (head, middle)))
                @let ends = bar.segments.iter().scan(0.0, |end, segment| { *end += segment.value; Some(*end) });
                @for (segment, end) in bar.segments.iter().zip(ends) {
                    @let start = px(end - segment.value);
                    g class=(segment.class) {
                        (reachable(&segment.label, html! {
                            rect.bar x=(at(start)) y=(at(top))
                                width=(at((px(end) - start).max(1.5))) height=(at(BAR - 12.0)) {}
                        }))
                    }
                }
                @if let Some((low, high)) = bar.spread { (whisker(px(low), px(high), middle)) }
                @for limit in &bar.limits {
                    g class=(limit.class) {
                        (reachable(&limit.label, html! {
                            @let place = px(limit.value);
                            rect.hit x=(at(place - 5.0)) y=(at(top - 4.0)) width="10" height=(at(BAR - 4.0)) {}
                            line.line x1=(at(place)) x2=(at(place)) y1=(at(top - 4.0)) y2=(at(top + BAR - 8.0)) {}
                        }))
                    }
                }
                @let far = bar.limits.iter().map(|limit| limit.value).chain(bar.spread.map(|(_, high)| high));
                @let far = far.fold(bar.segments.iter().map(|segment| segment.value).sum::<f64>(), f64::max);
                (rows.figure(&bar.figure, px(far) + 8.0, (head, middle)))
            }
        }
    }
}
