//! A study as a report: summary, findings, tables by factor, charts with the limit of each medium, method, caveats, data.

mod by_class;
mod charts;
mod heat;
mod multiples;
mod outputs;
mod page;
mod pivot;
mod repeats;
mod shape;
mod tables;

pub(crate) use charts::all as charts_of;
pub use outputs::{csv, json, markdown, text};
pub use page::html;
pub use pivot::{BadPivot, Pivot};
