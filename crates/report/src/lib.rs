//! Records in, bytes out: what a reader sees of a run.
//!
//! Every number says what it counts, and every result has a plain sentence. A figure that is missing is shown as
//! missing, never as zero; a figure that is absurd (not finite, negative) is treated as missing. Names in a record come
//! from other machines: each output escapes them in its own way.
#![forbid(unsafe_code)]

mod abridged;
mod addresses;
mod attempts;
mod bursts;
mod calls;
mod caveats;
mod charts;
mod comparison;
mod copy;
mod csv;
mod device;
mod device_charts;
mod directions;
mod document;
mod doubts;
mod explain;
mod figures;
mod findings;
mod firmness;
mod flow_result;
mod frames;
mod heat_map;
mod hosts;
mod html;
mod json;
mod ladder;
mod language;
pub mod limits;
mod line_share;
mod loaded_latency;
mod loss_waterfall;
mod markdown;
mod measuring;
mod mesh;
mod neighbours;
mod nfs;
mod over_time;
pub mod overview;
mod page_shell;
mod parties;
mod path;
mod picture;
mod records;
mod results;
mod rpc_chart;
mod run_summary;
mod runs;
mod sentences;
pub mod study;
mod svg;
mod tables;
mod tasks;
mod text;
mod trend;
mod verdicts;

pub use charts::Chart;
pub use comparison::{comparison, comparison_charts, comparison_html};
pub use csv::csv;
pub use document::{Block, Depth, Document, Entry, Folded, Section, document};
pub use explain::explain;
pub use figures::{plain, steers};
pub use findings::studied;
pub use html::{Link, html, linked_html, so_far, style_sheet};
pub use json::json;
pub use language::{Argument, Held, Language, UnknownLanguage};
pub use markdown::markdown;
pub use over_time::{LiveAttempt, LiveTrial, live_charts, live_figures};
pub use picture::{Picture, pictures, study_pictures};
pub use records::Records;
pub use run_summary::{headline, headline_limit, headline_share, sparkline};
pub use tables::{Column, Table};
pub use text::{Style, answer, text};
pub use trend::{Trend, TrendChange, TrendRun};
