//! The runs of the same command and kind: just before and after a run, and all of them in their order.

use crate::changed::{Side, nearest};
use crate::run_row::{ARGUMENTS, RunRow, State};
use crate::{Store, StoreError, body};
use rusqlite::{Row, params};
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
        let values = params![body::json(&run.command), State::Finished, run.kind, most];
        let mut runs: Vec<RunOfCommand> = self.read(|connection| {
            let mut statement = connection.prepare_cached(&of_command())?;
            let read = |row: &Row<'_>| {
                let (version, systems): (Option<String>, String) = (row.get("version")?, row.get("systems")?);
                let systems: BTreeMap<String, Option<String>> = serde_json::from_str(&systems).unwrap_or_default();
                let systems = systems.into_iter().filter_map(|(host, system)| Some((host, system?)));
                let (_, shown) = RunRow::read(row)?;
                Ok(RunOfCommand { row: shown, version: version.unwrap_or_default(), systems: systems.collect() })
            };
            statement.query_map(values, read)?.collect()
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
        let found = self.read(|connection| nearest(connection, run, side, most))?;
        Ok(found.into_iter().map(|(_, run)| run).collect())
    }
}

/// The newest finished runs of a command in SQL, with what measured each: parts of the plan, which a program of another version may
/// have written in another way.
fn of_command() -> String {
    let columns = RunRow::COLUMNS;
    format!(
        "SELECT {columns}, CASE WHEN json_valid(body) THEN body ->> '$.version' END AS version,
                (SELECT json_group_object(host.value ->> '$.name', host.value ->> '$.system')
                 FROM json_each(CASE WHEN json_valid(body) THEN body ELSE '{{}}' END, '$.hosts') AS host
                 WHERE host.type = 'object' AND host.value ->> '$.name' IS NOT NULL) AS systems
         FROM run JOIN plan ON plan.run = number
         WHERE {ARGUMENTS} = json_remove(?, '$[0]') AND state = ? AND +kind = ? ORDER BY started_unix_ns DESC, run.id DESC LIMIT ?"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query_plan(store: &Store, sql: &str, values: &[&dyn rusqlite::ToSql]) -> String {
        let read = store.read(|connection| {
            let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
            let steps = statement.query_map(values, |row| row.get::<_, String>("detail"))?;
            steps.collect::<Result<Vec<_>, _>>()
        });
        read.expect("explained").join("; ")
    }

    /// The time to find a neighbour does not grow with the number of runs.
    #[test]
    fn neighbours_are_read_from_an_index_without_sorting() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = Store::open(Some(&folder.path().join("results.db"))).expect("opens");
        for sql in [Side::Before, Side::After].map(crate::changed::nearest_sql) {
            let plan = query_plan(&store, &sql, &[&"[]", &1, &"a", &"finished", &"stream", &1]);
            assert!(plan.contains("USING INDEX run_by_command") && !plan.contains("TEMP B-TREE"), "{plan}");
        }
    }

    /// Nor does the time to read the newest runs of a command.
    #[test]
    fn the_runs_of_a_command_are_read_from_an_index_without_sorting() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = Store::open(Some(&folder.path().join("results.db"))).expect("opens");
        let plan = query_plan(&store, &of_command(), &[&"[]", &"finished", &"stream", &1]);
        assert!(plan.contains("run USING INDEX run_by_command") && !plan.contains("TEMP B-TREE FOR ORDER"), "{plan}");
    }
}
