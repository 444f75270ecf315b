//! The order of findings: those that a reader needs first, each kind once before any kind again.

use crate::finding::{Evidence, Finding, FindingKind};
use crate::study::Study;
use linerate_method::statistics::SIGNIFICANT;

/// Maximum number of findings on the first page of a report; the others are folded.
pub(crate) const FIRST_PAGE: usize = 7;

/// Sorts the findings of a study. The answer to its question comes first.
pub(super) fn sorted(study: &Study, findings: Vec<Finding>) -> Vec<Finding> {
    let answer = study.question.as_ref().and_then(|question| question.answer(&findings)).cloned();
    let mut seen: Vec<FindingKind> = Vec::new();
    let mut ranked: Vec<((bool, usize, FindingKind), Finding)> = Vec::new();
    for finding in findings {
        let round = seen.iter().filter(|kind| **kind == finding.kind).count();
        seen.push(finding.kind);
        // A test that showed nothing leaves a finding about these results only.
        let round = round + usize::from(is_of_these_only(&finding));
        ranked.push(((answer.as_ref() != Some(&finding), round, finding.kind), finding));
    }
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, finding)| finding).collect()
}

/// Returns whether all tests of a finding failed to show it beyond its own results.
fn is_of_these_only(finding: &Finding) -> bool {
    let p_of = |evidence: &Evidence| match evidence {
        Evidence::Test { p, .. } => Some(*p),
        Evidence::Bound { .. } => None,
    };
    let least = finding.evidence.iter().filter_map(p_of).reduce(f64::min);
    finding.kind != FindingKind::TesterLimit && least.is_some_and(|p| p >= SIGNIFICANT)
}
