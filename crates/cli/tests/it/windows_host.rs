//! A lab of a Linux host a and a Windows host b, whose programs run under Wine.

use crate::program::{Ran, Running, TestFolder};
use linerate_lab::{Bench, Lab, LabOptions};
use linerate_model::HostName;
use linerate_testsuite::wine::WindowsHost;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Port of the agents of the Windows host: that of the lab's own agent is taken.
const PORT: &str = "[::]:4750";
/// Port of the Linux agents.
const LINUX_PORT: &str = "[::]:4747";

/// The lab. Both hosts have Linux agents, which are reached over the links of the lab.
pub(crate) struct MixedLab {
    // Dropped first: the programs leave the namespaces before these are removed.
    windows: WindowsHost,
    agents: Vec<(Running, String)>,
    lab: Lab,
    place: TestFolder,
}

impl MixedLab {
    /// Builds hosts a and b with links of this rate and a switch.
    pub(crate) fn up(link: &str) -> Self {
        Self::with(Bench::named("switch").expect("built in").with_link(link.parse().expect("a rate")))
    }

    pub(crate) fn with(bench: Bench) -> Self {
        let program = Path::new(env!("CARGO_BIN_EXE_linerate")).to_owned();
        let options = LabOptions { program, keep: false, folders: Vec::new() };
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let lab = runtime.block_on(Lab::up(&bench, &options)).expect("a lab");
        let mut mixed = Self { windows: WindowsHost::create(), agents: Vec::new(), lab, place: TestFolder::new() };
        for command in mixed.windows.boot() {
            let mut booting = mixed.lab.run_in(&HostName::from("b"), command).expect("it starts");
            assert!(booting.wait().is_ok_and(|status| status.success()), "the Windows host starts");
        }
        for host in ["a", "b"] {
            let agent = mixed.start_linux(host, &["serve", "--ephemeral", "--listen", LINUX_PORT, "--name", host]);
            mixed.agents.push(agent);
        }
        mixed
    }

    /// Returns the agent URL of the Linux agent of a host.
    pub(crate) fn url(&self, host: &str) -> String {
        self.agents[usize::from(host == "b")].1.clone()
    }

    /// Returns the folder of the Windows host's drive C.
    pub(crate) fn drive(&self) -> PathBuf {
        self.windows.drive()
    }

    /// Returns the folder of the Linux program's store.
    pub(crate) fn place(&self) -> &TestFolder {
        &self.place
    }

    fn start(&self, host: &str, mut command: Command) -> Child {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        self.lab.run_in(&HostName::from(host), command).expect("the command starts")
    }

    /// Starts the program for Windows on host b.
    pub(crate) fn start_windows(&self, arguments: &[&str]) -> Running {
        Running::of(self.start("b", self.windows.command(arguments)))
    }

    /// Runs the program for Windows on host b.
    pub(crate) fn windows(&self, arguments: &[&str]) -> Ran {
        self.start_windows(arguments).end()
    }

    /// Starts a Linux agent on a host. Returns it and its agent URL.
    pub(crate) fn start_linux(&self, host: &str, arguments: &[&str]) -> (Running, String) {
        started(Running::of(self.start(host, self.place.command(arguments))))
    }

    /// Runs the program for Linux on host a.
    pub(crate) fn linux(&self, arguments: &[&str]) -> Ran {
        Running::of(self.start("a", self.place.command(arguments))).end()
    }

    /// Runs the program for Linux on host a, with `typed` on standard input.
    pub(crate) fn linux_typing(&self, typed: &str, arguments: &[&str]) -> Ran {
        let input = std::fs::File::open(self.place.file("typed", typed)).expect("there");
        let mut command = self.place.command(arguments);
        command.stdin(input);
        Running::of(self.start("a", command)).end()
    }

    /// Runs the program for Linux on host a, demands success, and reads its record.
    pub(crate) fn measure(&self, arguments: &[&str]) -> Value {
        succeeded(&self.linux(arguments))
    }

    /// Runs the program for Windows on host b, demands success, and reads its record.
    pub(crate) fn measure_on_windows(&self, arguments: &[&str]) -> Value {
        succeeded(&self.windows(arguments))
    }

    /// Starts an agent on the Windows host. Returns it and its agent URL.
    pub(crate) fn serve(&self, arguments: &[&str]) -> (Running, String) {
        started(self.start_windows(&[&["serve", "--listen", PORT], arguments].concat()))
    }
}

/// Returns an agent and its agent URL.
fn started(mut agent: Running) -> (Running, String) {
    let url = agent.line().trim_end().to_owned();
    if !url.starts_with("linerate://") {
        let ran = agent.end();
        panic!("an agent URL, not `{url}`: {:?} {} {}", ran.code, ran.out, ran.err);
    }
    (agent, url)
}

fn succeeded(ran: &Ran) -> Value {
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.out, ran.err);
    ran.json()
}
