//! The agent as a service of the operating system.

use crate::exit::Failure;
use crate::output::{language, print, say};
use linerate_model::AgentUrl;
use linerate_report::said;
use linerate_sys::{Error, service};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Argument with which the system starts the program as a service.
const AS_SERVICE: &str = "--as-service";
/// Longest time until a new service has printed its agent URL.
const START_TIMEOUT: Duration = Duration::from_secs(15);

/// Options for the agent as a service.
#[derive(Debug, clap::Args)]
pub(super) struct ServiceOptions {
    /// Install the agent as a service of Windows with the other options, start it, and print its agent URL
    ///
    /// It takes an administrator. The service runs as LocalService and starts with the system. Its files are in
    /// %ProgramData%\linerate-agent. On Linux, packages install a systemd unit.
    #[arg(long, hide_short_help = true, conflicts_with_all = ["remove_service", "ephemeral", "listen_fd"])]
    install_service: bool,

    /// Stop the service of Windows and remove it; its files stay
    #[arg(long, hide_short_help = true, exclusive = true)]
    remove_service: bool,

    /// Run as a service, started by the system, with files in this folder
    #[arg(long, value_name = "DIR", hide = true)]
    as_service: Option<PathBuf>,
}

impl ServiceOptions {
    /// Returns the folder of the service that this process is. `None` if it is none.
    pub(super) fn folder(&self) -> Option<&Path> {
        self.as_service.as_deref()
    }

    /// Returns the folder of the service's identity. `None` if this process is no service.
    pub(super) fn identity(&self) -> Option<PathBuf> {
        Some(self.as_service.as_ref()?.join("identity"))
    }

    /// Installs or removes the service if that was requested. Returns whether it was.
    pub(super) fn carry_out(&self) -> Result<bool, Failure> {
        if self.remove_service {
            service::remove().map_err(explained)?;
            say(&said!(language(), "serve-service-removed", "linerate: the service has ended and is removed"));
        } else if self.install_service {
            install()?;
        }
        Ok(self.remove_service || self.install_service)
    }
}

/// Installs the service with the arguments of this command.
fn install() -> Result<(), Failure> {
    let own = std::env::args_os().skip(1).filter(|word| word != "--install-service");
    let folder = service::folder().unwrap_or_default();
    let arguments: Vec<OsString> = own.chain([OsString::from(AS_SERVICE), folder.clone().into()]).collect();
    let printed_before = log().len();
    service::install(&arguments).map_err(explained)?;
    let begun = Instant::now();
    while begun.elapsed() < START_TIMEOUT {
        let log = log();
        let printed = log.get(printed_before..).unwrap_or_default();
        // The last line may not be whole yet.
        let mut lines = printed.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')).map(str::trim_end);
        if let Some(url) = lines.find(|line| line.parse::<AgentUrl>().is_ok()) {
            say(&said!(
                language(),
                "serve-service-runs",
                "linerate: the service runs, and starts with the system. Its agent URL:"
            ));
            print(url);
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Err(Failure::measure(format!(
        "the service was installed, but printed no agent URL within {} s; {} has its messages, and --remove-service removes it",
        START_TIMEOUT.as_secs(),
        folder.join("agent.log").display()
    )))
}

/// Returns what the service has printed so far.
fn log() -> String {
    service::folder().and_then(|folder| std::fs::read_to_string(folder.join("agent.log")).ok()).unwrap_or_default()
}

/// Adds the remedy to an error of the service manager.
fn explained(error: Error) -> Failure {
    let remedy = match error.source.kind() {
        io::ErrorKind::Unsupported => {
            return Failure::usage(
                "only Windows has services of this kind; on Linux, `systemctl enable --now linerate-agent` starts the agent of a package",
            );
        }
        io::ErrorKind::PermissionDenied => "open a terminal as administrator (right click, Run as administrator)",
        _ => "`sc query linerate-agent` shows its state",
    };
    Failure::measure(format!("{error}; {remedy}"))
}
