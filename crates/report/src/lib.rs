//! Records in, bytes out: what a reader sees of a run.
//!
//! Every number says what it counts, and every result has a plain sentence. A figure that is missing is shown as
//! missing, never as zero; a figure that is absurd (not finite, negative) is treated as missing. Names in a record come
//! from other machines: each output escapes them in its own way.
#![forbid(unsafe_code)]

mod bursts;
mod charts;
mod csv;
mod device;
mod device_charts;
mod explain;
mod figures;
mod frames;
mod html;
mod json;
mod ladder;
mod loaded_latency;
mod markdown;
mod neighbours;
mod sentences;
mod svg;
mod tables;
mod text;

pub use csv::csv;
pub use explain::explain;
pub use html::html;
pub use json::json;
pub use markdown::markdown;
pub use text::{Style, text};
