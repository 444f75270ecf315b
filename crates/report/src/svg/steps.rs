//! Quantities over time: a line of steps for each, what lies outside the measured window shaded.

use super::{Axis, RIGHT, WIDTH, at, reachable};
use maud::{Markup, html};

/// Height, and the edges of the plot. Narrow screens get larger letters: there is room for them.
const HEIGHT: f64 = 300.0;
const TOP: f64 = 38.0;
const BOTTOM: f64 = HEIGHT - 58.0;
const LEFT: f64 = 84.0;

/// A value from one moment to another, seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Stretch {
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) value: f64,
}

/// A line of steps. Where one does not begin where the last ended, there is a gap.
pub(crate) struct Trace {
    /// Style sheet classes: the colour, and whether it is broad and pale.
    pub(crate) class: String,
    /// What it says when it is pointed at.
    pub(crate) label: String,
    pub(crate) stretches: Vec<Stretch>,
}

/// Lines of steps over time.
pub(crate) struct Traces {
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    /// When the measured window opened and closed, seconds; none where all was measured.
    pub(crate) window: Option<(f64, f64)>,
    /// A value that cannot be exceeded, and what it says when it is pointed at.
    pub(crate) limit: Option<(f64, String)>,
    pub(crate) traces: Vec<Trace>,
}

/// Width of the plot, pixels at full width.
pub(crate) const PLOT: f64 = RIGHT - LEFT;

/// Lines of steps over their axes.
pub(super) fn steps(title: &str, chart: &Traces) -> Markup {
    let px = |value: f64| LEFT + chart.x.scale.place(value) * PLOT;
    let py = |value: f64| BOTTOM - chart.y.scale.place(value) * (BOTTOM - TOP);
    html! {
        svg.over-time viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="group" aria-label=(title) {
            @if let Some((opened, closed)) = chart.window {
                g.outside {
                    @for (from, to) in [(LEFT, px(opened)), (px(closed), RIGHT)] {
                        @if to - from > 0.5 {
                            rect x=(at(from)) y=(at(TOP)) width=(at(to - from)) height=(at(BOTTOM - TOP)) {}
                        }
                    }
                }
            }
            @for (value, text) in &chart.y.ticks {
                line.grid x1=(at(LEFT)) x2=(at(RIGHT)) y1=(at(py(*value))) y2=(at(py(*value))) {}
                text.tick x=(at(LEFT - 8.0)) y=(at(py(*value) + 4.5)) text-anchor="end" { (text) }
            }
            (seconds_below(&chart.x, LEFT, BOTTOM))
            line.axis x1=(at(LEFT)) x2=(at(RIGHT)) y1=(at(BOTTOM)) y2=(at(BOTTOM)) {}
            text.title x="0" y="18" { (chart.y.title) }
            @if let Some((opened, closed)) = chart.window {
                @for edge in [px(opened), px(closed)] {
                    line.edge x1=(at(edge)) x2=(at(edge)) y1=(at(TOP)) y2=(at(BOTTOM)) {}
                }
            }
            @if let Some((value, label)) = &chart.limit {
                g.limit {
                    (reachable(label, html! {
                        line.line x1=(at(LEFT)) x2=(at(RIGHT)) y1=(at(py(*value))) y2=(at(py(*value))) {}
                    }))
                }
            }
            @for trace in &chart.traces {
                @let line = line(&trace.stretches, px, py);
                g class=(trace.class) {
                    (reachable(&trace.label, html! { path.reach d=(line) {} path.run d=(line) {} }))
                }
            }
        }
    }
}

/// The axis of seconds below a plot from `left` to the right edge.
pub(super) fn seconds_below(x: &Axis, left: f64, bottom: f64) -> Markup {
    let px = |value: f64| left + x.scale.place(value) * (RIGHT - left);
    html! {
        @for (value, text) in &x.ticks {
            line.notch x1=(at(px(*value))) x2=(at(px(*value))) y1=(at(bottom)) y2=(at(bottom + 5.0)) {}
            text.tick x=(at(px(*value))) y=(at(bottom + 22.0)) text-anchor="middle" { (text) }
        }
        text.title x=(at((left + RIGHT) / 2.0)) y=(at(bottom + 50.0)) text-anchor="middle" { (x.title) }
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
