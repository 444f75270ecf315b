//! Runs as lists show them: found by what they are about, a page at a time, from table `run` alone.

use crate::run_row::{RunRow, State};
use crate::sql::Values;
use crate::{Query, Store, StoreError, hosts_in_plan, signs};
use linerate_model::{Record, RecordId};
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
        self.rows(&sql, &values)
    }

    /// Reads the newest records that `query` asks for, one after the other, at most `limit`. A record that another program
    /// deletes meanwhile is left out.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn newest(
        &self,
        query: &Query,
        limit: usize,
    ) -> Result<impl Iterator<Item = Result<Record, StoreError>>, StoreError> {
        let rows = self.list(query, 0, limit)?;
        Ok(rows.into_iter().filter_map(|row| match self.load(&row.id.0) {
            Err(StoreError::Unknown { .. }) => None,
            loaded => Some(loaded),
        }))
    }

    /// How many runs `query` asks for.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn count(&self, query: &Query) -> Result<usize, StoreError> {
        self.settle()?;
        let mut values = Values::default();
        let conditions = query.conditions(&mut values);
        let sql = format!("SELECT count(*) FROM run {conditions}");
        let count = self.read(|session| session.row(&sql, values.all(), |row| row.count(0)))?;
        Ok(count.unwrap_or_default())
    }

    /// The kinds of run that there are, in order of name.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn kinds(&self) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT DISTINCT kind FROM run ORDER BY kind";
        self.read(|session| session.rows(sql, &[], |row| Ok(row.text(0)?.to_owned())))
    }

    /// Returns the names of each run's hosts, in the order of its record. A run is left out if it has no hosts, or if its plan is
    /// damaged or longer than 128 KiB.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn hosts(&self, runs: &[RunRow]) -> Result<BTreeMap<RecordId, Vec<String>>, StoreError> {
        let mut hosts = BTreeMap::new();
        for runs in runs.chunks(MOST_PLANS) {
            let mut values = Values::default();
            let longest = values.add(LONGEST_PLAN);
            let ids = values.list(runs.iter().map(|run| run.id.0.as_str()));
            let sql = format!(
                "SELECT id, body FROM run JOIN plan ON run = number WHERE id IN {ids} AND octet_length(body) <= {longest}"
            );
            let plans = self.read(|session| {
                session
                    .rows(&sql, values.all(), |row| Ok((row.text(0)?.to_owned(), hosts_in_plan::names(row.text(1)?))))
            })?;
            let named = plans.into_iter().filter(|(_, names)| !names.is_empty());
            hosts.extend(named.map(|(id, names)| (RecordId(id), names)));
        }
        Ok(hosts)
    }

    /// The run called `name` (see [`Store::resolve`]) as a list shows it.
    ///
    /// # Errors
    /// No run or several are called so, or the store cannot be read.
    pub fn row(&self, name: &str) -> Result<RunRow, StoreError> {
        let id = self.resolve(name)?;
        let sql = format!("SELECT {} FROM run WHERE id = ?1", RunRow::COLUMNS);
        let mut values = Values::default();
        values.add(id.0);
        self.rows(&sql, &values)?.pop().ok_or_else(|| self.unknown(name))
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
    pub(crate) fn rows(&self, sql: &str, values: &Values) -> Result<Vec<RunRow>, StoreError> {
        let dead = self.settle()?;
        let rows = self.read(|session| session.rows(sql, values.all(), RunRow::read))?;
        let shown = rows.into_iter().map(|(number, row)| match row.state {
            State::Running if dead.contains(&number) => RunRow { state: State::Killed, ..row },
            _ => row,
        });
        Ok(shown.collect())
    }

    /// Marks the runs as killed that nobody measures any more. Returns those that could not be marked, because the store
    /// cannot be written at present: a list shows them as killed all the same.
    pub(crate) fn settle(&self) -> Result<Vec<i64>, StoreError> {
        let dead = self.read(|session| {
            let signs = signs::of_all(session)?;
            if signs.is_empty() { Ok(Vec::new()) } else { session.dead_runs(&signs) }
        })?;
        if dead.is_empty() {
            return Ok(dead);
        }
        let marked = self.change(|session| {
            // Since then, one may have ended or have been resumed.
            let signs = signs::of_all(session)?;
            for number in session.dead_runs(&signs)? {
                // It may also have ended since its sign was read, which releases its lock.
                let values = [State::Killed.name().into(), number.into(), State::Running.name().into()];
                session.execute("UPDATE run SET state = ?1 WHERE number = ?2 AND state = ?3", &values)?;
            }
            Ok(())
        });
        match marked {
            Ok(()) => Ok(Vec::new()),
            Err(error) if error.is_of_writing() => Ok(dead),
            Err(error) => Err(error),
        }
    }
}

/// Most plans that are read at once.
const MOST_PLANS: usize = 64;

/// Returns the rows of a page in SQL, and their values.
fn page(query: &Query, skipped: usize, limit: usize) -> (String, Values) {
    let mut values = Values::default();
    let conditions = query.conditions(&mut values);
    let limit = values.add(i64::try_from(limit).unwrap_or(i64::MAX));
    let skipped = values.add(i64::try_from(skipped).unwrap_or(i64::MAX));
    let columns = RunRow::COLUMNS;
    let sql = format!(
        "SELECT {columns} FROM run {conditions} ORDER BY started_unix_ns DESC, id DESC LIMIT {limit} OFFSET {skipped}"
    );
    (sql, values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoreLocation;

    /// Returns how SQLite finds the rows of a page of `query`, as EXPLAIN QUERY PLAN shows it.
    fn query_plan(store: &Store, query: &Query) -> String {
        let (sql, values) = page(query, 0, 20);
        let sql = format!("EXPLAIN QUERY PLAN {sql}");
        let steps = store.read(|session| session.rows(&sql, values.all(), |row| Ok(row.text(3)?.to_owned())));
        steps.expect("explained").join("; ")
    }

    /// The newest are found in the order of an index: the time for a page does not grow with the number of runs.
    #[test]
    fn a_page_is_read_from_an_index_without_sorting() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = Store::open(&StoreLocation::file(folder.path().join("results.db"))).expect("opens");
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
