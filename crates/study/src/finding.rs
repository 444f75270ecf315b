//! A sentence that the numbers of a study support, with what supports it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A sentence, and why it may be said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// What kind of sentence.
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
    /// The more of a factor, the higher the result.
    Growth,
    /// The wire, or the hosts, limit a group of results; or something other than the wire does.
    Limiter,
    /// A faster medium that brings little.
    Upgrade,
    /// Levels of a factor in order.
    Ranking,
    /// One level is ahead here, another there.
    Crossover,
    /// TCP against UDP.
    Transport,
    /// How near a result comes to what its medium can carry.
    LimitShare,
    /// Beyond what the others can carry there is only this.
    Alone,
    /// What speed costs, and whether the dearer option pays.
    Price,
    /// Results at the tester's own limit, which say nothing of the device.
    TesterLimit,
    /// Results below it, which do.
    BelowTesterLimit,
    /// A rate that cannot count what it is said to count.
    AboveLimit,
    /// Rates that can.
    WithinLimit,
    /// Two measures of the same height: one part limits both.
    SamePart,
    /// Two measures far apart: not one part limits both.
    DifferentParts,
    /// What a larger message brings, and what of it the headers explain.
    MessageSize,
    /// Levels without a pair of cells that agree in all else, of which one has all the higher results.
    Unpaired,
    /// Levels whose results are equal, within the study's tolerance.
    NoDifference,
    /// Several clients at the same time against one.
    Clients,
    /// What follows from ranges and bounds that the author states.
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

/// What supports a sentence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "by", rename_all = "kebab-case")]
pub enum Evidence {
    /// A test statistic.
    Test {
        /// The test.
        test: String,
        /// How likely such numbers are without an effect; of several looked at, adjusted for that.
        p: f64,
        /// The statistic in words, with its numbers.
        text: String,
    },
    /// A bound that cannot be passed, or is not.
    Bound {
        /// The bound in words, with its numbers.
        text: String,
    },
}

impl Evidence {
    /// The evidence in words.
    pub fn text(&self) -> &str {
        match self {
            Self::Test { text, .. } | Self::Bound { text } => text,
        }
    }
}
