//! A study: one quantity or a few, measured in every cell that factors and levels make.

use crate::finding::{Finding, FindingKind};
use linerate_model::{
    BadStack, Carried, Encapsulation, Firmness, IpVersion, Layer, MeasureUnit, Medium, Stack, Transport,
};
use linerate_units::FrameSize;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the serialised form.
pub const STUDY_SCHEMA: &str = "linerate.study/1";

/// A study and what its numbers say: what `linerate report STUDY --json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StudyReport {
    /// [`STUDY_SCHEMA`].
    pub schema: String,
    /// What was measured, and what came out.
    pub study: Study,
    /// What the medium of a cell can carry, for each cell and measure of which that is known.
    pub limits: Vec<CellLimit>,
    /// The sentences that the numbers support, each with its evidence.
    pub findings: Vec<Finding>,
}

/// What was measured, how, and what came out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Study {
    /// The name of its file.
    pub name: String,
    /// What was compared.
    pub title: String,
    /// What its author wants to know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<StudyQuestion>,
    /// Who measured what, and why.
    pub about: String,
    /// How it was measured.
    pub method: String,
    /// Where the numbers come from.
    pub source: Option<String>,
    /// What a reader must know before believing the numbers.
    pub caveats: Vec<String>,
    /// The currency of prices.
    pub currency: Option<String>,
    /// Results count as equal that differ by this share or less; none: only those that are the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    /// What holds where no factor says otherwise.
    pub path: Conditions,
    /// What was varied.
    pub factors: Vec<Factor>,
    /// What was measured.
    pub measures: Vec<Measure>,
    /// Pairs of measures that one part would make equal.
    pub comparisons: Vec<MeasurePair>,
    /// What came out.
    pub cells: Vec<StudyCell>,
}

/// What a study asks. Its answer is a finding: nobody writes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StudyQuestion {
    /// The question.
    pub text: String,
    /// The kinds of finding that answer it, the best first; none: any finding does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answered_by: Vec<FindingKind>,
}

impl StudyQuestion {
    /// The finding that answers it: the first of the best kind that there is.
    pub fn answer<'a>(&self, findings: &'a [Finding]) -> Option<&'a Finding> {
        match &self.answered_by[..] {
            [] => findings.first(),
            kinds => kinds.iter().find_map(|kind| findings.iter().find(|finding| finding.kind == *kind)),
        }
    }
}

/// Something that was varied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Factor {
    /// Its column in the data.
    pub column: String,
    /// Its name in sentences.
    pub title: String,
    /// The unit of its levels, where they are numbers.
    pub unit: Option<String>,
    /// What it is a property of, where a finding depends on that.
    pub of: Option<FactorOf>,
    /// Its levels: numbers ascending, others in the order given.
    pub levels: Vec<Level>,
}

/// What a factor is a property of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FactorOf {
    /// The hosts: growth with it tells that they are the limit.
    Host,
    /// The messages: its levels are their bytes.
    Message,
}

/// One state of a factor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Level {
    /// As the data have it.
    pub name: String,
    /// The number it is, in the factor's unit.
    pub value: Option<f64>,
    /// What it costs.
    pub price: Option<Price>,
    /// How many clients copy or ask at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<u32>,
    /// What else differs at this level from those that say otherwise or nothing. Growth is sought among levels that agree in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub also: Option<String>,
    /// It is the tester by itself: its cells are the tester's limit.
    pub tester: bool,
    /// What it says of the path.
    pub path: Conditions,
}

/// A price, or the range of prices.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Price {
    /// The lowest.
    pub low: f64,
    /// The highest.
    pub high: f64,
}

/// What is known of the path in a cell, as far as it decides what the medium can carry.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Conditions {
    /// The slowest link.
    pub medium: Option<Medium>,
    /// Encapsulations on it, outermost first.
    pub over: Vec<Encapsulation>,
    /// TCP or UDP.
    pub transport: Option<Transport>,
    /// IPv4 where nothing is said.
    pub ip: Option<IpVersion>,
    /// Whether TCP sends timestamps. Where nothing is said the limit is counted without, so that nothing passes it wrongly.
    pub tcp_timestamps: Option<bool>,
    /// Whether both directions share the medium; not where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub half_duplex: Option<bool>,
    /// Where it is not the medium's own, bytes.
    pub mtu: Option<u32>,
    /// Payload of a datagram, bytes; several where it is not known which of them it was.
    pub message_bytes: Vec<u64>,
    /// Size of a frame with its FCS, where frames are counted.
    pub frame_bytes: Option<FrameSize>,
}

impl Conditions {
    /// These, and where `other` says something, that.
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
    /// What the medium carries of the messages, one for each size that they may have had; nothing where too little is known.
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

/// Something that was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measure {
    /// Its column in the data.
    pub column: String,
    /// Its name in sentences.
    pub title: String,
    /// The figure of a record that it is, as in `p99`; none where it is imported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// What the values are.
    pub unit: MeasureUnit,
    /// The layer whose bits it counts; none where its author does not say.
    pub counts: Option<Layer>,
    /// What it says of the path.
    pub path: Conditions,
}

/// Two measures of which one part, if it were the limit of both, would make equals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MeasurePair {
    /// Indices into the study's measures.
    pub measures: [usize; 2],
    /// The factor by whose levels the ratio is looked at, as an index into the study's factors.
    pub by: usize,
}

/// One combination of levels, and what was measured in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StudyCell {
    /// For each factor the index of its level; none where the factor does not apply.
    pub levels: Vec<Option<usize>>,
    /// For each measure its values, one for each repeat; none where it was not measured.
    pub values: Vec<Vec<f64>>,
    /// By measure, what its author states where that is no number alone. The value is kept too where it is stated as `about`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stated: BTreeMap<usize, StatedValue>,
    /// For each measure whether its values are firm; empty where all are. Rates that are not firm are lower bounds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub firmness: Vec<Firmness>,
}

/// A value that its author gives as a range or a bound, in the unit of the measure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatedValue {
    /// How it is stated.
    pub as_a: StatedAs,
    /// The lowest it may be; none where nothing bounds it.
    pub low: Option<f64>,
    /// The highest it may be; none where nothing bounds it.
    pub high: Option<f64>,
}

/// How a value is stated that is no number alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StatedAs {
    /// Near a number: within [`ABOUT`] of it.
    About,
    /// No more than a number.
    AtMost,
    /// No less than a number.
    AtLeast,
    /// Below a number.
    LessThan,
    /// Above a number.
    MoreThan,
    /// From one number to another.
    Range,
}

/// The share by which a value may differ from the number that it is about. Authors do not say; this is an assumption.
pub const ABOUT: f64 = 0.1;

impl StudyCell {
    /// Whether a measure's values are firm.
    pub fn firmness_of(&self, measure: usize) -> Firmness {
        self.firmness.get(measure).copied().unwrap_or_default()
    }

    /// The middle of a measure's values.
    pub fn median(&self, measure: usize) -> Option<f64> {
        let mut sorted = self.values[measure].clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let upper = *sorted.get(middle)?;
        Some(if sorted.len() % 2 == 1 { upper } else { (sorted[middle - 1] + upper) / 2.0 })
    }
}

/// What the medium can carry in one cell, in the unit and at the layer of the measure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellLimit {
    /// Index into the study's cells.
    pub cell: usize,
    /// Index into the study's measures.
    pub measure: usize,
    /// The limit, if the messages were of the size for which it is lowest.
    pub low: f64,
    /// The limit, if they were of the size for which it is highest.
    pub high: f64,
    /// The median as a share of `high`.
    pub share: f64,
}

impl Study {
    /// Whether all values are firm.
    pub fn is_firm(&self) -> bool {
        self.cells.iter().flat_map(|cell| &cell.firmness).all(|firmness| firmness.is_firm())
    }

    /// The study without the values that are not firm.
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

    /// The level of a cell's factor.
    pub fn level(&self, cell: &StudyCell, factor: usize) -> Option<&Level> {
        self.factors[factor].levels.get(cell.levels[factor]?)
    }

    /// What is known of the path for one measure of a cell.
    pub fn conditions(&self, cell: &StudyCell, measure: usize) -> Conditions {
        let mut known = self.path.clone().overlaid(&self.measures[measure].path);
        for (index, factor) in self.factors.iter().enumerate() {
            let Some(level) = self.level(cell, index) else { continue };
            known = known.overlaid(&level.path);
            if let (Some(FactorOf::Message), Some(bytes)) = (factor.of, level.value) {
                known.message_bytes = vec![bytes as u64];
            }
        }
        known
    }
}
