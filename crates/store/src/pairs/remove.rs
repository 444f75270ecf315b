//! Results of pairs whose records are deleted.

use super::result::{PairKey, badness, hour_of, of_name};
use super::write::{LATEST, WORST};
use crate::StoreError;
use crate::backend::Session;
use crate::sql::{SqlValue, Values, instant};
use linerate_model::{MeasureUnit, RecordId};

/// Removes the result of a deleted record, and takes it out of all sums.
pub(crate) fn remove(session: &mut dyn Session, record: &RecordId) -> Result<(), StoreError> {
    let sql = "DELETE FROM pair_result WHERE record = ?1 RETURNING test, from_host, to_host, started_unix_ns";
    let deleted = session.row(sql, &[record.0.as_str().into()], |row| {
        let pair = PairKey { test: row.text(0)?.into(), from: row.text(1)?.into(), to: row.text(2)?.into() };
        Ok((pair, row.instant(3)?))
    })?;
    let Some((pair, started_unix_ns)) = deleted else { return Ok(()) };
    let sites = sites_of(session, &pair)?;
    sum_up_hour(session, &pair, hour_of(started_unix_ns))?;
    sum_up_latest(session, &pair)?;
    if let Some(sites) = sites {
        sum_up_sites(session, &sites, hour_of(started_unix_ns))?;
    }
    for (axis, host) in [("from", &pair.from), ("to", &pair.to)] {
        let sql = format!(
            "DELETE FROM pair_axis WHERE test = ?1 AND axis = ?2 AND host = ?3
             AND NOT EXISTS (SELECT 1 FROM pair_latest WHERE test = ?1 AND {axis}_host = ?3)"
        );
        session.execute(&sql, &[pair.test.as_str().into(), axis.into(), host.as_str().into()])?;
    }
    Ok(())
}

/// Returns the test of a pair and the sites in which its results are summed up.
fn sites_of(session: &mut dyn Session, pair: &PairKey) -> Result<Option<PairKey>, StoreError> {
    let sql = "SELECT from_site, to_site FROM pair_latest WHERE test = ?1 AND from_host = ?2 AND to_host = ?3";
    session.row(sql, &values(pair), |row| {
        Ok(PairKey { test: pair.test.clone(), from: row.text(0)?.into(), to: row.text(1)?.into() })
    })
}

fn values(pair: &PairKey) -> Vec<SqlValue> {
    vec![pair.test.as_str().into(), pair.from.as_str().into(), pair.to.as_str().into()]
}

/// Sums up an hour of a pair again, from its stored results.
fn sum_up_hour(session: &mut dyn Session, pair: &PairKey, hour: i64) -> Result<(), StoreError> {
    let mut values = values(pair);
    values.push(hour.into());
    let of_hour = "test = ?1 AND from_host = ?2 AND to_host = ?3 AND hour = ?4";
    session.execute(&format!("DELETE FROM pair_hour WHERE {of_hour}"), &values)?;
    let hour_ns = 3_600_000_000_000_i64;
    values.push(hour.saturating_mul(hour_ns).into());
    values.push((hour + 1).saturating_mul(hour_ns).into());
    let sql = "INSERT INTO pair_hour
            (test, from_host, to_host, hour, results, total, lowest, highest, last_value, last_unix_ns, changes, unit)
        SELECT test, from_host, to_host, ?4, count(*), sum(value), min(value), max(value),
               (SELECT last.value FROM pair_result AS last
                WHERE last.test = ?1 AND last.from_host = ?2 AND last.to_host = ?3 AND last.started_unix_ns < ?6
                ORDER BY last.started_unix_ns DESC LIMIT 1),
               max(started_unix_ns), sum(changed), max(unit)
        FROM pair_result
        WHERE test = ?1 AND from_host = ?2 AND to_host = ?3 AND started_unix_ns >= ?5 AND started_unix_ns < ?6
        GROUP BY test, from_host, to_host";
    session.execute(sql, &values).map(drop)
}

/// Finds the newest result of a pair again. A pair without results has none.
fn sum_up_latest(session: &mut dyn Session, pair: &PairKey) -> Result<(), StoreError> {
    let of_pair = "test = ?1 AND from_host = ?2 AND to_host = ?3";
    let sql = format!(
        "SELECT value, unit FROM pair_result WHERE {of_pair} ORDER BY started_unix_ns DESC, record DESC LIMIT 1"
    );
    let newest = session.row(&sql, &values(pair), |row| Ok((row.real(0)?, row.text(1)?.to_owned())))?;
    let Some((value, unit)) = newest else {
        return session.execute(&format!("DELETE FROM pair_latest WHERE {of_pair}"), &values(pair)).map(drop);
    };
    let columns = LATEST.iter().filter(|column| **column != "badness").copied().collect::<Vec<_>>().join(", ");
    let sql = format!(
        "UPDATE pair_latest SET results = results - 1, badness = ?4,
             ({columns}) = (SELECT {columns} FROM pair_result WHERE {of_pair} ORDER BY started_unix_ns DESC, record DESC LIMIT 1)
         WHERE {of_pair}"
    );
    let mut values = values(pair);
    let more_is_better = of_name::<MeasureUnit>(&unit).is_some_and(MeasureUnit::more_is_better);
    values.push(badness(value, more_is_better).into());
    session.execute(&sql, &values).map(drop)
}

/// Sums up the pairs between two sites again, and an hour of them.
fn sum_up_sites(session: &mut dyn Session, sites: &PairKey, hour: i64) -> Result<(), StoreError> {
    let of_sites = "test = ?1 AND from_site = ?2 AND to_site = ?3";
    let mut of_hour = values(sites);
    of_hour.push(hour.into());
    session.execute(&format!("DELETE FROM site_hour WHERE {of_sites} AND hour = ?4"), &of_hour)?;
    let sql = "INSERT INTO site_hour
            (test, from_site, to_site, hour, results, total, lowest, highest, last_value, last_unix_ns, changes, unit)
        SELECT pair.test, pair.from_site, pair.to_site, hour, sum(sums.results), sum(total), min(lowest), max(highest),
               max(CASE WHEN sums.last_unix_ns = newest.last_unix_ns THEN sums.last_value END), max(newest.last_unix_ns),
               sum(changes), max(sums.unit)
        FROM pair_latest AS pair
             JOIN pair_hour AS sums ON sums.test = pair.test AND sums.from_host = pair.from_host
                  AND sums.to_host = pair.to_host AND sums.hour = ?4
             CROSS JOIN (SELECT max(h.last_unix_ns) AS last_unix_ns FROM pair_latest AS p
                   JOIN pair_hour AS h ON h.test = p.test AND h.from_host = p.from_host AND h.to_host = p.to_host AND h.hour = ?4
                   WHERE p.test = ?1 AND p.from_site = ?2 AND p.to_site = ?3) AS newest
        WHERE pair.test = ?1 AND pair.from_site = ?2 AND pair.to_site = ?3
        GROUP BY pair.test, pair.from_site, pair.to_site, hour";
    session.execute(sql, &of_hour)?;
    session.execute(&format!("DELETE FROM site_latest WHERE {of_sites}"), &values(sites))?;
    let sql = format!(
        "INSERT INTO site_latest (test, from_site, to_site, pairs, results, last_unix_ns, changed_unix_ns, worst_from, worst_to)
         SELECT test, from_site, to_site, count(*), sum(results), max(started_unix_ns),
                max(CASE WHEN changed = 1 THEN started_unix_ns ELSE 0 END), '', ''
         FROM pair_latest WHERE {of_sites} GROUP BY test, from_site, to_site"
    );
    session.execute(&sql, &values(sites))?;
    session.execute(&format!("{WORST} WHERE {of_sites}"), &values(sites)).map(drop)
}

/// Removes the results of runs that began before `unix_ns`. Their sums, and the newest results, stay without a record.
pub(crate) fn forget_old(session: &mut dyn Session, unix_ns: u64) -> Result<(), StoreError> {
    let mut values = Values::default();
    let before = values.add(instant(unix_ns));
    session.execute(&format!("DELETE FROM pair_result WHERE started_unix_ns < {before}"), values.all())?;
    session
        .execute(
            &format!("UPDATE pair_latest SET record = NULL WHERE record IS NOT NULL AND started_unix_ns < {before}"),
            values.all(),
        )
        .map(drop)
}
