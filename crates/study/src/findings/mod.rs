//! Sentences that the numbers of a study support, each with a test or a bound behind it.
//!
//! One file for each kind of rule. A rule knows factors, media, transports, prices and the tester's level by what the study says
//! of them; it knows no study. What no test and no bound supports is not said.
//!
//! Rules see firm values only. A ranking also counts a lower bound where it is ahead, and takes it for behind everywhere else.

mod alone;
pub(crate) mod claims;
mod clients;
mod crossover;
pub(crate) mod data;
mod growth;
mod limit_share;
mod limiter;
mod message_size;
mod no_difference;
mod parts;
mod price;
mod ranking;
mod stated;
mod tester_limit;
mod transport;
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

/// What a rule looks at, and what it says.
type Rule = fn(&Data<'_>, usize) -> Vec<Finding>;

/// The rules for one measure, in the order in which a reader wants to hear them: first whether the numbers can be what they seem.
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

/// Those that look at latency and loss as well: to the others more is better, and a medium carries so much and no more.
const OF_ANY_MEASURE: [Rule; 5] =
    [growth::findings, ranking::findings, unpaired::findings, no_difference::findings, crossover::findings];

/// The tests of a rule.
type Tests = fn(&Data<'_>, usize) -> Vec<Tested>;

/// Of the rules for rates those that test, each test once: the limiter is found by the trends of growth.
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

/// What the numbers say. Of those that are not firm only what the rule of comparisons allows ([`linerate_model::Known`]).
fn findings(data: &Data<'_>) -> Vec<Finding> {
    if data.study.is_firm() {
        return of_firm(data);
    }
    let firm = data.study.firm_only();
    of_firm(&Data::with_bounds(data.lang, &firm, data.study))
}

fn of_firm(data: &Data<'_>) -> Vec<Finding> {
    let rates = |measure: &usize| data.study.measures[*measure].unit.is_rate();
    // Of a published ratio the parts are not known, so only what is stated of it is said.
    let known = (0..data.study.measures.len()).filter(|of| data.study.measures[*of].unit != MeasureUnit::Times);
    let (rates, others): (Vec<usize>, Vec<usize>) = known.partition(rates);
    let said = |rules: &'static [Rule], measures: Vec<usize>| {
        rules.iter().flat_map(move |rule| measures.clone().into_iter().flat_map(move |measure| rule(data, measure)))
    };
    let all = 0..data.study.measures.len();
    let stated = all.flat_map(|measure| stated::findings(data, measure));
    said(&RULES, rates).chain(said(&OF_ANY_MEASURE, others)).chain(parts::findings(data)).chain(stated).collect()
}

/// All tests that the rules make. A study asks many questions at once, so all of them are one
/// family: the chance that a finding of the whole study is false is below 5 %, however many rules look at it.
fn tests(data: &Data<'_>) -> Vec<Tested> {
    let rates = |measure: &usize| data.study.measures[*measure].unit.is_rate();
    // Of a published ratio the parts are not known, so only what is stated of it is said.
    let known = (0..data.study.measures.len()).filter(|of| data.study.measures[*of].unit != MeasureUnit::Times);
    let (rates, others): (Vec<usize>, Vec<usize>) = known.partition(rates);
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
