//! Signs of the runs in state `running`.

use crate::StoreError;
use crate::alive::Sign;
use crate::backend::Session;
use linerate_model::RecordId;

/// Reads the sign of one run. Returns `None` if its state is not `running`.
pub(crate) fn of_run(session: &mut dyn Session, id: &RecordId) -> Result<Option<Sign>, StoreError> {
    let sql = format!("SELECT {} FROM run WHERE state = 'running' AND id = ?1", Sign::COLUMNS);
    session.row(&sql, &[id.0.as_str().into()], Sign::read)
}

/// Reads the signs of all runs.
pub(crate) fn of_all(session: &mut dyn Session) -> Result<Vec<Sign>, StoreError> {
    session.rows(&format!("SELECT {} FROM run WHERE state = 'running'", Sign::COLUMNS), &[], Sign::read)
}
