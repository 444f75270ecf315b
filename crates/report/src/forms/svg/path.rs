//! The path of a result: the sending host, what lies between the hosts, and the receiving host, each with its stations.
//!
//! It is drawn twice: beside each other for wide pages, print and files, and below each other for narrow screens.

use super::layout::{Layout, WIDE};
use super::{at, reachable};
use crate::blocks::drawing::{HostOnPath, PathDrawing, Role, Station};
use crate::wording::wrap::cut;
use maud::{Markup, html};

/// Width of a host, and of the space between it and what lies between the hosts.
const HOST: f64 = 222.0;
const GAP: f64 = 22.0;
/// Height of a line of text, of a host's name, and of the arrow between two stations.
const LINE: f64 = 17.0;
const NAME: f64 = 24.0;
const ARROW: f64 = 14.0;
/// Space inside a station, and around the stations of a host.
const INSIDE: f64 = 8.0;
const AROUND: f64 = 8.0;

impl Role {
    fn class(&self) -> &'static str {
        match self {
            Self::None => "station",
            Self::Limits(_) => "station limits",
            Self::MayLimit(_) => "station may-limit",
        }
    }
}

impl Station {
    fn height(&self) -> f64 {
        let lines = 1 + self.facts.len() + usize::from(self.lost.is_some()) + usize::from(self.role.told().is_some());
        2.0 * INSIDE + LINE * lines as f64
    }

    fn drawn(&self, x: f64, y: f64, width: f64, height: f64) -> Markup {
        // A character takes about this many pixels.
        let columns = ((width - 2.0 * INSIDE) / 7.0) as usize;
        // A name may be of capitals and signs, which are wider.
        let baseline = |line: usize| at(y + INSIDE + LINE * line as f64 + 12.5);
        let after = 1 + self.facts.len();
        html! {
            g class=(self.role.class()) {
                (reachable(&self.label, html! {
                    rect.box x=(at(x)) y=(at(y)) width=(at(width)) height=(at(height)) rx="5" {}
                    text.name x=(at(x + INSIDE)) y=(baseline(0)) { (cut(&self.name, columns * 4 / 5)) }
                    @for (index, fact) in self.facts.iter().enumerate() {
                        text x=(at(x + INSIDE)) y=(baseline(index + 1)) { (cut(fact, columns)) }
                    }
                    @if let Some(lost) = &self.lost {
                        text.lost x=(at(x + INSIDE)) y=(baseline(after)) { (cut(&format!("\u{25bc} {lost}"), columns)) }
                    }
                    @if let Some(told) = self.role.told() {
                        text.limiting x=(at(x + INSIDE)) y=(baseline(after + usize::from(self.lost.is_some()))) {
                            (cut(&format!("\u{25c4} {told}"), columns))
                        }
                    }
                }))
            }
        }
    }
}

impl PathDrawing {
    /// The picture for a layout.
    pub(super) fn drawn(&self, title: &str, layout: Layout) -> Markup {
        match layout {
            Layout::Wide => self.wide(title),
            Layout::Narrow => self.narrow(title),
        }
    }

    /// Draws the hosts next to each other. Data goes down in the sender and up in the receiver, as through their
    /// protocol stacks.
    fn wide(&self, title: &str) -> Markup {
        let down: Vec<&Station> = self.sender.stations.iter().collect();
        let up: Vec<&Station> = self.receiver.stations.iter().rev().collect();
        let rows = down.len().max(up.len());
        // Both ends stand on the same ground: what is next to the path is lowest.
        let of = |stations: &[&Station], row: usize| {
            (row + stations.len()).checked_sub(rows).map_or(0.0, |index| stations[index].height())
        };
        let heights: Vec<f64> = (0..rows).map(|row| of(&down, row).max(of(&up, row))).collect();
        let stacked: f64 = heights.iter().sum::<f64>() + ARROW * rows.saturating_sub(1) as f64;
        let inside = stacked.max(self.between.height() - NAME);
        let heights: Vec<f64> = heights.iter().map(|height| height + (inside - stacked) / rows.max(1) as f64).collect();
        let bottom = NAME + inside + AROUND;
        let tops: Vec<f64> = heights
            .iter()
            .scan(NAME, |top, height| {
                let y = *top;
                *top += height + ARROW;
                Some(y)
            })
            .collect();
        let right = WIDE - HOST;
        let middle = tops.last().zip(heights.last()).map_or(NAME, |(top, height)| top + height / 2.0);
        let column = |stations: &[&Station], x: f64, is_down: bool| {
            let first = rows - stations.len();
            let x = x + AROUND;
            html! {
                @for (index, station) in stations.iter().enumerate() {
                    @let row = first + index;
                    (station.drawn(x, tops[row], HOST - 2.0 * AROUND, heights[row]))
                    @if index > 0 {
                        @let (from, to) = (tops[row] - ARROW, tops[row]);
                        (arrow_down(x + HOST / 2.0 - AROUND, if is_down { (from, to) } else { (to, from) }))
                    }
                }
            }
        };
        html! {
            svg.path-picture viewBox=(format!("0 0 {WIDE} {}", at(bottom + 2.0))) role="group" aria-label=(title) {
                desc { (self.description) }
                (frame(&self.sender.name, 0.0, 0.0, HOST, bottom))
                (column(&down, 0.0, true))
                (self.between.drawn(HOST + GAP, 0.0, right - HOST - 2.0 * GAP, bottom))
                (frame(&self.receiver.name, right, 0.0, HOST, bottom))
                (column(&up, right, false))
                (arrow_right((HOST - AROUND, HOST + GAP), middle))
                (arrow_right((right - GAP, right + AROUND), middle))
            }
        }
    }

    /// Draws the stations from top to bottom, in the order in which data passes them.
    fn narrow(&self, title: &str) -> Markup {
        let width = Layout::Narrow.width();
        let height = |host: &HostOnPath| {
            let stations = host.stations.iter().map(Station::height).sum::<f64>();
            NAME + stations + ARROW * (host.stations.len().saturating_sub(1)) as f64 + AROUND
        };
        let first = height(&self.sender);
        let second = height(&self.receiver);
        let between = first + ARROW;
        let last = between + self.between.height() + ARROW;
        let centre = width / 2.0;
        let host = |host: &HostOnPath, top: f64, tall: f64| {
            let tops = host.stations.iter().scan(top + NAME, |next, station| {
                let y = *next;
                *next += station.height() + ARROW;
                Some(y)
            });
            html! {
                (frame(&host.name, 0.0, top, width, tall))
                @for (index, (station, y)) in host.stations.iter().zip(tops).enumerate() {
                    (station.drawn(AROUND, y, width - 2.0 * AROUND, station.height()))
                    @if index > 0 { (arrow_down(centre, (y - ARROW, y))) }
                }
            }
        };
        html! {
            svg.path-picture viewBox=(format!("0 0 {width} {}", at(last + second + 2.0))) role="group" aria-label=(title) {
                desc { (self.description) }
                (host(&self.sender, 0.0, first))
                (arrow_down(centre, (first, between)))
                (self.between.drawn(AROUND, between, width - 2.0 * AROUND, self.between.height()))
                (arrow_down(centre, (last - ARROW, last)))
                (host(&self.receiver, last, second))
            }
        }
    }
}

/// A host with its name.
fn frame(name: &str, x: f64, y: f64, width: f64, height: f64) -> Markup {
    let columns = ((width - 2.0 * AROUND) / 9.0) as usize;
    html! {
        rect.frame x=(at(x + 0.5)) y=(at(y + 0.5)) width=(at(width - 1.0)) height=(at(height)) rx="8" {}
        text.group x=(at(x + AROUND)) y=(at(y + 17.0)) { (cut(name, columns)) }
    }
}

/// An arrow from the first height to the second.
fn arrow_down(x: f64, (from, to): (f64, f64)) -> Markup {
    let back = if to > from { -4.0 } else { 4.0 };
    let near = at(to + 2.0 * back / 4.0);
    let far = at(to + back + back / 2.0);
    html! {
        path.flow d=(format!(
            "M{x} {}V{near}M{} {far}L{x} {near}L{} {far}", at(from), at(x - 4.0), at(x + 4.0), x = at(x)
        )) {}
    }
}

/// An arrow from the first place to the second.
fn arrow_right((from, to): (f64, f64), y: f64) -> Markup {
    let tip = at(to - 1.0);
    let back = at(to - 6.0);
    html! {
        path.flow d=(format!(
            "M{} {y}H{tip}M{back} {}L{tip} {y}L{back} {}", at(from), at(y - 4.5), at(y + 4.5), y = at(y)
        )) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn station(name: &str, is_named: bool) -> Station {
        let facts = vec!["a fact".to_owned()];
        let label = name.to_owned();
        Station { name: name.to_owned(), facts, lost: None, role: Role::None, is_named, label }
    }

    fn drawing() -> PathDrawing {
        let host = |name: &str, stations| HostOnPath { name: name.to_owned(), stations };
        PathDrawing {
            description: "what it shows".to_owned(),
            sender: host("a", vec![station("program", false), station("kernel", false), station("eth0", true)]),
            between: station("path", true),
            receiver: host("b", vec![station("eth1", true), station("program", false)]),
        }
    }

    #[test]
    fn a_line_names_interfaces_and_what_happened() {
        let mut path = drawing();
        assert_eq!(path.in_a_line(), "a > eth0 > path > eth1 > b");
        path.between.role = Role::Limits("limit: wire".to_owned());
        path.receiver.stations[1].lost = Some("12 lost".to_owned());
        path.sender.stations[0].role = Role::MayLimit("possible: offered load".to_owned());
        let line = "a > program [possible: offered load] > eth0 > path [limit: wire] > eth1 > b > program [12 lost]";
        assert_eq!(path.in_a_line(), line);
    }

    /// Every box of a drawing, as left, top, width, height.
    fn boxes(drawn: &str) -> Vec<[f64; 4]> {
        let number = |rest: &str, name: &str| -> f64 {
            let value = rest.split(&format!(" {name}=\"")).nth(1).and_then(|rest| rest.split('"').next());
            value.expect("an attribute").parse().expect("a number")
        };
        let each = drawn.split("<rect class=\"box\"").skip(1).map(|rest| rest.split('>').next().expect("it ends"));
        each.map(|rest| ["x", "y", "width", "height"].map(|name| number(rest, name))).collect()
    }

    #[test]
    fn stations_do_not_overlap_and_stay_inside() {
        for drawn in [drawing().wide("t").0, drawing().narrow("t").0] {
            let all = boxes(&drawn);
            assert_eq!(all.len(), 6, "{drawn}");
            let view =
                drawn.split("viewBox=\"0 0 ").nth(1).and_then(|rest| rest.split('"').next()).expect("a view box");
            let (width, height) = view.split_once(' ').expect("two numbers");
            let (width, height): (f64, f64) = (width.parse().expect("a width"), height.parse().expect("a height"));
            for (index, [x, y, w, h]) in all.iter().enumerate() {
                assert!(*x >= 0.0 && *y >= 0.0 && x + w <= width && y + h <= height, "{index}: {drawn}");
                for [other_x, other_y, other_w, other_h] in &all[index + 1..] {
                    let apart =
                        x + w <= *other_x || other_x + other_w <= *x || y + h <= *other_y || other_y + other_h <= *y;
                    assert!(apart, "{index}: {drawn}");
                }
            }
            assert!(drawn.contains("<desc>what it shows</desc>") && drawn.contains("aria-label=\"t\""));
        }
    }
}
