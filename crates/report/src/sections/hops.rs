//! The hops of probed paths: a table of each way, what it shows, and delay by hop over time.

use crate::blocks::chart::Chart;
use crate::blocks::heat_map::HeatMap;
use crate::blocks::section::{Block, Section};
use crate::blocks::table::Table;
use crate::column;
use crate::figures::{nanos, percent, plain, signed_nanos};
use crate::language::Language;
use crate::said;
use crate::subjects::hops::findings;
use linerate_model::{
    Counts, HopDelay, HopFigures, MeasureUnit, Measurement, PathEffect, ProbedWay, Record, TrialResult, WayFigures,
};

/// Columns of a heat map over time.
const INTERVALS: usize = 10;

/// The hops of the ways that carried a load, or of all ways if there was none, with the sections where delay or loss begins.
pub(crate) fn section(lang: Language, record: &Record) -> Option<Section> {
    let mut shown: Vec<ShownWay<'_>> = Vec::new();
    for result in &record.results {
        let is_loaded = result.ways().iter().any(|way| way.under_load);
        let ways = result.ways().iter().filter(|way| way.under_load == is_loaded);
        shown.extend(ways.map(|way| ShownWay { result, way }));
    }
    let sentences = shown.iter().flat_map(|shown| findings(lang, shown.result, shown.way)).collect();
    let mut blocks = vec![Block::Sentences(sentences)];
    blocks.retain(|block| !matches!(block, Block::Sentences(sentences) if sentences.is_empty()));
    blocks.extend(table(lang, &shown).map(Block::Table));
    Section::answer("hops", said!(lang, "section-hops", "Hops"), blocks)
}

/// A way in a table.
struct ShownWay<'a> {
    result: &'a Measurement,
    way: &'a WayFigures,
}

/// Delay by hop over time, of each way under load.
pub(crate) fn over_time(lang: Language, record: &Record) -> Option<Section> {
    let mut charts = Vec::new();
    for result in record.results.iter().filter(|result| !result.ways().is_empty()) {
        let attempt = record.counted().filter(|attempt| attempt.trial.name == result.name).last();
        charts.extend(attempt.into_iter().flat_map(|attempt| heat_maps(lang, result, attempt)));
    }
    Section::summary("hops-over-time", said!(lang, "section-hops-over-time", "Delay by hop over time"), charts)
}

/// Returns the hops of all ways in rows.
fn table(lang: Language, shown: &[ShownWay<'_>]) -> Option<Table> {
    let hops = || shown.iter().flat_map(|shown| &shown.way.hops);
    let has_load = hops().any(|hop| hop.loaded.is_some());
    let has_idle = hops().any(|hop| hop.idle.is_some());
    let several = shown.len() > 1;
    let mut columns = Vec::new();
    if several {
        columns.push(column!("column-hop-way", "way", "result and probing host").of_words());
    }
    columns.push(column!("column-hop", "hop", "TTL of the probes"));
    let address =
        column!("column-hop-address", "address", "routers that answered: several are branches, or a changed path");
    columns.push(address.of_words());
    if has_idle {
        columns.push(column!("column-hop-idle-p50", "idle p50", "median round trip on the idle path"));
        columns.push(column!("column-hop-idle-p99", "idle p99", "99th percentile on the idle path").ranked(3));
        columns
            .push(column!("column-hop-idle-lost", "lost", "probes of the idle path that were not answered").ranked(1));
    }
    if has_load {
        columns.push(column!("column-hop-loaded-p50", "loaded p50", "median round trip while the load ran"));
        columns.push(column!("column-hop-loaded-p99", "loaded p99", "99th percentile while the load ran").ranked(2));
        columns.push(column!("column-hop-loaded-lost", "lost", "probes under load that were not answered"));
    }
    columns
        .push(column!("column-hop-begins", "begins here", "effect that begins on the link before this hop").of_words());
    let mut rows = Vec::new();
    for ShownWay { result, way } in shown {
        let name = several.then(|| {
            said!(lang, "hops-way", "{name}, from {host}", name = plain(&result.name), host = plain(&way.from.0))
        });
        for hop in &way.hops {
            let mut cells: Vec<Option<String>> = name.iter().cloned().map(Some).collect();
            cells.extend([Some(hop.ttl.to_string()), self::address(lang, way, hop)]);
            if has_idle {
                cells.extend(delays(hop.idle));
            }
            if has_load {
                cells.extend(delays(hop.loaded));
            }
            cells.push(begins(lang, way, hop));
            rows.push(cells);
        }
    }
    Table::filled(said!(lang, "section-hops", "Hops"), columns, rows)
}

/// Returns the effects that begin on the link before a hop.
fn begins(lang: Language, way: &WayFigures, hop: &HopFigures) -> Option<String> {
    let here = way.sections.iter().filter(|section| section.after.ttl < hop.ttl && hop.ttl <= section.before.ttl);
    let effects: Vec<String> = here
        .map(|section| match section.effect {
            PathEffect::Queue => {
                said!(lang, "hops-begins-queue", "queue {added}", added = signed_nanos(section.amount as i64))
            }
            PathEffect::Loss => {
                said!(lang, "hops-begins-loss", "loss {share}", share = percent(section.amount).unwrap_or_default())
            }
            PathEffect::BlackHole => {
                said!(lang, "hops-begins-black-hole", "black hole from {bytes} B", bytes = section.amount as u64)
            }
        })
        .collect();
    (!effects.is_empty()).then(|| format!("\u{25c0} {}", effects.join(", ")))
}

/// Returns the addresses of a hop with its name, its labels and the limit of its answers.
fn address(lang: Language, way: &WayFigures, hop: &HopFigures) -> Option<String> {
    let addresses: Vec<String> = hop.addresses.iter().map(ToString::to_string).collect();
    if addresses.is_empty() {
        return None;
    }
    let mut text = addresses.join(", ");
    if hop.is_far_end {
        text = format!("{text} ({})", plain(&way.to.0));
    }
    for label in &hop.labels {
        text =
            said!(lang, "hops-label", "{address}, MPLS label {label}", address = text, label = u64::from(label.label));
    }
    Some(text)
}

fn delays(delay: Option<HopDelay>) -> [Option<String>; 3] {
    let Some(delay) = delay else { return [None, None, None] };
    [delay.p50.map(|p50| nanos(p50.get())), delay.p99.map(|p99| nanos(p99.get())), delay.loss().and_then(percent)]
}

/// Returns the delay by hop over time of each way of an attempt.
fn heat_maps(lang: Language, result: &Measurement, attempt: &TrialResult) -> Vec<Block> {
    let mut charts = Vec::new();
    for counts in &attempt.counts {
        let Counts::Hops(paths) = counts else { continue };
        for path in paths {
            let ends = [Some(&path.client), path.server.as_ref()];
            let ways = ends.into_iter().flatten().filter_map(|end| end.way.as_ref());
            // Ways are in the order of the figures.
            for (probed, figures) in ways.zip(result.ways()) {
                charts.extend(heat_map(lang, figures, probed).map(Block::chart));
            }
        }
    }
    charts
}

fn heat_map(lang: Language, figures: &WayFigures, probed: &ProbedWay) -> Option<Chart> {
    let last = probed.hops.iter().flat_map(|hop| &hop.samples).map(|sample| sample.at.get()).max()?;
    let interval = last / INTERVALS as u64 + 1;
    let columns: Vec<String> = (0..INTERVALS as u64).map(|index| nanos((index * interval).max(1))).collect();
    let mut rows = Vec::new();
    let mut values = Vec::new();
    for hop in probed.hops.iter().filter(|hop| !hop.addresses.is_empty()) {
        let name = format!("{} {}", hop.ttl, hop.addresses[0].address);
        let mut row = Vec::new();
        for index in 0..INTERVALS as u64 {
            let in_interval = hop.samples.iter().filter(|sample| sample.at.get() / interval == index);
            let mut delays: Vec<u64> = in_interval.filter_map(|sample| sample.delay).map(|delay| delay.get()).collect();
            delays.sort_unstable();
            let middle = delays.get(delays.len() / 2).copied();
            row.push(middle.map(|delay| (delay as f64, format!("{name}: {}", nanos(delay)))));
        }
        rows.push(name);
        values.push(row);
    }
    let title = said!(
        lang,
        "hops-heat-map",
        "Delay by hop, {from} to {to}",
        from = plain(&figures.from.0),
        to = plain(&figures.to.0)
    );
    let titles = [
        said!(lang, "hops-heat-map-rows", "hop"),
        said!(lang, "hops-heat-map-columns", "time from the opening of the window"),
    ];
    let table = heat_table(&title, &rows, &columns, &values);
    HeatMap { title, unit: MeasureUnit::Nanos, titles, rows, columns, values, table }.chart(lang)
}

/// Returns the values of a heat map in rows.
fn heat_table(caption: &str, rows: &[String], columns: &[String], values: &[Vec<Option<(f64, String)>>]) -> Table {
    let mut head = vec![column!("column-heat-hop", "hop", "TTL and address").of_words()];
    head.extend(columns.iter().map(|column| crate::Column::named(column.clone(), column.clone())));
    let cell = |value: &Option<(f64, String)>| value.as_ref().map(|(delay, _)| nanos(*delay as u64));
    let rows = rows
        .iter()
        .zip(values)
        .map(|(name, row)| std::iter::once(Some(name.clone())).chain(row.iter().map(cell)).collect());
    Table { caption: caption.to_owned(), columns: head, rows: rows.collect() }
}
