//! The set-up of a study: the lab that is up, the factors that commands have set, and the steps that the operator has taken.

use crate::commands::lab;
use crate::exit::Failure;
use crate::hosts::HostBook;
use crate::output::say;
use linerate_lab::{Bench, Lab};
use linerate_study::{HostCommand, PlannedRun};
use std::collections::BTreeMap;
use std::io::{IsTerminal as _, stderr, stdin};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::sync::watch;

/// Interval at which a running command is polled.
const POLL: Duration = Duration::from_millis(5);

/// The current set-up, as far as this program knows.
pub(crate) struct StudySetup {
    /// Whether the first requested step is done already.
    ready: bool,
    lab: Option<(Bench, Vec<PathBuf>, Lab)>,
    commands: BTreeMap<usize, HostCommand>,
    steps: BTreeMap<usize, String>,
    cancel: watch::Receiver<bool>,
}

impl StudySetup {
    /// Returns an empty set-up. `ready` counts the first requested step as done.
    pub(crate) fn new(ready: bool, cancel: watch::Receiver<bool>) -> Self {
        Self { ready, lab: None, commands: BTreeMap::new(), steps: BTreeMap::new(), cancel }
    }

    /// Sets up a run, in this order: the operator's steps, the lab, the commands.
    pub(crate) async fn set_up(
        &mut self,
        run: &PlannedRun,
        bench: Option<&Bench>,
        folders: &[PathBuf],
    ) -> Result<(), Failure> {
        let steps: Vec<&str> =
            run.steps.iter().filter(|(at, step)| self.steps.get(at) != Some(step)).map(|(_, step)| &**step).collect();
        if !steps.is_empty() {
            self.wait_for(&steps.join("; ")).await?;
            self.steps.clone_from(&run.steps);
        }
        if let Some(bench) = bench
            && !self.lab.as_ref().is_some_and(|(up, with, _)| up == bench && with == folders)
        {
            self.lab_down().await;
            self.lab = Some((bench.clone(), folders.to_vec(), lab::up(bench, false, folders.to_vec()).await?));
        }
        for (factor, command) in &run.commands {
            if self.commands.get(factor) != Some(command) {
                self.undo(*factor).await?;
                // Before it runs: an interrupted command may have set something.
                self.commands.insert(*factor, command.clone());
                self.run(&command.command, command.host.as_deref(), true).await?;
            }
        }
        Ok(())
    }

    /// Returns the hosts that have names.
    pub(crate) fn book(&self) -> HostBook {
        self.lab.as_ref().map_or_else(HostBook::default, |(_, _, lab)| HostBook::of_lab(lab))
    }

    /// Undoes the commands and takes the lab down. Returns the first failure, and prints the others.
    pub(crate) async fn down(mut self) -> Result<(), Failure> {
        let mut result = Ok(());
        for factor in self.commands.keys().copied().collect::<Vec<_>>() {
            if let Err(failure) = self.undo(factor).await {
                if result.is_err() {
                    say(&format!("linerate: {failure}"));
                } else {
                    result = Err(failure);
                }
            }
        }
        self.lab_down().await;
        result
    }

    async fn lab_down(&mut self) {
        // The settings of its hosts go with them.
        self.commands.retain(|_, command| command.host.is_none());
        if let Some((_, _, lab)) = self.lab.take() {
            lab.down().await;
        }
    }

    /// Undoes a factor's command.
    async fn undo(&mut self, factor: usize) -> Result<(), Failure> {
        let Some(HostCommand { undo: Some(undo), host, .. }) = self.commands.remove(&factor) else { return Ok(()) };
        // Even if the study is stopping.
        self.run(&undo, host.as_deref(), false).await
    }

    /// Runs a command to its end, on this machine or in a host of the lab; its output goes to standard error.
    async fn run(&self, command: &str, host: Option<&str>, stops: bool) -> Result<(), Failure> {
        let place = host.map_or_else(String::new, |host| format!(" in host {host}"));
        let failed = |why: String| Failure::measure(format!("the command `{command}`{place}: {why}"));
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).stdin(Stdio::null()).stdout(stderr());
        let mut child = match (host, &self.lab) {
            (Some(host), Some((_, _, lab))) => lab.run_in(&host.into(), shell).map_err(Failure::measure)?,
            _ => shell.spawn().map_err(|error| failed(error.to_string()))?,
        };
        loop {
            match child.try_wait().map_err(|error| failed(error.to_string()))? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(failed(format!("it did not succeed ({status})"))),
                None if stops && *self.cancel.borrow() => {
                    end(&mut child);
                    return Err(failed("it was interrupted".to_owned()));
                }
                None => tokio::time::sleep(POLL).await,
            }
        }
    }

    /// Waits until the operator has taken a step.
    async fn wait_for(&mut self, step: &str) -> Result<(), Failure> {
        if std::mem::take(&mut self.ready) {
            say(&format!("linerate: taken as done, as --ready says: {step}"));
            return Ok(());
        }
        if !stdin().is_terminal() {
            return Err(Failure::Waiting(format!("to be done by somebody first: {step}")));
        }
        say(&format!("linerate: to be done now: {step}; then press Enter"));
        // A blocking read does not delay the end of the program.
        let line = tokio::task::spawn_blocking(|| stdin().read_line(&mut String::new()));
        tokio::select! {
            read = line => match read {
                Ok(Ok(1..)) => Ok(()),
                _ => Err(Failure::Waiting(format!("to be done by somebody first: {step}"))),
            },
            Ok(_) = self.cancel.wait_for(|asked| *asked) => Err(Failure::measure("interrupted")),
        }
    }
}

/// Kills a command.
fn end(child: &mut Child) {
    // It may have ended just now.
    let _ = child.kill();
    let _ = child.wait();
}
