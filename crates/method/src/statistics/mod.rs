//! The statistics behind every figure and every sentence: medians, intervals, and tests of significance.
//!
//! - [`summary`], [`median`], [`confidence_interval`]: the runs of one quantity.
//! - [`TwoStage`]: repeats until an interval is narrow enough.
//! - [`Contrast`]: two means against a tolerance, from repeats, sessions or pairs; about normally distributed.
//! - [`level_of_each`]: the level of a test that is made at several looks.
//! - [`sign_test`], [`fisher_test`], [`separation_test`], [`trend_test`]: p-values counted, without any assumption about the
//!   distribution. Published data often have one value a cell, and so no variance.
//! - [`rank_sum_test`]: whether one sample has larger values than another.
//! - [`change_points`]: where the level of a series changed.
//! - [`Holm`]: the correction where many are tested at once.

mod change_points;
mod contrast;
mod exact;
mod holm;
mod looks;
mod rank_sum;
mod summary;
mod trend;
mod two_stage;

pub use change_points::{ChangePoint, FALSE_ALARMS, FEWEST, change_points};
pub use contrast::{Contrast, Sample, Scale};
pub(crate) use exact::ln_choose;
pub use exact::{fisher_test, separation_test, sign_test};
pub use holm::{Holm, Tested};
pub use looks::level_of_each;
pub use rank_sum::rank_sum_test;
pub use summary::{confidence_interval, median, summary};
pub use trend::{Trend, trend_test};
pub use two_stage::TwoStage;

/// A p-value below this is significant: such a result by chance alone has a probability of less than 5 %.
pub const SIGNIFICANT: f64 = 0.05;
