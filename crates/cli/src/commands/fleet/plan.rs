//! `linerate fleet plan`: the schedule before anything runs.

use super::mesh_file;
use crate::exit::Failure;
use crate::fleet_folder::FleetFolder;
use crate::output::{print, say};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use linerate_bus::Role;
use linerate_model::HostName;
use linerate_schedule::{FleetHost, Moment, Preview, preview};
use linerate_units::{Nanos, grouped};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Rounds that are shown unless all are asked for.
const SHOWN_ROUNDS: usize = 20;

/// Pairs of a round that are shown unless all are asked for.
const SHOWN_PAIRS: usize = 4;

/// Show the rounds, bytes and time of a file of meshes; nothing is run
///
/// The hosts are the fleet's agents, or those of --hosts, so that a file can be tried before there is a fleet.
#[derive(Debug, clap::Args)]
pub(crate) struct Plan {
    /// The meshes, a TOML file
    file: PathBuf,

    /// Accepted for scripts: a plan never runs anything
    #[arg(long)]
    dry_run: bool,

    /// Time from now to plan for
    #[arg(long, value_name = "TIME", default_value = "24h")]
    span: Nanos,

    /// Hosts in place of the fleet's, as in a:site=x,b
    ///
    /// Names with labels after a colon, joined by `+`: a:site=berlin,b:site=paris+role=dc.
    #[arg(long, value_name = "HOST,...", value_delimiter = ',', value_parser = host)]
    hosts: Vec<FleetHost>,

    /// Show every round and pair
    #[arg(long, short = 'v')]
    verbose: bool,

    /// Seed of random choices, as of `fleet serve`
    #[arg(long, default_value_t = 1, hide_short_help = true)]
    seed: u64,

    #[command(flatten)]
    folder: FleetFolder,
}

fn host(text: &str) -> Result<FleetHost, String> {
    let (name, labels) = text.split_once(':').unwrap_or((text, ""));
    if name.is_empty() {
        return Err("a host has a name, as in a:site=berlin".to_owned());
    }
    let mut all = BTreeMap::new();
    for label in labels.split('+').filter(|label| !label.is_empty()) {
        let (key, value) = label.split_once('=').ok_or_else(|| format!("`{label}` is no label KEY=VALUE"))?;
        all.insert(key.to_owned(), value.to_owned());
    }
    Ok(FleetHost { name: HostName(name.to_owned()), labels: all, present: true })
}

pub(super) async fn plan(plan: Plan) -> Result<(), Failure> {
    let file = mesh_file::read(&plan.file)?;
    let hosts = if plan.hosts.is_empty() { fleet_hosts(&plan.folder).await? } else { plan.hosts };
    let now = Zoned::now();
    let from = Moment {
        unix_s: u64::try_from(now.timestamp().as_second()).unwrap_or_default(),
        utc_offset_s: now.offset().seconds(),
    };
    let preview = preview(file, plan.seed, hosts, from, plan.span);
    for warning in &preview.warnings {
        say(&format!("linerate: {warning}"));
    }
    for line in lines(&preview, plan.span, plan.verbose) {
        print(&line);
    }
    Ok(())
}

/// Returns the agents of the fleet. A plan counts with all of them, also with those that are away now.
async fn fleet_hosts(folder: &FleetFolder) -> Result<Vec<FleetHost>, Failure> {
    let bus = folder.connect().await.map_err(|failure| failure.and("; or name hosts with --hosts"))?;
    let members = bus.members().await.map_err(Failure::measure)?;
    let agents = members.into_iter().filter(|member| member.role == Role::Agent);
    let host = |name: String, labels| FleetHost { name: HostName(name), labels, present: true };
    Ok(agents.map(|member| host(member.name.to_string(), member.labels)).collect())
}

fn lines(preview: &Preview, span: Nanos, verbose: bool) -> Vec<String> {
    let mut lines = Vec::new();
    let shown = if verbose { usize::MAX } else { SHOWN_ROUNDS };
    for round in preview.rounds.iter().take(shown) {
        let begins = Timestamp::from_second(i64::try_from(round.begins_unix_s).unwrap_or_default());
        let begins = begins.map_or_else(
            |_| String::new(),
            |begins| begins.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        );
        let pairs = if verbose { usize::MAX } else { SHOWN_PAIRS };
        let mut trials: Vec<String> = Vec::new();
        for (mesh, from, to) in round.pairs.iter().take(pairs) {
            trials.push(format!("{}: {from} to {to}", preview.meshes[*mesh].mesh));
        }
        if round.pairs.len() > trials.len() {
            trials.push(format!("and {} more", grouped((round.pairs.len() - trials.len()) as u64)));
        }
        lines.push(format!("{begins}  {}", trials.join("; ")));
    }
    if preview.rounds.len() > shown {
        lines.push(format!("and {} more rounds (--verbose shows all)", grouped((preview.rounds.len() - shown) as u64)));
    }
    for mesh in &preview.meshes {
        lines.push(format!(
            "{}: {} trials of {} {}, {}, {}",
            mesh.mesh,
            grouped(mesh.trials),
            grouped(mesh.pairs),
            if mesh.pairs == 1 { "pair" } else { "pairs" },
            mesh.bytes,
            mesh.time
        ));
        if mesh.periods_for_all > 1 {
            lines.push(format!("  all its pairs have their turn in {} periods", grouped(mesh.periods_for_all)));
        }
        for (reason, count) in &mesh.missed {
            lines.push(format!("  {} slots are missed: {reason}", grouped(*count)));
        }
    }
    lines.push(format!("{span}: {}, the last trial ends after {}", preview.bytes, preview.time));
    lines
}
