//! Blocks that documents are made of: sections, tables, charts.

pub(crate) mod axis;
pub(crate) mod chart;
pub mod columns;
pub(crate) mod drawing;
pub(crate) mod heat_map;
pub(crate) mod section;
pub(crate) mod table;
