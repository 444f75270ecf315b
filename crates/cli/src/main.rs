//! linerate: measures what a network path or device can carry, layer by layer, and says which part limits it.
#![forbid(unsafe_code)]

mod arguments;
mod calibration;
mod choice;
mod commands;
mod device_load;
mod event_stream;
mod exit;
mod expectations;
mod familiar;
mod feed;
mod help;
mod hosts;
mod inner_command;
mod interrupt;
mod live_lines;
mod measure;
mod nfs_service;
mod output;
mod picture;
mod private_report;
mod progress;
mod prompt;
mod result_lines;
mod resume;
mod run_display;
mod saved_hosts;
mod secrets;
mod session;
#[cfg(test)]
mod snapshots;
mod study_file;
mod study_setup;
mod tui;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = match help::parse_from(std::env::args_os()) {
        Ok(arguments) => arguments,
        Err(error) => return exit::usage(&error),
    };
    exit::code(commands::run(arguments))
}
