//! Length and number of runs, and whether verdicts are tested.

use clap::Args;
use linerate_model::{Plan, Repeats, Timing, Trial};
use linerate_units::{Nanos, Ratio};

/// Default number of runs of a measurement.
const USUAL_REPEATS: u32 = 3;

/// Duration and repeats.
#[derive(Debug, Args)]
#[command(next_help_heading = "Duration and repeats")]
pub(crate) struct Repetition {
    /// Length of each measured window
    #[arg(long, short = 't', value_name = "TIME", default_value = "3s")]
    pub(crate) time: Nanos,

    /// Warm-up before each window, excluded from results [default: until the rate is steady, at least 500ms and 10 round
    /// trips, at most 10s]
    #[arg(long, short = 'O', value_name = "TIME", hide_short_help = true)]
    warmup: Option<Nanos>,

    /// Number of runs; the median is reported [default: 3]
    ///
    /// Results have the spread of the runs too. Each load of a curve has one run unless this asks for more.
    #[arg(long, short = 'r', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeats: Option<u32>,

    /// Repeat until the mean has this confidence, percent (see --within). The spread of the first 5 runs says how many runs
    /// are needed
    #[arg(long, value_name = "PERCENT", conflicts_with = "repeats", hide_short_help = true)]
    confidence: Option<f64>,

    /// Repeat until half the width of the confidence interval is at most this share of the mean
    #[arg(long, value_name = "SHARE", conflicts_with = "repeats", hide_short_help = true)]
    within: Option<Ratio>,

    /// Maximum number of runs with --confidence or --within
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(3..=1000), hide_short_help = true)]
    max_repeats: u32,
}

/// Whether verdicts are tested.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct Prove {
    /// Test each verdict: measure again with one thing changed
    ///
    /// For example the load, the flows, the buffers or the congestion control; of a copy: without the storage that the verdict
    /// names. Changed and unchanged trials alternate: 6 trials for each test, 12 if these do not decide; at most two tests for
    /// each verdict.
    #[arg(long)]
    pub(crate) prove: bool,
}

impl Prove {
    /// `plan`, its verdicts tested where that is asked for.
    pub(crate) fn applied_to(self, plan: Plan) -> Plan {
        Plan { prove: self.prove, ..plan }
    }
}

impl Repetition {
    /// A short run of `repeats` trials.
    pub(crate) fn brief(time: Nanos, warmup: Nanos, repeats: u32) -> Self {
        Self {
            time,
            warmup: Some(warmup),
            repeats: Some(repeats),
            confidence: None,
            within: None,
            max_repeats: repeats.max(3),
        }
    }

    /// `repeats` runs of this length, each after the usual warm-up.
    pub(crate) fn plain(time: Nanos, repeats: u32) -> Self {
        Self { warmup: None, ..Self::brief(time, Nanos::default(), repeats) }
    }

    pub(crate) fn timing(&self) -> Result<Timing, String> {
        const SHORTEST: Nanos = Nanos::from_millis(50);
        if self.time < SHORTEST {
            return Err(format!("--time {} is too short to measure anything; give at least {SHORTEST}", self.time));
        }
        Ok(self.warmup.map_or(Timing::when_steady(self.time), |warmup| Timing::of(warmup, self.time)))
    }

    /// As [`Self::timing`], with a warm-up of fixed length: `usual` unless another is asked for.
    pub(crate) fn timing_after(&self, usual: Nanos) -> Result<Timing, String> {
        self.timing()?;
        Ok(Timing::of(self.warmup.unwrap_or(usual), self.time))
    }

    /// The timing of runs that end by volume, within `longest` with their warm-up: none unless one is asked for.
    pub(crate) fn timing_within(&self, longest: Nanos) -> Result<Timing, String> {
        let warmup = self.warmup.unwrap_or_default();
        if warmup >= longest {
            return Err(format!("--warmup {warmup} leaves nothing of the {longest} that a run may take"));
        }
        Ok(Timing::of(warmup, longest - warmup))
    }

    /// The plan that measures each of `cells`.
    pub(crate) fn sweep(&self, cells: Vec<Trial>) -> Result<Plan, String> {
        Ok(Plan::sweep(cells, self.repeats()?))
    }

    pub(crate) fn repeats(&self) -> Result<Repeats, String> {
        self.repeats_or(USUAL_REPEATS)
    }

    /// As [`Self::repeats`], where `usual` runs are enough if nothing is asked for.
    pub(crate) fn repeats_or(&self, usual: u32) -> Result<Repeats, String> {
        if self.confidence.is_none() && self.within.is_none() {
            return Ok(Repeats::Times(self.repeats.unwrap_or(usual)));
        }
        let confidence_percent = self.confidence.unwrap_or(95.0);
        if !(50.0..100.0).contains(&confidence_percent) {
            return Err(format!(
                "--confidence {confidence_percent} is not a percentage from 50 to below 100, as in 95"
            ));
        }
        let within = self.within.unwrap_or(Ratio::new(25, 1000)).as_f64();
        if within <= 0.0 {
            return Err("--within 0 can never be met; give a share of the mean, as in 2.5%".to_owned());
        }
        Ok(Repeats::Until { confidence_percent, within, at_least: 3, at_most: self.max_repeats })
    }
}
