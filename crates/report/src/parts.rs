//! Parts of documents, for crates that write documents of their own.

pub use crate::chart::{SERIES, lowest, rate_axis, size_ticks};
pub use crate::heat_map::{HeatMap, Told};
pub use crate::page::Page;
pub use crate::page_shell::{Carried, Data, PageShell};
pub use crate::svg::{Axis, Bars, GroupPanel, Member, Panel, Panels, Point, Scale, Segment, Series};

/// Fields and lines of comma-separated values.
pub mod csv {
    pub use crate::csv::{field, line};
}

/// Figures as text.
pub mod figures {
    pub use crate::figures::{MISSING, percent, prefix, range};
}

/// Figures that are not firm.
pub mod firmness {
    pub use crate::firmness::{bounded, shown, told};
}

/// Markdown.
pub mod markdown {
    pub use crate::markdown::{escaped, push_heading, push_table};
}

/// HTML.
pub mod markup {
    pub use crate::markup::{figure, prose, scrolling};
}

/// Charts as files.
pub mod picture {
    pub use crate::picture::numbered;
}

/// Charts of single runs.
pub mod runs {
    pub use crate::runs::{Group, Runs, chart};
}

/// Measured values with their units.
pub mod values {
    pub use crate::values::{decimals, extremes, range, unit_of, value};
}

/// Sentences.
pub mod wording {
    pub use crate::wording::{in_a_row, listed, sentence};
}
