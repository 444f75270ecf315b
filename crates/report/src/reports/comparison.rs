//! Records held against each other, for a terminal and for a page.

use crate::blocks::chart::{Chart, SERIES, distributions};
use crate::blocks::columns;
use crate::blocks::table::Table;
use crate::column;
use crate::figures::{MISSING, grouped, nanos, per_second, plain, rate};
use crate::forms::markup::{figure, prose, with_meanings};
use crate::forms::page::{Page, Style};
use crate::language::Language;
use crate::said;
use crate::subjects::runs::{self, Group, Runs};
use crate::wording::{firmness, message, sentence};
use linerate_model::{
    Change, ComparedFigure, Comparison, Firmness, MeasureUnit, Measurement, Message, Quantity, Record, RecordId,
    Samples,
};
use maud::{Markup, html};

/// Every figure that both sides have, what changed, and with which confidence.
pub fn comparison(found: &Comparison, style: &Style) -> String {
    let lang = style.language;
    let mut page = Page::new(style);
    page.heading(&said!(
        lang,
        "comparison-compared-with",
        "{after} compared with {before}",
        after = ids(&found.after),
        before = ids(&found.before)
    ));
    if found.figures.is_empty() {
        page.paragraph(
            "",
            &said!(
                lang,
                "comparison-the-records-have-no",
                "The records have no measurement in common, so there is nothing to compare."
            ),
        );
    } else {
        summary(lang, found).iter().for_each(|line| page.paragraph("", line));
        page.blank();
        page.table(&table(lang, found));
    }
    for (title, lines) in notes(lang, found) {
        page.blank();
        page.heading(&title);
        lines.iter().for_each(|line| page.paragraph("- ", line));
    }
    page.finish(style.unicode)
}

/// Renders the comparison as a part of a page.
pub fn comparison_html(lang: Language, found: &Comparison) -> Markup {
    html! {
        @if found.figures.is_empty() {
            p { (said!(lang, "comparison-the-records-have-no", "The records have no measurement in common, so there is nothing to compare.")) }
        } @else {
            @for line in summary(lang, found) { p { (prose(lang, &line)) } }
            (with_meanings(lang, &table(lang, found)))
        }
        @for (title, lines) in notes(lang, found) {
            section {
                h2 { (title) }
                ul { @for line in lines { li { (prose(lang, &line)) } } }
            }
        }
    }
}

/// The distributions of two records over one axis: each run of what both measured, and their response times.
pub fn comparison_charts(lang: Language, before: &Record, after: &Record) -> Markup {
    let charts = [compared_runs(lang, before, after), compared_latencies(lang, before, after)];
    html! { @for chart in charts.iter().flatten() { (figure(lang, chart)) } }
}

/// The results of `before` that `after` has too.
fn in_both<'a>(before: &'a Record, after: &'a Record) -> impl Iterator<Item = (&'a Measurement, &'a Measurement)> {
    before.results.iter().filter_map(|one| Some((one, after.result(&one.name)?)))
}

fn compared_runs(lang: Language, before: &Record, after: &Record) -> Option<Chart> {
    let words = [said!(lang, "comparison-before", "before"), said!(lang, "comparison-after", "after")];
    let alike = in_both(before, after).filter(|(one, other)| one.quantity == other.quantity);
    let groups = alike.map(|(one, other)| {
        let pair = SERIES.into_iter().zip([one, other]).zip(words.clone());
        let members = pair.map(|((class, result), name)| Runs {
            name,
            class,
            unit: result.quantity.unit(),
            values: result.main.values.clone(),
            before: Some(one.main.median),
        });
        Group { name: plain(&one.name), members: members.collect() }
    });
    let legend = SERIES.into_iter().zip(words.clone()).collect();
    runs::chart(
        lang,
        said!(lang, "comparison-title-runs", "Each run against the median before"),
        columns::RESULT,
        groups.collect(),
        legend,
    )
}

fn compared_latencies(lang: Language, before: &Record, after: &Record) -> Option<Chart> {
    let both =
        in_both(before, after).filter_map(|(one, other)| Some((plain(&one.name), one.latency()?, other.latency()?)));
    let curves = both.flat_map(|(name, one, other)| {
        let entry = |word: String| said!(lang, "comparison-named", "{name}, {word}", name = name, word = word);
        [
            (entry(said!(lang, "comparison-before", "before")), one),
            (entry(said!(lang, "comparison-after", "after")), other),
        ]
    });
    let title = said!(lang, "comparison-title-latency", "Response times before and after");
    distributions(lang, title, columns::TIMED_TRANSACTION, curves.collect())
}

fn ids(side: &[RecordId]) -> String {
    side.iter().map(|id| plain(&id.0)).collect::<Vec<_>>().join(", ")
}

/// The sentences below the table, under their headings: what would decide, what else differed, and what was not compared.
fn notes(lang: Language, found: &Comparison) -> Vec<(String, Vec<String>)> {
    let undecided = found.figures.iter().filter(|figure| figure.change == Change::Undecided);
    let deciding = undecided.map(|figure| sentence(&deciding(lang, found.samples, figure))).collect::<Vec<_>>();
    let texts = |messages: &[Message]| messages.iter().map(|said| message(lang, said)).collect::<Vec<_>>();
    let all = [
        (said!(lang, "comparison-what-would-decide", "What would decide"), deciding),
        (said!(lang, "comparison-what-else-differed", "What else differed"), texts(&found.warnings)),
        (said!(lang, "comparison-not-compared-or-to", "Notes"), texts(&found.remarks)),
    ];
    all.into_iter().filter(|(_, lines)| !lines.is_empty()).collect()
}

/// Returns what would decide an undecided figure.
fn deciding(lang: Language, samples: Samples, figure: &ComparedFigure) -> String {
    let name = plain(&figure.name);
    let quantity = lang.text(figure.quantity.text());
    let have = u64::from(figure.before.runs.min(figure.after.runs));
    match (figure.p, figure.needed) {
        _ if !is_firm(figure) => said!(
            lang,
            "comparison-not-firm",
            "`{name}`, {quantity}: not firm, because the tester did not offer the load that would decide; a rate is \
             then a lower bound, which can be shown to be above another and no more",
            name = name,
            quantity = quantity
        ),
        (None, _) => said!(
            lang,
            "comparison-too-few",
            "`{name}`, {quantity}: the spread is not known; make three runs or more of each",
            name = name,
            quantity = quantity
        ),
        (Some(_), Some(needed)) => said!(
            lang,
            "comparison-so-many-would-decide",
            "`{name}`, {quantity}: about {needed} {what} would decide; there are {have}",
            name = name,
            quantity = quantity,
            needed = u64::from(needed),
            have = have,
            what = lang.text(samples.text())
        ),
        (Some(_), None) => said!(
            lang,
            "comparison-none-would-decide",
            "`{name}`, {quantity}: the change is too near to the tolerance of {tolerance} for any useful number of \
             runs; choose another tolerance or make longer runs",
            name = name,
            quantity = quantity,
            tolerance = share(figure.tolerance).trim_start_matches('+')
        ),
    }
}

/// Whether both sides of a figure are firm.
fn is_firm(figure: &ComparedFigure) -> bool {
    figure.before_firmness.and(figure.after_firmness).is_firm()
}

fn summary(lang: Language, found: &Comparison) -> Vec<String> {
    let count = |change| found.figures.iter().filter(|figure| figure.change == change).count();
    let sentences = [
        (Change::Worse, said!(lang, "comparison-worse", "worse")),
        (Change::Better, said!(lang, "comparison-better", "better")),
        (Change::Equivalent, said!(lang, "comparison-equivalent", "equivalent")),
        (Change::Undecided, said!(lang, "comparison-undecided", "undecided")),
    ];
    let counts: Vec<String> = sentences
        .into_iter()
        .filter(|(change, _)| count(*change) > 0)
        .map(|(change, word)| format!("{} {word}", count(change)))
        .collect();
    let summary = said!(
        lang,
        "comparison-summary",
        if figures == 1 {
            "Of 1 figure: {counts}. Before and after are medians of the runs; the change is that of their means. The \
             tolerance is {tolerance}. All verdicts together hold with {confidence} % confidence."
        } else {
            "Of {figures} figures: {counts}. Before and after are medians of the runs; the change is that of their \
             means. The tolerance is {tolerance}. All verdicts together hold with {confidence} % confidence."
        },
        figures = found.figures.len(),
        counts = lang.list(&counts),
        tolerance = share(found.tolerance).trim_start_matches('+'),
        confidence = found.confidence_percent.to_string()
    );
    let loss = found.figures.iter().find(|figure| figure.quantity == Quantity::LossRatio);
    let of_loss = loss.map(|loss| {
        said!(
            lang,
            "comparison-tolerance-of-loss",
            "The tolerance of loss is {tolerance} of what was sent.",
            tolerance = share(loss.tolerance).trim_start_matches('+')
        )
    });
    std::iter::once(summary).chain(of_loss).collect()
}

fn table(lang: Language, found: &Comparison) -> Table {
    let columns = vec![
        columns::RESULT,
        columns::FIGURE,
        column!("column-before", "before", "median of the runs before"),
        column!("column-after", "after", "median of the runs after"),
        column!(
            "column-change",
            "change",
            "the mean after less the mean before, as a share of it (loss: of all datagrams)"
        ),
        column!(
            "column-between",
            "interval",
            "confidence interval of the change; each end alone holds with the confidence of the verdicts"
        )
        .ranked(1),
        column!(
            "column-p",
            "p",
            "p-value of the verdict, or of the nearest one: t test against the tolerance, Holm-adjusted"
        )
        .ranked(2),
        column!("column-is", "verdict", "verdict on the change"),
    ];
    let rows = found.figures.iter().map(|figure| row(lang, figure)).collect();
    Table { caption: said!(lang, "section-figures", "Figures"), columns, rows }
}

fn row(lang: Language, figure: &ComparedFigure) -> Vec<Option<String>> {
    let show = |value: f64| match figure.quantity {
        Quantity::PayloadBps => rate(value, "bit/s"),
        Quantity::LossRatio => Some(share(value).trim_start_matches('+').to_owned()),
        other => match other.unit() {
            MeasureUnit::PerS => per_second(value),
            MeasureUnit::Nanos | MeasureUnit::NanosHeld => Some(nanos(value.max(0.0) as u64)),
            _ => Some(grouped(value.round().max(0.0) as u64)),
        },
    };
    let bounded =
        |shown: String, firmness: Firmness| firmness::bounded(lang, shown, firmness, figure.quantity.more_is_better());
    // Of a loss ratio the difference itself is told, and not its share of what was lost before.
    let change = |value: f64| match figure.quantity {
        Quantity::LossRatio => {
            said!(lang, "comparison-points", "{points} percentage points", points = share(value).trim_end_matches(" %"))
        }
        _ => share(value),
    };
    let between = figure.interval.map(|interval| {
        said!(lang, "comparison-to", "{low} to {high}", low = change(interval.low), high = change(interval.high))
    });
    let p = figure.p.map(|p| if p < 0.001 { "< 0.001".to_owned() } else { format!("{p:.3}") });
    vec![
        Some(plain(&figure.name)),
        Some(lang.text(figure.quantity.text())),
        show(figure.before.median).map(|shown| bounded(shown, figure.before_firmness)),
        show(figure.after.median).map(|shown| bounded(shown, figure.after_firmness)),
        figure.difference.map(change),
        between,
        p,
        Some(lang.text(figure.change.text())),
    ]
}

/// A signed share in percent: `-9.8 %`.
fn share(value: f64) -> String {
    let percent = value * 100.0;
    match percent.abs() {
        _ if !percent.is_finite() => MISSING.to_owned(),
        small if small < 0.05 && small > 0.0 => format!("{percent:+.3} %"),
        large if large >= 999.5 => format!("{percent:+.0} %"),
        _ => format!("{percent:+.1} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn a_change_has_its_sign() {
        let shown = [-0.0982, 0.5, 0.0, 0.0001, 12.0].map(share);
        assert_eq!(shown, ["-9.8 %", "+50.0 %", "+0.0 %", "+0.010 %", "+1200 %"]);
    }
}
