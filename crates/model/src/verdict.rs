//! What limited a result.

use crate::named;
use crate::{Confidence, Limit, LimitPlace, Message, PathSection, Proof};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The limit named, the confidence in it, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// What limited the result.
    pub limit: Limit,
    /// Where on the path that is; none where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<LimitPlace>,
    /// Section of the path where the limit is, if the path was probed and showed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section: Option<PathSection>,
    /// How steady the result was within the measured window; none where no series tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steadiness: Option<Steadiness>,
    /// Confidence in the limit.
    pub confidence: Confidence,
    /// Further limits that were reached within 10 % as well. Of `cannot-tell`: the limits between which the evidence does not decide.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Limit>,
    /// Why, in sentences with numbers.
    pub evidence: Vec<Message>,
    /// What to try next, in sentences; empty where nothing is known to help.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<Message>,
    /// Every limit that was weighed, in the order of the path from the load to the device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weighed: Vec<Weighed>,
    /// Conditions of high confidence that apply to this limit; empty if no limit is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<ConfidenceCheck>,
    /// What came of putting it to the test, in the order of the tests; empty if that was not done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proofs: Vec<Proof>,
}

impl Verdict {
    /// A verdict that nothing else was weighed for.
    pub fn new(limit: Limit, confidence: Confidence, evidence: Vec<Message>) -> Self {
        Self {
            limit,
            place: None,
            section: None,
            steadiness: None,
            confidence,
            also: Vec::new(),
            evidence,
            next: Vec::new(),
            weighed: Vec::new(),
            checks: Vec::new(),
            proofs: Vec::new(),
        }
    }

    /// The limit that a test should be made of: the one that is named, or the first of those between which it is open.
    pub fn leading(&self) -> Limit {
        match (self.limit, self.also.first()) {
            (Limit::CannotTell, Some(first)) => *first,
            (named, _) => named,
        }
    }

    /// Names `limit` instead, as a test has shown.
    pub fn settle_on(&mut self, limit: Limit, confidence: Confidence) {
        if limit != self.limit {
            // Where it is was known of the other.
            self.place = limit.usual_place();
            self.section = None;
            self.also.clear();
        }
        (self.limit, self.confidence) = (limit, confidence);
    }
}

/// How steady a result was within the measured window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Steadiness {
    /// It stayed about the same.
    Steady,
    /// It varied.
    Varying {
        /// Payload bit/s that 5 % of the intervals stayed below.
        p5_bps: f64,
        /// Payload bit/s that 95 % of the intervals stayed below.
        p95_bps: f64,
    },
    /// It still grew when the window closed.
    Rising {
        /// Mean rate of the last third of the window, as a multiple of that of the first.
        growth: f64,
    },
}

/// What speaks for or against one limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Weighed {
    /// The limit.
    pub limit: Limit,
    /// Which way it speaks.
    pub support: Support,
    /// Why, in a sentence with numbers; where it cannot be weighed, what was missing.
    #[serde(flatten)]
    pub text: Message,
}

/// Whether a verdict meets one condition of high confidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfidenceCheck {
    /// The condition.
    pub condition: ConfidenceCondition,
    /// Whether it is met. A single condition that is not met limits confidence to `medium`.
    pub met: bool,
    /// The facts that decide it, in a sentence with numbers.
    #[serde(flatten)]
    pub text: Message,
}

named! {
    /// Condition of high confidence.
    pub enum ConfidenceCondition as "condition" {
        /// Something was counted that accounts for the result: the limit is not the one left over when others are excluded.
        PositiveEvidence = "positive-evidence", "positive evidence";
        /// The window was sampled often enough.
        Sampled = "sampled", "sampled often";
        /// The counts of both ends add up.
        CountsAgree = "counts-agree", "counts agree";
        /// No good sign points to another limit, and no other traffic used the interfaces.
        NoOtherSign = "no-other-sign", "no other sign";
        /// The two measurements of a comparison were interleaved.
        Interleaved = "interleaved", "interleaved";
        /// Sender and receiver ran, or were idle by choice.
        LoadRan = "load-ran", "load ran";
    }
}

named! {
    /// Which way the facts speak for a limit.
    pub enum Support as "support" {
        /// It is not the limit.
        Against = "against", "against";
        /// A fact it hangs on is missing.
        Unknown = "unknown", "unknown";
        /// A weak sign of it: what else could be is as likely.
        Hint = "hint", "hint";
        /// A good sign of it.
        For = "for", "for";
        /// It accounts for the result by itself.
        Strong = "strong", "strong";
    }
}
