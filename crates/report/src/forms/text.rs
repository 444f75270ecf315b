//! A document in the terminal: the sections that every form has, charts as far as a line of text can show them.

use crate::blocks::section::{Block, Depth};
use crate::document::document;
use crate::figures::plain;
use crate::forms::page::{Page, Style, with_bars};
use crate::records::Records;
use crate::said;
use crate::sections::over_time::sparks;

/// Returns the sections that every form has, for a terminal of this style; ends with a newline.
pub fn text<'a>(records: impl Into<Records<'a>>, style: &Style) -> String {
    let document = document(style.language, records.into().0);
    let mut page = Page::new(style);
    page.heading(&document.title);
    page.paragraph("", &document.about);
    for section in document.sections.iter().filter(|section| section.depth != Depth::Full) {
        page.section(section);
    }
    page.finish(style.unicode)
}

/// The answer alone: each result with its figure and its limit, the doubts in a few words, the path in a line, the first table of
/// each section. It ends with a newline.
pub fn answer<'a>(records: impl Into<Records<'a>>, style: &Style) -> String {
    let document = document(style.language, records.into().0);
    let mut page = Page::new(style);
    page.heading(&document.title);
    let answers = || document.sections.iter().filter(|section| section.depth == Depth::Answer);
    answers().flat_map(|section| &section.blocks).for_each(|block| page.answer(block));
    sparks::lines(&document.sparks, page.width).iter().for_each(|line| page.line(line));
    let table = |block: &'_ Block| if let Block::Table(table) = block { Some(table.clone()) } else { None };
    for (number, table) in answers().filter_map(|section| section.blocks.iter().find_map(table)).enumerate() {
        page.blank();
        if number > 0 {
            page.heading(&table.caption);
        }
        page.table(&with_bars(&table));
    }
    page.finish(style.unicode)
}

/// Returns where there is more of records in the store; it ends with a newline.
pub fn more<'a>(records: impl Into<Records<'a>>, style: &Style) -> String {
    let ids: Vec<String> = records.into().0.iter().map(|record| plain(&record.id.0)).collect();
    let mut page = Page::new(style);
    page.paragraph(
        "",
        &said!(
            style.language,
            "answer-more",
            "More: -v, `linerate explain`, `linerate report`. Record {id}",
            id = ids.join(", ")
        ),
    );
    page.finish(style.unicode)
}

/// Returns where there is more of records that are not kept; it ends with a newline.
pub fn not_kept(style: &Style) -> String {
    let mut page = Page::new(style);
    let more = said!(style.language, "answer-not-kept", "More: -v. No record was kept; --out FILE.json writes one.");
    page.paragraph("", &more);
    page.finish(style.unicode)
}
