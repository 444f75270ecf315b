//! A lab with a chain of routers whose hosts also run other programs.

use linerate_lab::{Bench, Lab, LabOptions};
use linerate_model::HostName;
use linerate_testsuite::program;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// Hosts a and b, with routers in between.
pub(crate) struct ChainLab(Lab);

impl ChainLab {
    /// Builds a chain with these faults, written as on the command line.
    pub(crate) fn up(routers: u8, faults: &[&str]) -> Self {
        Self::with_program(Path::new(env!("CARGO_BIN_EXE_linerate")), routers, faults)
    }

    /// Builds a chain whose agents are started by `program`.
    pub(crate) fn with_program(program: &Path, routers: u8, faults: &[&str]) -> Self {
        let device = format!("chain,routers={routers}").parse().expect("a device");
        let mut bench = Bench::named("switch").expect("built in").with_device(device);
        for fault in faults {
            bench = bench.with_fault(fault.parse().expect(fault));
        }
        let options = LabOptions { program: program.to_owned(), keep: false, folders: Vec::new() };
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        Self(runtime.block_on(Lab::up(&bench, &options)).expect("a lab"))
    }

    /// Returns the agent URL of a host.
    pub(crate) fn url(&self, host: &str) -> String {
        self.0.hosts()[&HostName::from(host)].to_string()
    }

    /// Starts a command in a host. Its standard output and standard error are piped.
    pub(crate) fn start(&self, host: &str, mut command: Command) -> Child {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        self.0.run_in(&HostName::from(host), command).expect("the command starts")
    }

    /// Runs an installed program in a host until it ends.
    pub(crate) fn run(&self, host: &str, line: &[&str]) -> Output {
        let [name, arguments @ ..] = line else { panic!("a command") };
        let mut command = Command::new(program(name).unwrap_or_else(|| panic!("{name} is not installed")));
        command.args(arguments);
        self.start(host, command).wait_with_output().expect("the command ends")
    }
}
