//! The reasoning behind each verdict of a record, in full.

use crate::device;
use crate::figures::plain;
use crate::sentences::{self, sentence};
use crate::text::{Page, Style};
use linerate_model::{Record, Verdict};

/// Each result's verdict with all that was weighed for it, and what to try next.
pub fn explain(record: &Record, style: &Style) -> String {
    let mut page = Page::new(style);
    let results = record.results.iter().map(|result| (plain(&result.name), &result.verdict));
    let mut any = false;
    for (name, verdict) in results.chain(device::judged(record)) {
        if any {
            page.blank();
        }
        any = true;
        page.heading(&format!("{name}: {}", sentences::verdict(verdict)));
        reasons(&mut page, verdict);
    }
    if !any {
        page.paragraph("", "This record holds no result, so there is nothing to explain.");
    }
    page.finish(style.unicode)
}

fn reasons(page: &mut Page, verdict: &Verdict) {
    for evidence in &verdict.evidence {
        page.paragraph("  ", &sentence(evidence));
    }
    if !verdict.weighed.is_empty() {
        page.paragraph("  ", "Weighed:");
    }
    for weighed in &verdict.weighed {
        let head = format!("    {:<19}{:<9}", weighed.limit, weighed.stand);
        page.paragraph(&head, &sentence(&weighed.text));
    }
    for next in &verdict.next {
        page.paragraph("  Next: ", &sentence(next));
    }
}
