//! Records in, bytes out: what a reader sees of a run.
//!
//! Every number says what it counts, and every result has a plain sentence. A figure that is missing is shown as
//! missing, never as zero; a figure that is absurd (not finite, negative) is treated as missing. Names in a record come
//! from other machines: each output escapes them in its own way.
#![forbid(unsafe_code)]

#[doc(hidden)]
pub use linerate_model;

mod blocks;
mod document;
mod figures;
mod forms;
mod language;
pub mod parts;
mod records;
mod reports;
mod sections;
mod subjects;
mod wording;

pub use blocks::chart::Chart;
pub use blocks::columns;
pub use blocks::section::{Block, Depth, Entry, Folded, Section};
pub use blocks::table::{Column, Table};
pub use document::{Document, document};
pub use figures::{plain, steers};
pub use forms::csv::csv;
pub use forms::html::{html, linked_html, so_far, style_sheet, verdicts};
pub use forms::json::json;
pub use forms::markdown::markdown;
pub use forms::page::Style;
pub use forms::page_shell::Link;
pub use forms::picture::{Picture, pictures};
pub use forms::text::{answer, more, not_kept, text};
pub use language::{Argument, Held, Language, UnknownLanguage};
pub use records::Records;
pub use reports::comparison::{comparison, comparison_charts, comparison_html};
pub use reports::explain::explain;
pub use reports::live::{LiveAttempt, LiveTrial, live_charts, live_figures};
pub use reports::run_summary::{headline, headline_limit, headline_share, sparkline};
pub use reports::trend::{Trend, TrendChange, TrendRun};
pub use reports::{limits, overview};
pub use subjects::live;
pub use subjects::live::{Live, LiveColumn, LiveRate};
