//! Points along a factor of numbers (`by_class.rs` joins those of several measures by lines), next to each other
//! (`multiples.rs`) for the levels of further factors; grouped bars for the rest, each with what the medium can carry;
//! heat maps and repeats.

use super::multiples::{Legend, Over, Plot};
use super::pivot::Pivot;
use super::shape::{Facet, Shape, named};
use super::{by_class, heat, multiples, repeats};
use crate::findings::data::Data;
use crate::findings::words::with_semicolons;
use crate::study::FactorOf;
use linerate_model::MeasureUnit;
use linerate_report::parts::values::value;
use linerate_report::parts::wording::{listed, sentence};
use linerate_report::parts::{Axis, Bars, GroupPanel, Member, Point, SERIES, Segment, Series, lowest, rate_axis};
use linerate_report::{Chart, Language, Table, plain, said};

/// Places between the lowest and the highest size at which a limit is drawn.
const STEPS: u32 = 160;
/// Bars of one chart.
const MOST_BARS: usize = 60;

/// Returns all charts, with a heat map of the named factors, of a mesh of hosts, or of the only two factors.
pub(crate) fn all(lang: Language, data: &Data<'_>, pivot: Option<&Pivot>) -> Vec<Chart> {
    let shapes: Vec<Shape> = data.measures().map(|(measure, _)| Shape::of(data, measure)).collect();
    let two_factors = || Pivot::of_two(data.study).filter(|_| shapes.iter().all(|shape| shape.axis.is_none()));
    let two = pivot.cloned().or_else(|| Pivot::mesh(data.study)).or_else(two_factors);
    let mut charts: Vec<Chart> = two.iter().flat_map(|pivot| heat::charts(lang, data, pivot)).collect();
    let (classes, alone) = by_class::sorted(data, &shapes);
    charts.extend(classes.iter().flat_map(|classes| by_class::charts(lang, data, classes)));
    charts.extend(alone.into_iter().flat_map(|shape| lines(lang, data, shape)));
    // Measures of one unit stand beside each other where no factor has the colours.
    match shapes.as_slice() {
        [first, ..] if shapes.len() > 1 && shapes.iter().all(|shape| shape.axis.is_none()) && one_unit(data) => {
            charts.extend(measures_beside(lang, data, first));
        }
        shapes => charts.extend(shapes.iter().filter_map(|shape| bars(lang, data, shape))),
    }
    charts.extend(shapes.iter().filter_map(|shape| repeats::chart(lang, data, shape)));
    charts
}

fn one_unit(data: &Data<'_>) -> bool {
    data.measures().all(|(_, measure)| measure.unit == data.study.measures[0].unit)
}

/// Returns an axis of a measure's values past `most`: from zero, or logarithmic for rates over several decades.
pub(super) fn axis(data: &Data<'_>, what: &str, measure: usize, most: f64) -> Axis {
    let unit = data.study.measures[measure].unit;
    // Measures of one unit may share the axis.
    let alike = || data.measures().filter(|(_, other)| other.unit == unit);
    let low = || {
        let values = alike().flat_map(|(of, _)| data.study.cells.iter().flat_map(move |cell| cell.values[of].iter()));
        lowest(values.copied())
    };
    match unit {
        MeasureUnit::BitsPerS => rate_axis(data.lang, what.to_owned(), "bit/s", low(), most),
        MeasureUnit::PerS => rate_axis(data.lang, what.to_owned(), "/s", low(), most),
        MeasureUnit::Nanos | MeasureUnit::NanosHeld => Axis::time(what, most),
        MeasureUnit::Times => Axis::rate(data.lang, what, "x", most),
        MeasureUnit::Count => Axis::rate(data.lang, what, "", most),
        MeasureUnit::Share => Axis::share(data.lang, what, most),
    }
}

/// Returns the highest value that is drawn of these cells.
pub(super) fn top(data: &Data<'_>, measure: usize, cells: &[usize]) -> f64 {
    let values = cells.iter().flat_map(|cell| &data.study.cells[*cell].values[measure]).copied();
    let limits = cells.iter().filter_map(|cell| data.limit(*cell, measure)).map(|limit| limit.high);
    values.chain(limits).fold(0.0, f64::max)
}

pub(super) fn spread(data: &Data<'_>, cell: usize, measure: usize) -> Option<(f64, f64)> {
    let values = &data.study.cells[cell].values[measure];
    let low = values.iter().copied().reduce(f64::min)?;
    let high = values.iter().copied().reduce(f64::max)?;
    (values.len() > 1).then_some((low, high))
}

/// Returns the label of a result.
pub(super) fn said(lang: Language, data: &Data<'_>, cell: usize, measure: usize) -> String {
    let named = &data.study.measures[measure];
    let reached = figure(data, cell, measure);
    let share = data.shown_share(cell, measure).map_or_else(String::new, |share| {
        said!(lang, "study-charts-point-of-medium", ", {share} of what the medium can carry", share = share)
    });
    plain(&format!("{}: {} {reached}{share}", data.cell_name(cell, &[]), named.title))
}

/// Returns the levels of the colours with their class; without a factor everything has the first.
pub(super) fn colour(data: &Data<'_>, shape: &Shape, cell: usize) -> (usize, String) {
    let level = shape.series.and_then(|factor| Some((factor, data.study.cells[cell].levels[factor]?)));
    level.map_or_else(
        || (0, data.study.measures[shape.measure].title.clone()),
        |(factor, level)| (level, data.name_of(factor, level)),
    )
}

pub(super) fn class(data: &Data<'_>, shape: &Shape, level: usize) -> &'static str {
    let levels = shape.series.map_or(&[][..], |factor| &data.study.factors[factor].levels[..]);
    // The second colour is too near that of the tester.
    let past = usize::from(level > 0 && levels.iter().any(|level| level.tester));
    if levels.get(level).is_some_and(|level| level.tester) { "tester" } else { SERIES[(level + past) % SERIES.len()] }
}

/// Cells of one measure along an axis.
pub(super) struct Line {
    pub(super) class: &'static str,
    pub(super) name: String,
    pub(super) measure: usize,
    pub(super) cells: Vec<usize>,
    /// Whether a line joins them. Message sizes are not joined: nothing was measured between them.
    pub(super) joined: bool,
}

/// Draws the points of each facet, of all lines of one measure.
fn lines(lang: Language, data: &Data<'_>, shape: &Shape) -> Vec<Chart> {
    let (measure, Some(factor)) = (shape.measure, shape.axis) else { return Vec::new() };
    let along_sizes = data.study.factors[factor].of == Some(FactorOf::Message);
    let plot = |facet: Facet| {
        let mut members: Vec<(usize, Line)> = Vec::new();
        for cell in &facet.cells {
            let (level, name) = colour(data, shape, *cell);
            match members.iter_mut().find(|(known, _)| *known == level) {
                Some((_, line)) => line.cells.push(*cell),
                None => {
                    let class = class(data, shape, level);
                    members.push((level, Line { class, name, measure, cells: vec![*cell], joined: false }));
                }
            }
        }
        members.sort_by_key(|(level, _)| *level);
        let x_of = |cell| multiples::place(data, factor, cell);
        Plot {
            limits: limit_lines(lang, data, measure, &facet.cells, &x_of, along_sizes),
            top: top(data, measure, &facet.cells),
            lines: members.into_iter().map(|(_, line)| line).collect(),
            levels: facet.levels,
        }
    };
    let plots = shape.facets(data, false).into_iter().map(plot).collect();
    let over = Over { factor, measures: &[measure], what: &data.study.measures[measure].title };
    multiples::charts(lang, data, &over, plots)
}

/// Draws the limit of each medium along the axis: its lowest and highest value if the counted layer is unknown.
fn limit_lines(
    lang: Language,
    data: &Data<'_>,
    measure: usize,
    cells: &[usize],
    x_of: &impl Fn(usize) -> f64,
    along_sizes: bool,
) -> (Vec<Series>, Legend) {
    /// Limits closer than this are drawn as one.
    const ALIKE: f64 = 1.02;
    /// Place, lowest and highest limit.
    type Range = (f64, f64, f64);
    let mut lines: Vec<(String, usize, Vec<Range>)> = Vec::new();
    for cell in cells {
        let (Some(limit), Some(medium)) = (data.limit(*cell, measure), data.medium(*cell, measure)) else { continue };
        let name = medium.to_string();
        let place = (x_of(*cell), limit.low, limit.high);
        match lines.iter_mut().find(|(known, ..)| *known == name) {
            Some((.., places)) if places.iter().any(|known| known.0 == place.0) => {}
            Some((.., places)) => places.push(place),
            None => lines.push((name, *cell, vec![place])),
        }
    }
    let (mut series, mut most) = (Vec::new(), Vec::new());
    let unit = data.study.measures[measure].unit;
    for (name, cell, places) in &mut lines {
        places.sort_by(|a, b| a.0.total_cmp(&b.0));
        let apart = places.iter().any(|(_, low, high)| high / low > ALIKE);
        let (first, last) = (places[0], places[places.len() - 1]);
        let both = if apart {
            said!(lang, "study-charts-limit-between", ", as payload (lower) or as frames with their FCS (upper)")
        } else {
            String::new()
        };
        let flat = if first.2 == last.2 { format!(" {}", value(first.2, unit)) } else { String::new() };
        most.push(format!("{name}{flat}{both}"));
        // Between the sizes measured it is no straight line.
        let between: Vec<Range> = match along_sizes {
            true => (0..=STEPS)
                .map(|step| (first.0 * (last.0 / first.0).powf(f64::from(step) / f64::from(STEPS))).round())
                .filter_map(|size| data.range_at(*cell, measure, size as u64).map(|(low, high)| (size, low, high)))
                .collect(),
            false => places.clone(),
        };
        let mut line = |of: &dyn Fn(&Range) -> f64, what: &str| {
            let points = places.iter().map(|place| Point {
                x: place.0,
                y: of(place),
                spread: None,
                label: said!(
                    lang,
                    "study-charts-point-limit",
                    "{name} can carry {unit}{what}",
                    name = &*name,
                    unit = value(of(place), unit),
                    what = what
                ),
            });
            series.push(Series {
                class: "limit",
                line: between.iter().map(|place| (place.0, of(place))).collect(),
                points: points.collect(),
            });
        };
        if apart {
            line(&|place| place.1, &said!(lang, "study-charts-limit-payload", ", if payload is counted"));
            line(&|place| place.2, &said!(lang, "study-charts-limit-frames", ", if frames with their FCS are counted"));
        } else {
            line(&|place| place.2, "");
        }
    }
    let legend = if most.is_empty() {
        Vec::new()
    } else {
        vec![(
            "limit",
            said!(
                lang,
                "study-charts-legend-limit-of",
                "what the medium can carry: {most}",
                most = with_semicolons(lang, &most)
            ),
        )]
    };
    (series, legend)
}

/// Draws the cells without a level of the axis' factor, or all cells if there is none.
fn bars(lang: Language, data: &Data<'_>, shape: &Shape) -> Option<Chart> {
    let facets = shape.facets(data, true);
    let split = multiples::split(&facets.iter().map(|facet| facet.levels.as_slice()).collect::<Vec<_>>());
    // Bars of one colour are named by what else differs; the title says what they show.
    let has_level = |cell: &usize| shape.series.is_some_and(|factor| data.study.cells[*cell].levels[factor].is_some());
    let is_one_colour = !facets.iter().flat_map(|facet| &facet.cells).any(has_level);
    let mut legend: Legend = Vec::new();
    let mut cells = Vec::new();
    let mut panels: Vec<GroupPanel> = Vec::new();
    for facet in &facets {
        if !cells.is_empty() && cells.len() + facet.cells.len() > MOST_BARS {
            break;
        }
        let differing = plain(&named(data, &facet.levels, split.as_slice()));
        let mut members = Vec::new();
        for cell in facet.cells.iter().take(MOST_BARS) {
            let (level, name) = colour(data, shape, *cell);
            let class = class(data, shape, level);
            if !is_one_colour && !legend.iter().any(|(known, text)| *known == class && *text == name) {
                legend.push((class, plain(&name)));
            }
            let name = if is_one_colour && !differing.is_empty() { differing.clone() } else { name };
            members.push(member(lang, data, shape.measure, *cell, class, name));
            cells.push(*cell);
        }
        let group = if is_one_colour { String::new() } else { differing };
        let others: Vec<usize> = (0..facet.levels.len()).filter(|factor| Some(*factor) != split).collect();
        let panel = plain(&named(data, &facet.levels, &others));
        let panel = match panels.iter().position(|known| known.name == panel) {
            Some(known) => &mut panels[known],
            None => panels.push_mut(GroupPanel { name: panel, groups: Vec::new() }),
        };
        match panel.groups.iter_mut().find(|bars| bars.name == group) {
            Some(bars) => bars.members.append(&mut members),
            None => panel.groups.push(Bars { name: group, members }),
        }
    }
    let named = &data.study.measures[shape.measure];
    let title = match shape.axis {
        Some(axis) => {
            said!(
                lang,
                "study-charts-title-without",
                "{title}, without {title2}",
                title = capital(&named.title),
                title2 = data.study.factors[axis].title
            )
        }
        None => capital(&named.title),
    };
    grouped(lang, data, shape.measure, &title, panels, legend, &cells)
}

/// Draws each cell with a bar for each measure.
fn measures_beside(lang: Language, data: &Data<'_>, shape: &Shape) -> Option<Chart> {
    let all = (0..data.study.cells.len()).take(MOST_BARS);
    let groups = all.clone().map(|cell| {
        let members = data.measures().filter(|(measure, _)| data.span(cell, *measure).is_some());
        let members = members.map(|(measure, named)| {
            member(lang, data, measure, cell, SERIES[measure % SERIES.len()], named.title.clone())
        });
        Bars { name: plain(&data.cell_name(cell, &[])), members: members.collect() }
    });
    let legend =
        data.measures().map(|(measure, named)| (SERIES[measure % SERIES.len()], plain(&named.title))).collect();
    let titles: Vec<String> = data.measures().map(|(_, named)| named.title.clone()).collect();
    grouped(
        lang,
        data,
        shape.measure,
        &capital(&listed(lang, &titles)),
        vec![GroupPanel { name: String::new(), groups: groups.collect() }],
        legend,
        &all.collect::<Vec<_>>(),
    )
}

/// Draws a result as it was measured or stated.
fn figure(data: &Data<'_>, cell: usize, measure: usize) -> String {
    let stated = data.stated(cell, measure).and_then(|_| data.shown(cell, measure));
    let number = || data.value(cell, measure).map(|reached| value(reached, data.study.measures[measure].unit));
    stated.or_else(number).unwrap_or_default()
}

fn member(lang: Language, data: &Data<'_>, measure: usize, cell: usize, class: &'static str, name: String) -> Member {
    let unit = data.study.measures[measure].unit;
    let stated = data.stated(cell, measure);
    // Of a bound the bar is what is sure: all of it below the bound is open.
    let reached = data.value(cell, measure).or(stated.and_then(|stated| stated.low)).unwrap_or(0.0);
    let open = stated.and_then(|stated| Some((stated.low.unwrap_or(0.0), stated.high?)));
    let limit = data.range(cell, measure).filter(|(_, high)| *high > 0.0).zip(data.medium(cell, measure));
    let limit = limit.map(|((_, high), medium)| Segment {
        class: "limit",
        value: high,
        label: said!(
            lang,
            "study-charts-medium-limit",
            "{medium} can carry {unit}",
            medium = medium,
            unit = value(high, unit)
        ),
    });
    Member {
        name: plain(&name),
        segment: Segment { class, value: reached, label: said(lang, data, cell, measure) },
        spread: spread(data, cell, measure).or(open),
        limit,
        figure: figure(data, cell, measure),
    }
}

fn grouped(
    lang: Language,
    data: &Data<'_>,
    measure: usize,
    title: &str,
    panels: Vec<GroupPanel>,
    mut legend: Vec<(&'static str, String)>,
    cells: &[usize],
) -> Option<Chart> {
    let members = || panels.iter().flat_map(|panel| &panel.groups).flat_map(|bars| &bars.members);
    members().next()?;
    if members().any(|member| member.limit.is_some()) {
        legend.push(("limit", said!(lang, "study-charts-legend-limit", "what the medium can carry")));
    }
    let what = if data.study.measures.len() > 1 && one_unit(data) {
        said!(lang, "study-charts-axis-rate", "rate")
    } else {
        data.study.measures[measure].title.clone()
    };
    let x = axis(data, &what, measure, members().map(Member::reach).fold(0.0, f64::max));
    let table = table(lang, data, title, measure, cells);
    Some(Chart::groups(title.to_owned(), legend, table, x, panels))
}

/// Returns the same figures as a table: each cell with all its measures.
fn table(lang: Language, data: &Data<'_>, caption: &str, measure: usize, cells: &[usize]) -> Table {
    super::tables::of_cells(lang, data, caption, &[measure], cells)
}

pub(super) fn capital(text: &str) -> String {
    sentence(text).trim_end_matches(['.', '\u{3002}']).to_owned()
}
