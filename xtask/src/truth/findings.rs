//! Properties planted in a device, and what a record says of them.

use super::verdict::Verdict;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Difference that a number may always have.
const LEAST_TOLERANCE: f64 = 1.0;

/// Answers that leave a finding open, as in records.
const OPEN: [&str; 2] = ["cannot-tell", "not-testable"];

/// Planted properties by name.
#[derive(Debug, Clone, Default)]
pub(super) struct Findings(BTreeMap<String, Finding>);

/// A planted property.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Finding {
    /// JSON pointer (RFC 6901) of the answer in the record.
    at: String,
    is: Answer,
    /// Largest difference of a number, as a share of the planted one.
    #[serde(default)]
    within: f64,
}

/// Value of an answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Answer {
    Number(f64),
    Text(String),
}

impl Findings {
    /// Parses the table `findings` of a grid whose axes are filled in.
    pub(super) fn parse(table: toml::Table) -> Result<Self, String> {
        table.try_into().map(Self).map_err(|error| format!("`findings`: {error}"))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Describes the planted properties, as in `back-pressure absent, head-of-line present`.
    pub(super) fn planted(&self) -> String {
        let texts: Vec<String> = self.0.iter().map(|(name, finding)| format!("{name} {}", finding.is.text())).collect();
        texts.join(", ")
    }

    /// Reads the answers of a record as a verdict.
    ///
    /// Its limit is [`Self::planted`] if all are right. Its confidence is low if each wrong answer is open, or if the
    /// device missed its planted limits.
    pub(super) fn verdict(&self, record: &Value) -> Verdict {
        let mut texts = Vec::new();
        let mut is_sure = false;
        for (name, finding) in &self.0 {
            let answer = record.pointer(&finding.at).unwrap_or(&Value::Null);
            if finding.matches(answer) {
                texts.push(format!("{name} {}", finding.is.text()));
            } else {
                is_sure |= !finding.is_open(record, answer);
                texts.push(format!("{name} {}", answer.as_str().map_or_else(|| answer.to_string(), str::to_owned)));
            }
        }
        let late = Verdict::is_late(record);
        let is_right = texts.join(", ") == self.planted();
        let confidence = if is_right || is_sure && !late { "high" } else { "low" };
        Verdict { limit: texts.join(", "), confidence: confidence.to_owned(), late, ..Verdict::default() }
    }
}

impl Finding {
    fn matches(&self, answer: &Value) -> bool {
        match &self.is {
            Answer::Text(planted) => answer == planted.as_str(),
            Answer::Number(planted) => answer
                .as_f64()
                .is_some_and(|number| (number - planted).abs() <= LEAST_TOLERANCE.max(self.within * planted)),
        }
    }

    /// Returns whether the record leaves the answer open: it has none, or only a lower bound.
    fn is_open(&self, record: &Value, answer: &Value) -> bool {
        let result = self.at.rsplit_once('/').and_then(|(result, _)| record.pointer(result));
        let is_firm =
            result.and_then(|result| result.pointer("/firmness/is")).is_none_or(|firmness| firmness == "firm");
        answer.is_null() || answer.as_str().is_some_and(|answer| OPEN.contains(&answer)) || !is_firm
    }
}

impl Answer {
    fn text(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn findings() -> Findings {
        let table = "pause = { at = '/outcome/0/pause', is = 'absent' }
            table = { at = '/outcome/0/entries', is = 1000, within = 0.005 }";
        Findings::parse(table.parse().unwrap()).unwrap()
    }

    fn verdict(pause: &str, entries: f64, firmness: &str) -> String {
        let outcome = json!([{ "pause": pause, "entries": entries, "firmness": { "is": firmness } }]);
        findings().verdict(&json!({ "outcome": outcome })).to_string()
    }

    #[test]
    fn numbers_are_right_within_their_tolerance() {
        assert_eq!(verdict("absent", 1004.0, "firm"), "pause absent, table 1000, high");
        assert_eq!(findings().planted(), "pause absent, table 1000");
        assert_eq!(verdict("absent", 1006.0, "firm"), "pause absent, table 1006.0, high");
    }

    #[test]
    fn open_answers_have_low_confidence() {
        assert_eq!(verdict("cannot-tell", 1000.0, "firm"), "pause cannot-tell, table 1000, low");
        assert_eq!(verdict("absent", 700.0, "not-firm"), "pause absent, table 700.0, low");
        assert_eq!(findings().verdict(&json!({})).to_string(), "pause null, table null, low");
        // One open answer does not excuse a wrong one.
        assert_eq!(verdict("cannot-tell", 700.0, "firm"), "pause cannot-tell, table 700.0, high");
    }

    #[test]
    fn device_that_missed_its_limits_lowers_the_confidence() {
        let record =
            json!({ "outcome": [{ "pause": "present", "entries": 1000 }], "caveats": [{ "kind": "bench-limits" }] });
        assert_eq!(findings().verdict(&record).to_string(), "pause present, table 1000, low (bench missed its limits)");
    }

    #[test]
    fn unknown_field_is_refused() {
        let table = "pause = { at = '/a', is = 'absent', share = 1 }".parse().unwrap();
        assert!(Findings::parse(table).unwrap_err().contains("unknown field `share`"));
    }
}
