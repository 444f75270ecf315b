//! Sentences that the numbers of a study support, each with a test or a bound.
//!
//! One file for each kind of rule. A rule knows factors, media, transports, prices and the tester's level by what the
//! study says of them; it knows no study. What no test and no bound supports is not said.
//!
//! Rules see firm values only. A ranking also counts a lower bound where it is ahead, and takes it for behind
//! everywhere else.

mod alone;
pub(crate) mod claims;
mod clients;
pub(crate) mod conclusions;
mod crossover;
pub(crate) mod data;
pub(crate) mod first_page;
mod growth;
mod limit_share;
mod limiter;
mod message_size;
mod no_difference;
mod parts;
pub(crate) mod price;
mod rank_sum;
mod ranking;
mod stated;
mod tester_limit;
mod transport;
mod trend;
mod unpaired;
mod upgrade;
pub(crate) mod words;

use crate::finding::{Evidence, Finding, FindingKind};
use crate::study::{STUDY_SCHEMA, Study, StudyReport};
use data::Data;
use linerate_method::statistics::{Tested, sign_test};
use linerate_model::MeasureUnit;
use linerate_report::Language;
use std::borrow::Cow;

/// A rule: returns its findings about one measure.
type Rule = fn(&Data<'_>, usize) -> Vec<Finding>;

/// The rules for one measure, in the order of the report: first whether the numbers can be what they seem.
const RULES: [Rule; 15] = [
    claims::findings,
    tester_limit::findings,
    limiter::findings,
    growth::findings,
    message_size::findings,
    upgrade::findings,
    ranking::findings,
    unpaired::findings,
    no_difference::findings,
    clients::findings,
    crossover::findings,
    transport::findings,
    alone::findings,
    limit_share::findings,
    price::findings,
];

/// Rules for latency and loss as well. The other rules take more for better, and compare with the limit of the medium.
const OF_ANY_MEASURE: [Rule; 5] =
    [growth::findings, ranking::findings, unpaired::findings, no_difference::findings, crossover::findings];

/// Returns the tests of a rule for one measure.
type Tests = fn(&Data<'_>, usize) -> Vec<Tested>;

/// Tests of the rules for rates, each test once: the limiter uses the trends of growth.
const TESTS: [Tests; 9] = [
    tester_limit::tests,
    growth::tests,
    message_size::tests,
    ranking::tests,
    unpaired::tests,
    no_difference::tests,
    crossover::tests,
    transport::tests,
    price::tests,
];
const TESTS_OF_ANY_MEASURE: [Tests; 5] =
    [growth::tests, ranking::tests, unpaired::tests, no_difference::tests, crossover::tests];

/// Returns the study with the limits of its cells and its findings, in English.
pub fn studied(study: Study) -> StudyReport {
    let data = Data::of(Language::English, &study);
    let (limits, findings) = (data.limits(), findings(&data));
    let answers = conclusions::answers(Language::English, &study, &findings);
    StudyReport { schema: STUDY_SCHEMA.to_owned(), study, limits, findings, answers }
}

/// Returns the findings of a report in the reader's language. A report holds them in English; others are derived anew.
pub(crate) fn in_the_language_of<'a>(data: &Data<'_>, report: &'a StudyReport) -> Cow<'a, [Finding]> {
    match data.lang {
        Language::English => Cow::Borrowed(&report.findings),
        _ => Cow::Owned(findings(data)),
    }
}

/// Returns all findings, the most important first. Values that are not firm take part as far as
/// [`linerate_model::Known`] allows.
fn findings(data: &Data<'_>) -> Vec<Finding> {
    let found = if data.study.is_firm() {
        of_firm(data)
    } else {
        let firm = data.study.firm_only();
        of_firm(&Data::with_bounds(data.lang, &firm, data.study))
    };
    first_page::sorted(data.study, found)
}

fn of_firm(data: &Data<'_>) -> Vec<Finding> {
    let (rates, others) = measures(data);
    let mut found = of_rules(&RULES, &rates, data);
    found.extend(of_rules(&OF_ANY_MEASURE, &others, data));
    found.extend(parts::findings(data));
    found.extend((0..data.study.measures.len()).flat_map(|measure| stated::findings(data, measure)));
    found
}

/// Returns all tests of the rules. A study asks many questions at once, so all of them are one
/// family: the chance that a finding of the whole study is false is below 5 %, however many rules look at it.
fn tests(data: &Data<'_>) -> Vec<Tested> {
    let (rates, others) = measures(data);
    let mut tests = of_rules(&TESTS, &rates, data);
    tests.extend(of_rules(&TESTS_OF_ANY_MEASURE, &others, data));
    tests.extend(parts::tests(data));
    tests
}

/// Returns the measures that are rates, and all others. Published ratios are left out: their parts are not known, so
/// that only statements about them are reported.
fn measures(data: &Data<'_>) -> (Vec<usize>, Vec<usize>) {
    let unit = |measure: &usize| data.study.measures[*measure].unit;
    let known = (0..data.study.measures.len()).filter(|measure| unit(measure) != MeasureUnit::Times);
    known.partition(|measure| unit(measure).is_rate())
}

/// Applies each rule to each measure.
fn of_rules<T>(rules: &[fn(&Data<'_>, usize) -> Vec<T>], measures: &[usize], data: &Data<'_>) -> Vec<T> {
    rules.iter().flat_map(|rule| measures.iter().flat_map(|measure| rule(data, *measure))).collect()
}

/// Returns the sign test of `wins` pairs for and `losses` pairs against.
fn sign_tested(wins: usize, losses: usize) -> Tested {
    Tested { p: sign_test(wins, losses), least: sign_test(wins + losses, 0) }
}

/// Returns a finding, which must have evidence.
fn finding(kind: FindingKind, text: String, evidence: Vec<Evidence>) -> Finding {
    debug_assert!(!evidence.is_empty(), "nothing supports: {text}");
    Finding { kind, text, evidence }
}

fn test(name: &str, p: f64, text: String) -> Evidence {
    Evidence::Test { test: name.to_owned(), p, text }
}

fn bound(text: String) -> Evidence {
    Evidence::Bound { text }
}
