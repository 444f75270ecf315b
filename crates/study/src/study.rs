//! A study: one quantity or a few, measured in every cell that factors and levels make.

use crate::finding::{Finding, FindingKind};
use crate::translation::Translation;
use linerate_model::{
    BadStack, Carried, Encapsulation, Firmness, IpVersion, Layer, MeasureUnit, Medium, Message, Stack, Transport, named,
};
use linerate_report::Language;
use linerate_units::FrameSize;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the serialised form.
pub const STUDY_SCHEMA: &str = "linerate.study/1";

/// A study and its findings, as `linerate report STUDY --json` prints them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StudyReport {
    /// [`STUDY_SCHEMA`].
    pub schema: String,
    /// Design and results.
    pub study: Study,
    /// Limit of the medium, for each cell and measure with a known limit.
    pub limits: Vec<CellLimit>,
    /// Sentences that the numbers support, each with its evidence.
    pub findings: Vec<Finding>,
    /// Conclusions of the author, each with what the results say of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Answer>,
}

/// A conclusion of the author, checked by the results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// The conclusion.
    pub text: String,
    /// Whether the results support it.
    pub verdict: Verdict,
    /// Reason, with the numbers.
    pub reason: String,
}

named! {
    /// What results say of a conclusion.
    pub enum Verdict as "verdict-of-conclusion" {
        /// The results support it.
        Confirmed = "confirmed", "confirmed";
        /// The results show otherwise.
        Contradicted = "contradicted", "contradicted";
        /// The results cannot decide.
        Untestable = "untestable", "untestable";
    }
}

/// A conclusion of the author.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conclusion {
    /// The conclusion in words.
    pub text: String,
    /// Index of the measure that it is about.
    pub measure: usize,
    /// Levels that it is about, by the index of their factor; others are left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub only: BTreeMap<usize, Vec<String>>,
    /// Claim that the results are asked about.
    pub claim: Claim,
}

/// A claim about results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Claim {
    /// One level is ahead of another of the same factor.
    Ahead {
        /// Level that is ahead.
        ahead: String,
        /// The other level.
        of: String,
    },
    /// A unit of the result costs more with one level than with another.
    DoesNotPay {
        /// Level that costs more.
        dear: String,
        /// Level that costs less.
        cheap: String,
    },
    /// All results lie within these shares of their limit.
    Share {
        /// Lowest share.
        at_least: Option<f64>,
        /// Highest share.
        at_most: Option<f64>,
    },
    /// All results lie within these bounds, in the unit of the measure: bit/s, 1/s, ns or times.
    Value {
        /// Lowest value.
        at_least: Option<f64>,
        /// Highest value.
        at_most: Option<f64>,
    },
    /// There is a finding of this kind that names these levels.
    Finding {
        /// Kind of the finding.
        kind: FindingKind,
        /// Levels that it names.
        names: Vec<String>,
    },
    /// It needs what was not measured.
    Needs {
        /// What would have to be measured.
        needs: String,
    },
}

/// Design and results of a study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Study {
    /// Name of the file, without its extension.
    pub name: String,
    /// Title: the subject of the comparison.
    pub title: String,
    /// The question of its author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<StudyQuestion>,
    /// Author, subject and reason of the measurements.
    pub about: String,
    /// Method of the measurements.
    pub method: String,
    /// Source of the numbers.
    pub source: Option<String>,
    /// Reservations about the numbers.
    pub caveats: Vec<String>,
    /// Currency of prices.
    pub currency: Option<String>,
    /// Largest relative difference between results that count as equal. `None`: equal results are identical.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    /// Conditions of the path in cells whose levels set no others.
    pub path: Conditions,
    /// Factors that were varied.
    pub factors: Vec<Factor>,
    /// Quantities that were measured.
    pub measures: Vec<Measure>,
    /// Pairs of measures that would be equal if one part limited both.
    pub comparisons: Vec<MeasurePair>,
    /// Conclusions of the author.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conclusions: Vec<Conclusion>,
    /// Results, cell by cell.
    pub cells: Vec<StudyCell>,
    /// Order of the runs of a measured study, which reports append to the method.
    #[serde(skip)]
    pub design: Option<Design>,
    /// Caveats that linerate found, which reports append to those of the author.
    #[serde(skip)]
    pub notes: Vec<Message>,
    /// The study's own texts in the reader's language.
    #[serde(skip)]
    pub translation: Option<(Language, Translation)>,
}

/// Order in which the runs of a study were measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Design {
    /// Number of runs of each cell.
    pub repeats: u32,
    /// Seed of the random order; `None` if the runs follow the order of the levels.
    pub seed: Option<u64>,
    /// Indices of the factors whose levels need a lab of their own.
    pub built: Vec<usize>,
    /// Indices of the factors that a person sets.
    pub set_by_person: Vec<usize>,
}

/// The question of a study. A finding answers it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StudyQuestion {
    /// The question.
    pub text: String,
    /// Kinds of findings that answer it, the best first. Empty: any finding does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answered_by: Vec<FindingKind>,
}

impl StudyQuestion {
    /// Returns the finding that answers it: the first finding of the best kind.
    pub fn answer<'a>(&self, findings: &'a [Finding]) -> Option<&'a Finding> {
        match &self.answered_by[..] {
            [] => findings.first(),
            kinds => kinds.iter().find_map(|kind| findings.iter().find(|finding| finding.kind == *kind)),
        }
    }
}

/// A factor that was varied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Factor {
    /// Column in the data.
    pub column: String,
    /// Name in sentences.
    pub title: String,
    /// Unit of numeric levels.
    pub unit: Option<String>,
    /// Owner of the property that the factor varies, if a finding depends on it.
    pub of: Option<FactorOf>,
    /// Direction that was stated before the measurement. Its trend test is one-sided then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expected>,
    /// Levels: numbers ascending, others in the order given.
    pub levels: Vec<Level>,
}

/// Owner of the property that a factor varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FactorOf {
    /// The hosts: growth with the factor shows that they are the limit.
    Host,
    /// The messages: the levels are their sizes in bytes.
    Message,
}

/// Direction in which results were expected to change with a factor, before they were known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Expected {
    /// Results grow with the factor.
    Grows,
    /// Results fall with the factor.
    Falls,
}

/// A level of a factor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Level {
    /// Name in the data.
    pub name: String,
    /// Numeric value, in the factor's unit.
    pub value: Option<f64>,
    /// Price of this option.
    pub price: Option<Price>,
    /// Number of clients that copy or ask at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<u32>,
    /// Another difference from the other levels. Growth is sought only among levels with the same text here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub also: Option<String>,
    /// `true` if the level is the tester alone, so that its cells are the tester's limit.
    pub tester: bool,
    /// Conditions of the path at this level.
    pub path: Conditions,
}

/// A price, or a range of prices.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Price {
    /// Lowest price.
    pub low: f64,
    /// Highest price.
    pub high: f64,
}

/// Known conditions of the path that decide what the medium can carry.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Conditions {
    /// Medium of the slowest link.
    pub medium: Option<Medium>,
    /// Encapsulations on it, outermost first.
    pub over: Vec<Encapsulation>,
    /// Transport protocol.
    pub transport: Option<Transport>,
    /// IP version; `None` stands for IPv4.
    pub ip: Option<IpVersion>,
    /// Whether TCP sends timestamps. `None` counts the limit without them, so that no result exceeds it by mistake.
    pub tcp_timestamps: Option<bool>,
    /// Whether both directions share the medium. `None` stands for no.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub half_duplex: Option<bool>,
    /// MTU in bytes; `None` stands for the medium's own.
    pub mtu: Option<u32>,
    /// Payload of a datagram in bytes. Several sizes if it is not known which one was used.
    pub message_bytes: Vec<u64>,
    /// Size of a frame with its FCS, if frames are counted.
    pub frame_bytes: Option<FrameSize>,
}

impl Conditions {
    /// Returns these conditions, replaced by those of `other` where it sets any.
    fn overlaid(self, other: &Self) -> Self {
        Self {
            medium: other.medium.or(self.medium),
            over: if other.over.is_empty() { self.over } else { other.over.clone() },
            transport: other.transport.or(self.transport),
            ip: other.ip.or(self.ip),
            tcp_timestamps: other.tcp_timestamps.or(self.tcp_timestamps),
            half_duplex: other.half_duplex.or(self.half_duplex),
            mtu: other.mtu.or(self.mtu),
            message_bytes: if other.message_bytes.is_empty() {
                self.message_bytes
            } else {
                other.message_bytes.clone()
            },
            frame_bytes: other.frame_bytes.or(self.frame_bytes),
        }
    }
}

impl Conditions {
    /// Returns the load that the medium carries for each possible message size; empty if medium or transport is
    /// unknown.
    pub fn carried(&self) -> Result<Vec<Carried>, BadStack> {
        let (Some(medium), Some(transport)) = (self.medium, self.transport) else { return Ok(Vec::new()) };
        let stack = Stack {
            ip: self.ip.unwrap_or_default(),
            mtu: self.mtu,
            tcp_timestamps: self.tcp_timestamps.unwrap_or(false),
            half_duplex: self.half_duplex.unwrap_or(false),
            ..Stack::on(medium).over(&self.over)
        };
        match transport {
            // TCP fills its segments, whatever the message.
            Transport::Tcp => Ok(vec![stack.carried(transport, 1)?]),
            Transport::Udp => self.message_bytes.iter().map(|bytes| stack.carried(transport, *bytes)).collect(),
        }
    }
}

/// A quantity that was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measure {
    /// Column in the data.
    pub column: String,
    /// Name in sentences.
    pub title: String,
    /// Metric of a record, such as `p99`; `None` if the values are imported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// Unit of the values.
    pub unit: MeasureUnit,
    /// Layer whose bits it counts; `None` if the author does not say.
    pub counts: Option<Layer>,
    /// Conditions of the path for this measure.
    pub path: Conditions,
}

/// Two measures that would be equal if one part limited both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MeasurePair {
    /// Indices into the study's measures.
    pub measures: [usize; 2],
    /// Index of the factor by which ratios are grouped.
    pub by: usize,
}

/// A combination of levels and its results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StudyCell {
    /// Index of the level for each factor; `None` if the factor does not apply.
    pub levels: Vec<Option<usize>>,
    /// Values of each measure, one for each repeat; empty if it was not measured.
    pub values: Vec<Vec<f64>>,
    /// Ranges and bounds that the author states, by measure. A value stated as `about` is in `values` too.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stated: BTreeMap<usize, StatedValue>,
    /// Firmness of the values of each measure; empty if all are firm. Rates that are not firm are lower bounds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub firmness: Vec<Firmness>,
}

/// A range or a bound that the author states, in the unit of the measure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatedValue {
    /// Form of the statement.
    pub as_a: StatedAs,
    /// Lowest possible value; `None` if unbounded.
    pub low: Option<f64>,
    /// Highest possible value; `None` if unbounded.
    pub high: Option<f64>,
}

/// Form of a stated range or bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StatedAs {
    /// Near a number: within [`ABOUT`] of it.
    About,
    /// At most a number.
    AtMost,
    /// At least a number.
    AtLeast,
    /// Below a number.
    LessThan,
    /// Above a number.
    MoreThan,
    /// From one number to another.
    Range,
}

/// Assumed relative error of a value that is stated as about a number. Authors give none.
pub const ABOUT: f64 = 0.1;

impl StudyCell {
    /// Returns the firmness of a measure's values.
    pub fn firmness_of(&self, measure: usize) -> Firmness {
        self.firmness.get(measure).copied().unwrap_or_default()
    }

    /// Returns the median of a measure's values.
    pub fn median(&self, measure: usize) -> Option<f64> {
        let mut sorted = self.values[measure].clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let upper = *sorted.get(middle)?;
        Some(if sorted.len() % 2 == 1 { upper } else { (sorted[middle - 1] + upper) / 2.0 })
    }
}

/// Limit of the medium in one cell, in the unit and at the layer of the measure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellLimit {
    /// Index into the study's cells.
    pub cell: usize,
    /// Index into the study's measures.
    pub measure: usize,
    /// Limit at the message size for which it is lowest.
    pub low: f64,
    /// Limit at the message size for which it is highest.
    pub high: f64,
    /// Median result as a share of `high`.
    pub share: f64,
}

impl Study {
    /// Returns whether all values are firm.
    pub fn is_firm(&self) -> bool {
        self.cells.iter().flat_map(|cell| &cell.firmness).all(|firmness| firmness.is_firm())
    }

    /// Returns the study without the values that are not firm.
    #[must_use]
    pub fn firm_only(&self) -> Self {
        let mut study = self.clone();
        for cell in &mut study.cells {
            for (values, firmness) in cell.values.iter_mut().zip(&cell.firmness) {
                if !firmness.is_firm() {
                    values.clear();
                }
            }
        }
        study
    }

    /// Returns the level of a cell's factor.
    pub fn level(&self, cell: &StudyCell, factor: usize) -> Option<&Level> {
        self.factors[factor].levels.get(cell.levels[factor]?)
    }

    /// Returns the conditions of the path for one measure of a cell.
    pub fn conditions(&self, cell: &StudyCell, measure: usize) -> Conditions {
        let mut conditions = self.path.clone().overlaid(&self.measures[measure].path);
        for (index, factor) in self.factors.iter().enumerate() {
            let Some(level) = self.level(cell, index) else { continue };
            conditions = conditions.overlaid(&level.path);
            if let (Some(FactorOf::Message), Some(bytes)) = (factor.of, level.value) {
                conditions.message_bytes = vec![bytes as u64];
            }
        }
        conditions
    }
}
