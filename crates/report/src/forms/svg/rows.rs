//! Rows of bars or points with their names and figures. Wide drawings have them next to the row, narrow ones above it.

use super::at;
use super::layout::{Layout, columns_in, widest, width_of};
use crate::blocks::axis::Axis;
use crate::wording::wrap::cut;
use maud::{Markup, html};

/// Longest name next to a row, in columns of text.
pub(super) const NAME_COLUMNS: usize = 26;
/// Height of the line above a row.
const HEAD: f64 = 17.0;
/// Space between a name and its figure.
const SPACE: f64 = 12.0;

/// Measures that all rows of a drawing share.
pub(super) struct Rows {
    layout: Layout,
    /// Left and right edge of what is drawn.
    pub(super) left: f64,
    pub(super) right: f64,
}

impl Rows {
    /// Rows over an axis, with these names and figures, which are so far apart from what is drawn.
    pub(super) fn of<'a>(
        layout: Layout,
        x: &Axis,
        names: impl Iterator<Item = &'a str>,
        figures: impl Iterator<Item = &'a str>,
        apart: f64,
    ) -> Self {
        match layout {
            Layout::Wide => {
                let names =
                    widest(names.map(|name| cut(name, NAME_COLUMNS)).collect::<Vec<_>>().iter().map(String::as_str));
                Self { layout, left: 18.0 + names, right: layout.right() - widest(figures) - apart }
            }
            Layout::Narrow => {
                // Figures at the ends of the axis are written partly past them.
                let reach = widest(x.ticks.iter().map(|(_, text)| text.as_str())) / 2.0 + 1.0;
                Self { layout, left: reach, right: layout.width() - reach }
            }
        }
    }

    /// Height that a row needs above what is drawn.
    pub(super) fn head(&self) -> f64 {
        match self.layout {
            Layout::Wide => 0.0,
            Layout::Narrow => HEAD,
        }
    }

    /// The name of the row that begins at `top`; the middle of what is drawn is at `middle`.
    pub(super) fn name(&self, class: &str, name: &str, figure: &str, (top, middle): (f64, f64)) -> Markup {
        match self.layout {
            Layout::Wide => html! {
                text class=(class) x=(at(self.left - 10.0)) y=(at(middle + 4.5)) text-anchor="end" { (cut(name, NAME_COLUMNS)) }
            },
            Layout::Narrow => {
                // Capitals and signs are wider than a column.
                let room = columns_in(0.8 * (self.layout.width() - width_of(figure) - SPACE));
                html! { text class=(class) x="0" y=(at(top + 13.0)) { (cut(name, room)) } }
            }
        }
    }

    /// Draws a row's figure, which begins at `x` if it is next to the row.
    pub(super) fn figure(&self, figure: &str, x: f64, (top, middle): (f64, f64)) -> Markup {
        match self.layout {
            Layout::Wide => html! { text.figure x=(at(x)) y=(at(middle + 4.5)) { (figure) } },
            Layout::Narrow => html! {
                text.figure x=(at(self.layout.width() - 2.0)) y=(at(top + 13.0)) text-anchor="end" { (figure) }
            },
        }
    }
}
