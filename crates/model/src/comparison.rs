//! Records held against each other.

use crate::named;
use crate::{Firmness, Interval, MeasureUnit, Message, RecordId, Summary};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What records of the same measurements differ by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The records that are compared with: one for each session.
    pub before: Vec<RecordId>,
    /// The records that are compared.
    pub after: Vec<RecordId>,
    /// What a figure's values are.
    pub samples: Samples,
    /// A difference of this share of the figure before does not matter.
    pub tolerance: f64,
    /// Confidence of all verdicts together, percent.
    pub confidence_percent: f64,
    /// The level of each test, at this look at the data. It is 5 % at a confidence of 95 %, and less where there are several looks.
    pub level: f64,
    /// Each figure that both sides have.
    pub figures: Vec<ComparedFigure>,
    /// What was not the same on both sides, in words: another cause that a difference may have.
    pub warnings: Vec<Message>,
    /// What only one side has, or was measured differently, in words.
    pub remarks: Vec<Message>,
}

impl Comparison {
    /// Something became worse.
    pub fn is_worse(&self) -> bool {
        self.has(Change::Worse)
    }

    /// For some figure the runs do not decide.
    pub fn is_undecided(&self) -> bool {
        self.has(Change::Undecided)
    }

    fn has(&self, change: Change) -> bool {
        self.figures.iter().any(|figure| figure.change == change)
    }
}

named! {
    /// What the values of a compared figure are, and so which variance is known.
    pub enum Samples as "samples" {
        /// The runs of one record on each side. How much sessions differ is not known.
        Runs = "runs", "runs on each side";
        /// The means of several records: each is a session.
        Sessions = "sessions", "records on each side";
        /// Runs of both sides in turn, pair by pair.
        Pairs = "pairs", "pairs of runs";
    }
}

/// One figure of one result on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedFigure {
    /// The result, by its name in both records.
    pub name: String,
    /// What is compared.
    pub quantity: Quantity,
    /// The values before.
    pub before: Summary,
    /// The values after.
    pub after: Summary,
    /// Whether the values before are firm. Rates that are not are lower bounds.
    pub before_firmness: Firmness,
    /// Whether the values after are firm.
    pub after_firmness: Firmness,
    /// The mean after less the mean before, as a share of the mean before; none where that was zero. Of a loss ratio it is the
    /// difference itself.
    pub difference: Option<f64>,
    /// A difference up to this does not matter.
    pub tolerance: f64,
    /// The interval of the difference. Each end alone is wrong with a chance of `level`; none where too few values show their spread.
    pub interval: Option<Interval>,
    /// The p-value of the test whether the difference is larger than the tolerance; none where too few values show their spread.
    pub p_beyond: Option<f64>,
    /// The p-value of the test whether the difference is smaller than the tolerance (two one-sided tests).
    pub p_within: Option<f64>,
    /// The smaller of both, adjusted for the number of figures (Holm). Below `level` it decides.
    pub p: Option<f64>,
    /// What it amounts to.
    pub change: Change,
    /// About how many values on each side would decide, where these do not; none where no number under 10,000 would, or where a
    /// figure that is not firm leaves it open.
    pub needed: Option<u32>,
}

named! {
    /// A figure that repeats of a measurement have each.
    pub enum Quantity as "quantity" {
        /// Payload at the receivers, bit/s.
        PayloadBps = "payload_bps", "payload";
        /// Transactions, calls or operations per second, where they were not asked for at a rate.
        PerSecond = "per_second", "per second";
        /// Raw frames received per second.
        FramesPerS = "frames_per_s", "frames per second";
        /// Files per second of a copy.
        FilesPerS = "files_per_s", "files per second";
        /// Half of all requests were answered within this, nanoseconds.
        LatencyP50Ns = "latency_p50_ns", "p50";
        /// 99 % of all requests were answered within this, nanoseconds.
        LatencyP99Ns = "latency_p99_ns", "p99";
        /// 99 % of the requests beside a load were answered within this, nanoseconds.
        LoadedP99Ns = "loaded_p99_ns", "p99 under load";
        /// Mean response time of reads, nanoseconds.
        ReadMeanNs = "read_mean_ns", "mean of reads";
        /// Mean response time of writes, nanoseconds.
        WriteMeanNs = "write_mean_ns", "mean of writes";
        /// Mean response time of all other operations, nanoseconds.
        OtherMeanNs = "other_mean_ns", "mean of other operations";
        /// How long frames go on being lost after an overload, nanoseconds.
        RecoveryNs = "recovery_ns", "recovery";
        /// Time for which a device's buffer lasts, nanoseconds.
        BufferNs = "buffer_ns", "buffer";
        /// How many frames, addresses or neighbours a device holds.
        Held = "held", "held";
        /// Share of the datagrams that were lost.
        LossRatio = "loss_ratio", "lost";
    }
}

impl Quantity {
    /// The unit of its values.
    pub fn unit(self) -> MeasureUnit {
        match self {
            Self::PayloadBps => MeasureUnit::BitsPerS,
            Self::PerSecond | Self::FramesPerS | Self::FilesPerS => MeasureUnit::PerS,
            Self::LatencyP50Ns | Self::LatencyP99Ns | Self::LoadedP99Ns | Self::RecoveryNs => MeasureUnit::Nanos,
            Self::ReadMeanNs | Self::WriteMeanNs | Self::OtherMeanNs => MeasureUnit::Nanos,
            Self::BufferNs => MeasureUnit::NanosHeld,
            Self::Held => MeasureUnit::Count,
            Self::LossRatio => MeasureUnit::Share,
        }
    }

    /// More of it is better.
    pub fn more_is_better(self) -> bool {
        self.unit().more_is_better()
    }
}

named! {
    /// What a difference amounts to.
    pub enum Change as "change" {
        /// Better, by more than the tolerance.
        Better = "better", "better";
        /// Worse, by more than the tolerance.
        Worse = "worse", "WORSE";
        /// The same within the tolerance.
        Equivalent = "equivalent", "equivalent";
        /// The runs are too few or too far apart to tell, or a figure that is not firm leaves it open.
        Undecided = "undecided", "undecided";
    }
}
