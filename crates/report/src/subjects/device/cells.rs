//! Cells of device tests: their names, and what a line carries of their frames.

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
