//! Records as a document: sections made of a few kinds of blocks.
//!
//! `FIRST` and `LAST` list the sections, each made by the module of its concept; those of subjects come between them. Every form of report (terminal, Markdown,
//! HTML, pictures) walks the document and reads no record. CSV and JSON have the record itself.

use crate::blocks::section::{Block, Section};
use crate::language::Language;
use crate::sections::over_time::sparks::{self, Spark};
use crate::sections::{
    attempts, caveats, charts, hops, hosts, measuring, over_time, parties, path, results, tables, verdicts,
};
use crate::subjects::{self, device, ladder};
use crate::{figures, said};
use linerate_model::Record;

/// Makes a section of a record, if the record has anything for it.
type Make = fn(Language, &Record) -> Option<Section>;

/// Sections before those of subjects, in the order of every form: the answer and its caveats, the path, its course over
/// time and the figures.
const FIRST: [Make; 10] = [
    results::section,
    hops::section,
    hops::ways,
    ladder::section,
    caveats::section,
    path::section,
    over_time::section,
    hops::over_time,
    tables::section,
    tables::loaded_latency,
];

/// Sections after those of subjects: why, and how it was measured.
const LAST: [Make; 9] = [
    charts::section,
    results::in_words,
    ladder::further,
    device::addresses::iterations,
    verdicts::section,
    attempts::section,
    results::further,
    hosts::section,
    measuring::section,
];

/// Document about one or several records. All texts are in its language and hold no character that steers a terminal,
/// except for the texts of caveats, which are the record's own.
pub struct Document {
    /// The language of all that is not a record's own words.
    pub language: Language,
    /// Parties of the measurement.
    pub title: String,
    /// Time of the measurement, and the record's id.
    pub about: String,
    /// In the order in which a reader wants them.
    pub sections: Vec<Section>,
    /// Course of each result, of a single record.
    pub(crate) sparks: Vec<Spark>,
}

/// The document of records. Of several records, as of a demonstration's, the sections of one kind become one.
pub fn document(language: Language, records: &[Record]) -> Document {
    let mut sections: Vec<Section> = Vec::new();
    for make in FIRST {
        records.iter().filter_map(|record| make(language, record)).for_each(|section| add(&mut sections, section));
    }
    for subject in subjects::ALL {
        let of_subject = records.iter().filter_map(|record| subject.section(language, record));
        of_subject.for_each(|section| add(&mut sections, section));
    }
    for make in LAST {
        records.iter().filter_map(|record| make(language, record)).for_each(|section| add(&mut sections, section));
    }
    // Doubts of several records are counted together.
    for section in &mut sections {
        if let [Block::Caveats(all)] = section.blocks.as_slice() {
            section.heading = caveats::heading(language, all);
        }
    }
    let mut titles: Vec<String> = Vec::new();
    for title in records.iter().map(|record| parties::of_record(language, record)) {
        if !titles.contains(&title) {
            titles.push(title);
        }
    }
    let about = records.first().map(|record| {
        let moment = figures::moment(language, record.started_unix_ns);
        said!(language, "document-about", "{moment}, record {id}", moment = moment, id = figures::plain(&record.id.0))
    });
    Document {
        language,
        title: titles.join("; "),
        about: about.unwrap_or_default(),
        sections,
        sparks: if let [record] = records { sparks::sparks(language, record) } else { Vec::new() },
    }
}

/// Adds a section, or its blocks to the one of its kind. Sentences and doubts of several records stand once.
fn add(sections: &mut Vec<Section>, section: Section) {
    let Some(known) = sections.iter_mut().find(|known| known.id == section.id) else {
        sections.push(section);
        return;
    };
    for block in section.blocks {
        match (known.blocks.last_mut(), block) {
            (Some(Block::Sentences(all)), Block::Sentences(more)) => add_new(all, more),
            (Some(Block::Caveats(all)), Block::Caveats(more)) => add_new(all, more),
            (Some(Block::Entries(all)), Block::Entries(more)) => all.extend(more),
            (_, block) => known.blocks.push(block),
        }
    }
}

fn add_new<T: PartialEq>(all: &mut Vec<T>, more: Vec<T>) {
    for one in more {
        if !all.contains(&one) {
            all.push(one);
        }
    }
}
