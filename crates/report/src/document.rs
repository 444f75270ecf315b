//! Records as a document: sections made of a few kinds of blocks.
//!
//! [`document`] has the one list of sections, each made by the module of its concept. Every form of report (terminal, Markdown,
//! HTML, pictures) walks the document and reads no record. CSV and JSON have the record itself.

use crate::charts::{self, Chart};
use crate::language::Language;
use crate::tables::{self, Table};
use crate::{
    attempts, caveats, copy, device, figures, frames, hosts, ladder, measuring, nfs, over_time, parties, path, results,
    said, verdicts,
};
use linerate_model::{Caveat, Record};

/// Makes a section of a record, if the record has anything for it.
type Make = fn(Language, &Record) -> Option<Section>;

/// All sections in the order of every form: the answer and its doubts, the path, its course over time and the figures, then
/// why, and how it was measured.
const SECTIONS: [Make; 19] = [
    results::section,
    ladder::section,
    caveats::section,
    path::section,
    over_time::section,
    tables::section,
    tables::loaded_latency,
    nfs::section,
    copy::section,
    frames::section,
    device::section,
    charts::section,
    results::in_words,
    ladder::further,
    verdicts::section,
    attempts::section,
    results::further,
    hosts::section,
    measuring::section,
];

/// What a reader sees of one or several records. All texts are in its language and hold no character that steers a terminal,
/// except for the texts of caveats, which are the record's own.
pub struct Document {
    /// The language of all that is not a record's own words.
    pub language: Language,
    /// Who measured with whom.
    pub title: String,
    /// When, and the record's id.
    pub about: String,
    /// In the order in which a reader wants them.
    pub sections: Vec<Section>,
}

/// A part of a document under a heading.
pub struct Section {
    /// Its name in addresses: `caveats`.
    pub id: &'static str,
    /// Whether short forms have it.
    pub depth: Depth,
    /// Its heading.
    pub heading: String,
    /// Whether a page shows its heading alone until a reader asks for it.
    pub is_folded: bool,
    /// Its content, at least one block.
    pub blocks: Vec<Block>,
}

/// How much a form of report has to show to include a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// The answer, its doubts, its path and its figures: every form.
    Answer,
    /// What explains the answer: every form but the short one of a terminal.
    Summary,
    /// All else: forms that are kept, as files.
    Full,
}

/// A piece of a section.
pub enum Block {
    /// Sentences, each about something else.
    Sentences(Vec<String>),
    /// Things with a name, and what there is to say of each.
    Entries(Vec<Entry>),
    /// A table.
    Table(Table),
    /// A chart, with the same figures as a table for forms that do not draw.
    Chart(Box<Chart>),
    /// Doubts, each behind the names of the results that it is about; the name is empty where it is about all.
    Caveats(Vec<(String, Caveat)>),
}

/// A thing with a name, and what there is to say of it.
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Its one figure with its unit; the first sentence has it too.
    pub figure: Option<String>,
    /// Sentences, the most important first.
    pub sentences: Vec<String>,
    /// How many of the sentences are the answer; the others explain it.
    pub lead: usize,
    /// What only a reader who asks for it sees.
    pub folded: Option<Folded>,
}

/// Names with a sentence each, hidden until a reader asks for them.
pub struct Folded {
    /// What they are.
    pub heading: String,
    /// Names and sentences.
    pub entries: Vec<(String, String)>,
}

/// The document of records. Of several records, as of a demonstration's, the sections of one kind become one.
pub fn document(language: Language, records: &[Record]) -> Document {
    let mut sections: Vec<Section> = Vec::new();
    for make in SECTIONS {
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
        said!(language, "document-about", moment = moment, id = figures::plain(&record.id.0))
    });
    Document { language, title: titles.join("; "), about: about.unwrap_or_default(), sections }
}

impl Section {
    /// A section of the answer; none without blocks.
    pub(crate) fn answer(id: &'static str, heading: String, blocks: Vec<Block>) -> Option<Self> {
        Self::of(Depth::Answer, id, heading, blocks)
    }

    /// The same, folded on a page.
    pub(crate) fn folded(self) -> Self {
        Self { is_folded: true, ..self }
    }

    /// A section that explains the answer; none without blocks.
    pub(crate) fn summary(id: &'static str, heading: String, blocks: Vec<Block>) -> Option<Self> {
        Self::of(Depth::Summary, id, heading, blocks)
    }

    /// A section of full forms; none without blocks.
    pub(crate) fn full(id: &'static str, heading: String, blocks: Vec<Block>) -> Option<Self> {
        Self::of(Depth::Full, id, heading, blocks)
    }

    fn of(depth: Depth, id: &'static str, heading: String, blocks: Vec<Block>) -> Option<Self> {
        let blocks: Vec<Block> = blocks.into_iter().filter(|block| !block.is_empty()).collect();
        (!blocks.is_empty()).then_some(Self { id, depth, heading, is_folded: false, blocks })
    }
}

impl Block {
    pub(crate) fn chart(chart: Chart) -> Self {
        Self::Chart(Box::new(chart))
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Sentences(sentences) => sentences.is_empty(),
            Self::Entries(entries) => entries.is_empty(),
            Self::Table(table) => table.rows.is_empty(),
            Self::Chart(_) => false,
            Self::Caveats(caveats) => caveats.is_empty(),
        }
    }
}

impl Entry {
    /// An entry of sentences alone.
    pub(crate) fn new(name: String, sentences: Vec<String>) -> Self {
        let lead = sentences.len();
        Self { name, figure: None, sentences, lead, folded: None }
    }

    /// The same, of whose sentences so many are the answer.
    pub(crate) fn led_by(self, lead: usize) -> Self {
        Self { lead: lead.min(self.sentences.len()), ..self }
    }

    /// The same with its one figure.
    pub(crate) fn with_figure(self, figure: Option<String>) -> Self {
        Self { figure: Some(figure.unwrap_or_else(|| figures::MISSING.to_owned())), ..self }
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
