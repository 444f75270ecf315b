//! Charts as inline SVG: scales, axes, lines, points and bars.
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

pub(crate) use bars::Bar;
pub use bars::Segment;
pub use groups::{Bars, GroupPanel, Member};
pub(crate) use heat::{Field, Heat, MOST_COLUMNS};
pub use lines::{Point, Series};
pub use panels::{Panel, Panels};
pub(crate) use path::{HostOnPath, PathDrawing, Role, Station};
pub(crate) use stacks::{StackedRun, StackedRuns, StackedShare};
pub(crate) use steps::{PLOT, Stretch, Trace, Traces};
pub(crate) use strips::{Run, Strip, Strips};
pub(crate) use timeline::{Sign, TimeBar, TimeRow, TimeRows};

use crate::figures::{nanos, prefix};
use crate::language::Language;
use crate::said;
use layout::Layout;
use maud::{Markup, html};

/// What a chart draws.
pub(crate) enum Drawing {
    /// Lines over two axes.
    Lines { x: Axis, y: Axis, series: Vec<Series> },
    /// Several of these next to each other.
    Panels(Panels),
    /// Horizontal bars over one axis.
    Bars { x: Axis, bars: Vec<Bar> },
    /// Horizontal bars in groups.
    Groups { x: Axis, panels: Vec<GroupPanel> },
    /// Each run of a result as a point.
    Strips { x: Axis, groups: Vec<Strips> },
    /// Horizontal bars from moment to moment.
    Timeline { x: Axis, groups: Vec<TimeRows> },
    /// Values in rows and columns.
    Heat(Heat),
    /// Lines of steps over time.
    Steps(Traces),
    /// Shares over time.
    Stacks(StackedRuns),
    /// Hosts and what lies between them.
    Path(PathDrawing),
}

impl Drawing {
    /// Style sheet class of the line that stands for a colour in a legend.
    pub(crate) fn key(&self, class: &str) -> &'static str {
        let over_time = matches!(self, Self::Steps(_) | Self::Stacks(_));
        // Runs differ by colour alone: dashes would be taken for gaps.
        if over_time && class != "limit" { "run" } else { "line" }
    }

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

/// How values become places on an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// From zero to the value.
    Linear(f64),
    /// From the one value to the other.
    Between(f64, f64),
    /// Logarithmic between two values above zero.
    Log(f64, f64),
    /// Shares at or below, by their nines: 90 %, 99 %, 99.9 % are equally far apart. So many nines.
    Nines(f64),
}

impl Scale {
    /// The place of `value` between 0 and 1; what lies outside is drawn at the edge.
    fn place(self, value: f64) -> f64 {
        let place = match self {
            Self::Linear(top) => value / top,
            Self::Between(low, high) => (value - low) / (high - low),
            Self::Log(low, high) => (value.max(low) / low).ln() / (high / low).ln(),
            Self::Nines(most) => -(1.0 - value.clamp(0.0, 1.0)).max(1e-12).log10() / most,
        };
        if place.is_finite() { place.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// A linear scale with room above `most`, ending at a round number.
    pub fn up_to(most: f64) -> Self {
        let most = if most.is_finite() && most > 0.0 { most } else { 1.0 };
        Self::Linear((most / step(most)).ceil() * step(most))
    }
}

/// A round step that divides `most` into four to eight parts.
fn step(most: f64) -> f64 {
    let power = 10f64.powf((most / 8.0).log10().floor());
    [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().map(|round| round * power).find(|step| most / step <= 8.0).unwrap_or(power)
}

/// An axis: its title, its scale, and where it says what.
pub struct Axis {
    pub title: String,
    pub scale: Scale,
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    /// A linear axis from zero past `most`, in the prefix that fits.
    pub fn rate(lang: Language, what: impl Into<String>, unit: &str, most: f64) -> Self {
        let scale = Scale::up_to(most);
        let Scale::Linear(top) = scale else { unreachable!("up_to is linear") };
        let (one, prefix) = prefix(top);
        let ticks = marks(most, top).map(|value| (value, trimmed(value / one))).collect();
        Self { title: Self::titled(lang, &what.into(), &format!("{prefix}{unit}")), scale, ticks }
    }

    /// A linear axis of times from zero past `most`, nanoseconds.
    pub fn time(what: impl Into<String>, most: f64) -> Self {
        let scale = Scale::up_to(most);
        let Scale::Linear(top) = scale else { unreachable!("up_to is linear") };
        // Zero has no unit, as on the other axes.
        let text = |value: f64| if value > 0.0 { nanos(value.round() as u64) } else { "0".to_owned() };
        let ticks = marks(most, top).map(|value| (value, text(value))).collect();
        Self { title: what.into(), scale, ticks }
    }

    /// A linear axis of shares from zero past `most`, in percent.
    pub fn share(lang: Language, what: &str, most: f64) -> Self {
        let scale = Scale::up_to(most);
        let Scale::Linear(top) = scale else { unreachable!("up_to is linear") };
        let ticks = marks(most, top).map(|value| (value, trimmed(value * 100.0))).collect();
        Self { title: Self::titled(lang, what, "%"), scale, ticks }
    }

    /// The title of an axis: what it shows, and in which unit.
    pub fn titled(lang: Language, what: &str, unit: &str) -> String {
        if unit.is_empty() { what.to_owned() } else { [what, unit].join(&said!(lang, "list-comma")) }
    }
}

impl Axis {
    /// A linear axis around what lies between `low` and `high`, near each other and maybe far from zero. `one` is the value of its
    /// unit.
    pub(crate) fn around(lang: Language, what: &str, (one, unit): (f64, &str), low: f64, high: f64) -> Self {
        // What is all the same is not drawn as if it were far apart.
        let room = ((high - low) * 0.05).max(if high > 0.0 { high * 0.01 } else { one });
        let (low, high) = ((low - room).max(0.0), high + room);
        let step = step(high - low);
        let (first, last) = ((low / step).floor(), (high / step).ceil());
        let counts = first as i64..=last as i64;
        let ticks = counts.map(|count| count as f64 * step).map(|value| (value, trimmed(value / one))).collect();
        Self { title: Self::titled(lang, what, unit), scale: Scale::Between(first * step, last * step), ticks }
    }
}

impl Axis {
    /// A linear axis of seconds from `low` to `high`.
    pub(crate) fn seconds(title: impl Into<String>, low: f64, high: f64) -> Self {
        let step = step((high - low).max(f64::MIN_POSITIVE));
        let counts = (low / step).ceil() as i64..=(high / step * 1.000_1).floor() as i64;
        let ticks = counts.map(|count| count as f64 * step).map(|value| (value, trimmed(value))).collect();
        Self { title: title.into(), scale: Scale::Between(low, high), ticks }
    }
}

/// The round values from zero to the axis' end.
fn marks(most: f64, top: f64) -> impl Iterator<Item = f64> {
    let step = step(most.max(f64::MIN_POSITIVE));
    (0..=8).map(move |index| f64::from(index) * step).take_while(move |value| *value <= top * 1.000_1)
}

/// A number without zeros at its end.
fn trimmed(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

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

/// From the lowest to the highest run, along a bar whose middle is there.
fn whisker(low: f64, high: f64, middle: f64) -> Markup {
    let (low, high, top, bottom) = (at(low), at(high), at(middle - 4.0), at(middle + 4.0));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_stay_on_the_axis() {
        for scale in [Scale::up_to(941e6), Scale::Between(930e6, 950e6), Scale::Log(64.0, 1472.0), Scale::Nines(4.0)] {
            for value in [f64::NAN, f64::INFINITY, -1.0, 0.0, 0.999, 1e3, 1e30] {
                assert!((0.0..=1.0).contains(&scale.place(value)), "{scale:?} {value}");
            }
        }
        assert!((Scale::Nines(4.0).place(0.99) - 0.5).abs() < 1e-9);
        assert!((Scale::Log(64.0, 1024.0).place(256.0) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn axes_end_at_round_numbers_past_the_most() {
        for most in [0.0, 1.0, 94.1, 957e6, 9.41e9, 1.0001e9] {
            let axis = Axis::rate(Language::English, "payload", "bit/s", most);
            let Scale::Linear(top) = axis.scale else { panic!("not linear") };
            assert!(top >= most && top <= most * 1.4 + 1.0, "{most}: {top}");
            assert!((4..=9).contains(&axis.ticks.len()), "{most}: {:?}", axis.ticks);
        }
        assert_eq!(Axis::rate(Language::English, "payload", "bit/s", 957e6).title, "payload, Gbit/s");
        assert_eq!(Axis::rate(Language::Japanese, "payload", "bit/s", 957e6).title, "payload\u{3001}Gbit/s");
        assert_eq!(Axis::share(Language::Japanese, "lost", 0.1).title, "lost\u{3001}%");
        assert_eq!(Axis::around(Language::Japanese, "share", (0.01, "%"), 0.9, 1.1).title, "share\u{3001}%");
        assert_eq!(Axis::rate(Language::English, "held", "", 9.0).title, "held", "a count has no unit");
        let times: Vec<String> = Axis::time("buffer", 426e3).ticks.into_iter().map(|(_, text)| text).collect();
        assert_eq!(times, ["0", "100 us", "200 us", "300 us", "400 us", "500 us"]);
    }

    #[test]
    fn seconds_may_begin_before_zero() {
        let axis = Axis::seconds("s", -0.52, 2.0);
        let texts: Vec<&str> = axis.ticks.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["-0.5", "0", "0.5", "1", "1.5", "2"]);
        assert!(axis.scale.place(-0.52) == 0.0 && axis.scale.place(2.0) == 1.0);
    }

    #[test]
    fn an_axis_around_values_does_not_begin_at_zero() {
        for (low, high) in [(940.1e6, 941.7e6), (94e6, 94e6), (0.0, 0.0), (1e3, 9.4e9)] {
            let axis = Axis::around(Language::English, "payload", (1e6, "Mbit/s"), low, high);
            let Scale::Between(from, to) = axis.scale else { panic!("not between") };
            assert!(from <= low && high <= to && from >= 0.0 && to > from, "{low} {high}: {from} {to}");
            assert!((2..=11).contains(&axis.ticks.len()), "{low} {high}: {:?}", axis.ticks);
        }
        let axis = Axis::around(Language::English, "payload", (1e6, "Mbit/s"), 940.1e6, 941.7e6);
        assert_eq!(axis.title, "payload, Mbit/s");
        let Scale::Between(from, to) = axis.scale else { panic!("not between") };
        // 1 % around them at the least: what hardly differs is not made to look as if it did.
        assert!(from > 900e6 && to < 980e6 && to - from >= 0.02 * 940e6, "{from} {to}");
    }
}
