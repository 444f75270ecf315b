//! Facets as charts. Facets of one scale are small multiples: next to each other over the same axes, with one legend
//! and one table.

use super::charts::{Line, axis, capital, said, spread};
use super::shape::named;
use crate::findings::data::Data;
use linerate_report::parts::figures::MISSING;
use linerate_report::parts::wording::listed;
use linerate_report::parts::{Axis, Panel, Panels, Point, Scale, Series, size_ticks};
use linerate_report::{Chart, Language, plain, said};
use std::collections::BTreeMap;

/// Maximum number of facets; the tables have all.
const MOST: usize = 16;
/// Ratio of the highest values from which on facets do not share a scale, which would flatten the lower one.
const MUCH_LOWER: f64 = 3.0;
/// Maximum number of plots in a row.
const MOST_BESIDE: usize = 4;
/// Room before the first and after the last place on a logarithmic axis.
const ROOM: f64 = 1.12;

/// Style sheet class and meaning of each colour.
pub(super) type Legend = Vec<(&'static str, String)>;

/// Plot of a facet.
pub(super) struct Plot {
    /// Levels of the [`Facet`](super::shape::Facet).
    pub(super) levels: Vec<Option<usize>>,
    pub(super) lines: Vec<Line>,
    /// Lines of limits, below the others.
    pub(super) limits: (Vec<Series>, Legend),
    /// Highest value drawn.
    pub(super) top: f64,
}

/// Axes of plots.
pub(super) struct Over<'a> {
    /// Factor along the horizontal axis.
    pub(super) factor: usize,
    /// Measures along the vertical axis.
    pub(super) measures: &'a [usize],
    pub(super) what: &'a str,
}

/// Returns the charts of these plots: one for each scale.
pub(super) fn charts(lang: Language, data: &Data<'_>, over: &Over<'_>, mut plots: Vec<Plot>) -> Vec<Chart> {
    plots.truncate(MOST);
    plots.sort_by(|one, other| one.levels.cmp(&other.levels));
    let highest = plots.iter().map(|plot| plot.top).fold(0.0, f64::max);
    // A logarithmic axis flattens nothing.
    let is_logarithmic = matches!(axis(data, over.what, over.measures[0], highest).scale, Scale::Log(..));
    let tops: Vec<f64> = plots.iter().map(|plot| plot.top).collect();
    let groups = if is_logarithmic { vec![(0..plots.len()).collect()] } else { by_scale(&tops) };
    let mut plots: Vec<Option<Plot>> = plots.into_iter().map(Some).collect();
    let mut taken = |group: Vec<usize>| group.into_iter().filter_map(|at| plots[at].take()).collect::<Vec<_>>();
    groups.into_iter().filter_map(|group| chart(lang, data, over, taken(group))).collect()
}

/// Groups plots by scale: none in a group reaches less than a third of its highest, unless it is zero.
fn by_scale(tops: &[f64]) -> Vec<Vec<usize>> {
    let mut falling: Vec<usize> = (0..tops.len()).collect();
    falling.sort_by(|one, other| tops[*other].total_cmp(&tops[*one]));
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for at in falling {
        match groups.last_mut() {
            Some(group) if tops[at] == 0.0 || tops[at] * MUCH_LOWER >= tops[group[0]] => group.push(at),
            _ => groups.push(vec![at]),
        }
    }
    groups.iter_mut().for_each(|group| group.sort_unstable());
    groups.sort_unstable();
    groups
}

/// Returns the factors in which facets differ.
fn differing(facets: &[&[Option<usize>]]) -> Vec<usize> {
    let factors = facets.first().map_or(0, |levels| levels.len());
    (0..factors).filter(|factor| facets.iter().any(|levels| levels[*factor] != facets[0][*factor])).collect()
}

/// Returns the number of plots in a row: a full grid of two factors has one for each level of the last factor.
fn columns(facets: &[&[Option<usize>]]) -> usize {
    let count_of = |factor: usize| {
        let mut levels: Vec<_> = facets.iter().map(|levels| levels[factor]).collect();
        levels.sort_unstable();
        levels.dedup();
        levels.len()
    };
    if let [rows, columns] = differing(facets)[..] {
        let (rows, columns) = (count_of(rows), count_of(columns));
        if rows * columns == facets.len() && columns <= MOST_BESIDE {
            return columns;
        }
    }
    match facets.len() {
        count @ 0..=3 => count.max(1),
        4 => 2,
        _ => 3,
    }
}

/// Returns the factor that splits groups of bars into panels: the one with the fewest levels, each with several of many
/// groups. Returns `None` if the groups are few.
pub(super) fn split(facets: &[&[Option<usize>]]) -> Option<usize> {
    const MANY: usize = 6;
    /// Maximum number of levels that leaves room for bars and figures.
    const MOST_LEVELS: usize = 3;
    let groups_of = |factor: &usize| {
        let mut groups: BTreeMap<Option<usize>, usize> = BTreeMap::new();
        facets.iter().for_each(|levels| *groups.entry(levels[*factor]).or_default() += 1);
        groups
    };
    let splits = |factor: &usize| {
        let groups = groups_of(factor);
        groups.len() <= MOST_LEVELS && groups.iter().all(|(level, count)| level.is_some() && *count > 1)
    };
    let differing = differing(facets);
    let several = facets.len() >= MANY && differing.len() > 1;
    differing.into_iter().filter(|_| several).filter(splits).min_by_key(|factor| groups_of(factor).len())
}

/// Returns the chart of plots that share their axes; `None` without plots.
fn chart(lang: Language, data: &Data<'_>, over: &Over<'_>, plots: Vec<Plot>) -> Option<Chart> {
    let first = plots.first()?.levels.clone();
    let facets: Vec<&[Option<usize>]> = plots.iter().map(|plot| plot.levels.as_slice()).collect();
    let (by, columns) = (differing(&facets), columns(&facets));
    let same: Vec<usize> = (0..first.len()).filter(|factor| !by.contains(factor)).collect();
    let title = titled(lang, data, over, &by, &first);
    let mut cells: Vec<usize> =
        plots.iter().flat_map(|plot| &plot.lines).flat_map(|line| line.cells.iter().copied()).collect();
    cells.sort_unstable();
    cells.dedup();
    let x = along(lang, data, over.factor, &cells);
    let y = axis(data, over.what, over.measures[0], plots.iter().map(|plot| plot.top).fold(0.0, f64::max));
    let table = super::tables::of_cells(lang, data, &title, over.measures, &cells);
    let (mut legend, mut panels) = (limits(lang, &plots), Vec::new());
    for plot in plots {
        let name = named(data, &plot.levels, &same);
        let (series, colours) = drawn(lang, data, over.factor, plot);
        legend.extend(colours.into_iter().filter(|colour| !legend.contains(colour)).collect::<Vec<_>>());
        panels.push(Panel { name: plain(if name.is_empty() { MISSING } else { &name }), series });
    }
    Some(match panels.pop() {
        Some(only) if panels.is_empty() => Chart::lines(title, legend, table, (x, y), only.series),
        last => {
            let panels = panels.into_iter().chain(last).collect();
            Chart::panels(title, legend, table, Panels { x, y, columns, panels })
        }
    })
}

/// Returns the title of a chart of facets that differ in the factors `by`; `one` is any of them.
fn titled(lang: Language, data: &Data<'_>, over: &Over<'_>, by: &[usize], one: &[Option<usize>]) -> String {
    let common = named(data, one, by);
    if by.is_empty() {
        return plain(&capital(if common.is_empty() { over.what } else { &common }));
    }
    let factors: Vec<String> = by.iter().map(|factor| data.study.factors[*factor].title.clone()).collect();
    let title = said!(
        lang,
        "study-caption-by",
        "{title} by {title2}",
        title = capital(over.what),
        title2 = listed(lang, &factors)
    );
    plain(&if common.is_empty() { title } else { format!("{title}{}{common}", said!(lang, "list-comma", ", ")) })
}

/// Returns the legend of limits: the same for all plots.
fn limits(lang: Language, plots: &[Plot]) -> Legend {
    let mut legends = plots.iter().map(|plot| &plot.limits.1).filter(|legend| !legend.is_empty());
    let Some(first) = legends.next() else { return Vec::new() };
    if legends.all(|legend| legend == first) {
        first.clone()
    } else {
        vec![("limit", said!(lang, "study-charts-legend-limit", "what the medium can carry"))]
    }
}

/// Returns the lines of a plot over those of its limits, and the legend of their colours.
fn drawn(lang: Language, data: &Data<'_>, factor: usize, plot: Plot) -> (Vec<Series>, Legend) {
    let (mut series, mut legend) = (plot.limits.0, Legend::new());
    for Line { class, name, measure, mut cells, joined } in plot.lines {
        cells.sort_by(|one, other| place(data, factor, *one).total_cmp(&place(data, factor, *other)));
        let points = cells.iter().map(|cell| Point {
            x: place(data, factor, *cell),
            y: data.value(*cell, measure).unwrap_or(0.0),
            spread: spread(data, *cell, measure),
            label: said(lang, data, *cell, measure),
        });
        let points: Vec<Point> = points.collect();
        let line = points.iter().filter(|_| joined).map(|point| (point.x, point.y)).collect();
        legend.push((class, plain(&name)));
        series.push(Series { class, line, points });
    }
    (series, legend)
}

/// Returns the place of a cell on the axis of a factor.
pub(super) fn place(data: &Data<'_>, factor: usize, cell: usize) -> f64 {
    data.level(cell, factor).and_then(|level| level.value).unwrap_or(0.0)
}

/// Returns the axis of a numeric factor.
fn along(lang: Language, data: &Data<'_>, factor: usize, cells: &[usize]) -> Axis {
    let mut places: Vec<f64> = cells.iter().map(|cell| place(data, factor, *cell)).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let (low, high) = (places[0], places[places.len() - 1]);
    let factor = &data.study.factors[factor];
    let unit_of_x = factor.unit.as_deref().unwrap_or_default();
    if low > 0.0 && high > low {
        let (low, high) = (low / ROOM, high * ROOM);
        let sizes = places
            .iter()
            .all(|place| place.fract() == 0.0)
            .then(|| places.iter().map(|place| *place as u64).collect::<Vec<_>>());
        let ticks = match sizes {
            Some(sizes) => size_ticks(&sizes, low, high),
            None => places.iter().map(|place| (*place, place.to_string())).collect(),
        };
        Axis {
            title: said!(
                lang,
                "study-charts-axis-logarithmic",
                "{title}, {unit_of_x} (logarithmic)",
                title = factor.title,
                unit_of_x = unit_of_x
            ),
            scale: Scale::Log(low, high),
            ticks,
        }
    } else {
        let ticks = places.iter().map(|place| (*place, place.to_string())).collect();
        Axis { title: Axis::titled(lang, &factor.title, unit_of_x), scale: Scale::up_to(high * ROOM), ticks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facets_share_an_axis_that_flattens_none_of_them() {
        assert_eq!(by_scale(&[90.0, 95.0, 40.0]), [vec![0, 1, 2]]);
        assert_eq!(by_scale(&[95.0, 940.0, 9.0, 900.0, 94.0]), [vec![0, 4], vec![1, 3], vec![2]]);
        assert_eq!(by_scale(&[0.0, 0.8, 0.7]), [vec![0, 1, 2]], "zero is as low on any scale");
        assert_eq!(by_scale(&[0.0, 0.0]), [vec![0, 1]]);
        assert!(by_scale(&[]).is_empty());
    }

    #[test]
    fn a_full_grid_of_two_factors_has_a_column_for_each_level_of_the_second() {
        let (x, y, z) = (Some(0), Some(1), Some(2));
        let grid = [[x, None, x], [x, None, y], [x, None, z], [y, None, x], [y, None, y], [y, None, z]];
        let facets: Vec<&[Option<usize>]> = grid.iter().map(<[_; 3]>::as_slice).collect();
        assert_eq!((differing(&facets), columns(&facets)), (vec![0, 2], 3));
        assert_eq!(columns(&facets[..4]), 2, "a grid with gaps is filled row by row");
        assert_eq!((differing(&facets[..3]), columns(&facets[..3])), (vec![2], 3), "one factor");
        assert_eq!((differing(&facets[..1]), columns(&facets[..1])), (Vec::new(), 1));
    }

    #[test]
    fn many_groups_of_bars_are_split_by_the_factor_of_the_fewest_levels() {
        let all = |factors: &[&[Option<usize>]]| -> Vec<Vec<Option<usize>>> {
            factors.iter().fold(vec![Vec::new()], |facets, levels| {
                facets.iter().flat_map(|facet| levels.iter().map(|level| [&facet[..], &[*level]].concat())).collect()
            })
        };
        let split_of = |facets: &[Vec<Option<usize>>]| split(&facets.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let levels: Vec<Option<usize>> = (0..8).map(Some).collect();
        assert_eq!(split_of(&all(&[&levels[..3], &levels[..1], &levels[..2]])), Some(2));
        assert_eq!(split_of(&all(&[&levels[..3], &levels[..8]])), Some(0));
        assert_eq!(split_of(&all(&[&levels[..2], &levels[..2]])), None, "few groups");
        assert_eq!(split_of(&all(&[&levels[..8]])), None, "one factor");
        assert_eq!(split_of(&all(&[&levels[..4], &levels[..4]])), None, "no room");
        assert_eq!(split_of(&all(&[&[None, Some(0)], &levels[..4]])), None, "a factor that does not apply to all");
    }
}
