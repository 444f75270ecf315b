//! Findings: sentences that the numbers of a study support, with their evidence.

use linerate_model::named;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

named! {
    /// The kinds of finding, in the order in which a reader needs them: first whether the numbers can be what they seem, then
    /// what limits, then what to choose.
    pub enum FindingKind as "finding" {
        /// A rate above the limit of its layer, so that it must count another one.
        AboveLimit = "above-limit", "above the limit";
        /// Results at the tester's own limit, which show nothing about the device.
        TesterLimit = "tester-limit", "at the tester limit";
        /// The wire, or the hosts, limit a group of results; or something other than the wire does.
        Limiter = "limiter", "what limits";
        /// Levels of a factor in order.
        Ranking = "ranking", "ranking";
        /// Price of speed, and whether the dearer option pays.
        Price = "price", "price";
        /// Different levels are ahead under different conditions.
        Crossover = "crossover", "crossover";
        /// TCP against UDP.
        Transport = "transport", "TCP and UDP";
        /// A faster medium that brings little.
        Upgrade = "upgrade", "a faster medium";
        /// Results grow with a factor.
        Growth = "growth", "growth";
        /// At every level of a factor the medium is full: more of the factor cannot help.
        Saturated = "saturated", "saturated";
        /// Effect of the message size, and the part of it that headers explain.
        MessageSize = "message-size", "message size";
        /// The only option that exceeds what the others can carry.
        Alone = "alone", "reached by one only";
        /// Levels without comparable pairs of cells, one of which has all the higher results.
        Unpaired = "unpaired", "groups without pairs";
        /// Conclusion from ranges and bounds that the author states.
        Stated = "stated", "as stated";
        /// Two measures far apart: different parts limit them.
        DifferentParts = "different-parts", "different parts";
        /// Two equal measures: one part limits both.
        SamePart = "same-part", "one part";
        /// Several clients at the same time against one.
        Clients = "clients", "several clients";
        /// Result as a share of the limit of its medium.
        LimitShare = "limit-share", "share of the limit";
        /// Levels with equal results, within the study's tolerance.
        NoDifference = "no-difference", "no difference";
        /// Results below the tester's limit, which measure the device.
        BelowTesterLimit = "below-tester-limit", "below the tester limit";
        /// Rates within the limit of their layer.
        WithinLimit = "within-limit", "within the limit";
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
