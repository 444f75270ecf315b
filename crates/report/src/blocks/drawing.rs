//! Drawings of charts as data: lines, bars, areas and their labels. `forms/svg` draws them.

use crate::blocks::axis::Axis;

/// Drawing of a chart, by its kind.
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
    /// Returns the sign of a class in a legend.
    pub(crate) fn key(&self, class: &str) -> Key {
        let series: Vec<&Series> = match self {
            Self::Lines { series, .. } => series.iter().collect(),
            Self::Panels(panels) => panels.panels.iter().flat_map(|panel| &panel.series).collect(),
            // Runs differ by colour alone: dashes would be taken for gaps.
            Self::Steps(_) | Self::Stacks(_) if class != "limit" => return Key::Line("run"),
            _ => Vec::new(),
        };
        let is_line = ["limit", "tester", "solid", "around", "spoilt"].contains(&class)
            || series.iter().any(|series| series.class == class && !series.line.is_empty());
        if is_line { Key::Line("line") } else { Key::Area }
    }
}

/// Sign of a class in a legend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    /// A line of this style sheet class.
    Line(&'static str),
    /// An area: of bars, points and fields.
    Area,
}

/// A point that a reader can reach.
pub struct Point {
    pub x: f64,
    pub y: f64,
    /// Lowest and highest run.
    pub spread: Option<(f64, f64)>,
    /// Text shown when the point is pointed at.
    pub label: String,
}

/// A line, and the points on it that can be reached.
pub struct Series {
    /// Style sheet class: colour and dashes.
    pub class: &'static str,
    pub line: Vec<(f64, f64)>,
    pub points: Vec<Point>,
}

/// Plot of several lines.
pub struct Panel {
    pub name: String,
    pub series: Vec<Series>,
}

/// Plots over the same axes.
pub struct Panels {
    pub x: Axis,
    pub y: Axis,
    /// Number of plots in a row, if there is room.
    pub columns: usize,
    pub panels: Vec<Panel>,
}

/// A piece of a bar.
pub struct Segment {
    pub class: &'static str,
    pub value: f64,
    pub label: String,
}

/// A horizontal bar of one or more pieces.
pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) segments: Vec<Segment>,
    /// Lowest and highest run.
    pub(crate) spread: Option<(f64, f64)>,
    /// Limits as lines across the bar.
    pub(crate) limits: Vec<Segment>,
    /// The figure at the bar's end.
    pub(crate) figure: String,
}

/// A bar of a group.
pub struct Member {
    pub name: String,
    pub segment: Segment,
    /// Lowest and highest run.
    pub spread: Option<(f64, f64)>,
    pub limit: Option<Segment>,
    /// The figure at the bar's end.
    pub figure: String,
}

impl Member {
    /// Returns the highest value that is drawn of the bar.
    pub fn reach(&self) -> f64 {
        let limit = self.limit.as_ref().map_or(0.0, |limit| limit.value);
        self.spread.map_or(0.0, |(_, high)| high).max(self.segment.value).max(limit)
    }
}

/// Bars that belong together.
pub struct Bars {
    pub name: String,
    pub members: Vec<Member>,
}

/// Groups that belong together; without a name where they are all.
pub struct GroupPanel {
    pub name: String,
    pub groups: Vec<Bars>,
}

/// A run: its value, and what it says when it is pointed at.
pub(crate) struct Run {
    pub(crate) value: f64,
    pub(crate) label: String,
}

/// The runs of a result.
pub(crate) struct Strip {
    pub(crate) name: String,
    /// Style sheet class: the colour.
    pub(crate) class: &'static str,
    pub(crate) runs: Vec<Run>,
    pub(crate) median: Run,
    /// The median as the figure at the end.
    pub(crate) figure: String,
}

/// Strips that belong together, under a name if there are others.
pub(crate) struct Strips {
    pub(crate) name: String,
    pub(crate) members: Vec<Strip>,
}

/// Mark that sets a bar apart from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    /// A triangle that points up.
    Up,
    /// A triangle that points down.
    Down,
}

/// A bar, times in seconds.
pub(crate) struct TimeBar {
    /// Style sheet class: the colour, and how its outline is drawn.
    pub(crate) class: &'static str,
    pub(crate) from: f64,
    pub(crate) to: f64,
    /// Span of which the bar is a part, drawn as a thin line.
    pub(crate) around: (f64, f64),
    /// Text inside the bar, if there is room.
    pub(crate) text: String,
    /// Text shown when the bar is pointed at.
    pub(crate) label: String,
    /// Whether it is crossed out.
    pub(crate) is_crossed: bool,
    /// Whether its end is drawn strong.
    pub(crate) has_strong_end: bool,
    pub(crate) sign: Option<Sign>,
}

/// Bars that follow each other.
pub(crate) struct TimeRow {
    pub(crate) name: String,
    pub(crate) bars: Vec<TimeBar>,
    /// The figure at the end.
    pub(crate) figure: String,
}

/// Rows that belong together, under a name if there are others.
pub(crate) struct TimeRows {
    pub(crate) name: String,
    pub(crate) rows: Vec<TimeRow>,
}

/// More find no room for their figures.
pub(crate) const MOST_COLUMNS: usize = 14;

/// A field.
pub(crate) struct Field {
    /// Value that its colour shows.
    pub(crate) value: f64,
    /// Text printed in it.
    pub(crate) figure: String,
    /// Text shown when the field is pointed at.
    pub(crate) label: String,
}

/// Fields in rows and columns, all of which have a name.
pub(crate) struct Heat {
    pub(crate) row_title: String,
    pub(crate) column_title: String,
    pub(crate) rows: Vec<String>,
    pub(crate) columns: Vec<String>,
    /// Fields of each row; `None` for an unknown value.
    pub(crate) fields: Vec<Vec<Option<Field>>>,
}

impl Heat {
    fn values(&self) -> impl Iterator<Item = f64> {
        self.fields.iter().flatten().flatten().map(|field| field.value)
    }

    /// The lowest and the highest value.
    pub(crate) fn extremes(&self) -> Option<(f64, f64)> {
        self.values().reduce(f64::min).zip(self.values().reduce(f64::max))
    }
}

/// Width of a plot over time, in pixels at full width.
pub(crate) const PLOT: f64 = 618.0;

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
    /// Text shown when the line is pointed at.
    pub(crate) label: String,
    pub(crate) stretches: Vec<Stretch>,
}

/// Lines of steps over time.
pub(crate) struct Traces {
    pub(crate) x: Axis,
    /// Number of the group of charts that share its axis.
    pub(crate) group: usize,
    pub(crate) y: Axis,
    /// Start and end of the measured window, in seconds; `None` if all was measured.
    pub(crate) window: Option<(f64, f64)>,
    /// Times in which the path carried nothing, seconds.
    pub(crate) outages: Vec<(f64, f64)>,
    /// A value that cannot be exceeded, and what it says when it is pointed at.
    pub(crate) limit: Option<(f64, String)>,
    pub(crate) traces: Vec<Trace>,
}

/// A share of a run.
pub(crate) struct StackedShare {
    /// Style sheet class: the colour.
    pub(crate) class: &'static str,
    /// Text shown when the area is pointed at.
    pub(crate) label: String,
    /// Upper edge, from 0 to 1: its own share plus those of all shares below it.
    pub(crate) tops: Vec<Stretch>,
}

/// A run.
pub(crate) struct StackedRun {
    pub(crate) name: String,
    /// The lowest first.
    pub(crate) shares: Vec<StackedShare>,
}

/// Runs below each other over one axis of time.
pub(crate) struct StackedRuns {
    pub(crate) x: Axis,
    /// Number of the group of charts that share its axis.
    pub(crate) group: usize,
    pub(crate) runs: Vec<StackedRun>,
}

/// A path from left to right.
pub(crate) struct PathDrawing {
    /// Sentences that describe the picture.
    pub(crate) description: String,
    pub(crate) sender: HostOnPath,
    pub(crate) between: Station,
    pub(crate) receiver: HostOnPath,
}

/// Host at one end of a path.
pub(crate) struct HostOnPath {
    pub(crate) name: String,
    /// In the order in which data passes them, at least one.
    pub(crate) stations: Vec<Station>,
}

/// A place that data passes.
pub(crate) struct Station {
    pub(crate) name: String,
    /// Facts, one for each line.
    pub(crate) facts: Vec<String>,
    /// Loss at this place.
    pub(crate) lost: Option<String>,
    /// Whether it limits the result.
    pub(crate) role: Role,
    /// Whether a line of text names it though nothing happened there.
    pub(crate) is_named: bool,
    /// Text shown when the station is pointed at.
    pub(crate) label: String,
}

/// Whether a station limits the result, and by what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Role {
    None,
    Limits(String),
    /// Possible limit among several, or one that was reached as well.
    MayLimit(String),
}

impl Role {
    /// Returns the text written at the station.
    pub(crate) fn told(&self) -> Option<&str> {
        match self {
            Self::None => None,
            Self::Limits(told) | Self::MayLimit(told) => Some(told),
        }
    }
}

impl Station {
    /// Returns the station's name with its limit and its loss, `None` if it has neither and is not always named.
    fn in_a_line(&self) -> Option<String> {
        let marks: Vec<&str> = self.role.told().into_iter().chain(self.lost.as_deref()).collect();
        if marks.is_empty() {
            self.is_named.then(|| self.name.clone())
        } else {
            Some(format!("{} [{}]", self.name, marks.join("; ")))
        }
    }
}

impl PathDrawing {
    /// The path in a line of text: `a > eth0 > path [limit: wire] > eth0 > b`.
    pub(crate) fn in_a_line(&self) -> String {
        let stations = |host: &HostOnPath| host.stations.iter().filter_map(Station::in_a_line).collect::<Vec<_>>();
        let mut all = vec![self.sender.name.clone()];
        all.extend(stations(&self.sender));
        all.extend(self.between.in_a_line());
        let mut far = stations(&self.receiver);
        // The host's name stands behind its interface, and before what happened in it.
        let at = self.receiver.stations.iter().take_while(|station| station.is_named).count().min(far.len());
        far.insert(at, self.receiver.name.clone());
        all.extend(far);
        all.join(" > ")
    }

    /// Every station, in the order in which data passes them, with the host that it belongs to.
    pub(crate) fn stations(&self) -> impl Iterator<Item = (Option<&str>, &Station)> {
        let sender = self.sender.stations.iter().map(|station| (Some(self.sender.name.as_str()), station));
        let receiver = self.receiver.stations.iter().map(|station| (Some(self.receiver.name.as_str()), station));
        sender.chain([(None, &self.between)]).chain(receiver)
    }
}

/// The farthest that any bar, whisker or limit reaches.
pub(crate) fn reach(bars: &[Bar]) -> f64 {
    let of = |bar: &Bar| {
        let whole = bar.segments.iter().map(|segment| segment.value).sum::<f64>();
        bar.limits.iter().map(|limit| limit.value).chain(bar.spread.map(|(_, high)| high)).fold(whole, f64::max)
    };
    bars.iter().map(of).fold(0.0, f64::max)
}
