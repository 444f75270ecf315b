//! A study for the terminal, as JSON, CSV and Markdown.

use super::charts::capital;
use super::pivot::Pivot;
use super::tables;
use crate::finding::{Finding, FindingKind};
use crate::findings::claims::EDGES;
use crate::findings::conclusions;
use crate::findings::data::Data;
use crate::findings::first_page::FIRST_PAGE;
use crate::findings::words::{with_commas, with_semicolons};
use crate::findings::{self};
use crate::study::{Answer, CellLimit, Study, StudyReport};
use linerate_model::MeasureUnit;
use linerate_report::parts::Page;
use linerate_report::parts::csv::{field, line};
use linerate_report::parts::markdown::{escaped, push_heading, push_table};
use linerate_report::parts::values::value;
use linerate_report::parts::wording::{in_a_row, listed, sentence};
use linerate_report::{Language, Style, plain, said};
use serde_json::json;
use std::borrow::Cow;

/// Returns one object on one line; docs/studies.md names its fields.
pub fn json(report: &StudyReport) -> String {
    let study = report.study.in_language(Language::English).into_owned();
    let mut text = serde_json::to_string(&StudyReport { study, ..report.clone() })
        .expect("a study holds only text keys and plain data");
    text.push('\n');
    text
}

/// Returns the study's question and its answer, if it asks one.
pub(super) fn question(lang: Language, study: &Study, findings: &[Finding]) -> Option<(String, String)> {
    let question = study.question.as_ref()?;
    let answer = question.answer(findings).map(|finding| plain(&finding.text));
    Some((plain(&question.text), answer.unwrap_or_else(|| no_answer(lang, study))))
}

/// Returns the answer of a study whose findings answer nothing, with the reason if the design of the study is one.
fn no_answer(lang: Language, study: &Study) -> String {
    if study.cells.len() == 1 {
        return said!(
            lang,
            "study-no-answer-one-cell",
            "The results support no answer: with one cell there is nothing to compare."
        );
    }
    if study.cells.iter().all(|cell| cell.values.iter().all(|values| values.len() < 2)) {
        return said!(
            lang,
            "study-no-answer-one-value",
            "The results support no answer. Every cell has one value, which does not show how far repeats differ: measure each cell \
             several times."
        );
    }
    said!(lang, "study-no-answer", "The results support no answer.")
}

/// Formats the study for a terminal of this style, all cells or by a pivot; ends with a newline.
pub fn text(report: &StudyReport, style: &Style, pivot: Option<&Pivot>) -> String {
    let lang = style.language;
    let study = &report.study.in_language(lang);
    let data = Data::of(lang, study);
    let findings = findings::in_the_language_of(&data, report);
    let mut page = Page::new(style);
    page.heading(&plain(&study.title));
    if let Some((question, answer)) = question(lang, study, &findings) {
        page.paragraph("", &question);
        page.paragraph("", &answer);
        page.blank();
    }
    page.paragraph("", &sentence(&study.about));
    page.blank();
    for said in summary(lang, &data) {
        page.entry(&said.name, &format!("{}: {}", said.figure, said.text));
    }
    if !findings.is_empty() {
        page.blank();
        page.heading(&said!(lang, "study-section-findings", "What the numbers say"));
    }
    let (first, further) = on_first_page(&findings);
    for finding in first {
        page.paragraph("- ", &plain(&finding.text));
        for evidence in &finding.evidence {
            page.paragraph("    ", &plain(evidence.text()));
        }
    }
    let answers = answers(lang, report, study, &findings);
    if !answers.is_empty() {
        page.blank();
        page.heading(&conclusions_heading(lang));
    }
    for answer in answers.iter() {
        page.paragraph("- ", &plain(&answered(lang, answer)));
        page.paragraph("    ", &plain(&answer.reason));
    }
    if !further.is_empty() {
        page.blank();
        page.paragraph(
            "",
            &said!(
                lang,
                "study-further-in-files",
                "{further}: {kinds}. Pages (`--out`), Markdown and JSON have them.",
                further = further_heading(lang, further),
                kinds = kinds(lang, further)
            ),
        );
    }
    if pivot.is_none() {
        for table in tables::costs(lang, &data) {
            page.blank();
            page.heading(&table.caption);
            page.table(&table);
        }
        page.blank();
        page.table(&tables::everything(lang, &data));
    }
    for table in pivot.iter().flat_map(|pivot| tables::pivots(lang, &data, Some(pivot))) {
        page.blank();
        page.heading(&table.caption);
        page.table(&table);
    }
    if !study.caveats.is_empty() {
        page.blank();
        page.heading(&said!(lang, "section-caveats", "Caveats"));
    }
    for caveat in &study.caveats {
        page.paragraph("- ", &sentence(caveat));
    }
    page.blank();
    page.heading(&said!(lang, "section-method", "How it was measured"));
    for said in method(lang, &data) {
        page.paragraph("  ", &said);
    }
    page.finish(style.unicode)
}

/// Splits the findings into those of the first page, and the others.
pub(super) fn on_first_page(findings: &[Finding]) -> (&[Finding], &[Finding]) {
    findings.split_at(findings.len().min(FIRST_PAGE))
}

/// Returns the heading of findings that are not on the first page.
pub(super) fn further_heading(lang: Language, further: &[Finding]) -> String {
    said!(
        lang,
        "study-further-findings",
        if count == 1 { "1 further finding" } else { "{count} further findings" },
        count = further.len()
    )
}

/// Lists the kinds of these findings, each with its number if there are several.
fn kinds(lang: Language, findings: &[Finding]) -> String {
    let mut kinds: Vec<(FindingKind, usize)> = Vec::new();
    for finding in findings {
        match kinds.iter_mut().find(|(kind, _)| *kind == finding.kind) {
            Some((_, count)) => *count += 1,
            None => kinds.push((finding.kind, 1)),
        }
    }
    let named = |(kind, count): &(FindingKind, usize)| match count {
        1 => lang.text(kind.text()),
        count => format!("{} ({count})", lang.text(kind.text())),
    };
    listed(lang, &kinds.iter().map(named).collect::<Vec<_>>())
}

/// Returns the answers to the author's conclusions in the reader's language.
pub(super) fn answers<'a>(
    lang: Language,
    report: &'a StudyReport,
    study: &Study,
    findings: &[Finding],
) -> Cow<'a, [Answer]> {
    match lang {
        Language::English => Cow::Borrowed(&report.answers),
        _ => Cow::Owned(conclusions::answers(lang, study, findings)),
    }
}

pub(super) fn conclusions_heading(lang: Language) -> String {
    said!(lang, "study-section-conclusions", "The author's conclusions")
}

/// Formats a conclusion with its verdict.
pub(super) fn answered(lang: Language, answer: &Answer) -> String {
    let verdict = capital(&lang.text(answer.verdict.text()));
    said!(lang, "study-conclusion", "{verdict}: {conclusion}", verdict = verdict, conclusion = sentence(&answer.text))
}

fn push_findings(text: &mut String, findings: &[Finding]) {
    for finding in findings {
        text.push_str(&format!("- **{}**\n", escaped(&finding.text)));
        for evidence in &finding.evidence {
            text.push_str(&format!("  - {}\n", escaped(evidence.text())));
        }
    }
}

/// Formats title, findings with their evidence, tables by each factor or by a pivot, and caveats in GitHub's Markdown.
pub fn markdown(lang: Language, report: &StudyReport, pivot: Option<&Pivot>) -> String {
    let study = &report.study.in_language(lang);
    let data = Data::of(lang, study);
    let findings = findings::in_the_language_of(&data, report);
    let mut text = format!("# {}\n\n", escaped(&study.title));
    if let Some((question, answer)) = question(lang, study, &findings) {
        text.push_str(&format!("{}\n\n**{}**\n\n", escaped(&question), escaped(&answer)));
    }
    text.push_str(&format!("{}\n", escaped(&sentence(&study.about))));
    if !findings.is_empty() {
        push_heading(&mut text, &said!(lang, "study-section-findings", "What the numbers say"));
    }
    let (first, further) = on_first_page(&findings);
    push_findings(&mut text, first);
    let answers = answers(lang, report, study, &findings);
    if !answers.is_empty() {
        push_heading(&mut text, &conclusions_heading(lang));
    }
    for answer in answers.iter() {
        text.push_str(&format!("- **{}**\n  - {}\n", escaped(&answered(lang, answer)), escaped(&answer.reason)));
    }
    if !further.is_empty() {
        push_heading(&mut text, &further_heading(lang, further));
        push_findings(&mut text, further);
    }
    for table in tables::costs(lang, &data)
        .into_iter()
        .chain(tables::pivots(lang, &data, pivot))
        .chain([tables::everything(lang, &data)])
        .chain(tables::levels(lang, &data))
    {
        push_table(lang, &mut text, &table);
    }
    if !study.caveats.is_empty() {
        push_heading(&mut text, &said!(lang, "section-caveats", "Caveats"));
    }
    for caveat in &study.caveats {
        text.push_str(&format!("- {}\n", escaped(&sentence(caveat))));
    }
    push_heading(&mut text, &said!(lang, "section-method", "How it was measured"));
    text.push_str(&format!("{}\n", escaped(&in_a_row(&method(lang, &data)))));
    text
}

/// Formats comma-separated values (RFC 4180): one line for each repeat of each cell, with the limit of each measure.
/// Columns end in their unit. If some values are not firm, a column shows which are.
pub fn csv(report: &StudyReport) -> String {
    let study = &report.study;
    let data = Data::of(Language::English, study);
    let unit = |measure: usize| match study.measures[measure].unit {
        MeasureUnit::BitsPerS => "bps",
        MeasureUnit::PerS => "per_s",
        MeasureUnit::Nanos => "ns",
        MeasureUnit::Times => "times",
        MeasureUnit::Share => "share",
        MeasureUnit::Count => "count",
        MeasureUnit::NanosHeld => "ns_held",
    };
    let has_open = !study.is_firm();
    let has_stated = |measure: usize| study.cells.iter().any(|cell| cell.stated.contains_key(&measure));
    let mut text = String::new();
    let factors = study.factors.iter().map(|factor| field(&json!(factor.column)));
    let measures = study.measures.iter().enumerate().flat_map(|(measure, named)| {
        let name = named.title.to_lowercase().replace([' ', '-'], "_");
        let unit = unit(measure);
        [
            format!("{name}_{unit}"),
            format!("{name}_limit_low_{unit}"),
            format!("{name}_limit_high_{unit}"),
            format!("{name}_limit_share"),
        ]
        .into_iter()
        .chain(has_stated(measure).then(|| format!("{name}_stated_low_{unit}")))
        .chain(has_stated(measure).then(|| format!("{name}_stated_high_{unit}")))
        .chain(has_open.then(|| format!("{name}_firm")))
        .map(|name| field(&json!(name)))
        .collect::<Vec<_>>()
    });
    line(&mut text, factors.chain(measures));
    for (index, cell) in study.cells.iter().enumerate() {
        let repeats = cell.values.iter().map(Vec::len).max().unwrap_or(0).max(usize::from(!cell.stated.is_empty()));
        for repeat in 0..repeats {
            let levels = (0..study.factors.len())
                .map(|factor| field(&json!(study.level(cell, factor).map(|level| &level.name))));
            let values = (0..study.measures.len()).flat_map(|measure| {
                let reached = cell.values[measure].get(repeat);
                let limit: Option<CellLimit> = data.limit(index, measure);
                let stated = data.stated(index, measure);
                let share = reached.zip(limit).map(|(reached, limit)| reached / limit.high);
                [
                    json!(reached),
                    json!(limit.map(|limit| limit.low)),
                    json!(limit.map(|limit| limit.high)),
                    json!(share),
                ]
                .into_iter()
                .chain(has_stated(measure).then(|| json!(stated.and_then(|stated| stated.low))))
                .chain(has_stated(measure).then(|| json!(stated.and_then(|stated| stated.high))))
                .chain(has_open.then(|| json!(reached.map(|_| cell.firmness_of(measure).is_firm()))))
                .map(|value| field(&value))
                .collect::<Vec<_>>()
            });
            line(&mut text, levels.chain(values));
        }
    }
    text
}

/// One line of the summary.
pub(super) struct Said {
    pub(super) name: String,
    pub(super) figure: String,
    pub(super) text: String,
}

/// Returns the best result of each measure and each medium (or other group of results), and its share of the limit.
pub(super) fn summary(lang: Language, data: &Data<'_>) -> Vec<Said> {
    let several = data.study.measures.len() > 1;
    let of = |measure: usize| {
        let named = &data.study.measures[measure];
        data.groups_with_stated(data.gathered_by(), measure).into_iter().filter_map(move |mut group| {
            let but: Vec<usize> = data.gathered_by().into_iter().collect();
            let title = if several {
                plain(&with_commas(lang, &[capital(&named.title), group.name.clone()]))
            } else {
                plain(&group.name)
            };
            let known = |cell: &usize| data.value(*cell, measure).is_some();
            let (numbers, bounds): (Vec<usize>, Vec<usize>) = group.cells.iter().partition(|cell| known(cell));
            group.cells = numbers;
            let bound = |cell: &usize| {
                let (name, shown) = (data.cell_name(*cell, &but), data.shown(*cell, measure)?);
                Some(if name.is_empty() { shown } else { format!("{name}: {shown}") })
            };
            let each: Vec<String> = bounds.iter().filter_map(bound).collect();
            let stated = if each.is_empty() {
                String::new()
            } else {
                said!(
                    lang,
                    "study-only-bounds",
                    " Only a bound or a range is stated for {each}.",
                    each = with_semicolons(lang, &each)
                )
            };
            let reached = |cell: &usize| data.value(*cell, measure).unwrap_or(0.0);
            let mut ascending = group.cells.clone();
            ascending.sort_by(|a, b| reached(a).total_cmp(&reached(b)));
            let (Some(lowest), Some(highest)) = (ascending.first().copied(), ascending.last().copied()) else {
                let figure = data.shown(*bounds.first()?, measure)?;
                return Some(Said { name: title, figure, text: plain(stated.trim_start()) });
            };
            let (best, worst) = if named.unit.more_is_better() { (highest, lowest) } else { (lowest, highest) };
            let worst = reached(&worst);
            // Results that are printed alike share the first place.
            let shown = data.shown(best, measure);
            let alike: Vec<usize> =
                group.cells.iter().copied().filter(|cell| data.shown(*cell, measure) == shown).collect();
            let is_stated = data.stated(best, measure).is_some();
            let count = match group.cells.len() {
                1 => said!(lang, "study-only-result", "the only result"),
                count if alike.len() > 1 && is_stated => said!(
                    lang,
                    "study-best-stated-alike",
                    "the {alike} best of {count} results are stated alike; the lowest is {unit}",
                    alike = alike.len(),
                    count = count,
                    unit = value(worst, named.unit)
                ),
                count if count == alike.len() => {
                    said!(lang, "study-all-equal", "all {count} results are equal", count = count)
                }
                count if alike.len() > 1 && named.unit.more_is_better() => said!(
                    lang,
                    "study-best-shared",
                    "the {alike} best of {count} results are equal; the lowest is {unit}",
                    alike = alike.len(),
                    count = count,
                    unit = value(worst, named.unit)
                ),
                count if alike.len() > 1 => said!(
                    lang,
                    "study-least-shared",
                    "the {alike} best of {count} results are equal; the highest is {unit}",
                    alike = alike.len(),
                    count = count,
                    unit = value(worst, named.unit)
                ),
                count if named.unit.more_is_better() => {
                    said!(
                        lang,
                        "study-best-of-results",
                        "the best of {count} results, of which the lowest is {unit}",
                        count = count,
                        unit = value(worst, named.unit)
                    )
                }
                count => {
                    said!(
                        lang,
                        "study-least-of-results",
                        "the best of {count} results, of which the highest is {unit}",
                        count = count,
                        unit = value(worst, named.unit)
                    )
                }
            };
            let names: Vec<String> = alike.iter().map(|cell| data.cell_name(*cell, &but)).collect();
            let name = with_semicolons(lang, &names);
            let count = if name.is_empty() { sentence(&count) } else { sentence(&format!("{name}: {count}")) };
            let limit = data.limit(best, measure);
            let share = limit
                .and_then(|limit| Some((data.shown_share(best, measure)?, data.medium(best, measure)?, limit.share)));
            let share = share.map_or_else(String::new, |(share, medium, of)| {
                let tolerance = if named.metric.is_some() { EDGES } else { 1.0 };
                if of > tolerance && !is_stated {
                    said!(lang, "study-above-limit", " More than {medium} can carry.", medium = medium)
                } else {
                    said!(
                        lang,
                        "study-share-of-limit",
                        " {share} of what {medium} can carry.",
                        share = share,
                        medium = medium
                    )
                }
            });
            Some(Said {
                name: title,
                figure: data.shown(best, measure).unwrap_or_default(),
                text: plain(&format!("{count}{share}{stated}")),
            })
        })
    };
    // Of ratios neither the highest nor the lowest is the best.
    data.measures().filter(|(_, named)| named.unit != MeasureUnit::Times).flat_map(|(measure, _)| of(measure)).collect()
}

/// Returns the names of levels that no cell has.
fn levels_without_results(data: &Data<'_>) -> Vec<String> {
    let study = data.study;
    let mut names = Vec::new();
    for (factor, described) in study.factors.iter().enumerate() {
        for level in 0..described.levels.len() {
            if !study.cells.iter().any(|cell| cell.levels[factor] == Some(level)) {
                names.push(data.name_of(factor, level));
            }
        }
    }
    names
}

/// Returns the method, the source of the numbers, and how limits are counted.
pub(super) fn method(lang: Language, data: &Data<'_>) -> Vec<String> {
    let study = data.study;
    let factors: Vec<String> = study
        .factors
        .iter()
        .filter(|factor| factor.levels.len() > 1)
        .map(|factor| {
            said!(
                lang,
                "study-factor-levels",
                "{title} ({levels} levels)",
                title = factor.title,
                levels = factor.levels.len()
            )
        })
        .collect();
    let mut said = vec![sentence(&study.method)];
    let by = if factors.is_empty() {
        String::new()
    } else {
        said!(lang, "study-title-by", ", by {factors}", factors = listed(lang, &factors))
    };
    let cells =
        said!(lang, "study-cells", if cells == 1 { "1 cell" } else { "{cells} cells" }, cells = study.cells.len());
    said.push(sentence(&format!("{cells}{by}")));
    let missing = levels_without_results(data);
    if !missing.is_empty() {
        said.push(said!(
            lang,
            "study-levels-without-results",
            "There is no result with {levels}.",
            levels = listed(lang, &missing)
        ));
    }
    if !data.limits().is_empty() {
        said.push(said!(
            lang,
            "study-method-limits",
            "What a medium can carry is calculated from the bytes that it adds to each message, in one direction, \
             without other traffic and without loss (`linerate limits --explain` shows them)."
        ));
    }
    said.push(said!(
        lang,
        "study-method-findings",
        "Each finding rests on a bound or on an exact test, which assumes nothing of the distribution of the values. A \
         test supports a finding where p is below 0.05."
    ));
    said.extend(
        study.source.as_ref().map(|source| sentence(&said!(lang, "study-source", "Source: {source}", source = source))),
    );
    said.into_iter().map(|text| plain(&text)).collect()
}
