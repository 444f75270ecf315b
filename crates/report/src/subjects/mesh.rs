//! A mesh of hosts: what went from each to each other, as a heat map.

use crate::blocks::chart::Chart;
use crate::blocks::heat_map::HeatMap;
use crate::figures::plain;
use crate::figures::values::value;
use crate::language::Language;
use crate::said;
use crate::subjects::shares::shares;
use linerate_model::{MeasureUnit, Measurement, TaskKind};

/// For fewer pairs bars are clearer.
const FEWEST_PAIRS: usize = 4;

/// Returns each pair's part of one result, `None` if most hosts have only one other.
pub(crate) fn chart(lang: Language, result: &Measurement) -> Option<Chart> {
    let table = shares(lang, result)?;
    let stream = result.task() == TaskKind::Stream;
    let unit = if stream { MeasureUnit::BitsPerS } else { MeasureUnit::PerS };
    let senders = in_order(result.shares().iter().map(|share| share.from.as_str()));
    let mut receivers = in_order(result.shares().iter().map(|share| share.to.as_str()));
    // A host that sends and receives has its row and its column at the same place.
    receivers.sort_by_key(|name| senders.iter().position(|sender| sender == name).unwrap_or(senders.len()));
    let pairs = senders.len() * receivers.len() - senders.iter().filter(|name| receivers.contains(name)).count();
    let count = result.shares().len();
    if senders.len() < 2 || receivers.len() < 2 || count < FEWEST_PAIRS || count * 2 <= pairs {
        return None;
    }
    let cell = |from: &&str, to: &&str| {
        let share = result.shares().iter().find(|share| share.from == *from && share.to == *to)?;
        let reached = share.main.median;
        let pair = said!(lang, "charts-path", "{from} to {to}", from = plain(from), to = plain(to));
        Some((reached, format!("{pair}: {}", value(reached, unit))))
    };
    let values = senders.iter().map(|from| receivers.iter().map(|to| cell(from, to)).collect()).collect();
    let plain_names = |names: &[&str]| names.iter().map(|name| plain(name)).collect();
    HeatMap {
        title: table.caption.clone(),
        unit,
        titles: [said!(lang, "mesh-from", "from"), said!(lang, "mesh-to", "to")],
        rows: plain_names(&senders),
        columns: plain_names(&receivers),
        values,
        table,
    }
    .chart(lang)
}

/// Each name once, as they come.
fn in_order<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names_so_far = Vec::new();
    for name in names {
        if !names_so_far.contains(&name) {
            names_so_far.push(name);
        }
    }
    names_so_far
}
