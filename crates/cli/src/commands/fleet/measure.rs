//! Orders of a fleet become commands: the same ones that a user types.

use crate::commands::inner_command::{measuring, read};
use crate::commands::run_command;
use crate::hosts::HostBook;
use crate::options::Results;
use crate::ordered_run::OrderedRun;
use futures_util::future::LocalBoxFuture;
use linerate_bus::Bus;
use linerate_fleet::Measure;
use linerate_model::Record;
use linerate_runner::Origin;
use tokio::sync::watch;

/// The place where options for results do not belong, and the remedy.
const PLACE: (&str, &str) = ("a fleet's file", "leave it out: the fleet keeps and shows all results");

/// Runs orders as commands of this program.
pub(super) struct Commands {
    pub(super) bus: Bus,
    /// Turns true when trials in progress are to be stopped.
    pub(super) cancel: watch::Receiver<bool>,
}

/// Returns the words of a test between two agents.
pub(super) fn words(test: &[String], from: &str, to: &str) -> Vec<String> {
    let mut words = test.to_vec();
    // The command comes first, then its hosts, then its options.
    let hosts = [format!("fleet:{from}"), format!("fleet:{to}")];
    words.splice(1..1, hosts);
    words
}

/// Checks that a test is a command that measures between two hosts.
///
/// # Errors
/// The command cannot be read, measures nothing, or has options for results.
pub(super) fn check(test: &[String]) -> Result<(), String> {
    measuring(&words(test, "a", "b"), PLACE).map(drop).map_err(|failure| failure.to_string())
}

impl Measure for Commands {
    fn measure<'a>(&'a self, run: linerate_fleet::OrderedRun<'a>) -> LocalBoxFuture<'a, Result<Record, String>> {
        Box::pin(async move {
            let words = words(&run.order.test, &run.order.from.0, &run.order.to.0);
            let (mut command, _) = read(words.iter().map(String::as_str)).map_err(|failure| failure.to_string())?;
            let ordered = OrderedRun::new(run.id.clone(), run.takes_over, run.begun, run.publisher);
            let results = command.results_mut().ok_or("the test measures nothing")?;
            let typed = std::iter::once("linerate".to_owned()).chain(words.iter().cloned()).collect();
            *results = Results {
                sample: results.sample,
                of_study: Some(Origin { command: typed, study: None, group: Some(run.order.mesh.clone()) }),
                ordered: Some(ordered.clone()),
                ..Results::default()
            };
            let book = HostBook::of_fleet(self.bus.clone(), run.fence);
            let result = run_command(command, book, self.cancel.clone()).await;
            match (ordered.record(), result) {
                (Some(record), _) => Ok(record),
                (None, Err(failure)) => Err(failure.to_string()),
                (None, Ok(())) => Err("the command ended without a record".to_owned()),
            }
        })
    }
}
