//! `[[conclusions]]` of a study's file: what its author concluded, with a claim that the results can be asked about.

use super::StudyError;
use super::document::{Source, unknown};
use crate::finding::FindingKind;
use crate::study::{Claim, Conclusion, Factor, Measure};
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ConclusionEntry {
    text: Spanned<String>,
    measure: Option<Spanned<String>>,
    #[serde(default)]
    only: BTreeMap<String, Spanned<Vec<String>>>,
    ahead: Option<String>,
    of: Option<String>,
    does_not_pay: Option<String>,
    against: Option<String>,
    at_least: Option<f64>,
    at_most: Option<f64>,
    share_at_least: Option<f64>,
    share_at_most: Option<f64>,
    finding: Option<FindingKind>,
    #[serde(default)]
    names: Vec<String>,
    needs: Option<String>,
}

impl ConclusionEntry {
    pub(super) fn conclusion(
        self,
        source: &Source<'_>,
        factors: &[Factor],
        measures: &[Measure],
    ) -> Result<Conclusion, StudyError> {
        let measure = match &self.measure {
            None => 0,
            Some(name) => {
                let at = measures.iter().position(|measure| measure.column == *name.get_ref());
                let known = measures.iter().map(|measure| &measure.column);
                at.ok_or_else(|| source.fault(name, "measure", unknown("measure", name.get_ref(), known)))?
            }
        };
        let mut only = BTreeMap::new();
        for (column, levels) in self.only {
            let at = factors.iter().position(|factor| factor.column == column);
            let known = factors.iter().map(|factor| &factor.column);
            let at = at.ok_or_else(|| source.fault(&levels, "only", unknown("factor", &column, known)))?;
            only.insert(at, levels.into_inner());
        }
        let share = (self.share_at_least.is_some() || self.share_at_most.is_some())
            .then_some(Claim::Share { at_least: self.share_at_least, at_most: self.share_at_most });
        let value = (self.at_least.is_some() || self.at_most.is_some())
            .then_some(Claim::Value { at_least: self.at_least, at_most: self.at_most });
        let claims = [
            self.ahead.zip(self.of).map(|(ahead, of)| Claim::Ahead { ahead, of }),
            self.does_not_pay.zip(self.against).map(|(dear, cheap)| Claim::DoesNotPay { dear, cheap }),
            share,
            value,
            self.finding.map(|kind| Claim::Finding { kind, names: self.names }),
            self.needs.map(|needs| Claim::Needs { needs }),
        ];
        let mut claims = claims.into_iter().flatten();
        match (claims.next(), claims.next()) {
            (Some(claim), None) => Ok(Conclusion { text: self.text.into_inner(), measure, only, claim }),
            _ => {
                let problem = "makes no claim, or several; expected one of `ahead` with `of`, `does_not_pay` with \
                               `against`, `share_at_least` or `share_at_most`, `at_least` or `at_most`, `finding` with `names`, and `needs`";
                Err(source.fault(&self.text, "conclusions", problem.to_owned()))
            }
        }
    }
}
