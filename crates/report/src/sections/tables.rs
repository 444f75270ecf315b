//! The results as tables: the same columns in the terminal, in Markdown and in HTML.

use crate::blocks::columns;
use crate::blocks::section::{Block, Section};
use crate::language::Language;
use crate::subjects::stream::loaded_latency::COLUMNS;
use crate::subjects::{self, flow_table, shares};
use crate::{records, said};
use linerate_model::{Measurement, Record};

/// The figures of all results, and of each path of those that have several.
pub(crate) fn section(lang: Language, record: &Record) -> Option<Section> {
    let results: Vec<&Measurement> = records::with_entries(record).filter(|result| result.flows().is_some()).collect();
    let shares = results.iter().filter_map(|result| shares::shares(lang, result));
    let tables = subjects::ALL.iter().filter_map(|subject| subject.table(lang, &results)).chain(shares);
    let heading = said!(lang, "section-figures", "Figures");
    let blocks = tables.map(Block::Table).collect();
    // The answer of a curve and of a ladder is in their own tables.
    if record.curve().is_some() || record.ladder().is_some() {
        Section::summary("figures", heading, blocks)
    } else {
        Section::answer("figures", heading, blocks)
    }
}

/// Latency under load, of the results that were probed.
pub(crate) fn loaded_latency(lang: Language, record: &Record) -> Option<Section> {
    let results: Vec<&Measurement> = records::with_entries(record).filter(|result| result.flows().is_some()).collect();
    let probed: Vec<&Measurement> = results.into_iter().filter(|result| result.loaded_latency().is_some()).collect();
    let heading = said!(lang, "tables-latency-under-load", "Latency under load");
    let table = flow_table::results_table(lang, heading.clone(), columns::STREAM, &probed, &COLUMNS);
    Section::answer("latency-under-load", heading, table.into_iter().map(Block::Table).collect())
}
