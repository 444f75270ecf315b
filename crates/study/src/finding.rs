//! Findings: sentences that the numbers of a study support, with their evidence.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A sentence and its evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Kind of finding.
    pub kind: FindingKind,
    /// The sentence.
    pub text: String,
    /// A test or a bound, at least one.
    pub evidence: Vec<Evidence>,
}

/// The kinds of finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// At every level of a factor the medium is full: more of the factor cannot help.
    Saturated,
    /// Results grow with a factor.
    Growth,
    /// The wire, or the hosts, limit a group of results; or something other than the wire does.
    Limiter,
    /// A faster medium that brings little.
    Upgrade,
    /// Levels of a factor in order.
    Ranking,
    /// Different levels are ahead under different conditions.
    Crossover,
    /// TCP against UDP.
    Transport,
    /// Result as a share of the limit of its medium.
    LimitShare,
    /// The only option that exceeds what the others can carry.
    Alone,
    /// Price of speed, and whether the dearer option pays.
    Price,
    /// Results at the tester's own limit, which show nothing about the device.
    TesterLimit,
    /// Results below the tester's limit, which measure the device.
    BelowTesterLimit,
    /// A rate above the limit of its layer, so that it must count another one.
    AboveLimit,
    /// Rates within the limit of their layer.
    WithinLimit,
    /// Two equal measures: one part limits both.
    SamePart,
    /// Two measures far apart: different parts limit them.
    DifferentParts,
    /// Effect of the message size, and the part of it that headers explain.
    MessageSize,
    /// Levels without comparable pairs of cells, one of which has all the higher results.
    Unpaired,
    /// Levels whose results are equal, within the study's tolerance.
    NoDifference,
    /// Several clients at the same time against one.
    Clients,
    /// Conclusion from ranges and bounds that the author states.
    Stated,
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Saturated => "saturated",
            Self::Growth => "growth",
            Self::Limiter => "what limits",
            Self::Upgrade => "a faster medium",
            Self::Ranking => "ranking",
            Self::Crossover => "crossover",
            Self::Transport => "TCP and UDP",
            Self::LimitShare => "share of the limit",
            Self::Alone => "reached by one only",
            Self::Price => "price",
            Self::TesterLimit => "at the tester's limit",
            Self::BelowTesterLimit => "below the tester's limit",
            Self::AboveLimit => "above the limit",
            Self::WithinLimit => "within the limit",
            Self::SamePart => "one part",
            Self::DifferentParts => "different parts",
            Self::MessageSize => "message size",
            Self::Unpaired => "groups without pairs",
            Self::NoDifference => "no difference",
            Self::Clients => "several clients",
            Self::Stated => "as stated",
        })
    }
}

/// A test or a bound that supports a finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "by", rename_all = "kebab-case")]
pub enum Evidence {
    /// A test statistic.
    Test {
        /// The test.
        test: String,
        /// Probability of such numbers without an effect, adjusted for the number of tests.
        p: f64,
        /// Statistic with its numbers, as a sentence.
        text: String,
    },
    /// A bound that cannot be passed, or is not.
    Bound {
        /// Bound with its numbers, as a sentence.
        text: String,
    },
}

impl Evidence {
    /// Returns the evidence as a sentence.
    pub fn text(&self) -> &str {
        match self {
            Self::Test { text, .. } | Self::Bound { text } => text,
        }
    }
}
