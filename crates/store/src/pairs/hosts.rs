//! Hosts of a fleet.

use super::write::WORST;
use crate::backend::Session;
use crate::insert::insert_rows;
use crate::sql::{Values, instant};
use crate::{Store, StoreError, body};
use std::collections::BTreeMap;

/// A host of a fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetHost {
    /// Name in plans and records.
    pub name: String,
    /// Labels, as in `site` = `paris`. The label `site` decides the site in matrices.
    pub labels: BTreeMap<String, String>,
    /// Last sign of life, in nanoseconds since 1970.
    pub seen_unix_ns: u64,
}

impl FleetHost {
    /// Returns the label `site`; empty if the host has none.
    pub fn site(&self) -> &str {
        self.labels.get("site").map_or("", String::as_str)
    }
}

impl Store {
    /// Stores hosts of a fleet, or their new labels and times. Results move to the new site of their hosts; sums of past hours stay.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn put_hosts(&self, hosts: &[FleetHost]) -> Result<(), StoreError> {
        // A statement must not write a row twice; the last of several counts.
        let hosts: BTreeMap<&str, &FleetHost> = hosts.iter().map(|host| (host.name.as_str(), host)).collect();
        if hosts.is_empty() {
            return Ok(());
        }
        self.change(|session| {
            let moved = moved_hosts(session, &hosts)?;
            let rows = hosts.values().map(|host| {
                vec![
                    host.name.as_str().into(),
                    host.site().into(),
                    body::json(&host.labels).into(),
                    instant(host.seen_unix_ns).into(),
                ]
            });
            let head = "INSERT INTO fleet_host (name, site, labels, seen_unix_ns)";
            let tail = "ON CONFLICT (name) DO UPDATE SET site = excluded.site, labels = excluded.labels,
                            seen_unix_ns = excluded.seen_unix_ns";
            insert_rows(session, head, rows.collect(), tail)?;
            move_results(session, &moved)
        })
    }

    /// Returns the hosts of the fleet, by name.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn fleet_hosts(&self) -> Result<Vec<FleetHost>, StoreError> {
        let sql = "SELECT name, labels, seen_unix_ns FROM fleet_host ORDER BY name";
        self.read(|session| {
            session.rows(sql, &[], |row| {
                Ok(FleetHost {
                    name: row.text(0)?.to_owned(),
                    labels: serde_json::from_str(row.text(1)?).unwrap_or_default(),
                    seen_unix_ns: row.instant(2)?,
                })
            })
        })
    }

    /// Removes hosts from the fleet. Their results stay.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn remove_hosts(&self, names: &[&str]) -> Result<(), StoreError> {
        self.change(|session| {
            for name in names {
                session.execute("DELETE FROM fleet_host WHERE name = ?1", &[(*name).into()])?;
            }
            Ok(())
        })
    }
}

/// Returns the hosts that are new or have another site than before.
fn moved_hosts<'a>(
    session: &mut dyn Session,
    hosts: &BTreeMap<&'a str, &'a FleetHost>,
) -> Result<Vec<&'a FleetHost>, StoreError> {
    let mut sites = BTreeMap::new();
    for names in hosts.keys().copied().collect::<Vec<_>>().chunks(512) {
        let mut values = Values::default();
        let list = values.list(names.iter().copied());
        let sql = format!("SELECT name, site FROM fleet_host WHERE name IN {list}");
        sites.extend(session.rows(&sql, values.all(), |row| Ok((row.text(0)?.to_owned(), row.text(1)?.to_owned())))?);
    }
    Ok(hosts.values().copied().filter(|host| sites.get(&host.name).is_none_or(|site| site != host.site())).collect())
}

/// Moves the newest results of pairs to the new sites of their hosts.
fn move_results(session: &mut dyn Session, moved: &[&FleetHost]) -> Result<(), StoreError> {
    let mut rows = 0;
    for host in moved {
        for end in ["from", "to"] {
            let sql = format!("UPDATE pair_latest SET {end}_site = ?1 WHERE {end}_host = ?2 AND {end}_site <> ?1");
            rows += session.execute(&sql, &[host.site().into(), host.name.as_str().into()])?;
        }
    }
    if rows > 0 {
        rebuild_sites(session)?;
    }
    Ok(())
}

/// Sums up the pairs between sites again.
fn rebuild_sites(session: &mut dyn Session) -> Result<(), StoreError> {
    session.execute("DELETE FROM site_latest", &[])?;
    let sql = "INSERT INTO site_latest (test, from_site, to_site, pairs, results, last_unix_ns, changed_unix_ns, worst_from, worst_to)
        SELECT test, from_site, to_site, count(*), sum(results), max(started_unix_ns),
               max(CASE WHEN changed = 1 THEN started_unix_ns ELSE 0 END), '', ''
        FROM pair_latest GROUP BY test, from_site, to_site";
    session.execute(sql, &[])?;
    session.execute(WORST, &[]).map(drop)
}
