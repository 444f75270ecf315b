//! The runs of the same command just before and after a run.

use crate::query::instant;
use crate::run_row::{RunRow, State};
use crate::{Store, StoreError};
use rusqlite::types::Value;

/// A command without its first word, the program's own path. The index `run_by_command` holds this expression.
const ARGUMENTS: &str = "json_remove(command, '$[0]')";

impl Store {
    /// Returns the newest finished run with the arguments of `run` that began before it.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn before(&self, run: &RunRow) -> Result<Option<RunRow>, StoreError> {
        Ok(self.earlier(run, 1)?.pop())
    }

    /// Returns the finished runs with the arguments of `run` that began before it, newest first, at most `most`.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn earlier(&self, run: &RunRow, most: usize) -> Result<Vec<RunRow>, StoreError> {
        self.nearest(run, &nearest("<", "DESC"), most)
    }

    /// Returns the oldest finished run with the arguments of `run` that began after it.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn after(&self, run: &RunRow) -> Result<Option<RunRow>, StoreError> {
        Ok(self.nearest(run, &nearest(">", "ASC"), 1)?.pop())
    }

    fn nearest(&self, run: &RunRow, sql: &str, most: usize) -> Result<Vec<RunRow>, StoreError> {
        let command = serde_json::Value::from(run.command.clone()).to_string();
        let values = vec![
            Value::from(command),
            Value::from(instant(run.started_unix_ns)),
            Value::from(run.id.0.clone()),
            Value::from(State::Finished.name().to_owned()),
            Value::from(i64::try_from(most).unwrap_or(i64::MAX)),
        ];
        self.rows(sql, values)
    }
}

/// The nearest finished runs on one side in SQL: the side as a comparison, and the order in which it is walked.
fn nearest(side: &str, order: &str) -> String {
    let columns = RunRow::COLUMNS;
    format!(
        "SELECT {columns} FROM run WHERE {ARGUMENTS} = json_remove(?, '$[0]') AND (started_unix_ns, id) {side} (?, ?) \
         AND state = ? ORDER BY started_unix_ns {order}, id {order} LIMIT ?"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time to find a neighbour does not grow with the number of runs.
    #[test]
    fn neighbours_are_read_from_an_index_without_sorting() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = Store::open(Some(&folder.path().join("results.db"))).expect("opens");
        for sql in [nearest("<", "DESC"), nearest(">", "ASC")] {
            let read = store.read(|connection| {
                let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
                let steps = statement.query_map(("[]", 1, "a", "finished", 1), |row| row.get::<_, String>("detail"))?;
                steps.collect::<Result<Vec<_>, _>>()
            });
            let plan = read.expect("explained").join("; ");
            assert!(plan.contains("USING INDEX run_by_command") && !plan.contains("TEMP B-TREE"), "{plan}");
        }
    }
}
