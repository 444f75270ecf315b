//! When each message or request of a flow is due. Pure: time is a number that the caller brings.
#![forbid(unsafe_code)]

mod pace;
mod schedule;

pub use pace::Pace;
pub use schedule::Schedule;
