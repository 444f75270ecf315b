//! Reasons of each verdict of a record, in full.

use crate::forms::page::{Page, Style};
use crate::language::Language;
use crate::said;
use crate::sections::over_time::{self, EvidenceRun};
use crate::sections::verdicts;
use crate::wording::sparkline::sparkline;
use crate::wording::{message, verdict};
use linerate_model::{Record, Verdict};
use unicode_width::UnicodeWidthStr as _;

/// Marks of a quantity over time.
const MARKS: usize = 24;

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
        page.heading(&format!("{name}: {}", verdict::statement(lang, verdict)));
        reasons(lang, &mut page, verdict);
        let run = record.result(&name).and_then(|result| over_time::evidence(lang, record, result, MARKS));
        if let Some(run) = run {
            course(lang, &mut page, &run);
        }
    }
    if !any {
        page.paragraph(
            "",
            &said!(lang, "explain-nothing", "This record holds no result, so there is nothing to explain."),
        );
    }
    page.finish(style.unicode)
}

fn reasons(lang: Language, page: &mut Page, verdict: &Verdict) {
    for evidence in &verdict.evidence {
        page.paragraph("  ", &message(lang, evidence));
    }
    if !verdict.weighed.is_empty() {
        page.paragraph("  ", &said!(lang, "explain-weighed", "Weighed:"));
    }
    for weighed in &verdict.weighed {
        let head = format!("    {:<23}{:<9}", lang.text(weighed.limit.text()), lang.text(weighed.support.text()));
        page.paragraph(&head, &message(lang, &weighed.text));
    }
    if !verdict.checks.is_empty() {
        page.paragraph("  ", &said!(lang, "explain-checks", "Conditions of high confidence:"));
    }
    for check in &verdict.checks {
        let met = if check.met { said!(lang, "explain-met", "met") } else { said!(lang, "explain-not-met", "not met") };
        let head = format!("    {:<23}{met:<9}", lang.text(check.condition.text()));
        page.paragraph(&head, &message(lang, &check.text));
    }
    for next in &verdict.next {
        page.paragraph(&format!("  {} ", said!(lang, "explain-next", "Next:")), &message(lang, next));
    }
}

/// Appends the evidence over the window of one run.
fn course(lang: Language, page: &mut Page, run: &EvidenceRun) {
    let each = linerate_units::Nanos::new((run.seconds * 1e9 / MARKS as f64) as u64);
    page.paragraph(
        "  ",
        &said!(
            lang,
            "explain-over-time",
            "Over time, {run}, each mark {each}, beside it the lowest and the highest value:",
            run = run.run,
            each = each
        ),
    );
    let width = run.rows.iter().map(|row| row.what.width()).max().unwrap_or_default();
    for row in &run.rows {
        let space = " ".repeat(width - row.what.width());
        let head = format!("    {}{space}  {}  ", row.what, sparkline(&row.shares));
        page.paragraph(
            &head,
            &said!(lang, "explain-range", "{lowest} to {highest}", lowest = row.lowest, highest = row.highest),
        );
    }
}
