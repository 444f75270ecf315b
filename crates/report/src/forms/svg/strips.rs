//! Strips: each run of a result as a point on a line of its own, so that a reader sees how they lie, and their median across it.

use super::layout::{Layout, columns_in};
use super::rows::Rows;
use super::{BARS_TOP, BELOW, at, axis_below, reachable};
use crate::blocks::axis::Axis;
use crate::blocks::drawing::Strips;
use crate::wording::wrap::cut;
use maud::{Markup, html};

/// Height of a strip, and of a group's name.
const STRIP: f64 = 28.0;
const NAME: f64 = 24.0;
/// Space before the figures.
const SPACE: f64 = 12.0;
/// Radius of a point, and the distance from which two points are seen apart.
const RADIUS: f64 = 4.0;
const APART: f64 = 7.5;
/// Distances of a point from the middle of its strip: the first that has room for it, else the first.
const LANES: [f64; 3] = [0.0, -APART, APART];

impl Strips {
    fn head(&self) -> f64 {
        if self.name.is_empty() { 0.0 } else { NAME }
    }

    fn height(&self, strip: f64) -> f64 {
        self.head() + strip * self.members.len() as f64
    }
}

/// Strips in groups over one axis.
pub(super) fn strips(title: &str, layout: Layout, x: &Axis, all: &[Strips]) -> Markup {
    let members = || all.iter().flat_map(|group| &group.members);
    let rows =
        Rows::of(layout, x, members().map(|member| &*member.name), members().map(|member| &*member.figure), SPACE);
    let left = rows.left;
    let right = rows.right;
    let width = layout.width();
    let px = |value: f64| left + x.scale.place(value) * (right - left);
    let strip = STRIP + rows.head();
    let bottom = BARS_TOP + all.iter().map(|group| group.height(strip)).sum::<f64>() + 6.0;
    let height = bottom + BELOW + layout.further_lines(&x.title);
    let tops = all.iter().scan(BARS_TOP, |top, group| {
        let mine = *top;
        *top += group.height(strip);
        Some(mine)
    });
    html! {
        svg viewBox=(format!("0 0 {width} {height}")) role="group" aria-label=(title) {
            (axis_below(layout, x, left, right, bottom))
            @for (group, top) in all.iter().zip(tops) {
                @if !group.name.is_empty() {
                    text.name.group x="0" y=(at(top + 17.0)) { (cut(&group.name, columns_in(0.8 * width))) }
                }
                @for (index, member) in group.members.iter().enumerate() {
                    @let head = top + group.head() + strip * index as f64;
                    @let middle = head + rows.head() + STRIP / 2.0;
                    (rows.name("tick", &member.name, &member.figure, (head, middle)))
                    g class=(member.class) {
                        // Behind the points: of an odd number of runs one lies on it.
                        (reachable(&member.median.label, html! {
                            @let place = px(member.median.value);
                            rect.hit x=(at(place - 4.0)) y=(at(middle - 13.0)) width="8" height="5" {}
                            line.median x1=(at(place)) x2=(at(place)) y1=(at(middle - 11.0)) y2=(at(middle + 11.0)) {}
                        }))
                        @let places: Vec<f64> = member.runs.iter().map(|run| px(run.value)).collect();
                        @for ((run, place), lane) in member.runs.iter().zip(&places).zip(lanes(&places)) {
                            (reachable(&run.label, html! {
                                circle.mark cx=(at(*place)) cy=(at(middle + lane)) r=(RADIUS) {}
                            }))
                        }
                    }
                    (rows.figure(&member.figure, right + SPACE, (head, middle)))
                }
            }
        }
    }
}

/// For each place how far from the middle its point is drawn, so that points near each other stay apart.
fn lanes(places: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by(|a, b| places[*a].total_cmp(&places[*b]));
    let mut last = [f64::NEG_INFINITY; LANES.len()];
    let mut lanes = vec![0.0; places.len()];
    for index in order {
        let free = last.iter().position(|last| places[index] - last >= APART).unwrap_or(0);
        last[free] = places[index];
        lanes[index] = LANES[free];
    }
    lanes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_near_each_other_stay_apart() {
        assert_eq!(lanes(&[100.0, 300.0, 200.0]), [0.0, 0.0, 0.0]);
        assert_eq!(lanes(&[104.0, 100.0, 102.0]), [APART, 0.0, -APART]);
        // More than there are lanes for lie over each other.
        assert_eq!(lanes(&[1.0; 4]), [0.0, -APART, APART, 0.0]);
        assert_eq!(lanes(&[]), Vec::<f64>::new());
    }
}
