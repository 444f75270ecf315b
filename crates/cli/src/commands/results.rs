//! `linerate results`: the records kept.

use super::report;
use crate::exit::Failure;
use crate::measure::answer;
use crate::options::StorePath;
use crate::output::{counted, language, print, say, style};
use clap::Subcommand;
use linerate_model::shell_command;
use linerate_store::{Query, RunRow};

/// List, show and delete records
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  linerate results                           the latest records, newest first
  linerate results list --filter 'udp hosta'    records with both words
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
        /// Only records that have all of these words
        ///
        /// In their id, command, hosts or names.
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
        /// Print all: reasons, doubts, every table
        ///
        /// Shows every detail of each result, not only its answer.
        #[arg(long, short = 'v', conflicts_with = "json")]
        verbose: bool,
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
    let outer_json = arguments.json;
    match arguments.action {
        None => list(20, "", outer_json, &outer),
        Some(Action::List { limit, filter, json, store }) => list(limit, &filter, json || outer_json, &or_outer(store)),
        Some(Action::Show { record, json, verbose, store }) => {
            show(record.as_deref(), json || outer_json, verbose, &or_outer(store))
        }
        Some(Action::Delete { records, store }) => delete(&records, &or_outer(store)),
    }
}

fn list(limit: usize, filter: &str, json: bool, path: &StorePath) -> Result<(), Failure> {
    let store = path.open()?;
    let query = Query::text(filter).map_err(Failure::usage)?;
    let runs = store.list(&query, 0, limit).map_err(Failure::measure)?;
    if json {
        let rows: Vec<_> = runs.iter().map(as_json).collect();
        print(&serde_json::Value::from(rows).to_string());
    } else if runs.is_empty() && !filter.is_empty() {
        say(&format!("linerate: no record has all of these in its id, command, hosts or names: {filter}"));
    } else if runs.is_empty() {
        say("linerate: nothing is kept yet: measure something first, as with `linerate lab`");
    } else {
        runs.iter().for_each(|row| print(&as_line(row)));
    }
    Ok(())
}

/// A line of the list: name, state, counts, headline figure, what limited it and with which confidence, command.
pub(crate) fn as_line(run: &RunRow) -> String {
    let mut command = shell_command(&run.command);
    if run.is_tester_limit() {
        command += "  (tester limit)";
    }
    let figure = run.headline.as_ref().map_or_else(String::new, linerate_report::headline);
    let limit = run.verdict.map_or_else(String::new, |verdict| linerate_report::headline_limit(language(), verdict));
    let (results, trials) = (counted(run.results as usize, "result"), counted(run.trials as usize, "trial"));
    format!("{}  {:<11} {results:>11} {trials:>12}  {figure:>16}  {limit:<26}  {command}", run.id, run.state)
}

fn as_json(run: &RunRow) -> serde_json::Value {
    serde_json::json!({
        "id": run.id,
        "started_unix_ns": run.started_unix_ns,
        "command": run.command,
        "kind": run.kind,
        "study": run.study,
        "group": run.group,
        "state": run.state.name(),
        "results": run.results,
        "trials": run.trials,
        "attempts": run.attempts,
        "headline": run.headline,
        "verdict": run.verdict,
    })
}

fn show(record: Option<&str>, json: bool, verbose: bool, path: &StorePath) -> Result<(), Failure> {
    let records = report::load_with_group(path, record)?;
    print(&match (json, verbose) {
        (true, _) => linerate_report::json(&records),
        (false, true) => linerate_report::text(&records, &style()),
        (false, false) => answer(&records, &style()),
    });
    Ok(())
}

fn delete(records: &[String], path: &StorePath) -> Result<(), Failure> {
    let store = path.open()?;
    for record in records {
        let id = store.delete(record).map_err(report::store_failure)?;
        say(&format!("linerate: deleted {id}"));
    }
    Ok(())
}
