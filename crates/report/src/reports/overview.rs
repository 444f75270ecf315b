//! Records in lines: one for each result, with its figure, the spread of its runs, its share of the line, and its limit.
//!
//! Lines have columns of fixed width, so that each can be printed when its result is known. What limited the results is told
//! below them in a few sentences.

use crate::blocks::columns;
use crate::blocks::table::Column;
use crate::figures::MISSING;
use crate::forms::page::{Page, Style};
use crate::reports::run_summary::headline_limit;
use crate::said;
use crate::sections::caveats;
use crate::subjects::ladder;
use crate::subjects::lines::counted;
pub use crate::subjects::lines::{Line, lines};
use crate::wording::wrap::cell;
use linerate_model::Record;
use unicode_width::UnicodeWidthStr as _;

/// Columns after the name: width, and the narrowest terminal that has room for them.
static COLUMNS: [(Column, usize, usize); 3] =
    [(columns::FIGURE, 13, 0), (columns::SPREAD, 9, 80), (columns::TABLES_OF_LINK, 9, 70)];

/// Columns of a name: `rpc tcp write 8192`.
const NAME: usize = 18;

/// Space before each line.
const INDENT: usize = 2;

/// Returns the lines above results: a heading, and the titles of their columns. Ends without a newline.
pub fn head(heading: &str, style: &Style) -> String {
    let mut page = Page::new(style);
    page.heading(heading);
    let lang = style.language;
    let titles = COLUMNS.each_ref().map(|(column, ..)| column.title(lang));
    let titles = titles.each_ref().map(String::as_str);
    let below = laid_out(style, "", titles, &columns::LIMIT.title(lang));
    page.dim(&below.finish(true));
    page.finish(style.unicode).trim_end().to_owned()
}

/// A name, its figures and its limit in their columns; the limit is cut where it has no room.
fn laid_out(style: &Style, name: &str, figures: [&str; 3], limit: &str) -> Page {
    let columns = COLUMNS.iter().zip(figures).filter(|((.., narrowest), _)| style.width >= *narrowest);
    let mut line = " ".repeat(INDENT);
    line.push_str(&cell(name, NAME, false));
    let mut used = INDENT + NAME;
    for ((_, width, _), figure) in columns {
        line.push_str(&cell(figure, *width, true));
        used += *width;
    }
    line.push_str("  ");
    line.push_str(cell(limit, style.width.saturating_sub(used + 2), false).trim_end());
    let mut page = Page::new(style);
    page.raw(&line);
    page
}

impl Line {
    /// The line for a terminal of this style, without a newline.
    pub fn text(&self, style: &Style) -> String {
        let limit = self.verdict.map(|verdict| headline_limit(style.language, verdict));
        let figures = [&self.figure, &self.spread, &self.of_line].map(|cell| cell.as_deref().unwrap_or(MISSING));
        laid_out(style, &self.name, figures, limit.as_deref().unwrap_or(MISSING)).finish(style.unicode)
    }
}

/// Returns what limited the results of `records`: how many each limit, the widest gap of a ladder with what to try,
/// layers that were not measured, and how many caveats there are. Empty if there is no result.
pub fn limits(records: &[Record], style: &Style) -> String {
    let lang = style.language;
    let mut sentences: Vec<String> = counted(lang, records).into_iter().collect();
    sentences.extend(records.iter().filter_map(Record::ladder).flat_map(|found| ladder::in_short(lang, found)));
    let doubts: usize = records.iter().map(caveats::count).sum();
    if doubts > 0 {
        sentences.push(said!(
            lang,
            "overview-doubts",
            if doubts == 1 {
                "One caveat applies to these results; the report says what to do about it."
            } else {
                "{doubts} caveats apply to these results; the report says what to do about each."
            },
            doubts = doubts
        ));
    }
    if sentences.is_empty() {
        return String::new();
    }
    let mut page = Page::new(style);
    page.heading(&said!(lang, "section-verdicts", "What limited the results"));
    sentences.iter().for_each(|sentence| page.paragraph("  ", sentence));
    page.finish(style.unicode)
}

/// Returns names under a heading, each followed by its purpose.
pub fn list(heading: &str, entries: &[(String, String)], style: &Style) -> String {
    let width = entries.iter().map(|(name, _)| name.width()).max().unwrap_or(0).min(style.width / 2);
    let mut page = Page::new(style);
    page.heading(heading);
    entries.iter().for_each(|(name, text)| page.paragraph(&format!("  {}  ", cell(name, width, false)), text));
    page.finish(style.unicode)
}
