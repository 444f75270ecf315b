//! A fleet on loopback: its NATS server, its owner, and its members.

use crate::program::{Ran, Running, TestFolder, words};
use linerate_testsuite::servers::NatsServer;
use linerate_testsuite::wait_until;
use std::path::{Path, PathBuf};

/// A fleet with the directory `owner` of its owner. Members have directories of their own.
pub(super) struct FleetPlace {
    // Processes end before the server and the folder go.
    processes: Vec<Running>,
    pub(super) _server: NatsServer,
    pub(super) place: TestFolder,
}

impl FleetPlace {
    /// Creates the fleet `test` and starts its NATS server.
    pub(super) fn new() -> Self {
        Self::with_configuration(|text| text)
    }

    /// Creates a fleet of which the server's configuration is changed.
    pub(super) fn with_configuration(change: impl FnOnce(String) -> String) -> Self {
        let place = TestFolder::new();
        let server = NatsServer::start(|address, _| {
            let owner = place.path("owner");
            let line =
                format!("fleet create test --servers nats://{address} --listen {address} --dir {}", owner.display());
            place.run(&words(&line)).says(0, &["the fleet test is created"]);
            change(std::fs::read_to_string(owner.join("nats-server.conf")).expect("a configuration"))
        });
        Self { processes: Vec::new(), _server: server, place }
    }

    /// Starts `linerate fleet serve` with these words, and waits until it serves.
    pub(super) fn serve(&mut self, line: &str) {
        let mut process = self.place.start(&words(&format!("fleet serve {line} --dir {}", self.folder("owner"))));
        process.message("serving the fleet");
        self.processes.push(process);
    }

    /// Runs linerate with the directory of a member.
    pub(super) fn run_as(&self, member: &str, line: &str) -> Ran {
        self.place.run(&words(&format!("{line} --dir {}", self.folder(member))))
    }

    /// Runs linerate as the owner.
    pub(super) fn run(&self, line: &str) -> Ran {
        self.run_as("owner", line)
    }

    /// Invites members with these options and returns the code.
    pub(super) fn invite(&self, options: &str) -> String {
        let ran = self.run(&format!("fleet invite {options}"));
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        ran.out.trim().to_owned()
    }

    /// Joins a member, and starts its agent, which is connected when this returns.
    pub(super) fn agent(&mut self, name: &str, code: &str) {
        self.run_as(name, &format!("fleet enrol {code} --name {name}")).says(0, &["joined the fleet test"]);
        self.start_agent(name);
    }

    /// Starts the agent of a member that has joined.
    pub(super) fn start_agent(&mut self, name: &str) {
        let agent = format!(
            "serve --ephemeral --listen 127.0.0.1:0 --data-address 127.0.0.1 --allow-target 127.0.0.0/8 --fleet {}",
            self.folder(name)
        );
        let mut process = self.place.start(&words(&agent));
        process.message("connected to the fleet test");
        self.processes.push(process);
        wait_until(&format!("{name} is present"), || (self.state(name) == "present").then_some(()));
    }

    /// Returns the state of a member in `linerate fleet list`; empty if it is not listed.
    pub(super) fn state(&self, name: &str) -> String {
        let ran = self.run("fleet list --json");
        if ran.out.is_empty() {
            return String::new();
        }
        let members = ran.json();
        let member = members.as_array().into_iter().flatten().find(|member| member["name"] == name);
        member.and_then(|member| member["state"].as_str()).unwrap_or_default().to_owned()
    }

    /// Returns the directory of a member.
    pub(super) fn folder(&self, member: &str) -> String {
        self.path(member).display().to_string()
    }

    pub(super) fn path(&self, member: &str) -> PathBuf {
        self.place.path(member)
    }
}

/// Copies the files of a directory.
pub(super) fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder").flatten() {
        if entry.path().is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name())).expect("copied");
        }
    }
}
