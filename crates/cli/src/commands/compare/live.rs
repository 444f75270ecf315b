//! `linerate compare --live`: two commands run in turn.
//!
//! Pairs alternate in the order A B B A, so that a steady drift favours neither side. Each run is kept as it ends, as a record of
//! its own; at the end the runs of each side become one record. Searches stay records of their own: each has chosen its own trials.

use super::Arguments;
use crate::commands::command_line::Command;
use crate::commands::inner_command::{asks_for_repeats, measuring};
use crate::exit::Failure;
use crate::hosts::HostBook;
use crate::options::{Results, StorePath};
use crate::output::{language, say_of_run};
use crate::secrets::without_secrets;
use linerate_method::{Demands, compare_pairs, compare_searches, merged, replay};
use linerate_model::{Change, ComparedFigure, Comparison, Goal, Record, RecordId, RunSummary, from_command_name};
use linerate_report::said;
use linerate_runner::Origin;
use linerate_store::{Ending, Query, Store};
use tokio::sync::watch;

/// Where options for results do not belong, and where they do.
const WHERE: (&str, &str) = (
    "a command of `compare --live`",
    "leave it out; `compare` has --json and --store, and `linerate report ID` shows a record",
);
/// The names of both sides, as ends of the records' names.
const SIDES: [&str; 2] = ["a", "b"];
/// Records that were kept just now are among so many, also where other runs are kept meanwhile.
const NEWEST: usize = 16;

/// Two commands to run in turn.
pub(super) struct Live {
    /// The words of each.
    commands: [Vec<String>; 2],
    /// Pairs at the first look, and between one look and the next.
    pairs: usize,
    /// Pairs at the most.
    most: usize,
    demands: Demands,
    store: Store,
    group: String,
}

impl Live {
    /// Reads both commands, so that a slip in the second costs nothing.
    ///
    /// # Errors
    /// A command cannot be read, measures nothing or says itself how often it runs, or the store cannot be opened.
    pub(super) fn of(arguments: &Arguments, lines: [&String; 2], once: Demands) -> Result<Self, Failure> {
        let pairs = arguments.pairs;
        let most = arguments.max_pairs.unwrap_or(pairs.saturating_mul(3));
        if most < pairs {
            return Err(Failure::usage(format!(
                "--max-pairs {most} is less than --pairs {pairs}; give at least as many"
            )));
        }
        let [a, b] = lines;
        let demands = Demands { looks: most.div_ceil(pairs), ..once };
        Ok(Self {
            commands: [words(a)?, words(b)?],
            pairs: pairs as usize,
            most: most as usize,
            demands,
            store: arguments.store.open()?,
            group: format!("{}-{:04x}", jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S"), std::process::id()),
        })
    }

    /// Runs pair after pair until all figures are decided, the most pairs are made, or the user stops it. Returns the comparison of
    /// all whole pairs, and why it ended early.
    ///
    /// # Errors
    /// Nothing could be compared, or what was measured could not be kept.
    pub(super) async fn run(
        &self,
        book: HostBook,
        cancel: watch::Receiver<bool>,
    ) -> Result<(Comparison, Result<(), Failure>), Failure> {
        let mut runs: [Vec<Record>; 2] = [Vec::new(), Vec::new()];
        let mut ended = Ok(());
        'pairs: for pair in 0..self.most {
            for side in if pair % 2 == 0 { [0, 1] } else { [1, 0] } {
                let letter = SIDES[side].to_uppercase();
                say_of_run(&said!(
                    language(),
                    "compare-pair",
                    "pair {number} of {most} at most, {side}",
                    number = pair + 1,
                    most = self.most,
                    side = letter
                ));
                match self.measure(side, &runs[side], &book, &cancel).await {
                    Ok(record) => runs[side].push(record),
                    Err(failure) => {
                        ended = Err(failure);
                        break 'pairs;
                    }
                }
            }
            if (pair + 1) % self.pairs == 0 && !self.goes_on(&runs, pair + 1) {
                break;
            }
        }
        // A run without its partner is kept, but not compared.
        let found = self.compared(&runs);
        let kept = self.keep(&runs, ended.is_ok());
        match (found, ended) {
            (Some(found), ended) => kept.map(|()| (found, ended)),
            (None, ended) => Err(kept.and(ended).err().unwrap_or_else(|| Failure::measure("no pair was measured"))),
        }
    }

    /// Whether more pairs are needed, after so many.
    fn goes_on(&self, runs: &[Vec<Record>; 2], pairs: usize) -> bool {
        let Some(found) = self.compared(runs) else { return false };
        // What is not firm now is not firm in more pairs.
        let is_firm = |figure: &&ComparedFigure| figure.before_firmness.and(figure.after_firmness).is_firm();
        let undecided = found.figures.iter().filter(|figure| figure.change == Change::Undecided);
        let undecided = undecided.filter(is_firm).count();
        if undecided > 0 && pairs < self.most {
            say_of_run(&said!(
                language(),
                "compare-undecided-so-far",
                if figures == 1 {
                    "1 figure undecided after {pairs} pairs; more pairs follow"
                } else {
                    "{figures} figures undecided after {pairs} pairs; more pairs follow"
                },
                figures = undecided,
                pairs = pairs
            ));
        }
        undecided > 0
    }

    fn compared(&self, runs: &[Vec<Record>; 2]) -> Option<Comparison> {
        let pairs = runs[0].len().min(runs[1].len());
        if runs.iter().flatten().any(is_search) {
            let [before, after] = [0, 1].map(|side| &runs[side][..pairs]);
            return (pairs > 0).then(|| compare_searches(before, after, &self.demands));
        }
        let id = |side: usize| self.id(side, &runs[0]);
        let side = |side: usize| merged(&runs[side][..pairs], id(side));
        Some(compare_pairs(&side(0)?, &side(1)?, &self.demands))
    }

    /// The name of a side's record: that of the first run of A and the side's letter.
    fn id(&self, side: usize, first: &[Record]) -> RecordId {
        let stem = first.first().map_or(&self.group, |record| &record.id.0);
        RecordId(format!("{stem}-{}", SIDES[side]))
    }

    /// Makes one run of a side and returns its record; `known` are the runs of that side so far.
    async fn measure(
        &self,
        side: usize,
        known: &[Record],
        book: &HostBook,
        cancel: &watch::Receiver<bool>,
    ) -> Result<Record, Failure> {
        if *cancel.borrow() {
            return Err(Failure::measure("interrupted"));
        }
        let place = format!("command {}: ", SIDES[side].to_uppercase());
        let mut command = measuring(&self.commands[side], WHERE)?;
        let origin = Origin { command: typed(&self.commands[side]), study: None, group: Some(self.group_of(side)) };
        let results = Results {
            store: StorePath { store: Some(self.store.location().clone()) },
            of_study: Some(origin),
            ..Results::default()
        };
        if let Some(of_command) = command.results_mut() {
            *of_command = Results { sample: of_command.sample, ..results };
        }
        let ran = Box::pin(crate::commands::run_command(command, book.clone(), cancel.clone())).await;
        ran.map_err(|failure| failure.at(&place))?;
        let rows = self.store.list(&Query::default(), 0, NEWEST).map_err(Failure::measure)?;
        let group = self.group_of(side);
        let is_new = |id: &RecordId| known.iter().all(|record| record.id != *id);
        let row = rows.into_iter().find(|row| row.group.as_ref() == Some(&group) && is_new(&row.id));
        let row = row.ok_or_else(|| Failure::measure(format!("{place}its record was not kept")))?;
        let mut record = self.store.load(&row.id.0).map_err(Failure::measure)?;
        replay(&mut record);
        Ok(record)
    }

    /// What marks the runs of a side until they are one record.
    fn group_of(&self, side: usize) -> String {
        format!("{}-{}", self.group, SIDES[side])
    }

    /// Keeps the runs of each side as one record, in place of a record for each.
    fn keep(&self, runs: &[Vec<Record>; 2], finished: bool) -> Result<(), Failure> {
        for (side, all) in runs.iter().enumerate() {
            let Some(mut record) = merged(all, self.id(side, &runs[0])) else { continue };
            record.group = Some(self.group.clone());
            let summary = RunSummary::of(&record.results);
            let mut live = self.store.begin(&record).map_err(Failure::measure)?;
            for trial in &record.trials {
                live.trial(trial, &summary).map_err(Failure::measure)?;
            }
            let ending = if finished { Ending::Finished } else { Ending::Interrupted };
            live.end(&record, ending).map_err(Failure::measure)?;
            for run in all {
                self.store.delete(&run.id.0).map_err(Failure::measure)?;
            }
            say_of_run(&said!(
                language(),
                "compare-kept",
                if runs == 1 { "1 run kept as {record}" } else { "{runs} runs kept as {record}" },
                runs = all.len(),
                record = record.id
            ));
        }
        Ok(())
    }
}

/// Whether a run is a search, which cannot be merged with others.
fn is_search(record: &Record) -> bool {
    matches!(record.plan.goal, Goal::Curve(_) | Goal::Device(_))
}

/// The command of a line; none if it cannot be read.
pub(super) fn inner(line: &str) -> Option<Command> {
    measuring(&words(line).ok()?, WHERE).ok()
}

/// The words of a command that runs once each time.
fn words(line: &str) -> Result<Vec<String>, Failure> {
    let at = |failure: Failure| failure.at(&format!("`{line}`: "));
    let mut words =
        shlex::split(line).ok_or_else(|| Failure::usage(format!("`{line}`: a quotation mark is not closed")))?;
    if words.first().is_some_and(|word| word == "linerate") {
        words.remove(0);
    }
    if let Command::Ladder(_) = measuring(&words, WHERE).map_err(at)? {
        return Err(at(Failure::usage(
            "a ladder gives a result for each layer, and cannot be compared; give the command of one layer",
        )));
    }
    match asks_for_repeats(&words).map_err(at)? {
        Some(false) => words.extend(["--repeats", "1"].map(str::to_owned)),
        Some(true) => {
            return Err(at(Failure::usage(
                "leave --repeats, --confidence and --within: --pairs of `compare` says how often it runs",
            )));
        }
        None => {}
    }
    Ok(words)
}

/// The whole command line that would make a run by itself, secrets left out: with the lab that this program runs in.
fn typed(words: &[String]) -> Vec<String> {
    let own: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    outer(&own).iter().chain(words).map(|word| without_secrets(word)).collect()
}

/// The words of a command line before the command in its lab; of one without a lab the program alone.
fn outer(own: &[String]) -> &[String] {
    let in_lab = own.get(1..).and_then(|words| from_command_name(words).first()).is_some_and(|word| word == "lab");
    let before = own.iter().position(|word| word == "--").filter(|_| in_lab).map_or(1, |at| at + 1);
    &own[..before.min(own.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_kept_with_the_lab_it_was_made_in() {
        for (line, expected) in [
            ("linerate lab --link 1Gbit/s -- compare --live x y", "linerate lab --link 1Gbit/s --"),
            ("linerate --lang en lab -- compare --live x y", "linerate --lang en lab --"),
            ("linerate --lang en compare --live x y", "linerate"),
        ] {
            let own: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            assert_eq!(outer(&own).join(" "), expected);
        }
    }

    #[test]
    fn a_command_runs_once_each_time() {
        let read = |line: &str| words(line).map_err(|failure| failure.to_string());
        let expected = ["stream", "a", "b", "--flows", "4", "--repeats", "1"].map(str::to_owned).to_vec();
        assert_eq!(read("linerate stream a b --flows 4"), Ok(expected));
        // Its repeats are searches of one run.
        for line in ["device burst --ports a,b", "device burst --ports a,b --repeats 20"] {
            assert_eq!(read(line).map(|words| words.join(" ")), Ok(line.to_owned()));
        }
        for (line, said) in [
            ("stream a b --repeats 3", "--pairs of `compare` says how often"),
            ("stream a b --json", "--json does not go into a command of `compare --live`"),
            ("probe a", "it measures nothing"),
            ("stream 'a b", "a quotation mark is not closed"),
            ("stream a b --nosuch", "--nosuch"),
        ] {
            let refused = read(line).expect_err(line);
            assert!(refused.contains(said), "{line}: {refused}");
        }
    }
}
