//! Sentences that the numbers of a study support, each with a test or a bound behind it.
//!
//! One file for each kind of rule. A rule knows factors, media, transports, prices and the tester's level by what the study says
//! of them; it knows no study. What no test and no bound supports is not said.

mod alone;
mod claims;
mod crossover;
pub(crate) mod data;
mod growth;
mod limit_share;
mod limiter;
mod parts;
mod price;
mod ranking;
mod tester_limit;
mod transport;
mod upgrade;
pub(crate) mod words;

use crate::language::Language;
use data::Data;
use linerate_method::statistics::{Tested, sign_test};
use linerate_model::{Evidence, Finding, FindingKind, STUDY_SCHEMA, Study, StudyReport};
use std::borrow::Cow;

/// What a rule looks at, and what it says.
type Rule = fn(&Data<'_>, usize) -> Vec<Finding>;

/// The rules for one measure, in the order in which a reader wants to hear them: first whether the numbers can be what they seem.
const RULES: [Rule; 11] = [
    claims::findings,
    tester_limit::findings,
    limiter::findings,
    growth::findings,
    upgrade::findings,
    ranking::findings,
    crossover::findings,
    transport::findings,
    alone::findings,
    limit_share::findings,
    price::findings,
];

/// Those that look at latency and loss as well: to the others more is better, and a medium carries so much and no more.
const OF_ANY_MEASURE: [Rule; 3] = [growth::findings, ranking::findings, crossover::findings];

/// The tests of a rule.
type Tests = fn(&Data<'_>, usize) -> Vec<Tested>;

/// Of the rules for rates those that test, each test once: the limiter is found by the trends of growth.
const TESTS: [Tests; 6] =
    [tester_limit::tests, growth::tests, ranking::tests, crossover::tests, transport::tests, price::tests];
const TESTS_OF_ANY_MEASURE: [Tests; 3] = [growth::tests, ranking::tests, crossover::tests];

/// The study with the limits of its cells and what its numbers say, in English.
pub fn studied(study: Study) -> StudyReport {
    let data = Data::of(Language::English, &study);
    let (limits, findings) = (data.limits(), findings(&data));
    StudyReport { schema: STUDY_SCHEMA.to_owned(), study, limits, findings }
}

/// What a report says in the language of its reader. The numbers say it anew: a report holds it in English.
pub(crate) fn in_the_language_of<'a>(data: &Data<'_>, report: &'a StudyReport) -> Cow<'a, [Finding]> {
    match data.lang {
        Language::English => Cow::Borrowed(&report.findings),
        _ => Cow::Owned(findings(data)),
    }
}

fn findings(data: &Data<'_>) -> Vec<Finding> {
    let rates = |measure: &usize| data.study.measures[*measure].unit.is_rate();
    let (rates, others): (Vec<usize>, Vec<usize>) = (0..data.study.measures.len()).partition(rates);
    let said = |rules: &'static [Rule], measures: Vec<usize>| {
        rules.iter().flat_map(move |rule| measures.clone().into_iter().flat_map(move |measure| rule(data, measure)))
    };
    said(&RULES, rates).chain(said(&OF_ANY_MEASURE, others)).chain(parts::findings(data)).collect()
}

/// All tests that the rules make. A study asks many questions at once, so all of them are one
/// family: the chance that a finding of the whole study is false is below 5 %, however many rules look at it.
fn tests(data: &Data<'_>) -> Vec<Tested> {
    let rates = |measure: &usize| data.study.measures[*measure].unit.is_rate();
    let (rates, others): (Vec<usize>, Vec<usize>) = (0..data.study.measures.len()).partition(rates);
    let made = |rules: &'static [Tests], measures: Vec<usize>| {
        rules.iter().flat_map(move |rule| measures.clone().into_iter().flat_map(move |measure| rule(data, measure)))
    };
    made(&TESTS, rates).chain(made(&TESTS_OF_ANY_MEASURE, others)).chain(parts::tests(data)).collect()
}

/// The sign test of so many pairs for and against.
fn sign_tested(wins: usize, losses: usize) -> Tested {
    Tested { p: sign_test(wins, losses), least: sign_test(wins + losses, 0) }
}

/// A finding; one without evidence is none.
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
