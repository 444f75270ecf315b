//! Sections of a document, and the few kinds of blocks that they are made of.

use crate::blocks::chart::Chart;
use crate::blocks::table::Table;
use crate::figures;
use linerate_model::Caveat;

/// A part of a document under a heading.
pub struct Section {
    /// Name in addresses, as in `caveats`.
    pub id: &'static str,
    /// Whether short forms have it.
    pub depth: Depth,
    /// Heading above the blocks.
    pub heading: String,
    /// Whether a page shows its heading alone until a reader asks for it.
    pub is_folded: bool,
    /// Content, at least one block.
    pub blocks: Vec<Block>,
}

/// Forms that include a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// The answer, its doubts, its path and its figures: every form.
    Answer,
    /// Explanation of the answer: every form but the short one of a terminal.
    Summary,
    /// Everything else: forms that are kept, as files.
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
    /// Caveats, each with the names of the results that it is about; the names are empty if it is about all.
    Caveats(Vec<(String, Caveat)>),
}

/// A thing with a name, and what there is to say of it.
pub struct Entry {
    /// Name of the entry.
    pub name: String,
    /// Figure with its unit; the first sentence has it too.
    pub figure: Option<String>,
    /// Sentences, the most important first.
    pub sentences: Vec<String>,
    /// Number of sentences that are the answer; the others explain it.
    pub lead: usize,
    /// Text that a reader opens on demand.
    pub folded: Option<Folded>,
}

/// Names with a sentence each, hidden until a reader asks for them.
pub struct Folded {
    /// Heading of the entries.
    pub heading: String,
    /// Names and sentences.
    pub entries: Vec<(String, String)>,
}

impl Section {
    /// Returns a section of the answer, `None` without blocks.
    pub(crate) fn answer(id: &'static str, heading: String, blocks: Vec<Block>) -> Option<Self> {
        Self::of(Depth::Answer, id, heading, blocks)
    }

    /// Folds the section on a page.
    pub(crate) fn folded(self) -> Self {
        Self { is_folded: true, ..self }
    }

    /// Returns a section that explains the answer, `None` without blocks.
    pub(crate) fn summary(id: &'static str, heading: String, blocks: Vec<Block>) -> Option<Self> {
        Self::of(Depth::Summary, id, heading, blocks)
    }

    /// Returns a section of full forms, `None` without blocks.
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

    /// Marks the first `lead` sentences as the answer.
    pub(crate) fn led_by(self, lead: usize) -> Self {
        Self { lead: lead.min(self.sentences.len()), ..self }
    }

    /// Adds the figure.
    pub(crate) fn with_figure(self, figure: Option<String>) -> Self {
        Self { figure: Some(figure.unwrap_or_else(|| figures::MISSING.to_owned())), ..self }
    }
}
