//! The reasoning behind each verdict of a record, in full.

use crate::figures::plain;
use crate::language::Language;
use crate::said;
use crate::sentences::{self, sentence};
use crate::text::{Page, Style};
use crate::{copy, device};
use linerate_model::{Record, Verdict};

/// Each result's verdict with all that was weighed for it, and what to try next.
pub fn explain(record: &Record, style: &Style) -> String {
    let lang = style.language;
    let mut page = Page::new(style);
    let results = record.results.iter().map(|result| (plain(&result.name), &result.verdict));
    let mut any = false;
    for (name, verdict) in results.chain(device::judged(lang, record)).chain(copy::judged(lang, record)) {
        if any {
            page.blank();
        }
        any = true;
        page.heading(&format!("{name}: {}", sentences::verdict(lang, verdict)));
        reasons(lang, &mut page, verdict);
    }
    if !any {
        page.paragraph("", &said!(lang, "explain-this-record-holds-no"));
    }
    page.finish(style.unicode)
}

fn reasons(lang: Language, page: &mut Page, verdict: &Verdict) {
    for evidence in &verdict.evidence {
        page.paragraph("  ", &sentence(evidence));
    }
    if !verdict.weighed.is_empty() {
        page.paragraph("  ", &said!(lang, "explain-weighed"));
    }
    for weighed in &verdict.weighed {
        let head = format!("    {:<19}{:<9}", lang.named("limit", weighed.limit), lang.named("stand", weighed.stand));
        page.paragraph(&head, &sentence(&weighed.text));
    }
    for next in &verdict.next {
        page.paragraph(&format!("  {} ", said!(lang, "explain-next")), &sentence(next));
    }
}
