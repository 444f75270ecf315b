//! Grouped bars: each group under its name, a bar for each of its members, so that long names find room on a phone too.

use super::layout::{Layout, columns_in, width_of};
use super::rows::Rows;
use super::{Axis, BARS_TOP, BELOW, Segment, at, axis_below, reachable, whisker};
use crate::text::cut;
use maud::{Markup, html};

/// Height of a bar with its space, and of a group's name.
const BAR: f64 = 22.0;
const NAME: f64 = 24.0;

/// A bar of a group.
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) segment: Segment,
    /// Lowest and highest run.
    pub(crate) spread: Option<(f64, f64)>,
    pub(crate) limit: Option<Segment>,
    /// The figure at the bar's end.
    pub(crate) figure: String,
}

/// Bars that belong together.
pub(crate) struct Bars {
    pub(crate) name: String,
    pub(crate) members: Vec<Member>,
}

impl Member {
    /// How far it reaches with all that is drawn of it.
    pub(crate) fn reach(&self) -> f64 {
        let limit = self.limit.as_ref().map_or(0.0, |limit| limit.value);
        self.spread.map_or(0.0, |(_, high)| high).max(self.segment.value).max(limit)
    }
}

/// Horizontal bars in groups over one axis.
pub(super) fn groups(title: &str, layout: Layout, x: &Axis, all: &[Bars]) -> Markup {
    let members = || all.iter().flat_map(|bars| &bars.members);
    let rows = Rows::of(layout, x, members().map(|member| &*member.name), members().map(|member| &*member.figure), 0.0);
    let (left, right, width) = (rows.left, rows.right, layout.width());
    let px = |value: f64| left + x.scale.place(value) * (right - left);
    let row = BAR + rows.head();
    let height_of = |bars: &Bars| NAME + row * bars.members.len() as f64;
    let bottom = BARS_TOP + all.iter().map(height_of).sum::<f64>() + 6.0;
    let height = bottom + BELOW + layout.further_lines(&x.title);
    let tops = all.iter().scan(BARS_TOP, |top, bars| {
        let mine = *top;
        *top += height_of(bars);
        Some(mine)
    });
    html! {
        svg viewBox=(format!("0 0 {width} {height}")) role="group" aria-label=(title) {
            (axis_below(layout, x, left, right, bottom))
            @for (bars, top) in all.iter().zip(tops) {
                text.name.group x="0" y=(at(top + 17.0)) { (cut(&bars.name, columns_in(0.8 * width))) }
                line.axis x1=(at(left)) x2=(at(left)) y1=(at(top + NAME - 2.0)) y2=(at(top + height_of(bars) - 2.0)) {}
                @for (index, member) in bars.members.iter().enumerate() {
                    @let head = top + NAME + row * index as f64;
                    @let top = head + rows.head();
                    @let middle = top + BAR / 2.0 - 2.0;
                    (rows.name("tick", &member.name, &member.figure, (head, middle)))
                    g class=(member.segment.class) {
                        (reachable(&member.segment.label, html! {
                            rect.bar x=(at(left)) y=(at(top))
                                width=(at((px(member.segment.value) - left).max(1.5))) height=(at(BAR - 4.0)) {}
                        }))
                    }
                    @if let Some((low, high)) = member.spread { (whisker(px(low), px(high), middle)) }
                    @if let Some(limit) = &member.limit {
                        g class=(limit.class) {
                            (reachable(&limit.label, html! {
                                @let place = px(limit.value);
                                rect.hit x=(at(place - 5.0)) y=(at(top - 2.0)) width="10" height=(at(BAR)) {}
                                line.line x1=(at(place)) x2=(at(place)) y1=(at(top - 2.0)) y2=(at(top + BAR - 2.0)) {}
                            }))
                        }
                    }
                    // Behind the bar; behind its limit only where that would be written over.
                    @let end = px(member.spread.map_or(member.segment.value, |(_, high)| high.max(member.segment.value)));
                    @let room = width_of(&member.figure) + 12.0;
                    @let crossed = member.limit.as_ref().map(|limit| px(limit.value)).filter(|place| (end..end + room).contains(place));
                    (rows.figure(&member.figure, crossed.unwrap_or(end) + 8.0, (head, middle)))
                }
            }
        }
    }
}
