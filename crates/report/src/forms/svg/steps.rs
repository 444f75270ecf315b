//! Quantities over time: a line of steps for each, what lies outside the measured window shaded.

use super::layout::{Layout, apart};
use super::{BELOW, at, reachable};
use crate::blocks::axis::{Axis, Scale};
use crate::blocks::drawing::{PLOT, Stretch, Traces};
use maud::{Markup, html};

/// Top of the plot.
const TOP: f64 = 34.0;
/// Left and right edge of wide plots: those of all charts over time are the same, so that one moment stands below itself.
const LEFT: f64 = 84.0;
const RIGHT: f64 = LEFT + PLOT;
/// Left edge of narrow ones.
const NARROW_LEFT: f64 = 64.0;

/// Left and right edge of a plot over time.
pub(super) fn edges(layout: Layout) -> (f64, f64) {
    match layout {
        Layout::Wide => (LEFT, RIGHT),
        Layout::Narrow => (NARROW_LEFT, layout.right()),
    }
}

/// Lines of steps over their axes.
pub(super) fn steps(title: &str, layout: Layout, chart: &Traces) -> Markup {
    let ((left, right), width) = (edges(layout), layout.width());
    let top = TOP + layout.further_lines(&chart.y.title);
    let tall = match layout {
        Layout::Wide => 208.0,
        Layout::Narrow => 150.0,
    };
    let bottom = top + tall;
    let height = bottom + BELOW + layout.further_lines(&chart.x.title);
    let px = |value: f64| left + chart.x.scale.place(value) * (right - left);
    let py = |value: f64| bottom - chart.y.scale.place(value) * tall;
    html! {
        svg.over-time viewBox=(format!("0 0 {width} {height}")) role="group" aria-label=(title)
            data-time=(time_of(layout, &chart.x, chart.group)) data-plot=(plot(top, bottom)) {
            @if let Some((opened, closed)) = chart.window {
                g.outside {
                    @for (from, to) in [(left, px(opened)), (px(closed), right)] {
                        @if to - from > 0.5 {
                            rect x=(at(from)) y=(at(top)) width=(at(to - from)) height=(at(tall)) {}
                        }
                    }
                }
            }
            @if !chart.outages.is_empty() {
                g.outage {
                    @for (from, to) in &chart.outages {
                        rect x=(at(px(*from))) y=(at(top)) width=(at(px(*to) - px(*from))) height=(at(tall)) {}
                    }
                }
            }
            @for (value, text) in &chart.y.ticks {
                line.grid x1=(at(left)) x2=(at(right)) y1=(at(py(*value))) y2=(at(py(*value))) {}
                text.tick x=(at(left - 8.0)) y=(at(py(*value) + 4.5)) text-anchor="end" { (text) }
            }
            (seconds_below(layout, &chart.x, bottom))
            line.axis x1=(at(left)) x2=(at(right)) y1=(at(bottom)) y2=(at(bottom)) {}
            (layout.title_above(&chart.y.title))
            @if let Some((opened, closed)) = chart.window {
                g {
                    @for edge in [px(opened), px(closed)] {
                        line.edge x1=(at(edge)) x2=(at(edge)) y1=(at(top)) y2=(at(bottom)) {}
                    }
                }
            }
            @if let Some((value, label)) = &chart.limit {
                g.limit {
                    (reachable(label, html! {
                        line.line x1=(at(left)) x2=(at(right)) y1=(at(py(*value))) y2=(at(py(*value))) {}
                    }))
                }
            }
            @for trace in &chart.traces {
                @let line = line(&trace.stretches, px, py);
                g class=(trace.class) {
                    (reachable(&trace.label, html! { path.run d=(line) {} }))
                }
            }
        }
    }
}

/// The axis of time for the page's script: the group, from and to in seconds, left and right edge.
pub(super) fn time_of(layout: Layout, x: &Axis, group: usize) -> String {
    let (left, right) = edges(layout);
    let Scale::Between(from, to) = x.scale else { return String::new() };
    format!("{group} {from} {to} {} {}", at(left), at(right))
}

/// Upper and lower edge of a plot for the page's script.
pub(super) fn plot(top: f64, bottom: f64) -> String {
    format!("{} {}", at(top), at(bottom))
}

/// The axis of seconds below a plot.
pub(super) fn seconds_below(layout: Layout, x: &Axis, bottom: f64) -> Markup {
    let (left, right) = edges(layout);
    let px = |value: f64| left + x.scale.place(value) * (right - left);
    html! {
        g.seconds {
            @for (place, text) in apart(x, px) {
                line.notch x1=(at(place)) x2=(at(place)) y1=(at(bottom)) y2=(at(bottom + 5.0)) {}
                text.tick x=(at(place)) y=(at(bottom + 20.0)) text-anchor="middle" { (text) }
            }
        }
        (layout.title_below(&x.title, (left + right) / 2.0, bottom + BELOW - 8.0))
    }
}

/// The path of a line of steps. Neighbours of one height are one stroke.
fn line(stretches: &[Stretch], px: impl Fn(f64) -> f64, py: impl Fn(f64) -> f64) -> String {
    let mut path = String::new();
    let mut drawn: Option<(f64, String)> = None;
    for (index, stretch) in stretches.iter().enumerate() {
        let height = at(py(stretch.value));
        match &drawn {
            Some((end, last)) if *end == stretch.from && *last == height => {}
            Some((end, _)) if *end == stretch.from => path.push_str(&format!("V{height}")),
            _ => path.push_str(&format!("M{} {height}", at(px(stretch.from)))),
        }
        let goes_on =
            stretches.get(index + 1).is_some_and(|next| next.from == stretch.to && at(py(next.value)) == height);
        if !goes_on {
            path.push_str(&format!("H{}", at(px(stretch.to))));
        }
        drawn = Some((stretch.to, height));
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(stretches: &[(f64, f64, f64)]) -> String {
        let stretch = |(from, to, value): &(f64, f64, f64)| Stretch { from: *from, to: *to, value: *value };
        line(&stretches.iter().map(stretch).collect::<Vec<_>>(), |x| x, |y| y)
    }

    #[test]
    fn a_value_holds_until_the_next_and_a_gap_stays_open() {
        assert_eq!(path(&[(0.0, 1.0, 5.0), (1.0, 2.0, 7.0), (3.0, 4.0, 7.0)]), "M0 5H1V7H2M3 7H4");
        assert_eq!(path(&[(0.0, 1.0, 5.0), (1.0, 2.0, 5.0), (2.0, 3.0, 6.0)]), "M0 5H2V6H3");
        assert_eq!(path(&[]), "");
    }
}
