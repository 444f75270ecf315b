//! The ladder in all its forms: a table from the top rung down, sentences, a chart, rows of comma-separated values.

use crate::charts::{Chart, SERIES};
use crate::document::{Block, Section};
use crate::figures::{nanos, percent, rate, spread};
use crate::language::Language;
use crate::said;
use crate::sentences;
use crate::svg::{Axis, Bar, Drawing, Segment};
use crate::tables::{Column, Table};
use linerate_model::{Gap, Ladder, Record, Rung, RungName, Summary};

/// A rung this much above UDP is worth a word; by less is chance.
const RISES: f64 = 1.05;

/// What it is called wherever it stands.
fn caption(lang: Language) -> String {
    said!(lang, "ladder-the-ladder-payload-of")
}

/// What it says, a row for each layer, and the same drawn.
pub(crate) fn section(lang: Language, record: &Record) -> Option<Section> {
    let found = record.ladder.as_ref()?;
    let mut blocks = vec![Block::Sentences(sentences(lang, found)), Block::Table(table(lang, found))];
    blocks.extend(chart(lang, found).map(Block::chart));
    Section::summary("ladder", said!(lang, "ladder-section"), blocks)
}

fn bits(value: f64) -> Option<String> {
    rate(value, "bit/s")
}

/// How a rung is called in a table or beside a bar.
fn label(lang: Language, name: RungName) -> String {
    lang.named("rung", name)
}

/// How a rung is called in a sentence, where it begins one or not.
fn said(lang: Language, name: RungName) -> String {
    match name {
        RungName::Limit => said!(lang, "device-charts-what-the-line-carries"),
        RungName::Frames => said!(lang, "ladder-raw-frames-2"),
        RungName::Udp => "UDP".to_owned(),
        RungName::Tcp => "TCP".to_owned(),
        RungName::Rpc => "RPC".to_owned(),
        RungName::NfsRead => said!(lang, "ladder-nfs-reads"),
        RungName::NfsWrite => said!(lang, "ladder-nfs-writes"),
        RungName::Copy => said!(lang, "ladder-a-copy"),
    }
}

fn median(rung: &Rung) -> Option<f64> {
    rung.payload_bps.as_ref().map(|payload| payload.median).filter(|median| median.is_finite())
}

/// The rungs from the top down, as one looks at a ladder.
fn from_the_top(ladder: &Ladder) -> impl Iterator<Item = &Rung> {
    ladder.rungs.iter().rev()
}

/// The rung of that name.
fn find(ladder: &Ladder, name: RungName) -> Option<&Rung> {
    ladder.rungs.iter().find(|rung| rung.name == name)
}

/// A row for each rung, the top one first.
fn table(lang: Language, ladder: &Ladder) -> Table {
    let row = |rung: &Rung| {
        vec![
            Some(label(lang, rung.name)),
            median(rung).and_then(bits),
            rung.share_of_below.and_then(percent),
            rung.share_of_line.and_then(percent),
            rung.payload_bps.as_ref().filter(|payload| payload.runs > 1).and_then(|payload| percent(payload.spread())),
            rung.latency_ns.map(|latency| nanos(latency.p50)),
            rung.latency_ns.map(|latency| nanos(latency.p99)),
            rung.verdict.as_ref().map(|verdict| lang.named("limit", verdict.limit)),
        ]
    };
    Table {
        caption: caption(lang),
        columns: vec![
            Column::new("column-rung"),
            Column::new("column-ladder-payload").with_bars(lengths(ladder)),
            Column::new("column-of-below"),
            Column::new("column-ladder-of-line"),
            Column::new("column-spread").ranked(5),
            Column::new("column-ladder-half-in").ranked(1),
            Column::new("column-99-in").ranked(4),
            Column::new("column-ladder-limit").ranked(2),
        ],
        rows: from_the_top(ladder).map(row).collect(),
    }
}

/// Each rung's payload as a share of the greatest, 0 to 1, in the order of [`table`]'s rows.
fn lengths(ladder: &Ladder) -> Vec<f64> {
    let most = ladder.rungs.iter().filter_map(median).fold(0.0, f64::max);
    from_the_top(ladder).map(|rung| if most > 0.0 { median(rung).unwrap_or(0.0) / most } else { 0.0 }).collect()
}

/// What the ladder says: the widest gap and what to try, what headers take, what was not measured.
fn sentences(lang: Language, ladder: &Ladder) -> Vec<String> {
    let mut all = vec![match &ladder.widest_gap {
        Some(gap) => widest(lang, ladder, gap),
        None if ladder.rungs.iter().all(|rung| rung.below.is_none()) => {
            said!(lang, "ladder-fewer-than-two-rungs")
        }
        None => said!(lang, "ladder-no-gap-between-two"),
    }];
    all.extend(ladder.widest_gap.as_ref().map(|gap| sentences::sentence(&gap.advice)));
    all.extend(header_of_tcp(lang, ladder));
    for rung in ladder.rungs.iter().filter(|rung| rung.below == Some(RungName::Udp)) {
        if rung.share_of_below.is_some_and(|share| share > RISES) {
            all.push(said!(lang, "ladder-gets-more-than-udp", name = said(lang, rung.name)));
        }
    }
    for rung in &ladder.rungs {
        if let Some(why) = &rung.missing {
            let what = if rung.name == RungName::Limit {
                said!(lang, "ladder-not-known")
            } else {
                said!(lang, "ladder-not-measured")
            };
            all.push(sentences::sentence(&format!("{} {what}: {why}", said(lang, rung.name))));
        }
    }
    all
}

/// `The widest gap: TCP delivers 478 Mbit/s, UDP below it 957 Mbit/s, 2.00 times as much`, and headers' part in it.
fn widest(lang: Language, ladder: &Ladder, gap: &Gap) -> String {
    let of = |name| find(ladder, name).and_then(median).and_then(bits);
    let (Some(less), Some(more)) = (of(gap.above), of(gap.below)) else {
        return said!(lang, "ladder-the-widest-gap-has");
    };
    let ground = if gap.below == RungName::Limit {
        said!(lang, "ladder-the-line-could-carry")
    } else {
        said!(lang, "ladder-below-it-deliver")
    };
    let below = match gap.below {
        RungName::Limit => format!("{ground} {more}"),
        RungName::Frames => said!(lang, "ladder-raw-frames", ground = ground, more = more),
        other => said!(lang, "ladder-below-it-delivers", other = said(lang, other), more = more),
    };
    let verb = if gap.above == RungName::Frames {
        said!(lang, "ladder-they-deliver")
    } else {
        said!(lang, "ladder-it-delivers")
    };
    let mut text = said!(
        lang,
        "ladder-the-widest-gap-lies",
        above = said(lang, gap.above),
        verb = verb,
        less = less,
        below = below,
        factor = format!("{:.2}", gap.factor)
    );
    if gap.headers > 1.0 {
        text.push_str(&said!(lang, "ladder-larger-headers-explain-a", headers = format!("{:.3}", gap.headers)));
    }
    text.push('.');
    text
}

/// What TCP's larger header leaves at most, so that it is not taken for a loss.
fn header_of_tcp(lang: Language, ladder: &Ladder) -> Option<String> {
    let tcp = find(ladder, RungName::Tcp)?;
    let (limit, own) = (tcp.limit_bps?.get() as f64, median(tcp)?);
    let ground = find(ladder, RungName::Limit).and_then(median)?;
    Some(said!(
        lang,
        "ladder-with-tcp-larger-header",
        limit = bits(limit)?,
        ground = percent(limit / ground)?,
        limit2 = percent(own / limit)?
    ))
}

/// The ladder itself: a bar for each rung, the top one first, with what it lacks of the rung below behind it.
fn chart(lang: Language, ladder: &Ladder) -> Option<Chart> {
    let bars: Vec<Bar> = from_the_top(ladder)
        .filter_map(|rung| {
            let payload = rung.payload_bps.as_ref()?;
            let own = median(rung)?;
            let mut segments = vec![Segment { class: SERIES[0], value: own, label: pointed_at(lang, rung, payload)? }];
            segments.extend(rung.below.and_then(|below| lack(lang, ladder, rung, find(ladder, below)?)));
            let limit = rung.limit_bps.filter(|_| rung.name != RungName::Limit).and_then(|limit| {
                let most = limit.get() as f64;
                let label =
                    said!(lang, "ladder-with-its-headers-the", name = label(lang, rung.name), most = bits(most)?);
                Some(Segment { class: "limit", value: most, label })
            });
            Some(Bar {
                name: label(lang, rung.name),
                segments,
                spread: (payload.runs > 1).then_some((payload.low, payload.high)),
                limits: limit.into_iter().collect(),
                figure: bits(own)?,
            })
        })
        .collect();
    if bars.is_empty() {
        return None;
    }
    let lacking = |class| bars.iter().any(|bar| bar.segments.iter().any(|segment| segment.class == class));
    let mut legend = vec![(SERIES[0], said!(lang, "ladder-payload-median-whisker-from"))];
    if lacking("widest") {
        legend.push(("widest", said!(lang, "ladder-the-widest-gap-what")));
    }
    if lacking("lacking") {
        legend.push(("lacking", said!(lang, "ladder-what-it-lacks-of")));
    }
    if bars.iter().any(|bar| !bar.limits.is_empty()) {
        legend.push(("limit", said!(lang, "ladder-what-the-line-carries")));
    }
    let reach = |bar: &Bar| {
        let whole: f64 = bar.segments.iter().map(|segment| segment.value).sum();
        bar.limits.iter().map(|limit| limit.value).chain(bar.spread.map(|(_, high)| high)).fold(whole, f64::max)
    };
    let x = Axis::rate("payload", "bit/s", bars.iter().map(reach).fold(0.0, f64::max));
    let title = caption(lang);
    Some(Chart { legend, drawing: Drawing::Bars { x, bars }, table: table(lang, ladder), title })
}

/// What a rung's bar says.
fn pointed_at(lang: Language, rung: &Rung, payload: &Summary) -> Option<String> {
    let mut text = said!(lang, "ladder-payload", name = label(lang, rung.name), median = bits(payload.median)?);
    match payload.runs {
        0 => text.push_str(&said!(lang, "ladder-by-calculation")),
        _ => text.push_str(&format!(" ({})", spread(lang, payload, bits))),
    }
    if let Some((share, below)) = rung.share_of_below.and_then(percent).zip(rung.below) {
        text.push_str(&said!(lang, "ladder-of", share = share, below = said(lang, below)));
    }
    let of_line = rung.share_of_line.filter(|_| rung.below != Some(RungName::Limit) && rung.name != RungName::Limit);
    if let Some(share) = of_line.and_then(percent) {
        text.push_str(&said!(lang, "ladder-of-the-line", share = share));
    }
    if let Some(latency) = rung.latency_ns {
        text.push_str(&said!(lang, "ladder-half-of-the-requests", p50 = nanos(latency.p50)));
    }
    Some(text)
}

/// What a rung lacks of the one below, as a piece of its bar; none if it lacks nothing.
fn lack(lang: Language, ladder: &Ladder, rung: &Rung, below: &Rung) -> Option<Segment> {
    let value = median(below)? - median(rung)?;
    let widest = ladder.widest_gap.as_ref().is_some_and(|gap| gap.above == rung.name);
    let class = if widest { "widest" } else { "lacking" };
    let label = said!(
        lang,
        "ladder-less-than",
        name = label(lang, rung.name),
        value = bits(value)?,
        name2 = said(lang, below.name)
    );
    (value > 0.0).then_some(Segment { class, value, label })
}

/// The rung that a result's stream is the figure of.
pub(crate) fn rung_of<'a>(record: &'a Record, result: &str) -> Option<&'a Rung> {
    let rungs = &record.ladder.as_ref()?.rungs;
    rungs.iter().find(|rung| rung.results.first().is_some_and(|name| name == result))
}

/// The rungs that are drawn from no result of the record's: the ground, and those of raw frames.
pub(crate) fn rungs_apart(record: &Record) -> impl Iterator<Item = &Rung> {
    let rungs = record.ladder.iter().flat_map(|ladder| &ladder.rungs);
    rungs.filter(|rung| rung.results.is_empty() && rung.payload_bps.is_some())
}
