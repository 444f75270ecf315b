//! Pages of a fleet: results by pairs of hosts and sites.

mod ask;
mod cell;
pub(crate) mod changes;
pub(crate) mod matrix;
pub(crate) mod pair;
pub(crate) mod sites;

use linerate_store::{Level, MatrixQuery, Page, Store, StoreError};

/// Tests that are looked through for several pairs.
const MOST_TESTS: usize = 20;

/// Returns whether the start page links to the fleet: the store has hosts of a fleet, or a test with several pairs.
///
/// # Errors
/// The store cannot be read.
pub(crate) fn is_shown(store: &Store) -> Result<bool, StoreError> {
    if !store.fleet_hosts()?.is_empty() {
        return Ok(true);
    }
    for test in store.tests()?.into_iter().take(MOST_TESTS) {
        let one = Page { skipped: 0, limit: 1 };
        let query = MatrixQuery { test: Some(test), rows: one, columns: one, ..MatrixQuery::all(Level::Host) };
        let matrix = store.matrix(&query)?;
        if matrix.all_rows > 1 || matrix.all_columns > 1 {
            return Ok(true);
        }
    }
    Ok(false)
}
