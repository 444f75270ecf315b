//! The members of a fleet: listed and revoked.

use super::setup::now_unix_s;
use crate::exit::Failure;
use crate::fleet_folder::FleetFolder;
use crate::output::{print, say};
use linerate_bus::{AgentName, Bus, Kept, Member, Presence, Role};
use linerate_fleet::enrolment;
use linerate_units::Nanos;
use serde_json::json;
use std::collections::BTreeMap;

/// Time after its last sign of life in which an agent counts as present.
pub(crate) const PRESENT: Nanos = Nanos::from_secs(30);

/// List the members, and when each agent was heard
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// Print JSON
    #[arg(long, short = 'J')]
    json: bool,

    #[command(flatten)]
    folder: FleetFolder,
}

/// Cut a member off, and refuse its key from now on
#[derive(Debug, clap::Args)]
pub(crate) struct Revoke {
    /// Name of the member
    name: AgentName,

    #[command(flatten)]
    folder: FleetFolder,
}

/// A member with its last sign of life.
struct Row {
    member: Member,
    presence: Option<Kept<Presence>>,
    /// Time since that sign, by the server's clock.
    age: Option<Nanos>,
}

impl Row {
    fn state(&self) -> String {
        match (&self.presence, self.age) {
            _ if self.member.role != Role::Agent => "-".to_owned(),
            (Some(presence), Some(_)) if presence.value.leaving => "ended".to_owned(),
            (Some(_), Some(age)) if age <= PRESENT => "present".to_owned(),
            (Some(_), Some(age)) => format!("silent for {}", Nanos::from_secs(age.get() / 1_000_000_000)),
            _ => "never heard".to_owned(),
        }
    }

    fn labels(&self) -> String {
        let labels = self.presence.as_ref().map_or(&self.member.labels, |presence| &presence.value.labels);
        labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
    }

    fn version(&self) -> &str {
        self.presence.as_ref().map_or("-", |presence| &presence.value.version)
    }
}

async fn rows(bus: &Bus) -> Result<Vec<Row>, Failure> {
    let members = bus.members().await.map_err(Failure::measure)?;
    let presences = bus.presences().await.map_err(Failure::measure)?;
    let now = bus.server_unix_ns().await.map_err(Failure::measure)?;
    let mut presences: BTreeMap<AgentName, Kept<Presence>> =
        presences.into_iter().map(|presence| (presence.value.name.clone(), presence)).collect();
    let mut rows = Vec::new();
    for member in members {
        let presence = presences.remove(&member.name);
        let age = presence.as_ref().map(|presence| Nanos::new(now.saturating_sub(presence.published_unix_ns)));
        rows.push(Row { member, presence, age });
    }
    rows.sort_by(|a, b| a.member.name.cmp(&b.member.name));
    Ok(rows)
}

pub(super) async fn list(list: List) -> Result<(), Failure> {
    let bus = list.folder.connect().await?;
    let rows = rows(&bus).await?;
    if list.json {
        let members: Vec<_> = rows
            .iter()
            .map(|row| {
                json!({
                    "name": row.member.name, "role": row.member.role.name(), "labels": row.member.labels,
                    "enrolled_unix_s": row.member.enrolled_unix_s, "state": row.state(), "version": row.version(),
                    "silent_ns": row.age,
                })
            })
            .collect();
        print(&serde_json::to_string_pretty(&members).map_err(Failure::measure)?);
        return Ok(());
    }
    if rows.is_empty() {
        say("linerate: the fleet has no members yet; `linerate fleet invite` invites some");
        return Ok(());
    }
    let name_width = rows.iter().map(|row| row.member.name.as_str().len()).max().unwrap_or_default();
    let state_width = rows.iter().map(|row| row.state().len()).max().unwrap_or_default();
    for row in &rows {
        let (name, state) = (row.member.name.as_str(), row.state());
        let line = format!(
            "{name:<name_width$}  {:<10}  {state:<state_width$}  {:<8}  {}",
            row.member.role.name(),
            row.version(),
            row.labels()
        );
        print(line.trim_end());
    }
    Ok(())
}

pub(super) async fn revoke(revoke: Revoke) -> Result<(), Failure> {
    let mut keys = revoke.folder.owned()?;
    let bus = revoke.folder.connect().await?;
    let member = enrolment::revoke(&bus, &mut keys, &revoke.name, now_unix_s()).await.map_err(Failure::measure)?;
    revoke.folder.keep_keys(&keys)?;
    say(&format!("linerate: {} is revoked", member.name));
    Ok(())
}
