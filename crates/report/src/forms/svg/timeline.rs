//! Timelines: rows of bars, each from one moment to another, over one axis of time.

use super::layout::{Layout, columns_in, width_of};
use super::rows::Rows;
use super::{BARS_TOP, BELOW, at, axis_below, reachable};
use crate::blocks::axis::Axis;
use crate::blocks::drawing::{Sign, TimeBar, TimeRows};
use crate::wording::wrap::cut;
use maud::{Markup, html};

/// Height of a row, and of a group's name.
const ROW: f64 = 38.0;
const NAME: f64 = 24.0;
/// Space above a bar, which has a sign in it, and the bar's height.
const ABOVE: f64 = 11.0;
const BAR: f64 = 20.0;
/// Space before the figures.
const SPACE: f64 = 12.0;
/// Narrowest bar: a shorter one would not be seen.
const NARROWEST: f64 = 3.0;
/// Half the width of a sign.
const SIGN: f64 = 4.5;

impl TimeRows {
    fn head(&self) -> f64 {
        if self.name.is_empty() { 0.0 } else { NAME }
    }
}

/// Rows in groups over one axis.
pub(super) fn timeline(title: &str, layout: Layout, x: &Axis, all: &[TimeRows]) -> Markup {
    let every = || all.iter().flat_map(|group| &group.rows);
    let rows = Rows::of(layout, x, every().map(|row| &*row.name), every().map(|row| &*row.figure), SPACE);
    let left = rows.left;
    let right = rows.right;
    let width = layout.width();
    let px = |value: f64| left + x.scale.place(value) * (right - left);
    let tall = ROW + rows.head();
    let height_of = |group: &TimeRows| group.head() + tall * group.rows.len() as f64;
    let bottom = BARS_TOP + all.iter().map(height_of).sum::<f64>() + 4.0;
    let height = bottom + BELOW + layout.further_lines(&x.title);
    let tops = all.iter().scan(BARS_TOP, |top, group| {
        let mine = *top;
        *top += height_of(group);
        Some(mine)
    });
    html! {
        svg viewBox=(format!("0 0 {width} {height}")) role="group" aria-label=(title) {
            (axis_below(layout, x, left, right, bottom))
            @for (group, top) in all.iter().zip(tops) {
                @if !group.name.is_empty() {
                    text.name.group x="0" y=(at(top + 17.0)) { (cut(&group.name, columns_in(0.8 * width))) }
                }
                @for (index, row) in group.rows.iter().enumerate() {
                    @let head = top + group.head() + tall * index as f64;
                    @let upper = head + rows.head() + ABOVE;
                    @let middle = upper + BAR / 2.0;
                    (rows.name("name", &row.name, &row.figure, (head, middle)))
                    g.around {
                        @for TimeBar { around: (from, to), .. } in &row.bars {
                            line.line x1=(at(px(*from))) x2=(at(px(*to))) y1=(at(middle)) y2=(at(middle)) {}
                        }
                    }
                    @for bar in &row.bars { g class=(bar.class) { (reachable(&bar.label, drawn(bar, px, upper))) } }
                    (rows.figure(&row.figure, right + SPACE, (head, middle)))
                }
            }
        }
    }
}

/// Draws a bar with this upper edge, and what stands out of it.
fn drawn(bar: &TimeBar, px: impl Fn(f64) -> f64, upper: f64) -> Markup {
    let from = px(bar.from);
    let end = px(bar.to);
    let long = (end - from).max(NARROWEST);
    let centre = from + long / 2.0;
    let middle = upper + BAR / 2.0;
    let lower = upper + BAR;
    html! {
        rect.bar x=(at(from)) y=(at(upper)) width=(at(long)) height=(at(BAR)) {}
        @if bar.is_crossed {
            @let [west, east, north, south] = [centre - SIGN, centre + SIGN, middle - SIGN, middle + SIGN].map(at);
            path.cross d=(format!("M{west} {north}L{east} {south}M{west} {south}L{east} {north}")) {}
        } @else if width_of(&bar.text) + 4.0 <= long {
            text.inside x=(at(centre)) y=(at(middle + 4.5)) text-anchor="middle" { (bar.text) }
        }
        @if bar.has_strong_end {
            @let place = at(from + long);
            line.end x1=(place) x2=(place) y1=(at(upper - 2.0)) y2=(at(lower + 2.0)) {}
        }
        @if let Some(sign) = bar.sign {
            // Its point and its base.
            @let (point, base) = match sign { Sign::Up => (upper - 10.0, upper - 3.0), Sign::Down => (upper - 2.0, upper - 9.0) };
            path.sign d=(format!("M{} {}L{} {}H{}Z", at(centre), at(point), at(centre + SIGN), at(base), at(centre - SIGN))) {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn_of(bar: TimeBar) -> String {
        drawn(&bar, |value| value * 10.0, 20.0).0
    }

    fn bar() -> TimeBar {
        TimeBar {
            class: "s0",
            from: 1.0,
            to: 4.0,
            around: (0.5, 4.5),
            text: "7".to_owned(),
            label: String::new(),
            is_crossed: false,
            has_strong_end: false,
            sign: None,
        }
    }

    #[test]
    fn a_bar_reaches_from_moment_to_moment() {
        let drawn = drawn_of(bar());
        assert!(drawn.contains("<rect class=\"bar\" x=\"10\" y=\"20\" width=\"30\" height=\"20\">"), "{drawn}");
        assert!(drawn.contains(">7</text>") && !drawn.contains("<path") && !drawn.contains("<line"), "{drawn}");
    }

    #[test]
    fn a_short_bar_is_seen_and_has_no_text() {
        let drawn = drawn_of(TimeBar { to: 1.0, ..bar() });
        assert!(drawn.contains("width=\"3\"") && !drawn.contains("<text"), "{drawn}");
    }

    #[test]
    fn what_stands_out_has_a_shape() {
        let crossed = drawn_of(TimeBar { is_crossed: true, ..bar() });
        assert!(crossed.contains("class=\"cross\"") && !crossed.contains("<text"), "{crossed}");
        assert!(drawn_of(TimeBar { has_strong_end: true, ..bar() }).contains("class=\"end\" x1=\"40\" x2=\"40\""));
        let [up, down] = [Sign::Up, Sign::Down].map(|sign| drawn_of(TimeBar { sign: Some(sign), ..bar() }));
        assert!(
            up.contains("d=\"M25 10L29.5 17H20.5Z\"") && down.contains("d=\"M25 18L29.5 11H20.5Z\""),
            "{up} {down}"
        );
    }
}
