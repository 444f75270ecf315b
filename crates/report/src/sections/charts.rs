//! Charts of results, and the table of each.

use crate::blocks::axis::Axis;
use crate::blocks::chart::{Chart, distributions};
use crate::blocks::columns;
use crate::blocks::drawing::{Bar, Drawing, Segment, reach};
use crate::blocks::section::{Block, Section};
use crate::blocks::table::{Column, Table};
use crate::column;
use crate::figures::{counted_share, grouped, plain};
use crate::language::Language;
use crate::sections::abridged;
use crate::subjects::stream::{loaded_latency, loss_waterfall};
use crate::subjects::{ALL, mesh, runs, shares};
use crate::{records, said};
use linerate_model::{LossPlaces, Measurement, Record, Text};
use linerate_units::Ratio;

/// The places where datagrams are lost, in the order of [`LossPlaces::named`]: the class of each and the column that counts it.
const PLACES: [(&str, Column); 9] = [
    ("s0", column!("column-not-sent", "not sent", "due at the offered rate, but the sender did not get to them")),
    ("s5", column!("column-sender-filter", "sender filter", "by a filter of the sending host (tc)")),
    ("s1", column!("column-sender", "sender", "in the sender's queue or NIC")),
    ("s2", column!("column-unaccounted", "unaccounted", "on a wire, in a device, or where the kernel does not count")),
    ("s6", column!("column-corrupted", "corrupted", "checksum or header found wrong by the receiving host")),
    ("s3", column!("column-receiver", "receiver", "in the receiver's NIC or kernel queue")),
    (
        "s7",
        column!("column-receiver-filter", "receiver filter", "by a filter of the receiving host (tc, XDP, netfilter)"),
    ),
    ("solid", column!("column-reassembly", "reassembly", "fragments that the receiving host could not put together")),
    ("s4", column!("column-socket", "socket", "in the receiver's socket buffer")),
];

/// Cap on the results with a chart of losses each.
const MOST_WATERFALLS: usize = 2;

/// The charts of results, in the order a reader wants them.
pub(crate) fn section(lang: Language, record: &Record) -> Option<Section> {
    let charts = all(lang, &abridged::shown(record));
    Section::full("charts", said!(lang, "section-charts", "Charts"), charts.into_iter().map(Block::chart).collect())
}

fn all(lang: Language, record: &Record) -> Vec<Chart> {
    let flows = record.flows().collect::<Vec<_>>();
    let mut charts: Vec<Chart> = ALL.iter().flat_map(|subject| subject.rate_charts(lang, &flows)).collect();
    charts.extend(flows.iter().filter_map(|result| mesh::chart(lang, result).or_else(|| shares::chart(lang, result))));
    charts.extend(runs::of_record(lang, record));
    let waterfalls: Vec<Chart> = flows.iter().filter_map(|result| loss_waterfall::chart(lang, result)).collect();
    // Of more results one chart compares the places.
    if waterfalls.len() > MOST_WATERFALLS {
        charts.extend(losses(lang, &flows))
    } else {
        charts.extend(waterfalls)
    }
    charts.extend(flows.iter().filter_map(|result| loaded_latency::chart(lang, result)));
    charts.extend(latencies(lang, record));
    charts.extend(ALL.iter().flat_map(|subject| subject.further_charts(lang, &flows)));
    charts
}

/// Returns a chart of where datagrams were lost, as parts of those offered.
fn losses(lang: Language, flows: &[&Measurement]) -> Option<Chart> {
    let lossy: Vec<_> = flows
        .iter()
        .filter_map(|m| Some((m, m.loss().filter(|loss| loss.lost > 0 && loss.of >= loss.lost)?)))
        .collect();
    if lossy.is_empty() {
        return None;
    }
    let title = said!(lang, "charts-title-loss", "Datagrams lost, by place");
    let bars: Vec<Bar> = lossy
        .iter()
        .map(|(m, loss)| {
            let segment = |(class, (place, count)): (&'static str, (&Text, u64))| {
                let ratio = Ratio::new(count, loss.of);
                let share = counted_share(ratio)?;
                let label = said!(
                    lang,
                    "charts-point-loss-place",
                    "{name}: {count} of {loss} datagrams ({shown}) lost: {place}",
                    name = plain(&m.name),
                    count = grouped(count),
                    loss = grouped(loss.of),
                    shown = share,
                    place = lang.text(place)
                );
                (count > 0).then_some(Segment { class, value: ratio.as_f64() * 100.0, label })
            };
            Bar {
                name: plain(&m.name),
                segments: PLACES
                    .map(|(class, _)| class)
                    .into_iter()
                    .zip(loss.places.named())
                    .filter_map(segment)
                    .collect(),
                spread: None,
                limits: vec![],
                figure: counted_share(Ratio::new(loss.lost, loss.of)).unwrap_or_default(),
            }
        })
        .collect();
    let has_losses = |index: usize| lossy.iter().any(|(_, loss)| loss.places.named()[index].1 > 0);
    let names = LossPlaces::default().named();
    let places: Vec<usize> = (0..names.len()).filter(|index| has_losses(*index)).collect();
    let legend = places.iter().map(|index| (PLACES[*index].0, lang.text(names[*index].0)));
    let row = |(m, loss): &(&&Measurement, &linerate_model::Loss)| {
        let counts = loss.places.named();
        let counts = places.iter().map(|index| Some(grouped(counts[*index].1)));
        [Some(plain(&m.name)), Some(grouped(loss.of)), Some(grouped(loss.lost))].into_iter().chain(counts).collect()
    };
    let whole = [
        columns::STREAM,
        column!("column-offered", "offered", "datagrams that should have arrived, over all runs"),
        column!("column-charts-lost", "lost", "datagrams that did not"),
    ];
    let table = Table {
        caption: title.clone(),
        columns: whole.into_iter().chain(places.iter().map(|index| PLACES[*index].1.clone())).collect(),
        rows: lossy.iter().map(row).collect(),
    };
    let legend = legend.collect();
    let x =
        Axis::rate(lang, said!(lang, "charts-axis-share-lost", "share of the datagrams offered"), "%", reach(&bars));
    Some(Chart { drawing: Drawing::Bars { x, bars }, table, title, legend })
}

/// Returns a chart of response times.
fn latencies(lang: Language, record: &Record) -> Option<Chart> {
    let results = records::with_entries(record).filter(|result| result.flows().is_some());
    let curves = results.filter_map(|m| Some((plain(&m.name), m.latency()?))).collect();
    distributions(
        lang,
        said!(lang, "charts-title-latency", "Latency of transactions"),
        columns::TIMED_TRANSACTION,
        curves,
    )
}
