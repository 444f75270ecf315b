//! Parts of documents, for crates that write documents of their own.

pub use crate::blocks::axis::{Axis, Scale};
pub use crate::blocks::axis::{lowest, rate_axis, size_ticks};
pub use crate::blocks::chart::SERIES;
pub use crate::blocks::drawing::{Bars, GroupPanel, Member, Panel, Panels, Point, Segment, Series};
pub use crate::blocks::heat_map::{HeatMap, Told};
pub use crate::forms::page::Page;
pub use crate::forms::page_shell::{Carried, Data, PageShell};

/// Fields and lines of comma-separated values.
pub mod csv {
    pub use crate::forms::csv::{field, line};
}

/// Figures as text.
pub mod figures {
    pub use crate::figures::{MISSING, percent, prefix, range};
}

/// Figures that are not firm.
pub mod firmness {
    pub use crate::wording::firmness::{bounded, shown, told};
}

/// Markdown.
pub mod markdown {
    pub use crate::forms::markdown::{escaped, push_heading, push_table};
}

/// HTML.
pub mod markup {
    pub use crate::forms::markup::{figure, prose, scrolling};
}

/// Charts as files.
pub mod picture {
    pub use crate::forms::picture::numbered;
}

/// Charts of single runs.
pub mod runs {
    pub use crate::subjects::runs::{Group, Runs, chart};
}

/// Measured values with their units.
pub mod values {
    pub use crate::figures::values::{decimals, extremes, range, unit_of, value};
}

/// Sentences.
pub mod wording {
    pub use crate::wording::{in_a_row, listed, sentence};
}
