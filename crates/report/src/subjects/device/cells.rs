//! Cells of device tests: their names, and what a line carries of their frames.

use crate::language::Language;
use crate::said;
use linerate_model::DevicePlan;
use linerate_units::FrameSize;

/// The size, and the goal if there is one.
pub(crate) fn named(cell: &linerate_model::Throughput) -> String {
    match &cell.goal {
        Some(goal) => format!("{} {}", goal.name.name(), cell.frame_bytes),
        None => cell.frame_bytes.to_string(),
    }
}

/// Returns the capacity of the lines of all directions in frames of `bytes`, in frames per second.
pub(crate) fn line_frames(plan: &DevicePlan, bytes: u32) -> Option<f64> {
    plan.line_frames(FrameSize::with_fcs(bytes).ok()?).map(|line| line as f64)
}

/// Returns the words that a title adds for streams whose rates are added up, or nothing for a single stream.
pub(crate) fn streams_together(lang: Language, plan: &DevicePlan) -> String {
    match (plan.directions.len(), plan.ports.len()) {
        (..=1, _) => String::new(),
        (_, ..=2) => said!(lang, "device-charts-axis-both-ways", ", both ways together"),
        _ => said!(lang, "device-charts-axis-all-ports", ", all ports together"),
    }
}
