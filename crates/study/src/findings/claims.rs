//! Rates above what their medium can carry: the layers that they cannot count, and those that they may.

use super::data::Data;
use super::words::{either, listed, some_of, with_semicolons};
use super::{bound, finding};
use crate::finding::{Finding, FindingKind};
use linerate_model::{Layer, MeasureUnit, Transport};
use linerate_report::parts::values::{extremes, range, value};
use linerate_report::parts::wording::sentence;
use linerate_report::said;
use linerate_units::grouped;

/// A window that was measured has in it what had waited in a queue when it opened: in a second some thousandths more
/// than the line carries in that time, and more where queues are long.
pub(crate) const EDGES: f64 = 1.02;

pub(super) fn findings(data: &Data<'_>, measure: usize) -> Vec<Finding> {
    if data.study.measures[measure].unit != MeasureUnit::BitsPerS {
        return Vec::new();
    }
    // Those of one medium and size have one limit, and are said together.
    let mut alike: Vec<Vec<usize>> = Vec::new();
    for cell in (0..data.study.cells.len()).filter(|cell| is_above(data, measure, *cell)) {
        let path = data.path(cell, measure);
        match alike.iter_mut().find(|cells| data.path(cells[0], measure) == path) {
            Some(cells) => cells.push(cell),
            None => alike.push(vec![cell]),
        }
    }
    let mut found: Vec<Finding> = alike.iter().filter_map(|cells| above(data, measure, cells)).collect();
    // Where it is said what is counted, a rate within its limit is what is expected.
    if data.study.measures[measure].counts.is_none() {
        for group in data.groups(data.medium_factor(), measure) {
            found.extend(within(data, measure, &group.cells));
        }
    }
    found
}

/// Returns the highest rate of each layer in a cell, over its possible message sizes.
fn layers(data: &Data<'_>, measure: usize, cell: usize) -> Option<Vec<(Layer, f64)>> {
    let carried = data.path(cell, measure).carried().ok().filter(|carried| !carried.is_empty())?;
    let most = |layer: Layer| carried.iter().map(|one| one.rate(layer).get() as f64).fold(0.0, f64::max);
    Some(Layer::ALL.iter().map(|layer| (*layer, most(*layer))).collect())
}

fn messages(data: &Data<'_>, measure: usize, cell: usize) -> String {
    let path = data.path(cell, measure);
    match path.transport {
        Some(Transport::Udp) => {
            let bytes: Vec<String> = path.message_bytes.iter().map(|bytes| grouped(*bytes)).collect();
            said!(data.lang, "findings-claims-at-bytes", "at {bytes} bytes", bytes = either(data.lang, &bytes))
        }
        _ => said!(data.lang, "findings-claims-over-tcp", "over TCP"),
    }
}

/// Returns whether a rate exceeds the limit of the layer that it counts.
fn is_above(data: &Data<'_>, measure: usize, cell: usize) -> bool {
    let expected = data.study.measures[measure].counts.unwrap_or(Layer::Payload);
    let limit = layers(data, measure, cell).and_then(|layers| layers.into_iter().find(|(layer, _)| *layer == expected));
    // What linerate itself has counted is no claim.
    let bearable = if data.study.measures[measure].metric.is_some() { EDGES } else { 1.0 };
    // Of a value stated as about a number, the least it may be.
    let least = data.span(cell, measure).map(|(least, _)| least);
    data.value(cell, measure).and(least).zip(limit).is_some_and(|(reached, (_, limit))| reached > limit * bearable)
}

fn above(data: &Data<'_>, measure: usize, cells: &[usize]) -> Option<Finding> {
    /// Maximum number of results named.
    const MOST_NAMED: usize = 8;
    let unit = MeasureUnit::BitsPerS;
    let cell = *cells.first()?;
    let (lowest, highest) = extremes(cells.iter().filter_map(|cell| data.value(*cell, measure)))?;
    let medium = data.medium(cell, measure)?;
    let layers = layers(data, measure, cell)?;
    let show = |(layer, most): &(Layer, f64)| {
        said!(
            data.lang,
            "findings-claims-layer",
            "{layer} ({most})",
            layer = data.lang.text(layer.text()),
            most = value(*most, unit)
        )
    };
    // A layer at the wire is not what a program counts, and no clue.
    let told = || layers.iter().filter(|(layer, _)| *layer != Layer::Wire);
    let named = &data.study.measures[measure];
    // What linerate itself has counted is no claim.
    let counted = named.counts.filter(|_| named.metric.is_some());
    let impossible: Vec<String> = told()
        .filter(|(layer, most)| lowest > *most && counted.is_none_or(|counted| counted == *layer))
        .map(show)
        .collect();
    let possible: Vec<String> = told().filter(|(_, most)| highest <= *most).map(show).collect();
    let may = match possible.is_empty() {
        _ if counted.is_some() => said!(
            data.lang,
            "findings-claims-not-what-the-study-says",
            "the medium is not what the study says, or what had waited before the window arrived within it: measure \
             longer"
        ),
        true => said!(
            data.lang,
            "findings-claims-not-what-is-said",
            "the medium, the message size or the rate is not what is said"
        ),
        false => said!(
            data.lang,
            "findings-claims-possible-at",
            "it is possible counted at {layers}",
            layers = either(data.lang, &possible)
        ),
    };
    let size = messages(data, measure, cell);
    let but: Vec<usize> = data.message_factor(measure).into_iter().collect();
    let rate = match cells.len() {
        1 => said!(
            data.lang,
            "findings-claims-one",
            "{rate} {size} ({name})",
            rate = value(lowest, unit),
            size = size,
            name = data.cell_name(cell, &but)
        ),
        count => said!(
            data.lang,
            "findings-claims-each",
            "Each of {count} results {size}, {range},",
            count = count,
            size = size,
            range = range(data.lang, lowest, highest, unit)
        ),
    };
    let text = said!(
        data.lang,
        "findings-claims-cannot-be",
        "{rate} cannot be {layers} on {medium}; {may}.",
        rate = rate,
        layers = either(data.lang, &impossible),
        medium = medium,
        may = may
    );
    let mut evidence = vec![bound(said!(
        data.lang,
        "findings-claims-the-most",
        "The most that {medium} can carry {size}: {layers}.",
        medium = medium,
        size = size,
        layers = listed(data.lang, &layers.iter().map(show).collect::<Vec<_>>())
    ))];
    if cells.len() > 1 {
        let some = cells.iter().map(|cell| {
            format!("{}: {}", data.cell_name(*cell, &but), value(data.value(*cell, measure).unwrap_or(0.0), unit))
        });
        evidence.push(bound(some_of(data.lang, MOST_NAMED, &some.collect::<Vec<_>>())));
    }
    Some(finding(FindingKind::AboveLimit, text, evidence))
}

/// Results of one medium, all within its limit for payload.
fn within(data: &Data<'_>, measure: usize, cells: &[usize]) -> Option<Finding> {
    let unit = MeasureUnit::BitsPerS;
    let medium = data.medium(*cells.first()?, measure)?;
    // By size of message, so that the smallest, which is doubted first, is seen.
    let mut sizes: Vec<(u64, f64, f64, f64)> = Vec::new();
    for cell in cells {
        let (reached, path) = (data.value(*cell, measure)?, data.path(*cell, measure));
        let (_, payload) = *layers(data, measure, *cell)?.first()?;
        if reached > payload {
            return None;
        }
        let bytes = *path.message_bytes.first()?;
        match sizes.iter_mut().find(|(known, ..)| *known == bytes) {
            Some((_, low, high, _)) => (*low, *high) = (low.min(reached), high.max(reached)),
            None => sizes.push((bytes, reached, reached, payload)),
        }
    }
    sizes.sort_by_key(|(bytes, ..)| *bytes);
    let at = |bytes: u64, reached: String, payload: f64| {
        said!(
            data.lang,
            "findings-claims-at-bytes-of",
            "at {bytes} bytes {reached} of {payload}",
            bytes = grouped(bytes),
            reached = reached,
            payload = value(payload, unit)
        )
    };
    let smallest = sizes.first().map(|(bytes, _, high, payload)| at(*bytes, value(*high, unit), *payload))?;
    let text = said!(
        data.lang,
        "findings-claims-within",
        "All {count} results on {medium} are within what it can carry, even as payload: {smallest}.",
        count = cells.len(),
        medium = medium,
        smallest = smallest
    );
    let each: Vec<String> = sizes
        .iter()
        .map(|(bytes, low, high, payload)| at(*bytes, range(data.lang, *low, *high, unit), *payload))
        .collect();
    let evidence = bound(sentence(&with_semicolons(data.lang, &each)));
    Some(finding(FindingKind::WithinLimit, text, vec![evidence]))
}
