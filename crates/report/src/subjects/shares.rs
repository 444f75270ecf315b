//! Each path of a result on its own.

use crate::blocks::axis::{lowest, rate_axis};
use crate::blocks::chart::{Chart, SERIES};
use crate::blocks::columns;
use crate::blocks::drawing::{Bar, Drawing, Segment, reach};
use crate::blocks::table::Table;
use crate::column;
use crate::figures::{counted_share, per_second, plain, rate, spread};
use crate::language::Language;
use crate::said;
use linerate_model::{Measurement, TaskKind};
use linerate_units::Ratio;

/// Each path and direction of one result on its own.
pub(crate) fn shares(lang: Language, result: &Measurement) -> Option<Table> {
    if result.shares().len() < 2 {
        return None;
    }
    let rows: Vec<Vec<Option<String>>> = result
        .shares()
        .iter()
        .map(|share| {
            vec![
                Some(said!(lang, "charts-path", "{from} to {to}", from = plain(&share.from), to = plain(&share.to))),
                match result.task() {
                    TaskKind::Stream => rate(share.main.median, "bit/s"),
                    _ => per_second(share.main.median),
                },
                share.loss.as_ref().and_then(|loss| counted_share(Ratio::new(loss.lost, loss.of))),
            ]
        })
        .collect();
    let figure = match result.task() {
        TaskKind::Stream => columns::CHARTS_PAYLOAD,
        _ => columns::TABLES_PER_SECOND,
    };
    let mut table = Table {
        caption: said!(lang, "tables-each-path-on-its", "{name}, each path on its own", name = plain(&result.name)),
        columns: vec![
            column!("column-path", "path", "from the sending to the receiving host"),
            figure,
            columns::TABLES_LOST,
        ],
        rows,
    };
    if table.rows.iter().all(|row| row[2].is_none()) {
        table.columns.pop();
        table.rows.iter_mut().for_each(|row| {
            row.pop();
        });
    }
    Some(table)
}

/// Each path's part of one result.
pub(crate) fn chart(lang: Language, result: &Measurement) -> Option<Chart> {
    let table = shares(lang, result)?;
    let stream = result.task() == TaskKind::Stream;
    let show = |value| if stream { rate(value, "bit/s") } else { per_second(value) };
    let bars: Vec<Bar> = result
        .shares()
        .iter()
        .filter_map(|share| {
            let summary = &share.main;
            let name = said!(lang, "charts-path", "{from} to {to}", from = plain(&share.from), to = plain(&share.to));
            let figure = show(summary.median)?;
            let what = if stream {
                said!(lang, "charts-axis-payload", "payload at the receiver")
            } else {
                said!(lang, "charts-legend-transactions", "transactions a second")
            };
            let label = format!("{name}: {figure} {what} ({})", spread(lang, summary, show));
            Some(Bar {
                name,
                segments: vec![Segment { class: SERIES[0], value: summary.median, label }],
                spread: (summary.runs > 1).then_some((summary.low, summary.high)),
                limits: vec![],
                figure,
            })
        })
        .collect();
    if bars.is_empty() {
        return None;
    }
    let low = lowest(bars.iter().flat_map(|bar| &bar.segments).map(|segment| segment.value));
    let x = if stream {
        rate_axis(lang, said!(lang, "charts-axis-payload", "payload at the receiver"), "bit/s", low, reach(&bars))
    } else {
        rate_axis(lang, said!(lang, "charts-axis-transactions", "transactions"), "/s", low, reach(&bars))
    };
    let what = if stream {
        said!(lang, "charts-axis-payload", "payload at the receiver")
    } else {
        said!(lang, "charts-legend-transactions", "transactions a second")
    };
    let legend = vec![(
        SERIES[0],
        said!(lang, "charts-legend-shares", "{what}, median; whisker from lowest to highest run", what = what),
    )];
    let title = table.caption.clone();
    Some(Chart { drawing: Drawing::Bars { x, bars }, table, title, legend })
}
