//! Grouped bars: each group under its name, a bar for each of its members, so that long names find room on a phone too. Groups of
//! several panels stand next to each other where there is room: the names of the bars stand there once.

use super::layout::{Layout, columns_in, widest, width_of};
use super::rows::{NAME_COLUMNS, Rows};
use super::{BARS_TOP, BELOW, at, axis_below, reachable, whisker};
use crate::blocks::axis::Axis;
use crate::blocks::drawing::{Bars, GroupPanel, Member};
use crate::wording::wrap::cut;
use maud::{Markup, html};

/// Height of a bar with its space, and of a group's name.
const BAR: f64 = 22.0;
const NAME: f64 = 24.0;
/// Returns the height of a group's name; a group without one takes none.
fn name_height(name: &str) -> f64 {
    if name.is_empty() { 0.0 } else { NAME }
}

/// Space between panels, and between a bar and its figure.
const BESIDE: f64 = 14.0;
const FIGURE: f64 = 8.0;

impl Member {
    /// The bar, from `left` on and down from `top`, with its spread and its limit.
    fn drawn(&self, left: f64, px: &dyn Fn(f64) -> f64, top: f64) -> Markup {
        html! {
            g class=(self.segment.class) {
                (reachable(&self.segment.label, html! {
                    rect.bar x=(at(left)) y=(at(top))
                        width=(at((px(self.segment.value) - left).max(1.5))) height=(at(BAR - 4.0)) {}
                }))
            }
            @if let Some((low, high)) = self.spread { (whisker(px(low), px(high), top + BAR / 2.0 - 2.0)) }
            @if let Some(limit) = &self.limit {
                g class=(limit.class) {
                    (reachable(&limit.label, html! {
                        @let place = px(limit.value);
                        rect.hit x=(at(place - 5.0)) y=(at(top - 2.0)) width="10" height=(at(BAR)) {}
                        line.line x1=(at(place)) x2=(at(place)) y1=(at(top - 2.0)) y2=(at(top + BAR - 2.0)) {}
                    }))
                }
            }
        }
    }

    /// Returns where its figure begins: after the bar, or after its limit if the figure would be written over that.
    fn figure_at(&self, px: &dyn Fn(f64) -> f64) -> f64 {
        let end = px(self.spread.map_or(self.segment.value, |(_, high)| high.max(self.segment.value)));
        let room = width_of(&self.figure) + 12.0;
        let crossed =
            self.limit.as_ref().map(|limit| px(limit.value)).filter(|place| (end..end + room).contains(place));
        crossed.unwrap_or(end) + FIGURE
    }
}

/// Horizontal bars in groups over one axis.
pub(super) fn groups(title: &str, layout: Layout, x: &Axis, panels: &[GroupPanel]) -> Markup {
    match (layout, panels) {
        (Layout::Wide, [_, _, ..]) => beside(title, x, panels),
        _ => below(title, layout, x, panels),
    }
}

/// The groups of all panels below each other.
fn below(title: &str, layout: Layout, x: &Axis, panels: &[GroupPanel]) -> Markup {
    let all = || panels.iter().flat_map(|panel| panel.groups.iter().map(move |bars| (panel, bars)));
    let members = || all().flat_map(|(_, bars)| &bars.members);
    let rows = Rows::of(layout, x, members().map(|member| &*member.name), members().map(|member| &*member.figure), 0.0);
    let left = rows.left;
    let right = rows.right;
    let width = layout.width();
    let px = |value: f64| left + x.scale.place(value) * (right - left);
    let row = BAR + rows.head();
    let height_of =
        |(panel, bars): (&GroupPanel, &Bars)| name_height(&group_name(panel, bars)) + row * bars.members.len() as f64;
    let bottom = BARS_TOP + all().map(height_of).sum::<f64>() + 6.0;
    let height = bottom + BELOW + layout.further_lines(&x.title);
    let tops = all().scan(BARS_TOP, |top, group| {
        let mine = *top;
        *top += height_of(group);
        Some(mine)
    });
    html! {
        svg viewBox=(format!("0 0 {width} {height}")) role="group" aria-label=(title) {
            (axis_below(layout, x, left, right, bottom))
            @for ((panel, bars), top) in all().zip(tops) {
                @let name = group_name(panel, bars);
                @let first = top + name_height(&name);
                text.name.group x="0" y=(at(top + 17.0)) { (cut(&name, columns_in(0.8 * width))) }
                line.axis x1=(at(left)) x2=(at(left)) y1=(at(first - 2.0)) y2=(at(top + height_of((panel, bars)) - 2.0)) {}
                @for (index, member) in bars.members.iter().enumerate() {
                    @let head = first + row * index as f64;
                    @let top = head + rows.head();
                    @let middle = top + BAR / 2.0 - 2.0;
                    (rows.name("tick", &member.name, &member.figure, (head, middle)))
                    (member.drawn(left, &px, top))
                    (rows.figure(&member.figure, member.figure_at(&px), (head, middle)))
                }
            }
        }
    }
}

/// Returns the name above a group where the panels stand below each other.
fn group_name(panel: &GroupPanel, bars: &Bars) -> String {
    let names = [panel.name.as_str(), bars.name.as_str()];
    names.into_iter().filter(|name| !name.is_empty()).collect::<Vec<_>>().join(", ")
}

/// The names of groups and their members as rows, and the panels next to each other: each has the bars of those names.
fn beside(title: &str, x: &Axis, panels: &[GroupPanel]) -> Markup {
    let layout = Layout::Wide;
    let rows = Names::of(panels);
    let members = || panels.iter().flat_map(|panel| &panel.groups).flat_map(|bars| &bars.members);
    let names: Vec<String> = members().map(|member| cut(&member.name, NAME_COLUMNS)).collect();
    let groups: Vec<String> = rows.0.iter().map(|(name, _)| cut(name, NAME_COLUMNS)).collect();
    let left = (18.0 + widest(names.iter().map(String::as_str))).max(10.0 + widest(groups.iter().map(String::as_str)));
    let right = layout.right();
    let width = (right - left - BESIDE * (panels.len() as f64 - 1.0)) / panels.len() as f64;
    let plot = width - widest(members().map(|member| &*member.figure)) - FIGURE;
    let bottom = BARS_TOP + NAME + rows.height() + 6.0;
    let height = bottom + BELOW + layout.further_lines(&x.title);
    html! {
        svg.multiples viewBox=(format!("0 0 {} {height}", layout.width())) role="group" aria-label=(title) {
            @for (name, top) in rows.groups(BARS_TOP + NAME) {
                text.name.group x="0" y=(at(top + 17.0)) { (cut(name, NAME_COLUMNS)) }
            }
            @for (name, top) in rows.members(BARS_TOP + NAME) {
                text.tick x=(at(left - 10.0)) y=(at(top + BAR / 2.0 + 2.5)) text-anchor="end" { (cut(name, NAME_COLUMNS)) }
            }
            @for (index, panel) in panels.iter().enumerate() {
                @let start = left + (width + BESIDE) * index as f64;
                @let px = |value: f64| start + x.scale.place(value) * plot;
                text.name x=(at(start)) y=(at(BARS_TOP + 12.0)) { (cut(&panel.name, columns_in(width))) }
                @for (place, text) in super::layout::apart(x, px) {
                    line.grid x1=(at(place)) x2=(at(place)) y1=(at(BARS_TOP + NAME)) y2=(at(bottom)) {}
                    text.tick x=(at(place)) y=(at(bottom + 18.0)) text-anchor="middle" { (text) }
                }
                line.axis x1=(at(start)) x2=(at(start)) y1=(at(BARS_TOP + NAME)) y2=(at(bottom)) {}
                @for bars in &panel.groups {
                    @for member in &bars.members {
                        @let top = rows.top(bars, member, BARS_TOP + NAME);
                        (member.drawn(start, &px, top))
                        text.figure x=(at(member.figure_at(&px).min(start + width - width_of(&member.figure))))
                            y=(at(top + BAR / 2.0 + 2.5)) { (member.figure) }
                    }
                }
            }
            (layout.title_below(&x.title, (left + right) / 2.0, bottom + BELOW - 8.0))
        }
    }
}

/// The names that the bars of several panels have, in their order.
struct Names<'a>(Vec<(&'a str, Vec<&'a str>)>);

impl<'a> Names<'a> {
    fn of(panels: &'a [GroupPanel]) -> Self {
        let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
        for bars in panels.iter().flat_map(|panel| &panel.groups) {
            let at = all.iter().position(|(name, _)| *name == bars.name).unwrap_or_else(|| {
                all.push((&bars.name, Vec::new()));
                all.len() - 1
            });
            for member in &bars.members {
                if !all[at].1.contains(&&*member.name) {
                    all[at].1.push(&member.name);
                }
            }
        }
        Self(all)
    }

    fn height(&self) -> f64 {
        self.0.iter().map(|(name, members)| name_height(name) + BAR * members.len() as f64).sum()
    }

    /// Each group's name and its top.
    fn groups(&self, first: f64) -> impl Iterator<Item = (&'a str, f64)> {
        self.0.iter().scan(first, |next, (name, members)| {
            let top = *next;
            *next += name_height(name) + BAR * members.len() as f64;
            Some((*name, top))
        })
    }

    /// Each member's name and its top.
    fn members(&self, first: f64) -> impl Iterator<Item = (&'a str, f64)> {
        let rows = self.groups(first).zip(&self.0);
        rows.flat_map(|((group, top), (_, members))| {
            let first = top + name_height(group);
            members.iter().enumerate().map(move |(index, name)| (*name, first + BAR * index as f64))
        })
    }

    /// The top of a member of a group.
    fn top(&self, bars: &Bars, member: &Member, first: f64) -> f64 {
        let group = self.groups(first).zip(&self.0).find(|((name, _), _)| *name == bars.name);
        let index = group.and_then(|(_, (_, members))| members.iter().position(|name| *name == member.name));
        group.map_or(first, |((_, top), _)| top) + name_height(&bars.name) + BAR * index.unwrap_or_default() as f64
    }
}
