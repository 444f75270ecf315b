//! The ladder in all its forms: a table from the top rung down, sentences, a chart, rows of comma-separated values.

use crate::charts::{Chart, SERIES};
use crate::figures::{nanos, percent, rate, spread};
use crate::sentences;
use crate::svg::{self, Axis, Bar, Segment};
use crate::tables::{Column, Table};
use linerate_model::{Gap, Ladder, Record, Rung, RungName, Summary};

/// A rung this much above UDP is worth a word; by less is chance.
const RISES: f64 = 1.05;

/// What it is called wherever it stands.
pub(crate) const CAPTION: &str = "The ladder: payload of each layer of the path";

fn bits(value: f64) -> Option<String> {
    rate(value, "bit/s")
}

/// How a rung is called in a table or beside a bar.
fn label(name: RungName) -> String {
    name.to_string()
}

/// How a rung is called in a sentence, where it begins one or not.
fn said(name: RungName) -> &'static str {
    match name {
        RungName::Limit => "what the line carries",
        RungName::Frames => "raw frames",
        RungName::Udp => "UDP",
        RungName::Tcp => "TCP",
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
pub(crate) fn table(ladder: &Ladder) -> Table {
    let row = |rung: &Rung| {
        vec![
            Some(label(rung.name)),
            median(rung).and_then(bits),
            rung.share_of_below.and_then(percent),
            rung.share_of_line.and_then(percent),
            rung.payload_bps.as_ref().filter(|payload| payload.runs > 1).and_then(|payload| percent(payload.spread())),
            rung.latency_ns.map(|latency| nanos(latency.p50)),
            rung.latency_ns.map(|latency| nanos(latency.p99)),
            rung.verdict.as_ref().map(|verdict| verdict.limit.to_string()),
        ]
    };
    let ranked = |title, meaning, rank| Column { title, meaning, rank };
    Table {
        caption: CAPTION.to_owned(),
        columns: vec![
            Column::new("rung", "the layer; each stands on the one below it"),
            Column::new("payload", "payload that arrived, median of the runs; of the line by calculation"),
            Column::new("of below", "share of what the next rung below delivers"),
            Column::new("of line", "share of what the line carries in full frames"),
            ranked("spread", "highest less lowest run, as a share of the median", 5),
            ranked("half in", "half of the requests of one byte were answered within this", 1),
            ranked("99 % in", "99 % were answered within this", 4),
            ranked("limit", "what limited it", 2),
        ],
        rows: from_the_top(ladder).map(row).collect(),
    }
}

/// Each rung's payload as a share of the greatest, 0 to 1, in the order of [`table`]'s rows.
pub(crate) fn lengths(ladder: &Ladder) -> Vec<f64> {
    let most = ladder.rungs.iter().filter_map(median).fold(0.0, f64::max);
    from_the_top(ladder).map(|rung| if most > 0.0 { median(rung).unwrap_or(0.0) / most } else { 0.0 }).collect()
}

/// What the ladder says: the widest gap and what to try, what headers take, what was not measured.
pub(crate) fn sentences(ladder: &Ladder) -> Vec<String> {
    let mut all = vec![match &ladder.widest_gap {
        Some(gap) => widest(ladder, gap),
        None if ladder.rungs.iter().all(|rung| rung.below.is_none()) => {
            "Fewer than two rungs were measured: there is no gap to name.".to_owned()
        }
        None => "No gap between two rungs is wider than headers and the spread of the runs explain.".to_owned(),
    }];
    all.extend(ladder.widest_gap.as_ref().map(|gap| sentences::sentence(&gap.advice)));
    all.extend(header_of_tcp(ladder));
    for rung in ladder.rungs.iter().filter(|rung| rung.below == Some(RungName::Udp)) {
        if rung.share_of_below.is_some_and(|share| share > RISES) {
            all.push(format!(
                "{} gets more than UDP: where the kernel or the NIC joins and cuts its packets (offload), fewer of them pass \
                 the stack.",
                said(rung.name)
            ));
        }
    }
    for rung in &ladder.rungs {
        if let Some(why) = &rung.missing {
            let what = if rung.name == RungName::Limit { "not known" } else { "not measured" };
            all.push(sentences::sentence(&format!("{} {what}: {why}", said(rung.name))));
        }
    }
    all
}

/// `The widest gap: TCP delivers 478 Mbit/s, UDP below it 957 Mbit/s, 2.00 times as much`, and headers' part in it.
fn widest(ladder: &Ladder, gap: &Gap) -> String {
    let of = |name| find(ladder, name).and_then(median).and_then(bits);
    let (Some(less), Some(more)) = (of(gap.above), of(gap.below)) else {
        return "The widest gap has no figure.".to_owned();
    };
    let ground = if gap.below == RungName::Limit { "the line could carry" } else { "below it deliver" };
    let below = match gap.below {
        RungName::Limit => format!("{ground} {more}"),
        RungName::Frames => format!("raw frames {ground} {more}"),
        other => format!("{} below it delivers {more}", said(other)),
    };
    let verb = if gap.above == RungName::Frames { "they deliver" } else { "it delivers" };
    let mut text = format!(
        "The widest gap lies under {}: {verb} {less}, and {below}, {:.2} times as much",
        said(gap.above),
        gap.factor
    );
    if gap.headers > 1.0 {
        text.push_str(&format!("; larger headers explain a factor of {:.3} of it", gap.headers));
    }
    text.push('.');
    text
}

/// What TCP's larger header leaves at most, so that it is not taken for a loss.
fn header_of_tcp(ladder: &Ladder) -> Option<String> {
    let tcp = find(ladder, RungName::Tcp)?;
    let (limit, own) = (tcp.limit_bps?.get() as f64, median(tcp)?);
    let ground = find(ladder, RungName::Limit).and_then(median)?;
    Some(format!(
        "With TCP's larger header the line carries {} at most, {} of what it carries as UDP; TCP got {} of that.",
        bits(limit)?,
        percent(limit / ground)?,
        percent(own / limit)?
    ))
}

/// The ladder itself: a bar for each rung, the top one first, with what it lacks of the rung below behind it.
pub(crate) fn chart(ladder: &Ladder) -> Option<Chart> {
    let bars: Vec<Bar> = from_the_top(ladder)
        .filter_map(|rung| {
            let payload = rung.payload_bps.as_ref()?;
            let own = median(rung)?;
            let mut segments = vec![Segment { class: SERIES[0], value: own, label: pointed_at(rung, payload)? }];
            segments.extend(rung.below.and_then(|below| lack(ladder, rung, find(ladder, below)?)));
            let limit = rung.limit_bps.filter(|_| rung.name != RungName::Limit).and_then(|limit| {
                let most = limit.get() as f64;
                let label = format!("{}: with its headers the line carries {} at most", label(rung.name), bits(most)?);
                Some(Segment { class: "limit", value: most, label })
            });
            Some(Bar {
                name: label(rung.name),
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
    let mut legend = vec![(SERIES[0], "payload, median; whisker from lowest to highest run".to_owned())];
    if lacking("widest") {
        legend.push(("widest", "the widest gap: what it lacks of the rung below".to_owned()));
    }
    if lacking("lacking") {
        legend.push(("lacking", "what it lacks of the rung below".to_owned()));
    }
    if bars.iter().any(|bar| !bar.limits.is_empty()) {
        legend.push(("limit", "what the line carries with the rung's headers".to_owned()));
    }
    let reach = |bar: &Bar| {
        let whole: f64 = bar.segments.iter().map(|segment| segment.value).sum();
        bar.limits.iter().map(|limit| limit.value).chain(bar.spread.map(|(_, high)| high)).fold(whole, f64::max)
    };
    let x = Axis::rate("payload", "bit/s", bars.iter().map(reach).fold(0.0, f64::max));
    Some(Chart { title: CAPTION.to_owned(), legend, drawing: svg::bars(CAPTION, &x, &bars), table: table(ladder) })
}

/// What a rung's bar says.
fn pointed_at(rung: &Rung, payload: &Summary) -> Option<String> {
    let mut text = format!("{}: {} payload", label(rung.name), bits(payload.median)?);
    match payload.runs {
        0 => text.push_str(", by calculation"),
        _ => text.push_str(&format!(" ({})", spread(payload, bits))),
    }
    if let Some((share, below)) = rung.share_of_below.and_then(percent).zip(rung.below) {
        text.push_str(&format!(", {share} of {}", said(below)));
    }
    let of_line = rung.share_of_line.filter(|_| rung.below != Some(RungName::Limit) && rung.name != RungName::Limit);
    if let Some(share) = of_line.and_then(percent) {
        text.push_str(&format!(", {share} of the line"));
    }
    if let Some(latency) = rung.latency_ns {
        text.push_str(&format!("; half of the requests answered within {}", nanos(latency.p50)));
    }
    Some(text)
}

/// What a rung lacks of the one below, as a piece of its bar; none if it lacks nothing.
fn lack(ladder: &Ladder, rung: &Rung, below: &Rung) -> Option<Segment> {
    let value = median(below)? - median(rung)?;
    let widest = ladder.widest_gap.as_ref().is_some_and(|gap| gap.above == rung.name);
    let class = if widest { "widest" } else { "lacking" };
    let label = format!("{}: {} less than {}", label(rung.name), bits(value)?, said(below.name));
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
