//! Format of the tables, which is the same on both backends.

/// Format that this program writes.
pub(crate) const FORMAT: i64 = 5;
/// Oldest format that this program brings up to date.
pub(crate) const FIRST_MIGRATED: i64 = 4;
