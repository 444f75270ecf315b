//! Charts as inline SVG: lines, points, bars and their axes.
//!
//! Our own and not a plotting library's, because a reader must be able to reach every point by keyboard and screen
//! reader, and because colours must follow the page's light or dark theme. kuva 0.6, which draws well otherwise, writes neither
//! focusable points nor anything for a style sheet to hold on to.

mod bars;
mod groups;
mod heat;
mod layout;
mod lines;
mod panels;
mod path;
mod rows;
mod stacks;
mod steps;
mod strips;
mod timeline;

use crate::blocks::axis::{Axis, trimmed};
use crate::blocks::chart::Chart;
use crate::blocks::drawing::Drawing;
use layout::Layout;
use maud::{Markup, html};

impl Chart {
    /// The SVG element.
    pub(crate) fn drawn(&self) -> Markup {
        self.drawing.drawn(&self.title)
    }

    /// The SVG element for narrow screens.
    pub(crate) fn drawn_narrow(&self) -> Markup {
        self.drawing.drawn_narrow(&self.title)
    }
}

impl Drawing {
    /// The SVG element, called by the chart's title.
    pub(crate) fn drawn(&self, title: &str) -> Markup {
        self.laid_out(title, Layout::Wide)
    }

    /// The SVG element for narrow screens.
    pub(crate) fn drawn_narrow(&self, title: &str) -> Markup {
        self.laid_out(title, Layout::Narrow)
    }

    fn laid_out(&self, title: &str, layout: Layout) -> Markup {
        match self {
            Self::Lines { x, y, series } => lines::lines(title, layout, x, y, series),
            Self::Panels(chart) => panels::panels(title, layout, chart),
            Self::Bars { x, bars } => bars::bars(title, layout, x, bars),
            Self::Groups { x, panels } => groups::groups(title, layout, x, panels),
            Self::Strips { x, groups } => strips::strips(title, layout, x, groups),
            Self::Timeline { x, groups } => timeline::timeline(title, layout, x, groups),
            Self::Heat(map) => heat::heat(title, layout, map),
            Self::Steps(chart) => steps::steps(title, layout, chart),
            Self::Stacks(chart) => stacks::stacks(title, layout, chart),
            Self::Path(path) => path.drawn(title, layout),
        }
    }
}

/// Top of bars, which have no title above them.
const BARS_TOP: f64 = 8.0;
/// Height of the axis below bars.
const BELOW: f64 = 50.0;

/// The axis of what lies horizontally: its lines from top to bottom, its figures and its title below.
fn axis_below(layout: Layout, x: &Axis, left: f64, right: f64, bottom: f64) -> Markup {
    let px = |value: f64| left + x.scale.place(value) * (right - left);
    html! {
        @for (place, text) in layout::apart(x, px) {
            line.grid x1=(at(place)) x2=(at(place)) y1=(at(BARS_TOP)) y2=(at(bottom)) {}
            text.tick x=(at(place)) y=(at(bottom + 18.0)) text-anchor="middle" { (text) }
        }
        (layout.title_below(&x.title, (left + right) / 2.0, bottom + BELOW - 8.0))
    }
}

/// Draws a line from the lowest to the highest run, along a bar with this middle.
fn whisker(low: f64, high: f64, middle: f64) -> Markup {
    let low = at(low);
    let high = at(high);
    let top = at(middle - 4.0);
    let bottom = at(middle + 4.0);
    html! { path.whisker.over d=(format!("M{low} {top}V{bottom}M{low} {}H{high}M{high} {top}V{bottom}", at(middle))) {} }
}

/// A mark that says `label` when it is pointed at, focused or read out. The page's script makes a chart one stop of the tab key; without
/// it no point is a stop, for hundreds of them would stand between a reader and the text, and the table has the figures.
fn reachable(label: &str, mark: Markup) -> Markup {
    html! { g.point role="img" aria-label=(label) data-label=(label) { title { (label) } (mark) } }
}

/// A coordinate, to a tenth of a pixel.
fn at(place: f64) -> String {
    if place.is_finite() { trimmed((place * 10.0).round() / 10.0) } else { "0".to_owned() }
}
