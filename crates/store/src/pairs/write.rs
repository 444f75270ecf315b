//! Writing results of pairs, and their sums.

use super::result::{PairKey, PairResult, hour_of, name_of};
use crate::StoreError;
use crate::backend::Session;
use crate::changed::Renewed;
use crate::insert::insert_rows;
use crate::sql::{SqlValue, Values, instant};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Columns of `pair_latest` that the newest result decides.
pub(super) const LATEST: [&str; 10] = [
    "started_unix_ns",
    "value",
    "badness",
    "unit",
    "quantity",
    "link_share",
    "limit_name",
    "confidence",
    "changed",
    "record",
];

/// Adds results. Those that are stored already change nothing.
pub(crate) fn add(session: &mut dyn Session, results: &[PairResult]) -> Result<(), StoreError> {
    // Neither SQLite nor an average has a place for infinite values.
    let finite: Vec<&PairResult> = results.iter().filter(|result| result.headline.value.is_finite()).collect();
    let results = insert_results(session, &finite)?;
    if results.is_empty() {
        return Ok(());
    }
    let sites = sites_of(session, &results)?;
    let new_pairs = update_latest(session, &results, &sites)?;
    update_hours(session, &results, &sites)?;
    update_sites(session, &results, &new_pairs, &sites)
}

/// Inserts results. Returns those that are new.
fn insert_results<'a>(
    session: &mut dyn Session,
    results: &[&'a PairResult],
) -> Result<Vec<&'a PairResult>, StoreError> {
    let rows = results.iter().map(|result| {
        vec![
            result.record.0.as_str().into(),
            result.pair.test.as_str().into(),
            result.pair.from.as_str().into(),
            result.pair.to.as_str().into(),
            instant(result.started_unix_ns).into(),
            result.headline.value.into(),
            name_of(result.headline.unit).into(),
            name_of(result.headline.quantity).into(),
            result.headline.link_share.into(),
            result.verdict.map(|verdict| verdict.limit.name()).into(),
            result.verdict.map(|verdict| name_of(verdict.confidence)).into(),
            result.changed.into(),
            result.value_before.into(),
        ]
    });
    let head = "INSERT INTO pair_result (record, test, from_host, to_host, started_unix_ns, value, unit, quantity, link_share, \
                limit_name, confidence, changed, value_before)";
    let inserted = insert_rows(session, head, rows.collect(), "ON CONFLICT (record) DO NOTHING RETURNING record")?;
    let mut records = HashSet::new();
    for row in &inserted {
        records.insert(row.text(0).map_err(|column| session.unexpected(column))?.to_owned());
    }
    Ok(results.iter().copied().filter(|result| records.remove(&result.record.0)).collect())
}

/// Sites of hosts, by the names of the hosts.
type Sites = BTreeMap<String, String>;

fn sites_of(session: &mut dyn Session, results: &[&PairResult]) -> Result<Sites, StoreError> {
    let names: BTreeSet<&str> = results.iter().flat_map(|result| [&*result.pair.from, &*result.pair.to]).collect();
    let mut sites = Sites::new();
    for names in names.into_iter().collect::<Vec<_>>().chunks(512) {
        let mut values = Values::default();
        let list = values.list(names.iter().copied());
        let sql = format!("SELECT name, site FROM fleet_host WHERE name IN {list}");
        let read = session.rows(&sql, values.all(), |row| Ok((row.text(0)?.to_owned(), row.text(1)?.to_owned())))?;
        sites.extend(read);
    }
    Ok(sites)
}

/// Returns the test and the sites of a pair. The site of an unknown host is empty.
fn site_key(pair: &PairKey, sites: &Sites) -> PairKey {
    let site = |host: &str| sites.get(host).cloned().unwrap_or_default();
    PairKey { test: pair.test.clone(), from: site(&pair.from), to: site(&pair.to) }
}

/// Updates the newest results of pairs. Returns the pairs that had none before.
fn update_latest(
    session: &mut dyn Session,
    results: &[&PairResult],
    sites: &Sites,
) -> Result<BTreeSet<PairKey>, StoreError> {
    let mut newest: BTreeMap<&PairKey, (&PairResult, i64)> = BTreeMap::new();
    for result in results {
        let (latest, count) = newest.entry(&result.pair).or_insert((result, 0));
        *count += 1;
        if (result.started_unix_ns, &result.record) > (latest.started_unix_ns, &latest.record) {
            *latest = result;
        }
    }
    // In the order of their keys, so that two programs never wait for each other.
    let rows = newest.iter().map(|(pair, (result, count))| {
        let site = site_key(pair, sites);
        let mut row: Vec<SqlValue> = pair_values(pair).into();
        row.extend([site.from.into(), site.to.into()]);
        row.extend(latest_values(result));
        row.push((*count).into());
        row
    });
    let mut updates: Vec<String> = LATEST
        .iter()
        .map(|column| format!("{column} = CASE WHEN {IS_NEWER} THEN excluded.{column} ELSE pair_latest.{column} END"))
        .collect();
    updates.push("results = pair_latest.results + excluded.results".to_owned());
    let columns = LATEST.join(", ");
    let head = format!("INSERT INTO pair_latest (test, from_host, to_host, from_site, to_site, {columns}, results)");
    let tail = format!(
        "ON CONFLICT (test, from_host, to_host) DO UPDATE SET {} RETURNING test, from_host, to_host, results",
        updates.join(", ")
    );
    let mut new_pairs = BTreeSet::new();
    for row in insert_rows(session, &head, rows.collect(), &tail)? {
        let read = || {
            let key = PairKey { test: row.text(0)?.into(), from: row.text(1)?.into(), to: row.text(2)?.into() };
            Ok((key, row.integer(3)?))
        };
        let (pair, stored) = read().map_err(|column| session.unexpected(column))?;
        if newest.get(&pair).is_some_and(|(_, count)| *count == stored) {
            new_pairs.insert(pair);
        }
    }
    let axes = new_pairs.iter().flat_map(|pair| [(&pair.test, "from", &pair.from), (&pair.test, "to", &pair.to)]);
    let axes: BTreeSet<_> = axes.collect();
    let rows = axes.into_iter().map(|(test, axis, host)| vec![test.as_str().into(), axis.into(), host.as_str().into()]);
    insert_rows(session, "INSERT INTO pair_axis (test, axis, host)", rows.collect(), "ON CONFLICT DO NOTHING")?;
    Ok(new_pairs)
}

/// Condition that an upsert's row is newer than the stored one.
const IS_NEWER: &str = "(excluded.started_unix_ns > pair_latest.started_unix_ns
    OR (excluded.started_unix_ns = pair_latest.started_unix_ns AND excluded.record >= coalesce(pair_latest.record, '')))";

fn pair_values(pair: &PairKey) -> [SqlValue; 3] {
    [pair.test.as_str().into(), pair.from.as_str().into(), pair.to.as_str().into()]
}

/// Returns the values of the columns [`LATEST`].
fn latest_values(result: &PairResult) -> [SqlValue; 10] {
    [
        instant(result.started_unix_ns).into(),
        result.headline.value.into(),
        result.badness().into(),
        name_of(result.headline.unit).into(),
        name_of(result.headline.quantity).into(),
        result.headline.link_share.into(),
        result.verdict.map(|verdict| verdict.limit.name()).into(),
        result.verdict.map(|verdict| name_of(verdict.confidence)).into(),
        result.changed.into(),
        result.record.0.as_str().into(),
    ]
}

/// Sums of the results of an hour.
struct HourSum {
    results: i64,
    total: f64,
    lowest: f64,
    highest: f64,
    last_value: f64,
    last_unix_ns: u64,
    changes: i64,
    unit: String,
}

impl HourSum {
    fn of(result: &PairResult) -> Self {
        let value = result.headline.value;
        Self {
            results: 1,
            total: value,
            lowest: value,
            highest: value,
            last_value: value,
            last_unix_ns: result.started_unix_ns,
            changes: result.changed.into(),
            unit: name_of(result.headline.unit),
        }
    }

    fn add(&mut self, result: &PairResult) {
        let value = result.headline.value;
        self.results += 1;
        self.total += value;
        self.lowest = self.lowest.min(value);
        self.highest = self.highest.max(value);
        self.changes += i64::from(result.changed);
        if result.started_unix_ns >= self.last_unix_ns {
            self.last_value = value;
            self.last_unix_ns = result.started_unix_ns;
        }
    }

    fn row(&self, pair: &PairKey, hour: i64) -> Vec<SqlValue> {
        let mut row: Vec<SqlValue> = pair_values(pair).into();
        row.extend([
            hour.into(),
            self.results.into(),
            self.total.into(),
            self.lowest.into(),
            self.highest.into(),
            self.last_value.into(),
            instant(self.last_unix_ns).into(),
            self.changes.into(),
            self.unit.as_str().into(),
        ]);
        row
    }
}

/// Adds results to the sums of their hours, by pair and by site.
fn update_hours(session: &mut dyn Session, results: &[&PairResult], sites: &Sites) -> Result<(), StoreError> {
    let by_pair = hour_sums(results.iter().map(|result| (result.pair.clone(), *result)));
    insert_hours(session, "pair_hour", "from_host, to_host", &by_pair)?;
    let by_site = hour_sums(results.iter().map(|result| (site_key(&result.pair, sites), *result)));
    insert_hours(session, "site_hour", "from_site, to_site", &by_site)
}

type HourSums = BTreeMap<(PairKey, i64), HourSum>;

fn hour_sums<'a>(results: impl Iterator<Item = (PairKey, &'a PairResult)>) -> HourSums {
    let mut sums = HourSums::new();
    for (key, result) in results {
        sums.entry((key, result.hour())).and_modify(|sum| sum.add(result)).or_insert_with(|| HourSum::of(result));
    }
    sums
}

fn insert_hours(session: &mut dyn Session, table: &str, ends: &str, sums: &HourSums) -> Result<(), StoreError> {
    let rows = sums.iter().map(|((pair, hour), sum)| sum.row(pair, *hour)).collect();
    let head = format!(
        "INSERT INTO {table} (test, {ends}, hour, results, total, lowest, highest, last_value, last_unix_ns, changes, unit)"
    );
    let tail = format!(
        "ON CONFLICT (test, {ends}, hour) DO UPDATE SET
             results = {table}.results + excluded.results, total = {table}.total + excluded.total,
             lowest = CASE WHEN excluded.lowest < {table}.lowest THEN excluded.lowest ELSE {table}.lowest END,
             highest = CASE WHEN excluded.highest > {table}.highest THEN excluded.highest ELSE {table}.highest END,
             last_value = CASE WHEN excluded.last_unix_ns >= {table}.last_unix_ns THEN excluded.last_value ELSE {table}.last_value END,
             last_unix_ns = CASE WHEN excluded.last_unix_ns >= {table}.last_unix_ns THEN excluded.last_unix_ns ELSE {table}.last_unix_ns END,
             changes = {table}.changes + excluded.changes"
    );
    insert_rows(session, &head, rows, &tail).map(drop)
}

/// Adds results to the sums of the pairs between two sites.
fn update_sites(
    session: &mut dyn Session,
    results: &[&PairResult],
    new_pairs: &BTreeSet<PairKey>,
    sites: &Sites,
) -> Result<(), StoreError> {
    struct SiteSum<'a> {
        pairs: i64,
        results: i64,
        last_unix_ns: u64,
        changed_unix_ns: u64,
        pair: &'a PairKey,
    }
    let mut sums: BTreeMap<PairKey, SiteSum<'_>> = BTreeMap::new();
    for result in results {
        let empty = SiteSum { pairs: 0, results: 0, last_unix_ns: 0, changed_unix_ns: 0, pair: &result.pair };
        let sum = sums.entry(site_key(&result.pair, sites)).or_insert(empty);
        sum.results += 1;
        sum.last_unix_ns = sum.last_unix_ns.max(result.started_unix_ns);
        if result.changed {
            sum.changed_unix_ns = sum.changed_unix_ns.max(result.started_unix_ns);
        }
    }
    for pair in new_pairs {
        if let Some(sum) = sums.get_mut(&site_key(pair, sites)) {
            sum.pairs += 1;
        }
    }
    let rows = sums.iter().map(|(site, sum)| {
        let mut row: Vec<SqlValue> = pair_values(site).into();
        row.extend([
            sum.pairs.into(),
            sum.results.into(),
            instant(sum.last_unix_ns).into(),
            instant(sum.changed_unix_ns).into(),
            sum.pair.from.as_str().into(),
            sum.pair.to.as_str().into(),
        ]);
        row
    });
    let head = "INSERT INTO site_latest (test, from_site, to_site, pairs, results, last_unix_ns, changed_unix_ns, worst_from, worst_to)";
    let tail = "ON CONFLICT (test, from_site, to_site) DO UPDATE SET
        pairs = site_latest.pairs + excluded.pairs, results = site_latest.results + excluded.results,
        last_unix_ns = CASE WHEN excluded.last_unix_ns > site_latest.last_unix_ns
                            THEN excluded.last_unix_ns ELSE site_latest.last_unix_ns END,
        changed_unix_ns = CASE WHEN excluded.changed_unix_ns > site_latest.changed_unix_ns
                               THEN excluded.changed_unix_ns ELSE site_latest.changed_unix_ns END";
    insert_rows(session, head, rows.collect(), tail)?;
    let keys: Vec<&PairKey> = sums.keys().collect();
    for keys in keys.chunks(256) {
        let mut values = Values::default();
        let lists: Vec<String> = keys.iter().map(|site| values.list(pair_values(site))).collect();
        let sql = format!("{WORST} WHERE (test, from_site, to_site) IN (VALUES {})", lists.join(", "));
        session.execute(&sql, values.all())?;
    }
    Ok(())
}

/// Finds the worst pair between two sites, from an index.
pub(super) const WORST: &str = "UPDATE site_latest SET (worst_from, worst_to) = (
    SELECT from_host, to_host FROM pair_latest AS pair
    WHERE pair.test = site_latest.test AND pair.from_site = site_latest.from_site AND pair.to_site = site_latest.to_site
    ORDER BY badness DESC LIMIT 1)";

/// Marks results of runs again, after the runs before them changed.
pub(crate) fn set_changed(session: &mut dyn Session, runs: &[Renewed]) -> Result<(), StoreError> {
    for run in runs {
        let values = [run.changed.into(), run.value_before().into(), run.id.0.as_str().into()];
        let sql = "UPDATE pair_result SET changed = ?1, value_before = ?2 WHERE record = ?3
                   RETURNING test, from_host, to_host";
        let pair = session.row(sql, &values, |row| {
            Ok(PairKey { test: row.text(0)?.into(), from: row.text(1)?.into(), to: row.text(2)?.into() })
        })?;
        let Some(pair) = pair else { continue };
        if run.changed == run.was_changed {
            continue;
        }
        let mut values: Vec<SqlValue> = pair_values(&pair).into();
        values.extend([run.changed.into(), run.id.0.as_str().into()]);
        let sql =
            "UPDATE pair_latest SET changed = ?4 WHERE test = ?1 AND from_host = ?2 AND to_host = ?3 AND record = ?5";
        session.execute(sql, &values)?;
        let difference = i64::from(run.changed) - i64::from(run.was_changed);
        let mut values: Vec<SqlValue> = pair_values(&pair).into();
        values.extend([hour_of(run.started_unix_ns).into(), difference.into()]);
        let sql = "UPDATE pair_hour SET changes = changes + ?5
                   WHERE test = ?1 AND from_host = ?2 AND to_host = ?3 AND hour = ?4";
        session.execute(sql, &values)?;
    }
    Ok(())
}
