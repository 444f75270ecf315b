//! Runs as lists show them: found by what they are about, a page at a time, from table `run` alone.

use crate::alive::Sign;
use crate::run_row::{RunRow, State};
use crate::{Query, Store, StoreError, body};
use linerate_model::{Record, RecordId};
use rusqlite::params_from_iter;
use rusqlite::types::Value;
use std::collections::BTreeMap;

/// Longest plan that is searched for host names, in bytes. Plans of thousands of cells would make a list slow.
const LONGEST_PLAN: i64 = 128 << 10;

impl Store {
    /// The runs that `query` asks for, newest first: at most `limit` behind the first `skipped`.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn list(&self, query: &Query, skipped: usize, limit: usize) -> Result<Vec<RunRow>, StoreError> {
        let (sql, values) = page(query, skipped, limit);
        self.rows(&sql, values)
    }

    /// How many runs `query` asks for.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn count(&self, query: &Query) -> Result<usize, StoreError> {
        self.settle()?;
        let (conditions, values) = query.conditions();
        let sql = format!("SELECT count(*) FROM run {conditions}");
        let count: i64 = self.read(|connection| {
            connection.prepare_cached(&sql)?.query_row(params_from_iter(values), |row| row.get(0))
        })?;
        Ok(usize::try_from(count).unwrap_or_default())
    }

    /// The kinds of run that there are, in order of name.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn kinds(&self) -> Result<Vec<String>, StoreError> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached("SELECT DISTINCT kind FROM run ORDER BY kind")?;
            statement.query_map([], |row| row.get(0))?.collect()
        })
    }

    /// Returns the names of each run's hosts, in the order of its record. A run is left out if it has no hosts, or if its plan is
    /// damaged or longer than 128 KiB.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn hosts(&self, runs: &[RunRow]) -> Result<BTreeMap<RecordId, Vec<String>>, StoreError> {
        let ids: Vec<&str> = runs.iter().map(|run| run.id.0.as_str()).collect();
        let names: Vec<(String, String)> = self.read(|connection| {
            let mut statement = connection.prepare_cached(HOSTS)?;
            let values = (body::json(&ids), LONGEST_PLAN);
            statement.query_map(values, |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        })?;
        let mut hosts = BTreeMap::<RecordId, Vec<String>>::new();
        for (id, name) in names {
            hosts.entry(RecordId(id)).or_default().push(name);
        }
        Ok(hosts)
    }

    /// The run called `name` (see [`Store::resolve`]) as a list shows it.
    ///
    /// # Errors
    /// No run or several are called so, or the store cannot be read.
    pub fn row(&self, name: &str) -> Result<RunRow, StoreError> {
        let id = self.resolve(name)?;
        let sql = format!("SELECT {} FROM run WHERE id = ?", RunRow::COLUMNS);
        self.rows(&sql, vec![Value::from(id.0)])?.pop().ok_or_else(|| self.unknown(name))
    }

    /// The records of the study `name` that ran to their end, newest first, at most `limit`.
    ///
    /// # Errors
    /// The store cannot be read, or one of the records.
    pub fn of_study(&self, name: &str, limit: usize) -> Result<Vec<Record>, StoreError> {
        let query = Query { study: Some(name.to_owned()), states: vec![State::Finished], ..Query::default() };
        let mut records = Vec::new();
        for row in self.list(&query, 0, limit)? {
            match self.load(&row.id.0) {
                Ok(record) => records.push(record),
                // Deleted by another program since it was listed.
                Err(StoreError::Unknown { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(records)
    }

    /// The rows that `sql` selects.
    pub(crate) fn rows(&self, sql: &str, values: Vec<Value>) -> Result<Vec<RunRow>, StoreError> {
        let dead = self.settle()?;
        let rows: Vec<(i64, RunRow)> = self.read(|connection| {
            let mut statement = connection.prepare_cached(sql)?;
            statement.query_map(params_from_iter(values), RunRow::read)?.collect()
        })?;
        let shown = rows.into_iter().map(|(number, row)| match row.state {
            State::Running if dead.contains(&number) => RunRow { state: State::Killed, ..row },
            _ => row,
        });
        Ok(shown.collect())
    }

    /// Marks the runs as killed that nobody measures any more. The answer is those that could not be marked, because the store
    /// cannot be written now: a list shows them as killed all the same.
    pub(crate) fn settle(&self) -> Result<Vec<i64>, StoreError> {
        let running = self.read(Sign::all)?;
        let dead = self.dead(running)?;
        if dead.is_empty() {
            return Ok(dead);
        }
        let marked = self.change(|change| {
            // Since it was looked at, one may have ended or have been resumed.
            for number in self.dead(Sign::all(change).map_err(|error| self.failed(error))?)? {
                change
                    .execute("UPDATE run SET state = ? WHERE number = ?", (State::Killed, number))
                    .map_err(|error| self.failed(error))?;
            }
            Ok(())
        });
        match marked {
            Ok(()) => Ok(Vec::new()),
            Err(StoreError::Full { .. } | StoreError::NotWritable { .. } | StoreError::Locked { .. }) => Ok(dead),
            Err(error) => Err(error),
        }
    }

    /// Those of the runs that nobody measures any more.
    fn dead(&self, running: Vec<Sign>) -> Result<Vec<i64>, StoreError> {
        let mut dead = Vec::new();
        for sign in running {
            if !self.locks().is_alive(&sign)? {
                dead.push(sign.number);
            }
        }
        Ok(dead)
    }
}

/// Host names of the runs in a JSON array of ids, in SQL. A program of another version may have written the plan in another way.
const HOSTS: &str = "
    SELECT run.id, host.value ->> '$.name'
    FROM json_each(?1) AS listed JOIN run ON run.id = listed.value JOIN plan ON plan.run = run.number
         JOIN json_each(CASE WHEN octet_length(body) <= ?2 AND json_valid(body) THEN body ELSE '{}' END, '$.hosts') AS host
    WHERE host.type = 'object' AND json_type(host.value, '$.name') = 'text'
    ORDER BY run.id, host.key";

/// The rows of a page in SQL, and the values of their question marks.
fn page(query: &Query, skipped: usize, limit: usize) -> (String, Vec<Value>) {
    let (conditions, mut values) = query.conditions();
    values.extend([limit, skipped].map(|number| Value::from(i64::try_from(number).unwrap_or(i64::MAX))));
    let columns = RunRow::COLUMNS;
    let sql = format!("SELECT {columns} FROM run {conditions} ORDER BY started_unix_ns DESC, id DESC LIMIT ? OFFSET ?");
    (sql, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How SQLite finds the rows of a page of `query`, as EXPLAIN QUERY PLAN says it.
    fn query_plan(store: &Store, query: &Query) -> String {
        let (sql, values) = page(query, 0, 20);
        let read = store.read(|connection| {
            let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
            let steps = statement.query_map(params_from_iter(values), |row| row.get::<_, String>("detail"))?;
            steps.collect::<Result<Vec<_>, _>>()
        });
        read.expect("explained").join("; ")
    }

    /// The newest are found in the order of an index: the time for a page does not grow with the number of runs.
    #[test]
    fn a_page_is_read_from_an_index_without_sorting() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = Store::open(Some(&folder.path().join("results.db"))).expect("opens");
        for (query, index) in [
            (Query::default(), "run_by_start"),
            (Query::text("host udp").expect("few words"), "run_by_start"),
            (Query { from_unix_ns: Some(1), until_unix_ns: Some(2), ..Query::default() }, "run_by_start"),
            (Query { kind: Some("stream".into()), ..Query::default() }, "run_by_kind"),
            (Query { limit: Some(linerate_model::Limit::Wire), ..Query::default() }, "run_by_limit"),
            (Query { study: Some("lab".into()), ..Query::default() }, "run_by_study"),
            (Query { changed: true, ..Query::default() }, "run_changed"),
            (Query { changed: true, kind: Some("stream".into()), ..Query::default() }, "run_changed_by_kind"),
            (Query { changed: true, from_unix_ns: Some(1), ..Query::text("udp").expect("a word") }, "run_changed"),
        ] {
            let plan = query_plan(&store, &query);
            assert!(
                plan.contains(&format!("USING INDEX {index}")) && !plan.contains("TEMP B-TREE"),
                "{query:?}: {plan}"
            );
        }
    }
}
