//! Records in lines: one for each result, with its figure, the spread of its runs, its share of the line, and its limit.
//!
//! Lines have columns of fixed width, so that each can be printed when its result is known. What limited the results is told
//! below them in a few sentences.

use crate::lines::counted;
pub use crate::lines::{Line, head, lines};
use crate::page::{Page, Style};
use crate::wrap::cell;
use crate::{caveats, ladder, said};
use linerate_model::Record;
use unicode_width::UnicodeWidthStr as _;

/// What limited the results of `records`: how many each limit, the widest gap of a ladder with what to try, layers that were not
/// measured, and how many doubts there are. Empty where there is no result.
pub fn limits(records: &[Record], style: &Style) -> String {
    let lang = style.language;
    let mut sentences: Vec<String> = counted(lang, records).into_iter().collect();
    sentences.extend(records.iter().filter_map(Record::ladder).flat_map(|found| ladder::in_short(lang, found)));
    let doubts: usize = records.iter().map(caveats::count).sum();
    if doubts > 0 {
        sentences.push(said!(lang, "overview-doubts", doubts = doubts));
    }
    if sentences.is_empty() {
        return String::new();
    }
    let mut page = Page::new(style);
    page.heading(&said!(lang, "section-verdicts"));
    sentences.iter().for_each(|sentence| page.paragraph("  ", sentence));
    page.finish(style.unicode)
}

/// Names under a heading, each with what it is for behind it.
pub fn list(heading: &str, entries: &[(String, String)], style: &Style) -> String {
    let width = entries.iter().map(|(name, _)| name.width()).max().unwrap_or(0).min(style.width / 2);
    let mut page = Page::new(style);
    page.heading(heading);
    entries.iter().for_each(|(name, text)| page.paragraph(&format!("  {}  ", cell(name, width, false)), text));
    page.finish(style.unicode)
}
