//! The width that a drawing is made for, and what text has room in it.

use super::at;
use crate::blocks::axis::Axis;
use crate::wording::wrap::wrapped;
use maud::{Markup, html};
use unicode_width::UnicodeWidthStr as _;

/// Widths in a drawing's own units, which are pixels at full width: that of a page, and that of a phone.
pub(super) const WIDE: f64 = 720.0;
const NARROW: f64 = 340.0;
/// Width of a column of text, about.
const COLUMN: f64 = 7.3;
/// Height of a line of text.
const LINE: f64 = 16.0;

/// Kind of screen that a drawing is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// Pages, print and files.
    Wide,
    /// Phones, and the columns of a printed page.
    Narrow,
}

impl Layout {
    pub(super) fn width(self) -> f64 {
        match self {
            Self::Wide => WIDE,
            Self::Narrow => NARROW,
        }
    }

    /// Returns the right edge of a plot: the last figure of its axis is written partly past it.
    pub(super) fn right(self) -> f64 {
        match self {
            Self::Wide => WIDE - 18.0,
            Self::Narrow => NARROW - 14.0,
        }
    }

    /// An axis' title in the lines that it takes.
    fn lines_of(self, title: &str) -> Vec<String> {
        wrapped(title, columns_in(self.width()))
    }

    /// Height that a title takes beyond its first line.
    pub(super) fn further_lines(self, title: &str) -> f64 {
        LINE * self.lines_of(title).len().saturating_sub(1) as f64
    }

    /// The title of a vertical axis, above it.
    pub(super) fn title_above(self, title: &str) -> Markup {
        html! {
            @for (index, line) in self.lines_of(title).iter().enumerate() {
                text.title x="0" y=(at(14.0 + LINE * index as f64)) { (line) }
            }
        }
    }

    /// The title of a horizontal axis, below the middle of it.
    pub(super) fn title_below(self, title: &str, middle: f64, y: f64) -> Markup {
        html! {
            @for (index, line) in self.lines_of(title).iter().enumerate() {
                // Where it is longer than the axis it stays inside.
                @let reach = width_of(line) / 2.0;
                @let place = middle.min(self.width() - reach).max(reach);
                text.title x=(at(place)) y=(at(y + LINE * index as f64)) text-anchor="middle" { (line) }
            }
        }
    }
}

/// Width of a text, about.
pub(super) fn width_of(text: &str) -> f64 {
    COLUMN * text.width() as f64
}

/// Columns of text that have room.
pub(super) fn columns_in(room: f64) -> usize {
    (room / COLUMN) as usize
}

/// The longest of texts, about.
pub(super) fn widest<'a>(texts: impl Iterator<Item = &'a str>) -> f64 {
    texts.map(width_of).fold(0.0, f64::max)
}

/// The places and figures of a horizontal axis: every one, or every second and so on where they would be written over each other.
pub(super) fn apart(axis: &Axis, px: impl Fn(f64) -> f64) -> Vec<(f64, &str)> {
    let mut all: Vec<(f64, &str)> = axis.ticks.iter().map(|(value, text)| (px(*value), text.as_str())).collect();
    all.sort_by(|one, other| one.0.total_cmp(&other.0));
    let is_apart = |every: usize| {
        let mut last = f64::NEG_INFINITY;
        all.iter().step_by(every).all(|(place, text)| {
            let reach = (width_of(text) + COLUMN) / 2.0;
            let begins = place - reach;
            std::mem::replace(&mut last, place + reach) < begins
        })
    };
    let every = (1..all.len()).find(|every| is_apart(*every)).unwrap_or_else(|| all.len().max(1));
    all.into_iter().step_by(every).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::axis::Scale;

    #[test]
    fn figures_that_would_be_written_over_each_other_are_left_out() {
        let ticks = (0..9).rev().map(|at| (f64::from(at), format!("{}00 us", at + 1))).collect();
        let axis = Axis { title: String::new(), scale: Scale::Linear(8.0), ticks };
        let texts = |width: f64| -> Vec<&str> {
            apart(&axis, |value| axis.scale.place(value) * width).into_iter().map(|(_, text)| text).collect()
        };
        assert_eq!(texts(600.0).len(), 9);
        assert_eq!(texts(300.0), ["100 us", "300 us", "500 us", "700 us", "900 us"]);
        assert_eq!(texts(1.0), ["100 us"]);
        assert_eq!(apart(&Axis { ticks: Vec::new(), ..axis }, |value| value), []);
    }

    #[test]
    fn a_long_title_is_broken_where_there_is_no_room() {
        let title = "payload at the receiver, Mbit/s, every 100 ms, of all flows";
        assert_eq!(Layout::Wide.further_lines(title), 0.0);
        assert_eq!(Layout::Narrow.further_lines(title), LINE);
    }
}
