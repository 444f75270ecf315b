//! The statistics behind every figure and every sentence: medians, intervals, and tests of significance.
//!
//! - [`summary`], [`median`], [`confidence_interval`]: the runs of one quantity.
//! - [`TwoStage`]: repeats until an interval is narrow enough.
//! - [`welch_test`]: two samples of repeats, about normally distributed.
//! - [`sign_test`], [`fisher_test`], [`separation_test`], [`trend_test`]: p-values counted, without any assumption about the
//!   distribution. Published data often have one value a cell, and so no variance.
//! - [`holm`]: the correction where many are tested at once.

mod exact;
mod holm;
mod summary;
mod trend;
mod two_stage;
mod welch;

pub use exact::{fisher_test, separation_test, sign_test};
pub use holm::holm;
pub use summary::{confidence_interval, median, summary};
pub use trend::{Trend, trend_test};
pub use two_stage::TwoStage;
pub use welch::{Welch, welch_test};

/// A p-value below this is significant: such a result by chance alone has a probability of less than 5 %.
pub const SIGNIFICANT: f64 = 0.05;
