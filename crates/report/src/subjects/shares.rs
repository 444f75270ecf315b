//! Each path of a result on its own.

use crate::blocks::table::{Column, Table};
use crate::figures::{counted_share, per_second, plain, rate};
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
                Some(said!(lang, "charts-path", from = plain(&share.from), to = plain(&share.to))),
                match result.task() {
                    TaskKind::Stream => rate(share.main.median, "bit/s"),
                    _ => per_second(share.main.median),
                },
                share.loss.as_ref().and_then(|loss| counted_share(Ratio::new(loss.lost, loss.of))),
            ]
        })
        .collect();
    let figure = match result.task() {
        TaskKind::Stream => Column::new("column-charts-payload"),
        _ => Column::new("column-tables-per-second"),
    };
    let mut table = Table {
        caption: said!(lang, "tables-each-path-on-its", name = plain(&result.name)),
        columns: vec![Column::new("column-path"), figure, Column::new("column-tables-lost")],
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
