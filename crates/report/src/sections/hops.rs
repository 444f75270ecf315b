//! The hops of probed paths: a table of each way, what it shows, and delay by hop over time.

use crate::blocks::chart::Chart;
use crate::blocks::heat_map::HeatMap;
use crate::blocks::section::{Block, Section};
use crate::blocks::table::Table;
use crate::column;
use crate::figures::{grouped, nanos, percent, plain, range, signed_nanos};
use crate::language::Language;
use crate::said;
use crate::subjects::hops::findings;
use linerate_model::{
    Counts, HopDelay, HopFigures, MeasureUnit, Measurement, OneWayDelay, PathEffect, ProbedWay, Record, TrialResult,
    WayFigures,
};

/// Columns of a heat map over time.
const INTERVALS: usize = 10;

/// The hops of the ways that carried a load, or of all ways if there was none, with the sections where delay or loss begins.
pub(crate) fn section(lang: Language, record: &Record) -> Option<Section> {
    let shown = shown(lang, record);
    let sentences: Vec<String> = shown.iter().flat_map(|shown| findings(lang, shown.result, shown.way)).collect();
    let mut blocks = Vec::new();
    if !sentences.is_empty() {
        blocks.push(Block::Sentences(sentences));
    }
    blocks.extend(table(lang, &shown).map(Block::Table));
    Section::answer("hops", said!(lang, "section-hops", "Hops"), blocks)
}

/// Path MTU and one-way delay of the same ways.
pub(crate) fn ways(lang: Language, record: &Record) -> Option<Section> {
    let mut rows = Vec::new();
    for ShownWay { name, way, .. } in shown(lang, record) {
        let idle = way.one_way.as_ref().and_then(|delays| delays.idle.as_ref());
        let loaded = way.one_way.as_ref().and_then(|delays| delays.loaded.as_ref());
        let last = loaded.or(idle);
        let mtu = way.path_mtu.as_ref().and_then(|mtu| mtu.bytes);
        if mtu.is_none() && last.is_none() {
            continue;
        }
        rows.push(vec![
            Some(name),
            mtu.map(|bytes| grouped(u64::from(bytes))),
            idle.map(|delay| one_way(lang, delay)),
            loaded.map(|delay| one_way(lang, delay)),
            last.map(|delay| nanos(delay.variation_p99.get())),
            last.and_then(|delay| delay.loss).and_then(percent),
        ]);
    }
    let columns = vec![
        column!("column-hop-way", "way", "result, or probing host").of_words(),
        column!("column-way-mtu", "path MTU, B", "largest packet that passes, IP header included"),
        column!("column-way-idle", "one-way idle", "bounds of the median one-way delay, idle"),
        column!("column-way-loaded", "loaded", "bounds of the median one-way delay while the load ran"),
        column!("column-way-variation", "variation p99", "99th percentile of the delay above the smallest (RFC 5481)")
            .ranked(1),
        column!("column-way-lost", "lost", "probes that did not reach the far end").ranked(2),
    ];
    let heading = said!(lang, "section-ways", "Path MTU and one-way delay");
    let table = Table::filled(heading.clone(), columns, rows);
    Section::answer("ways", heading, table.into_iter().map(Block::Table).collect())
}

fn one_way(lang: Language, delay: &OneWayDelay) -> String {
    range(lang, &nanos(delay.p50_low.get()), &nanos(delay.p50_high.get()))
}

/// A way in a table.
struct ShownWay<'a> {
    /// Result that it is of, or its probing host if both ways are shown.
    name: String,
    result: &'a Measurement,
    way: &'a WayFigures,
}

/// Returns the ways that carried a load, or all ways of a result without a load.
fn shown(lang: Language, record: &Record) -> Vec<ShownWay<'_>> {
    let mut shown = Vec::new();
    for result in &record.results {
        let is_loaded = result.ways().iter().any(|way| way.under_load);
        let ways: Vec<&WayFigures> = result.ways().iter().filter(|way| way.under_load == is_loaded).collect();
        let several = ways.len() > 1;
        for way in ways {
            let name = if several {
                said!(lang, "hops-way", "{name}, from {host}", name = plain(&result.name), host = plain(&way.from.0))
            } else {
                plain(&result.name)
            };
            shown.push(ShownWay { name, result, way });
        }
    }
    shown
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
        columns.push(column!("column-hop-way", "way", "result, or probing host").of_words());
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
    for ShownWay { name, way, .. } in shown {
        for hop in &way.hops {
            let mut cells: Vec<Option<String>> = Vec::new();
            if several {
                cells.push(Some(name.clone()));
            }
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
    let starts = (1..INTERVALS as u64).map(|index| nanos(index * interval));
    let columns: Vec<String> = std::iter::once("0 s".to_owned()).chain(starts).collect();
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
