//! What the verdict of a record says.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What the first verdict of a record says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Said {
    pub(super) limit: String,
    pub(super) confidence: String,
    pub(super) place: Option<String>,
    pub(super) steadiness: Option<String>,
    /// Further limits that were reached; of `cannot-tell`, those between which the evidence does not decide.
    pub(super) also: Vec<String>,
    /// The lab says that its path or reference device did not keep its limits, so more was planted than the case says.
    #[serde(default)]
    pub(super) late: bool,
}

impl Said {
    /// The first verdict of a record; none if it has none.
    pub(super) fn by(record: &Value) -> Option<Self> {
        let verdict = verdict(record)?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Some(Self {
            limit: text(&verdict["limit"])?,
            confidence: text(&verdict["confidence"])?,
            place: text(&verdict["place"]),
            steadiness: text(&verdict["steadiness"]["kind"]),
            also: verdict["also"].as_array().map(|also| also.iter().filter_map(text).collect()).unwrap_or_default(),
            late: record["caveats"].as_array().is_some_and(|all| all.iter().any(|one| one["kind"] == "bench-limits")),
        })
    }
}

/// The first verdict of a record, in full.
pub(super) fn verdict(record: &Value) -> Option<&Value> {
    ["/results/0/verdict", "/outcome/throughput/0/verdict"].iter().find_map(|place| record.pointer(place))
}

impl std::fmt::Display for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, {}", self.limit, self.confidence)?;
        if let Some(place) = &self.place {
            write!(f, ", at {place}")?;
        }
        if let Some(course) = &self.steadiness {
            write!(f, ", {course}")?;
        }
        if !self.also.is_empty() {
            write!(f, ", also {}", self.also.join(" and "))?;
        }
        if self.late {
            f.write_str(" (bench missed its limits)")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_verdict_is_read_from_results_and_from_device_tests() {
        let verdict = json!({ "limit": "shaper", "confidence": "high", "place": "forward-path",
            "steadiness": { "kind": "varying", "p5_bps": 1.0, "p95_bps": 2.0 }, "also": ["window"] });
        let text = "shaper, high, at forward-path, varying, also window";
        let said = Said::by(&json!({ "results": [{ "verdict": verdict }] })).unwrap();
        assert_eq!(said.to_string(), text);
        assert_eq!(Said::by(&json!({ "outcome": { "throughput": [{ "verdict": verdict }] } })), Some(said));
        let late = json!([{ "kind": "bench-limits", "text": "" }]);
        let short = json!({ "results": [{ "verdict": { "limit": "wire", "confidence": "low" } }], "caveats": late });
        assert_eq!(Said::by(&short).unwrap().to_string(), "wire, low (bench missed its limits)");
        assert_eq!(Said::by(&json!({ "results": [] })), None);
    }
}
