//! Which trials begin when.

mod membership;
mod mesh_clock;
mod mesh_state;
mod order;
mod planner;
mod preview;
mod resources;
mod rounds;
mod slot;
mod spending;
#[cfg(test)]
mod tests;
mod waiting;
mod warning;

pub use order::{EndedOrder, FleetHost, LastRun, MissReason, Missed, Moment, Order, OrderId, Outcome, Resource, Way};
pub use planner::Planner;
pub use preview::{Preview, PreviewMesh, PreviewRound, preview};
pub use warning::PlanWarning;
