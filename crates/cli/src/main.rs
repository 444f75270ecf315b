//! linerate: measures what a network path or device can carry, layer by layer, and says which part limits it.
#![forbid(unsafe_code)]

mod calibration;
mod choice;
mod commands;
mod device_load;
mod event_stream;
mod exit;
mod expectations;
mod feed;
mod fleet_folder;
mod hosts;
mod interrupt;
mod invocation;
mod iperf3_server;
mod live_lines;
mod measure;
mod nfs_service;
mod options;
mod ordered_run;
mod output;
mod picture;
mod private_report;
mod progress;
mod prompt;
mod report_file;
mod result_lines;
mod resume;
mod run_display;
mod saved_hosts;
mod secrets;
mod server_address;
mod session;
#[cfg(test)]
mod snapshots;
mod stamp_key;
mod study_file;
mod study_setup;
#[cfg(test)]
mod translations;
mod tui;

use commands::command_line::CommandLine;
use commands::help;
use exit::Failure;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words = help::words();
    invocation::keep(words.clone());
    let arguments = match help::parse_from(words) {
        Ok(arguments) => arguments,
        Err(error) => return exit::usage(&error),
    };
    let code = match arguments.service_folder().map(Path::to_owned) {
        Some(folder) => as_service(&folder, arguments),
        None => exit::code(commands::run(arguments)),
    };
    ExitCode::from(code)
}

/// Runs the command as a service of the operating system, with files in `folder`.
fn as_service(folder: &Path, arguments: CommandLine) -> u8 {
    let ran = linerate_sys::service::run(folder, || exit::code(commands::run(arguments)));
    ran.map_or_else(|error| exit::code(Err(Failure::measure(error))), |()| 0)
}
