//! Marks of runs with another figure than the run before ([`Headline::has_changed_from`]). They are kept in the rows of
//! runs, so that a list of such runs is read from an index.
//!
//! The run before is the latest earlier finished run of the same command and kind. So a mark depends on two runs, and is renewed as
//! either ends or is deleted.

use crate::StoreError;
use crate::backend::Session;
use crate::run_row::{RunRow, State, command_key, known};
use crate::sql::{SqlRow, UnexpectedColumn, Values, instant};
use linerate_model::{Headline, HeadlineVerdict, RecordId};
use std::collections::BTreeSet;

/// Most runs of one statement.
const MOST_RUNS: usize = 256;

/// A finished run after its mark was renewed.
#[derive(Debug, Clone)]
pub(crate) struct Renewed {
    pub(crate) number: i64,
    pub(crate) id: RecordId,
    pub(crate) started_unix_ns: u64,
    pub(crate) headline: Option<Headline>,
    pub(crate) verdict: Option<HeadlineVerdict>,
    /// Headline of the run before.
    before: Option<Headline>,
    pub(crate) was_changed: bool,
    pub(crate) changed: bool,
}

impl Renewed {
    /// Returns the value of the run before, if it is a figure of the same kind.
    pub(crate) fn value_before(&self) -> Option<f64> {
        let before = self.before.as_ref()?;
        self.headline.as_ref()?.is_like(before).then_some(before.value)
    }

    fn read(row: &SqlRow) -> Result<Self, UnexpectedColumn> {
        let headline: Option<Headline> = known(row, 4)?;
        let before: Option<Headline> = known(row, 6)?;
        let changed = match (&headline, &before) {
            (Some(new), Some(before)) => new.has_changed_from(before),
            _ => false,
        };
        Ok(Self {
            number: row.integer(0)?,
            id: RecordId(row.text(1)?.to_owned()),
            started_unix_ns: row.instant(2)?,
            was_changed: row.flag(3)?,
            headline,
            verdict: known(row, 5)?,
            before,
            changed,
        })
    }
}

/// Renews the marks of finished runs.
pub(crate) fn renew(session: &mut dyn Session, numbers: &[i64]) -> Result<Vec<Renewed>, StoreError> {
    let mut renewed = Vec::new();
    for numbers in numbers.chunks(MOST_RUNS) {
        let mut values = Values::default();
        let list = values.list(numbers.iter().copied());
        let before = nearest_of("headline", Side::Before);
        let sql = format!(
            "SELECT number, id, started_unix_ns, changed, headline, verdict, {before} FROM run WHERE number IN {list} ORDER BY number"
        );
        renewed.extend(session.rows(&sql, values.all(), Renewed::read)?);
    }
    for changed in [false, true] {
        let differ = renewed.iter().filter(|run| run.changed == changed && run.was_changed != changed);
        let differ: Vec<i64> = differ.map(|run| run.number).collect();
        for numbers in differ.chunks(MOST_RUNS) {
            let mut values = Values::default();
            let mark = values.add(changed);
            let list = values.list(numbers.iter().copied());
            session.execute(&format!("UPDATE run SET changed = {mark} WHERE number IN {list}"), values.all())?;
        }
    }
    Ok(renewed)
}

/// Returns the finished runs that directly follow these runs and are not among them.
pub(crate) fn followers(session: &mut dyn Session, numbers: &[i64]) -> Result<Vec<i64>, StoreError> {
    let mut followers = BTreeSet::new();
    for numbers in numbers.chunks(MOST_RUNS) {
        let mut values = Values::default();
        let list = values.list(numbers.iter().copied());
        let after = nearest_of("number", Side::After);
        let sql = format!("SELECT {after} FROM run WHERE number IN {list}");
        followers.extend(session.rows(&sql, values.all(), |row| row.optional_integer(0))?.into_iter().flatten());
    }
    for number in numbers {
        followers.remove(number);
    }
    Ok(followers.into_iter().collect())
}

/// Side of a run, by the times at which runs began.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Side {
    Before,
    After,
}

impl Side {
    fn comparison(self) -> &'static str {
        match self {
            Self::Before => "<",
            Self::After => ">",
        }
    }

    fn order(self) -> &'static str {
        match self {
            Self::Before => "DESC",
            Self::After => "ASC",
        }
    }
}

/// Returns SQL for a column of the nearest finished run on one side of the row of `run`.
fn nearest_of(column: &str, side: Side) -> String {
    let comparison = side.comparison();
    let order = side.order();
    format!(
        "(SELECT near.{column} FROM run AS near
          WHERE near.command_key = run.command_key AND near.kind = run.kind
                AND (near.started_unix_ns, near.id) {comparison} (run.started_unix_ns, run.id) AND near.state = 'finished'
          ORDER BY near.started_unix_ns {order}, near.id {order} LIMIT 1)"
    )
}

/// Returns the nearest finished runs on one side of `run` with its arguments and of its kind, the nearest first, at most `most`.
pub(crate) fn nearest(
    session: &mut dyn Session,
    run: &RunRow,
    side: Side,
    most: usize,
) -> Result<Vec<RunRow>, StoreError> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let values = [
        command_key(&run.command).into(),
        run.kind.as_str().into(),
        instant(run.started_unix_ns).into(),
        run.id.0.as_str().into(),
        State::Finished.name().into(),
        most.into(),
    ];
    session.rows(&nearest_sql(side), &values, |row| Ok(RunRow::read(row)?.1))
}

/// Returns SQL for the nearest finished runs on one side.
pub(crate) fn nearest_sql(side: Side) -> String {
    let columns = RunRow::COLUMNS;
    let comparison = side.comparison();
    let order = side.order();
    format!(
        "SELECT {columns} FROM run WHERE command_key = ?1 AND kind = ?2 AND (started_unix_ns, id) {comparison} (?3, ?4)
         AND state = ?5 ORDER BY started_unix_ns {order}, id {order} LIMIT ?6"
    )
}
