//! The fleet file.

mod budget;
mod document;
mod error;
mod fleet;
mod hours;
mod test_words;
#[cfg(test)]
mod tests;

pub use budget::{Budget, BudgetScope};
pub use error::FleetFileError;
pub use fleet::{AlertRules, FleetFile, Group, Link, Mesh, Pattern, Selector, Side, Threshold};
pub(crate) use hours::DAY_S;
pub use hours::Hours;
pub use test_words::{Class, Estimate, Flow, TestWords};
