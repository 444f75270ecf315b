//! Deleting records.

use crate::changed::{followers, renew};
use crate::{Store, StoreError, pairs, rows};
use linerate_model::RecordId;

impl Store {
    /// Deletes the record called `name` (see [`Store::resolve`]); the answer is its whole name.
    ///
    /// # Errors
    /// No record or several are called so, it is being measured, or the store cannot be written.
    pub fn delete(&self, name: &str) -> Result<RecordId, StoreError> {
        let id = self.resolve(name)?;
        self.change(|session| {
            self.refuse_alive(session, &id)?;
            let sql = "SELECT number FROM run WHERE id = ?1";
            let Some(number) = session.row(sql, &[id.0.as_str().into()], |row| row.integer(0))? else { return Ok(()) };
            let followers = followers(session, &[number])?;
            rows::delete_runs(session, &[number])?;
            pairs::remove(session, &id)?;
            let renewed = renew(session, &followers)?;
            pairs::set_changed(session, &renewed)
        })?;
        Ok(id)
    }
}
