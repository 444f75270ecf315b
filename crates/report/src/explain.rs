//! The reasoning behind each verdict of a record, in full.

use crate::language::Language;
use crate::said;
use crate::sentences::sentence;
use crate::text::{Page, Style};
use crate::verdicts;
use linerate_model::{Record, Verdict};

/// Each result's verdict with all that was weighed for it, and what to try next.
pub fn explain(record: &Record, style: &Style) -> String {
    let lang = style.language;
    let mut page = Page::new(style);
    let mut any = false;
    for (name, verdict) in verdicts::each(lang, record) {
        if any {
            page.blank();
        }
        any = true;
        page.heading(&format!("{name}: {}", verdicts::statement(lang, verdict)));
        reasons(lang, &mut page, verdict);
    }
    if !any {
        page.paragraph("", &said!(lang, "explain-nothing"));
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
        let head =
            format!("    {:<23}{:<9}", lang.named("limit", weighed.limit), lang.named("support", weighed.support));
        page.paragraph(&head, &sentence(&weighed.text));
    }
    for next in &verdict.next {
        page.paragraph(&format!("  {} ", said!(lang, "explain-next")), &sentence(next));
    }
}
