//! The effect of larger messages: the part that headers explain, and whether cost is per message or per byte.

use super::data::{Data, Group};
use super::trend::Directed;
use super::words::{listed, p_value, times, times_range};
use super::{bound, finding, test};
use crate::finding::{Finding, FindingKind};
use crate::study::CellLimit;
use linerate_method::statistics::{SIGNIFICANT, Tested, Trend};
use linerate_model::{Layer, MeasureUnit};
use linerate_report::parts::values::{extremes, value};
use linerate_report::parts::wording::sentence;
use linerate_report::{Language, said};
use std::collections::BTreeMap;

/// Minimum number of sizes that show a course.
const FEWEST_SIZES: usize = 3;
/// Minimum ratio of the largest to the smallest message's rate that is reported.
const WORTH_SAYING: f64 = 1.05;
/// Headers explain most where they explain this share of the ratio, in logarithms.
const MOST: f64 = 0.5;
/// The time of a message grows with this power of its bytes, or less, where its cost is per message; and with this one,
/// or more, where it is per byte.
const PER_MESSAGE: f64 = 0.25;
const PER_BYTE: f64 = 0.75;

pub(super) fn findings(data: &Data<'_>, measure: usize) -> Vec<Finding> {
    let mut found = Vec::new();
    for group in groups(data, measure) {
        let of_headers: Vec<Finding> = group.series.iter().filter_map(|one| by_headers(data, measure, one)).collect();
        // Where headers explain all series, there is no more to say.
        if of_headers.len() < group.series.len() {
            found.extend(group.growth(data, measure));
        }
        found.extend(of_headers);
    }
    found
}

pub(super) fn tests(data: &Data<'_>, measure: usize) -> Vec<Tested> {
    groups(data, measure).iter().map(|group| group.trend(data, measure).tested).collect()
}

/// Cells that differ in the message size only, the smallest first: cell, size in bytes and result.
type Series = Vec<(usize, f64, f64)>;

/// Series on one medium.
struct Sizes {
    name: String,
    series: Vec<Series>,
}

/// Returns the series on each medium, with those of the tester alone, which use it too.
fn groups(data: &Data<'_>, measure: usize) -> Vec<Sizes> {
    let rate = data.study.measures[measure].unit == MeasureUnit::BitsPerS;
    let Some(factor) = data.message_factor(measure).filter(|_| rate) else { return Vec::new() };
    let of_group = |group: Group| {
        let level = data.medium_factor().and_then(|by| Some((by, data.study.cells[*group.cells.first()?].levels[by]?)));
        let is = |cell: &usize| level.is_none_or(|(by, level)| data.study.cells[*cell].levels[by] == Some(level));
        let mut series: BTreeMap<Vec<Option<usize>>, Series> = BTreeMap::new();
        for cell in (0..data.study.cells.len()).filter(is) {
            let mut rest = data.study.cells[cell].levels.clone();
            let Some(level) = rest[factor].take() else { continue };
            let bytes = data.study.factors[factor].levels[level].value;
            let (Some(bytes), Some(reached)) = (bytes, data.value(cell, measure).filter(|reached| *reached > 0.0))
            else {
                continue;
            };
            series.entry(rest).or_default().push((cell, bytes, reached));
        }
        let mut series: Vec<Series> = series.into_values().filter(|one| one.len() >= FEWEST_SIZES).collect();
        series.iter_mut().for_each(|one| one.sort_by(|(_, a, _), (_, b, _)| a.total_cmp(b)));
        // What no medium can carry says nothing of sizes.
        let possible =
            |one: &Series| one.iter().all(|(cell, ..)| data.limit(*cell, measure).is_none_or(|it| it.share <= 1.0));
        (!series.is_empty() && series.iter().all(possible)).then_some(Sizes { name: group.name, series })
    };
    data.groups(data.medium_factor(), measure).into_iter().filter_map(of_group).collect()
}

/// Returns the finding that a series falls with the size mostly because of headers.
fn by_headers(data: &Data<'_>, measure: usize, series: &Series) -> Option<Finding> {
    let (small, large) = (series.first()?, series.last()?);
    let limit = |cell: usize| data.limit(cell, measure);
    let (at_small, at_large): (CellLimit, CellLimit) = (limit(small.0)?, limit(large.0)?);
    // Of layers that may have been counted the highest: there headers matter least.
    let (reached, could) = (large.2 / small.2, at_large.high / at_small.high);
    if reached < WORTH_SAYING || could.ln() < MOST * reached.ln() {
        return None;
    }
    let unit = data.study.measures[measure].unit;
    let factor = data.message_factor(measure)?;
    let title = &data.study.measures[measure].title;
    let size = |cell: usize| data.study.cells[cell].levels[factor].map(|level| data.name_of(factor, level));
    let text = said!(
        data.lang,
        "findings-message-size-headers",
        "{name}: {title} falls from {most} at {large} to {least} at {small}, mostly by headers: what the medium can \
         carry falls from {could_most} to {could_least}.",
        name = data.cell_name(small.0, &[factor]),
        title = title,
        most = value(large.2, unit),
        large = size(large.0)?,
        least = value(small.2, unit),
        small = size(small.0)?,
        could_most = value(at_large.high, unit),
        could_least = value(at_small.high, unit)
    );
    let counted = match data.study.measures[measure].counts {
        Some(_) => String::new(),
        None => said!(
            data.lang,
            "findings-message-size-highest-layer",
            " Frames with their FCS are taken as counted: at other layers headers explain more."
        ),
    };
    let evidence = bound(said!(
        data.lang,
        "findings-message-size-explained",
        "The result falls to {reached}, what the medium can carry to {could}; {rest} is left for all else.{counted}",
        reached = times(data.lang, 1.0 / reached),
        could = times(data.lang, 1.0 / could),
        rest = times(data.lang, (could / reached).min(1.0)),
        counted = counted
    ));
    Some(finding(FindingKind::MessageSize, sentence(&text), vec![evidence]))
}

/// Returns the layers that a measure may count: the stated one, or all that could carry every result.
fn layers(data: &Data<'_>, measure: usize) -> Vec<Layer> {
    if let Some(layer) = data.study.measures[measure].counts {
        return vec![layer];
    }
    let possible = |layer: &Layer| {
        (0..data.study.cells.len()).all(|cell| {
            let carried = data.path(cell, measure).carried().unwrap_or_default();
            let most = carried.iter().map(|one| one.rate(*layer).get() as f64).reduce(f64::max);
            data.value(cell, measure).zip(most).is_none_or(|(reached, most)| reached <= most)
        })
    };
    [Layer::Payload, Layer::Ip, Layer::Layer2, Layer::Layer2Fcs].into_iter().filter(possible).collect()
}

/// Cost of a step from one size to a larger one.
struct Step {
    /// Ratio of the bytes, and ratio of the times of a message.
    bytes: f64,
    time: (f64, f64),
}

impl Step {
    /// Returns the cost of the step from the size at `at` to the next one, over all series and layers that may be
    /// counted.
    fn of(data: &Data<'_>, measure: usize, series: &[Series], at: usize) -> Option<Self> {
        let layers = layers(data, measure);
        let time = |(cell, _, reached): (usize, f64, f64), layer: Layer| {
            let carried = data.path(cell, measure).carried().ok()?;
            Some(carried.first()?.bytes.at(layer) as f64 / reached)
        };
        let mut times = Vec::new();
        for one in series {
            let (from, to) = (*one.get(at)?, *one.get(at + 1)?);
            for layer in &layers {
                times.push(time(to, *layer)? / time(from, *layer)?);
            }
        }
        let first = series.first()?;
        Some(Self { bytes: first[at + 1].1 / first[at].1, time: extremes(times)? })
    }

    /// Returns whether the cost is per message or per byte; `None` if neither is clear.
    fn said(&self, lang: Language) -> Option<String> {
        let power = |time: f64| time.ln() / self.bytes.ln();
        if power(self.time.1) <= PER_MESSAGE {
            Some(said!(lang, "findings-message-size-per-message", "the cost is per message"))
        } else if power(self.time.0) >= PER_BYTE {
            Some(said!(lang, "findings-message-size-per-byte", "the cost is per byte"))
        } else {
            None
        }
    }
}

impl Sizes {
    fn trend(&self, data: &Data<'_>, measure: usize) -> Directed {
        let values = |one: &Series| one.iter().map(|(_, _, reached)| *reached).collect::<Vec<f64>>();
        let expected = data.message_factor(measure).and_then(|factor| data.study.factors[factor].expect);
        Directed::of(&self.series.iter().map(values).collect::<Vec<_>>(), expected)
    }

    /// Returns growth with the size, the part that headers explain, and the cost at both ends.
    fn growth(&self, data: &Data<'_>, measure: usize) -> Option<Finding> {
        let directed = self.trend(data, measure);
        let (trend, p): (&Trend, f64) = (&directed.trend, data.adjusted(directed.tested));
        if p >= SIGNIFICANT || !directed.rises() {
            return None;
        }
        let factor = data.message_factor(measure)?;
        let first = self.series.first()?;
        let name = |at: usize| Some(data.name_of(factor, data.study.cells[first.get(at)?.0].levels[factor]?));
        let ends = self.series.iter().filter_map(|one| Some((*one.first()?, *one.last()?)));
        let (low, high) = extremes(ends.clone().map(|(small, large)| large.2 / small.2))?;
        let mut text = said!(
            data.lang,
            "findings-message-size-grows",
            "on {group} {title} grows with the {factor}: from {small} to {large} it becomes {times} as high.",
            group = self.name,
            title = data.study.measures[measure].title,
            factor = data.study.factors[factor].title,
            small = name(0)?,
            large = name(first.len() - 1)?,
            times = times_range(data.lang, low, high)
        );
        // The same sizes in all series, or steps would be of different ones.
        let sizes = |one: &Series| one.iter().map(|(_, bytes, _)| *bytes).collect::<Vec<f64>>();
        if self.series.iter().all(|one| sizes(one) == sizes(first)) {
            let mut steps = vec![0];
            steps.extend((first.len() > 2).then(|| first.len() - 2));
            for at in steps {
                let step = Step::of(data, measure, &self.series, at);
                let said = step.and_then(|step| Some((step.said(data.lang)?, step)));
                if let (Some((cost, step)), Some(from), Some(to)) = (said, name(at), name(at + 1)) {
                    text.push_str(&said!(
                        data.lang,
                        "findings-message-size-step",
                        " From {from} to {to} ({bytes}) a message takes {time} the time: {cost}.",
                        from = from,
                        to = to,
                        bytes = times(data.lang, step.bytes),
                        time = times_range(data.lang, step.time.0, step.time.1),
                        cost = cost
                    ));
                }
            }
        }
        let mut evidence = vec![test(
            &directed.name(data.lang),
            p,
            said!(
                data.lang,
                "findings-growth-rise-and-fall",
                "{group}: of {pairs} pairs of levels that agree in all else {rising} rise and {falling} fall; Kendall's \
                 trend within {series} series, {p}.",
                group = self.name,
                pairs = trend.pairs,
                rising = trend.rising,
                falling = trend.falling,
                series = self.series.len(),
                p = p_value(p)
            ),
        )];
        let layers = layers(data, measure);
        let could = ends.filter_map(|(small, large)| {
            let of = |cell: usize, layer: Layer| {
                Some(data.path(cell, measure).carried().ok()?.first()?.rate(layer).get() as f64)
            };
            let ratios: Option<Vec<f64>> =
                layers.iter().map(|layer| Some(of(large.0, *layer)? / of(small.0, *layer)?)).collect();
            ratios
        });
        if let Some((least, most)) = extremes(could.flatten()) {
            let layers: Vec<String> = layers.iter().map(|layer| data.lang.text(layer.text())).collect();
            evidence.push(bound(said!(
                data.lang,
                "findings-message-size-limit-grows",
                "What the medium can carry becomes {times} as high, counted as {layers}.",
                times = times_range(data.lang, least, most),
                layers = listed(data.lang, &layers)
            )));
        }
        Some(finding(FindingKind::MessageSize, sentence(&text), evidence))
    }
}
