//! The verdict of a record.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// First verdict of a record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Verdict {
    /// Limit, or the findings in words ([`Findings`](super::findings::Findings)).
    pub(super) limit: String,
    pub(super) confidence: String,
    pub(super) place: Option<String>,
    /// Section of the path, if the hops were probed.
    #[serde(default)]
    pub(super) section: Option<Section>,
    pub(super) steadiness: Option<String>,
    /// Further limits that were reached. For `cannot-tell`, the limits that the evidence cannot distinguish.
    pub(super) also: Vec<String>,
    /// Whether the lab's path or reference device did not keep its limits, so that the bench had further limits.
    #[serde(default)]
    pub(super) late: bool,
}

/// Section of a path that a verdict names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Section {
    /// Last hop without the effect, as its TTL.
    pub(super) after: u64,
    /// First hop with the effect.
    pub(super) before: u64,
    pub(super) confidence: String,
}

impl Section {
    fn of(json: &Value) -> Option<Self> {
        Some(Self {
            after: json["after"]["ttl"].as_u64()?,
            before: json["before"]["ttl"].as_u64()?,
            confidence: json["confidence"].as_str()?.to_owned(),
        })
    }

    /// Returns whether the link between these hops lies in it.
    pub(super) fn holds(&self, [after, before]: [u64; 2]) -> bool {
        self.after <= after && before <= self.before
    }
}

impl std::fmt::Display for Section {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{} ({})", self.after, self.before, self.confidence)
    }
}

impl Verdict {
    /// Reads the first verdict of a record. Returns `None` if the record has no verdict.
    pub(super) fn first_of(record: &Value) -> Option<Self> {
        let verdict = ["/results/0/verdict", "/outcome/throughput/0/verdict"]
            .iter()
            .find_map(|pointer| record.pointer(pointer))?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Some(Self {
            limit: text(&verdict["limit"])?,
            confidence: text(&verdict["confidence"])?,
            place: text(&verdict["place"]),
            section: Section::of(&verdict["section"]),
            steadiness: text(&verdict["steadiness"]["kind"]),
            also: verdict["also"].as_array().map(|also| also.iter().filter_map(text).collect()).unwrap_or_default(),
            late: Self::is_late(record),
        })
    }

    /// Returns whether the record says that the lab's path or reference device did not keep its limits.
    pub(super) fn is_late(record: &Value) -> bool {
        record["caveats"].as_array().is_some_and(|all| all.iter().any(|caveat| caveat["kind"] == "bench-limits"))
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, {}", self.limit, self.confidence)?;
        if let Some(place) = &self.place {
            write!(f, ", at {place}")?;
        }
        if let Some(section) = &self.section {
            write!(f, ", between hops {section}")?;
        }
        if let Some(steadiness) = &self.steadiness {
            write!(f, ", {steadiness}")?;
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
    fn first_verdict_is_read_from_results_and_device_tests() {
        let json = json!({ "limit": "shaper", "confidence": "high", "place": "forward-path",
            "steadiness": { "kind": "varying", "p5_bps": 1.0, "p95_bps": 2.0 }, "also": ["window"] });
        let text = "shaper, high, at forward-path, varying, also window";
        let verdict = Verdict::first_of(&json!({ "results": [{ "verdict": json }] })).unwrap();
        assert_eq!(verdict.to_string(), text);
        assert_eq!(Verdict::first_of(&json!({ "outcome": { "throughput": [{ "verdict": json }] } })), Some(verdict));
        let section =
            json!({ "after": { "ttl": 2 }, "before": { "ttl": 3, "address": "198.18.3.2" }, "confidence": "high" });
        let located = json!({ "limit": "shaper", "confidence": "high", "section": section });
        let verdict = Verdict::first_of(&json!({ "results": [{ "verdict": located }] })).unwrap();
        assert_eq!(verdict.to_string(), "shaper, high, between hops 2-3 (high)");
        let late = json!([{ "kind": "bench-limits", "text": "" }]);
        let short = json!({ "results": [{ "verdict": { "limit": "wire", "confidence": "low" } }], "caveats": late });
        assert_eq!(Verdict::first_of(&short).unwrap().to_string(), "wire, low (bench missed its limits)");
        assert_eq!(Verdict::first_of(&json!({ "results": [] })), None);
    }
}
