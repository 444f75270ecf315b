//! The commands, a file for each: its part of the command line, and what it does.

pub(crate) mod calibrate;
pub(crate) mod command_line;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod copy;
pub(crate) mod demo;
pub(crate) mod device;
pub(crate) mod explain;
mod familiar;
pub(crate) mod fleet;
pub(crate) mod frames;
pub(crate) mod help;
pub(crate) mod hosts;
mod inner_command;
pub(crate) mod lab;
pub(crate) mod ladder;
pub(crate) mod limits;
pub(crate) mod man;
mod measured;
pub(crate) mod nfs;
pub(crate) mod path;
pub(crate) mod probe;
pub(crate) mod report;
pub(crate) mod results;
pub(crate) mod rpc;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod stream;
pub(crate) mod transact;
pub(crate) mod view;

use crate::exit::Failure;
use crate::hosts::HostBook;
use crate::interrupt;
use crate::output;
use crate::tui;
use command_line::{Command, CommandLine};
use tokio::sync::watch;

/// Runs the command of a command line.
pub(crate) fn run(arguments: CommandLine) -> Result<(), Failure> {
    output::speak(arguments.lang.unwrap_or_else(output::users_language));
    // An ordinary user's lab lives in a user namespace, which only a program without threads can enter.
    if let Command::Lab(lab) = &arguments.command {
        // A shell's signals are its own affair: none are caught here.
        if let Some(ended) = lab.shell() {
            return ended;
        }
        lab.enter_user_namespace()?;
    }
    if let Command::Run(study) = &arguments.command {
        study.enter_user_namespace()?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::measure)?;
    let result = runtime.block_on(async {
        let cancel = interrupt::watch(tui::is_taken, tui::give_back).map_err(Failure::measure)?;
        run_command(arguments.command, HostBook::default(), cancel).await
    });
    // What still blocks, blocks on an agent that is lost: not worth waiting for.
    runtime.shutdown_background();
    result
}

/// Runs one command with the hosts named in `book`.
pub(crate) async fn run_command(
    mut command: Command,
    book: HostBook,
    cancel: watch::Receiver<bool>,
) -> Result<(), Failure> {
    command.choose_ip(&book);
    match command {
        Command::Stream(arguments) => stream::run(arguments, book, cancel).await,
        Command::Transact(arguments) => transact::run(arguments, book, cancel).await,
        Command::Rpc(arguments) => rpc::run(arguments, book, cancel).await,
        Command::Nfs(arguments) => Box::pin(nfs::run(arguments, book, cancel)).await,
        Command::Copy(arguments) => Box::pin(copy::run(*arguments, book, cancel)).await,
        Command::Path(arguments) => path::run(arguments, book, cancel).await,
        Command::Ladder(arguments) => Box::pin(ladder::run(arguments, book, cancel)).await,
        Command::Calibrate(arguments) => Box::pin(calibrate::run(arguments, book, cancel)).await,
        Command::Device(arguments) => Box::pin(device::run(arguments, book, Vec::new(), cancel)).await,
        Command::Frames(arguments) => Box::pin(frames::run(arguments, book, cancel)).await,
        Command::Lab(arguments) => Box::pin(lab::run(arguments, cancel)).await,
        Command::Run(arguments) => Box::pin(run::run(arguments, cancel)).await,
        Command::Serve(arguments) => serve::run(arguments, cancel).await,
        Command::Fleet(arguments) => Box::pin(fleet::run(arguments, cancel)).await,
        Command::Hosts(arguments) => hosts::run(arguments, cancel).await,
        Command::Probe(arguments) => probe::run(arguments, book).await,
        Command::Limits(arguments) => limits::run(&arguments),
        Command::Results(arguments) => results::run(arguments),
        Command::Report(arguments) => report::run(arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Compare(arguments) => Box::pin(compare::run(arguments, book, cancel)).await,
        Command::View(arguments) => view::run(&arguments, cancel).await,
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Man(arguments) => man::run(&arguments),
    }
}
