//! `linerate results`: the records kept.

use super::report;
use crate::arguments::StorePath;
use crate::exit::Failure;
use crate::output::{print, say, style};
use clap::Subcommand;
use linerate_store::{Listed, Query, Stage, Store};
use std::time::{SystemTime, UNIX_EPOCH};

/// List, show and delete records
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  linerate results                           the latest records, newest first
  linerate results list --filter 'udp hosta'  records with both words in id, command, hosts or names
  linerate results show 20261121T0930
  linerate results show --json | jq '.results[].received.payload_bps.median'
  linerate results delete 20261121T093000-4f2a")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Option<Action>,

    /// Print only the list, as one JSON array
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    store: StorePath,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List records, newest first (the default)
    List {
        /// Maximum number of records
        #[arg(long, short = 'n', default_value_t = 20)]
        limit: usize,
        /// List only records with each of these words in id, command, hosts or names
        #[arg(long, value_name = "WORDS", default_value = "", hide_default_value = true)]
        filter: String,
        /// Print only one JSON array
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        store: StorePath,
    },
    /// Show a record
    Show {
        /// The record: its id or the start of it [default: the latest record]
        record: Option<String>,
        /// Print only the JSON record
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        store: StorePath,
    },
    /// Delete records
    Delete {
        /// The records: their ids or the start of each
        #[arg(required = true)]
        records: Vec<String>,
        #[command(flatten)]
        store: StorePath,
    },
}

pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    let outer = arguments.store;
    let or_outer = |own: StorePath| if own.store.is_some() { own } else { outer.clone() };
    match arguments.action {
        None => list(20, "", arguments.json, &outer),
        Some(Action::List { limit, filter, json, store }) => list(limit, &filter, json, &or_outer(store)),
        Some(Action::Show { record, json, store }) => show(record.as_deref(), json, &or_outer(store)),
        Some(Action::Delete { records, store }) => delete(&records, &or_outer(store)),
    }
}

fn list(limit: usize, filter: &str, json: bool, path: &StorePath) -> Result<(), Failure> {
    let store = Store::open(path.store.as_deref()).map_err(Failure::measure)?;
    let query = Query::text(filter).map_err(Failure::usage)?;
    let listed = store.find(&query, 0, limit).map_err(Failure::measure)?;
    if json {
        let rows: Vec<_> = listed.iter().map(as_json).collect();
        print(&serde_json::Value::from(rows).to_string());
    } else if listed.is_empty() && !filter.is_empty() {
        say(&format!("linerate: no record has all of these in its id, command, hosts or names: {filter}"));
    } else if listed.is_empty() {
        say("linerate: nothing is kept yet: measure something first, as with `linerate lab`");
    } else {
        listed.iter().for_each(|row| print(&as_line(row)));
    }
    Ok(())
}

fn as_line(row: &Listed) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
    let state = match row.stage(now) {
        Stage::Finished => "",
        Stage::UnderWay => "  (under way)",
        Stage::EndedEarly => "  (ended early)",
    };
    let command = row.command.iter().skip(1).map(String::as_str).collect::<Vec<_>>().join(" ");
    format!("{}  {:>3} results {:>4} trials  linerate {command}{state}", row.id, row.cells, row.trials)
}

fn as_json(row: &Listed) -> serde_json::Value {
    serde_json::json!({
        "id": row.id,
        "started_unix_ns": row.started_unix_ns,
        "command": row.command,
        "results": row.cells,
        "trials": row.trials,
        "finished": row.finished,
    })
}

fn show(record: Option<&str>, json: bool, path: &StorePath) -> Result<(), Failure> {
    let record = report::load(path, record)?;
    print(&if json { linerate_report::json(&record) } else { linerate_report::text(&record, &style()) });
    Ok(())
}

fn delete(records: &[String], path: &StorePath) -> Result<(), Failure> {
    let store = Store::open(path.store.as_deref()).map_err(Failure::measure)?;
    for record in records {
        let id = store.delete(record).map_err(report::store_failure)?;
        say(&format!("linerate: deleted {id}"));
    }
    Ok(())
}
