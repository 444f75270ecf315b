//! A study as a report: summary, findings, tables by factor, charts with the limit of each medium, method, caveats,
//! data.

mod by_class;
mod charts;
mod heat;
mod in_language;
mod multiples;
mod outputs;
mod page;
mod pivot;
mod repeats;
mod shape;
mod tables;

pub use outputs::{csv, json, markdown, text};
pub use page::html;
pub use pivot::{BadPivot, Pivot};

use crate::findings::data::Data;
use crate::study::StudyReport;
use linerate_report::parts::picture::numbered;
use linerate_report::{Language, Picture};

/// The charts of a study, as its page of the same pivot shows them.
pub fn pictures(lang: Language, report: &StudyReport, pivot: Option<&Pivot>) -> Vec<Picture> {
    numbered(charts::all(lang, &Data::of(lang, &report.study.in_language(lang)), pivot).into_iter())
}
