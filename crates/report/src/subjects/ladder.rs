//! The ladder in all its forms: a table from the top layer down, sentences, a chart, rows of comma-separated values.

use crate::blocks::axis::Axis;
use crate::blocks::chart::{Chart, SERIES};
use crate::blocks::columns;
use crate::blocks::drawing::{Bar, Drawing, Segment};
use crate::blocks::section::{Block, Section};
use crate::blocks::table::Table;
use crate::column;
use crate::figures::{nanos, percent, plain, rate, spread};
use crate::language::Language;
use crate::said;
use crate::wording::{self, firmness};
use linerate_model::{Gap, Ladder, LadderLayer, LayerName, Record, Summary};

/// A layer above UDP by this factor gets a sentence; smaller differences may be chance.
const RISES: f64 = 1.05;

/// Returns the name of the ladder.
fn caption(lang: Language) -> String {
    said!(lang, "ladder-caption", "Payload of each layer of the path")
}

/// Returns the answer in short, the ladder drawn, and a row for each layer.
pub(crate) fn section(lang: Language, record: &Record) -> Option<Section> {
    let found = record.ladder()?;
    let mut blocks = vec![Block::Sentences(answer(lang, found))];
    blocks.extend(chart(lang, found).map(Block::chart));
    blocks.push(Block::Table(table(lang, found)));
    Section::answer("ladder", said!(lang, "ladder-section", "Ladder"), blocks)
}

/// Returns further details.
pub(crate) fn further(lang: Language, record: &Record) -> Option<Section> {
    let further = explanation(lang, record.ladder()?);
    Section::summary(
        "ladder-further",
        said!(lang, "ladder-section-further", "What the ladder's gaps mean"),
        vec![Block::Sentences(further)],
    )
    .map(Section::folded)
}

fn bits(value: f64) -> Option<String> {
    rate(value, "bit/s")
}

/// Returns the name of a layer in a table or next to a bar.
pub(crate) fn label(lang: Language, name: LayerName) -> String {
    lang.text(name.text())
}

fn median(layer: &LadderLayer) -> Option<f64> {
    layer.payload_bps.as_ref().map(|payload| payload.median).filter(|median| median.is_finite())
}

/// The layers from the top down.
fn from_the_top(ladder: &Ladder) -> impl Iterator<Item = &LadderLayer> {
    ladder.layers.iter().rev()
}

/// The layer of that name.
fn find(ladder: &Ladder, name: LayerName) -> Option<&LadderLayer> {
    ladder.layers.iter().find(|layer| layer.name == name)
}

/// A row for each layer, the top one first.
fn table(lang: Language, ladder: &Ladder) -> Table {
    let shown = |layer: &LadderLayer, figure| firmness::shown(figure, layer.firmness);
    let row = |layer: &LadderLayer| {
        vec![
            Some(label(lang, layer.name)),
            median(layer).and_then(bits).map(|rate| shown(layer, rate)),
            layer.share_of_layer_below.and_then(percent).map(|share| shown(layer, share)),
            layer.share_of_line.and_then(percent).map(|share| shown(layer, share)),
            layer.payload_bps.as_ref().filter(|payload| payload.runs > 1).and_then(|payload| percent(payload.spread())),
            layer.latency_ns.map(|latency| nanos(latency.p50)),
            layer.latency_ns.map(|latency| nanos(latency.p99)),
            layer.verdict.as_ref().map(|verdict| lang.text(verdict.limit.text())),
        ]
    };
    Table {
        caption: caption(lang),
        columns: vec![
            column!("column-layer", "layer", "each layer uses the one below it"),
            column!(
                "column-ladder-payload",
                "payload",
                "payload that arrived, median of the runs; of the line by calculation"
            )
            .with_bars(lengths(ladder)),
            column!("column-of-layer-below", "of layer below", "share of what the next layer below delivers"),
            column!("column-ladder-of-line", "of line", "share of what the line carries in full frames"),
            columns::SPREAD.ranked(5),
            column!("column-layer-p50", "p50", "median response time of one-byte requests").ranked(1),
            columns::P99.ranked(4),
            column!("column-ladder-limit", "limit", "what limited it").ranked(2),
        ],
        rows: from_the_top(ladder).map(row).collect(),
    }
}

/// Each layer's payload as a share of the greatest, 0 to 1, in the order of [`table`]'s rows.
fn lengths(ladder: &Ladder) -> Vec<f64> {
    let highest = ladder.layers.iter().filter_map(median).fold(0.0, f64::max);
    from_the_top(ladder).map(|layer| if highest > 0.0 { median(layer).unwrap_or(0.0) / highest } else { 0.0 }).collect()
}

/// Returns what is not firm, the widest gap, and what was not measured.
fn answer(lang: Language, ladder: &Ladder) -> Vec<String> {
    let figures: Vec<_> = ladder.layers.iter().map(|layer| (label(lang, layer.name), layer.firmness)).collect();
    firmness::sentences(lang, &figures).into_iter().chain(in_short(lang, ladder)).collect()
}

/// Returns the share of headers, what to try, and layers that are quicker than they should be.
fn explanation(lang: Language, ladder: &Ladder) -> Vec<String> {
    let mut all: Vec<String> = gap(lang, ladder).into_iter().skip(1).collect();
    all.extend(ladder.widest_gap.as_ref().and_then(|gap| Some(wording::message(lang, gap.advice.as_ref()?))));
    all.extend(header_of_tcp(lang, ladder));
    let above_udp = |layer: &&LadderLayer| {
        layer.below == Some(LayerName::Udp) && layer.share_of_layer_below.is_some_and(|share| share > RISES)
    };
    let above_udp = ladder.layers.iter().filter(above_udp);
    all.extend(above_udp.map(|layer| {
        said!(
            lang,
            "ladder-above-udp",
            "{layer} delivers more payload than UDP. Where the kernel or the NIC joins and cuts its packets (offload), \
         fewer packets pass the stack.",
            layer = label(lang, layer.name)
        )
    }));
    all
}

/// The widest gap, and the layers that were not measured.
pub(crate) fn in_short(lang: Language, ladder: &Ladder) -> Vec<String> {
    gap(lang, ladder).into_iter().take(1).chain(missing(lang, ladder)).collect()
}

/// Returns the widest gap, or that there is none.
fn gap(lang: Language, ladder: &Ladder) -> Vec<String> {
    match &ladder.widest_gap {
        Some(gap) => widest(lang, ladder, gap),
        None if ladder.layers.iter().all(|layer| layer.below.is_none()) => {
            vec![said!(lang, "ladder-one-layer", "Fewer than two layers were measured, so there is no gap to name.")]
        }
        None => vec![said!(
            lang,
            "ladder-no-gap",
            "No gap between two layers is wider than headers and the spread of the runs explain."
        )],
    }
}

/// Each layer that was not measured, and why.
fn missing(lang: Language, ladder: &Ladder) -> impl Iterator<Item = String> {
    let missing =
        ladder.layers.iter().filter_map(move |layer| Some((layer.name, plain(&lang.message(layer.missing.as_ref()?)))));
    missing.map(move |(name, why)| match name {
        LayerName::Limit => {
            wording::sentence(&said!(lang, "ladder-line-unknown", "The line rate is not known: {why}", why = why))
        }
        name => wording::sentence(&said!(
            lang,
            "ladder-not-measured",
            "Layer {layer} was not measured: {why}",
            layer = label(lang, name),
            why = why
        )),
    })
}

/// `The widest gap is between UDP (957 Mbit/s) and TCP (478 Mbit/s), a factor of 2.00.`, and headers' part in it.
fn widest(lang: Language, ladder: &Ladder, gap: &Gap) -> Vec<String> {
    let of = |name| find(ladder, name).and_then(median).and_then(bits);
    let (Some(less), Some(more)) = (of(gap.above), of(gap.below)) else {
        return vec![said!(lang, "ladder-widest-gap-unknown", "The widest gap has no figure.")];
    };
    let above = label(lang, gap.above);
    let below = label(lang, gap.below);
    let factor = format!("{:.2}", gap.factor);
    let mut all = vec![said!(
        lang,
        "ladder-widest-gap",
        "The widest gap is between {below} ({more}) and {above} ({less}), a factor of {factor}.",
        above = above,
        less = less,
        below = below,
        more = more,
        factor = factor
    )];
    if gap.headers > 1.0 {
        all.push(said!(
            lang,
            "ladder-widest-gap-headers",
            "Larger headers explain a factor of {headers} of it.",
            headers = format!("{:.3}", gap.headers)
        ));
    }
    all
}

/// Returns the highest loss that TCP's larger header explains, so that it is not taken for a loss.
fn header_of_tcp(lang: Language, ladder: &Ladder) -> Option<String> {
    let tcp = find(ladder, LayerName::Tcp)?;
    let limit = tcp.limit_bps?.get() as f64;
    let payload = median(tcp)?;
    let ground = find(ladder, LayerName::Limit).and_then(median)?;
    let of_udp = percent(limit / ground)?;
    let reached = percent(payload / limit)?;
    Some(said!(
        lang,
        "ladder-tcp-header",
        "With TCP's larger header the line carries {limit} at most, {of_udp} of what it carries as UDP. TCP reached \
         {reached} of that.",
        limit = bits(limit)?,
        of_udp = of_udp,
        reached = reached
    ))
}

/// Draws the loss of each layer: a bar for each that stands on another, the top one first, with the part that headers
/// alone take.
fn chart(lang: Language, ladder: &Ladder) -> Option<Chart> {
    /// The axis goes so far at least: what is all near zero is not drawn as if it were much.
    const SHORTEST_AXIS: f64 = 0.05;
    let bars: Vec<Bar> = from_the_top(ladder)
        .filter_map(|layer| {
            let payload = layer.payload_bps.as_ref()?;
            let below = find(ladder, layer.below?)?;
            let lost_at = |bps: f64| Some((1.0 - bps / median(below).filter(|bps| *bps > 0.0)?).max(0.0));
            let lost = lost_at(median(layer)?)?;
            let widest = ladder.widest_gap.as_ref().is_some_and(|gap| gap.above == layer.name);
            let class = if widest { "widest" } else { SERIES[0] };
            Some(Bar {
                name: label(lang, layer.name),
                segments: vec![Segment { class, value: lost, label: pointed_at(lang, layer, payload)? }],
                spread: (payload.runs > 1).then_some((lost_at(payload.high)?, lost_at(payload.low)?)),
                limits: headers(lang, layer, below).into_iter().collect(),
                figure: percent(lost).map(|share| firmness::shown(share, layer.firmness))?,
            })
        })
        .collect();
    if bars.is_empty() {
        return None;
    }
    let mut legend = vec![(
        SERIES[0],
        said!(lang, "ladder-legend-lost", "less payload than the layer below, median; whisker from best to worst run"),
    )];
    if bars.iter().any(|bar| bar.segments.iter().any(|segment| segment.class == "widest")) {
        legend.push(("widest", said!(lang, "ladder-legend-widest", "the widest gap")));
    }
    if bars.iter().any(|bar| !bar.limits.is_empty()) {
        legend.push(("limit", said!(lang, "ladder-legend-headers", "taken by headers alone")));
    }
    let parts = |bar: &Bar| {
        let marks = bar.segments.iter().chain(&bar.limits).map(|segment| segment.value);
        marks.chain(bar.spread.map(|(_, most)| most)).collect::<Vec<_>>()
    };
    let x = Axis::share(
        lang,
        &said!(lang, "ladder-axis-lost", "payload lost of what the layer below carries"),
        bars.iter().flat_map(parts).fold(SHORTEST_AXIS, f64::max),
    );
    let title = said!(lang, "ladder-title-lost", "Payload lost by each layer");
    Some(Chart { legend, drawing: Drawing::Bars { x, bars }, table: table(lang, ladder), title })
}

/// Returns the share that the layer's headers alone take of the payload that the line carries for the layer below.
fn headers(lang: Language, layer: &LadderLayer, below: &LadderLayer) -> Option<Segment> {
    let limit_of_layer = layer.limit_bps?.get() as f64;
    let beneath = below.limit_bps?.get() as f64;
    let value = 1.0 - limit_of_layer / beneath;
    let name = label(lang, layer.name);
    let share = percent(value)?;
    let label = said!(
        lang,
        "ladder-point-headers",
        "{layer}: its headers alone take {share} of the payload of {below}",
        layer = name,
        share = share,
        below = label(lang, below.name)
    );
    (value > 0.0).then_some(Segment { class: "limit", value, label })
}

/// Returns the text of a layer's bar.
fn pointed_at(lang: Language, layer: &LadderLayer, payload: &Summary) -> Option<String> {
    let name = label(lang, layer.name);
    let median = firmness::told(lang, bits(payload.median)?, layer.firmness);
    let mut parts = vec![match payload.runs {
        0 => said!(
            lang,
            "ladder-point-calculated",
            "{layer}: {payload} payload, by calculation",
            layer = name,
            payload = median
        ),
        _ => said!(
            lang,
            "ladder-point",
            "{layer}: {payload} payload ({runs})",
            layer = name,
            payload = median,
            runs = spread(lang, payload, bits)
        ),
    }];
    if let Some((share, below)) = layer.share_of_layer_below.and_then(percent).zip(layer.below) {
        parts.push(said!(
            lang,
            "ladder-point-of-layer",
            "{share} of {below}",
            share = share,
            below = label(lang, below)
        ));
    }
    let of_line =
        layer.share_of_line.filter(|_| layer.below != Some(LayerName::Limit) && layer.name != LayerName::Limit);
    parts.extend(
        of_line
            .and_then(percent)
            .map(|share| said!(lang, "ladder-point-of-line", "{share} of the line", share = share)),
    );
    parts.extend(
        layer.latency_ns.map(|latency| said!(lang, "ladder-point-p50", "p50 {time}", time = nanos(latency.p50))),
    );
    Some(parts.join("; "))
}

/// The layer that a result's stream is the figure of.
pub(crate) fn layer_of<'a>(record: &'a Record, result: &str) -> Option<&'a LadderLayer> {
    let layers = &record.ladder()?.layers;
    layers.iter().find(|layer| layer.results.first().is_some_and(|name| name == result))
}

/// The layers that are drawn from no result of the record's: the ground, and those of raw frames.
pub(crate) fn layers_apart(record: &Record) -> impl Iterator<Item = &LadderLayer> {
    let layers = record.ladder().into_iter().flat_map(|ladder| &ladder.layers);
    layers.filter(|layer| layer.results.is_empty() && layer.payload_bps.is_some())
}
