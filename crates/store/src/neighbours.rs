//! The runs of the same command and kind: just before and after a run, and all of them in their order.

use crate::changed::{Side, nearest};
use crate::run_row::{RunRow, State, command_key};
use crate::sql::SqlValue;
use crate::{Store, StoreError, hosts_in_plan};
use std::collections::BTreeMap;

/// A run of a command, and what measured it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunOfCommand {
    /// The run.
    pub row: RunRow,
    /// The version of linerate; empty where the record cannot be read.
    pub version: String,
    /// The operating system of each host, by the host's name.
    pub systems: BTreeMap<String, String>,
}

impl Store {
    /// Returns the newest finished runs with the arguments of `run` and of its kind, at most `most`, the oldest of them first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn of_command(&self, run: &RunRow, most: usize) -> Result<Vec<RunOfCommand>, StoreError> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let values: [SqlValue; 4] =
            [command_key(&run.command).into(), run.kind.as_str().into(), State::Finished.name().into(), most.into()];
        let mut runs = self.read(|session| {
            session.rows(&of_command(), &values, |row| {
                let (_, shown) = RunRow::read(row)?;
                let (version, systems) = hosts_in_plan::version_and_systems(row.optional_text(14)?.unwrap_or_default());
                Ok(RunOfCommand { row: shown, version, systems })
            })
        })?;
        runs.reverse();
        Ok(runs)
    }

    /// Returns the newest finished run with the arguments of `run` and of its kind that began before it.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn before(&self, run: &RunRow) -> Result<Option<RunRow>, StoreError> {
        Ok(self.earlier(run, 1)?.pop())
    }

    /// Returns the finished runs with the arguments of `run` and of its kind that began before it, newest first, at most `most`.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn earlier(&self, run: &RunRow, most: usize) -> Result<Vec<RunRow>, StoreError> {
        self.beside(run, Side::Before, most)
    }

    /// Returns the oldest finished run with the arguments of `run` and of its kind that began after it.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn after(&self, run: &RunRow) -> Result<Option<RunRow>, StoreError> {
        Ok(self.beside(run, Side::After, 1)?.pop())
    }

    fn beside(&self, run: &RunRow, side: Side, most: usize) -> Result<Vec<RunRow>, StoreError> {
        self.read(|session| nearest(session, run, side, most))
    }
}

/// Returns SQL for the newest finished runs of a command, with their plans.
fn of_command() -> String {
    let columns = RunRow::COLUMNS;
    format!(
        "SELECT {columns}, (SELECT body FROM plan WHERE plan.run = run.number) FROM run
         WHERE command_key = ?1 AND kind = ?2 AND state = ?3 ORDER BY started_unix_ns DESC, run.id DESC LIMIT ?4"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoreLocation;

    fn query_plan(store: &Store, sql: &str, values: &[SqlValue]) -> String {
        let sql = format!("EXPLAIN QUERY PLAN {sql}");
        let steps = store.read(|session| session.rows(&sql, values, |row| Ok(row.text(3)?.to_owned())));
        steps.expect("explained").join("; ")
    }

    /// The time to find a neighbour does not grow with the number of runs.
    #[test]
    fn neighbours_are_read_from_an_index_without_sorting() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = Store::open(&StoreLocation::file(folder.path().join("results.db"))).expect("opens");
        for sql in [Side::Before, Side::After].map(crate::changed::nearest_sql) {
            let plan = query_plan(
                &store,
                &sql,
                &["".into(), "stream".into(), 1_i64.into(), "a".into(), "finished".into(), 1_i64.into()],
            );
            assert!(plan.contains("USING INDEX run_by_command") && !plan.contains("TEMP B-TREE"), "{plan}");
        }
    }

    /// Nor does the time to read the newest runs of a command.
    #[test]
    fn the_runs_of_a_command_are_read_from_an_index_without_sorting() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = Store::open(&StoreLocation::file(folder.path().join("results.db"))).expect("opens");
        let plan = query_plan(&store, &of_command(), &["".into(), "stream".into(), "finished".into(), 1_i64.into()]);
        assert!(plan.contains("run USING INDEX run_by_command") && !plan.contains("TEMP B-TREE FOR ORDER"), "{plan}");
    }
}
