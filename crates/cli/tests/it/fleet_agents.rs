//! Agents of a fleet on a real NATS server, as a user runs them.

use crate::program::{Ran, Running, TestFolder, words};
use linerate_bus::{Credentials, FleetKeys, Role};
use linerate_testsuite::server_test;
use linerate_testsuite::servers::NatsServer;
use serde_json::Value;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A fleet on a server of its own, with a folder for the credentials of each member.
struct Fleet {
    server: NatsServer,
    keys: FleetKeys,
    place: TestFolder,
}

fn now_unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}

impl Fleet {
    fn start() -> Self {
        let keys = FleetKeys::generate("test".parse().expect("a name"), Vec::new(), None).expect("keys");
        let server = NatsServer::start(|listen, folder| {
            let folder = folder.to_str().expect("a plain path");
            keys.server_configuration(listen, folder, now_unix_s()).expect("a configuration")
        });
        let fleet = Self { server, keys, place: TestFolder::new() };
        fleet.member("operator", Role::Operator);
        fleet
    }

    /// Writes the credentials of a member, and returns their folder.
    fn member(&self, name: &str, role: Role) -> String {
        let folder = self.place.path(&format!("fleet-{name}"));
        let name = name.parse().expect("a name");
        let credentials = self.keys.credentials(name, role, None, now_unix_s()).expect("credentials");
        let credentials = Credentials { servers: vec![self.server.url()], ..credentials };
        std::fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join(Credentials::FILE);
        std::fs::write(&file, credentials.text()).expect("written");
        linerate_testsuite::files::set_mode(&file, 0o600);
        folder.to_str().expect("a plain path").to_owned()
    }

    /// Starts an agent, which is connected when this returns.
    fn agent(&self, name: &str) -> Running {
        let folder = self.member(name, Role::Agent);
        let log = self.log(name);
        let line = format!(
            "serve --ephemeral --listen 127.0.0.1:0 --data-address 127.0.0.1 --allow-target 127.0.0.0/8 --session-log {log} --fleet {folder}"
        );
        let mut agent = self.place.start(&words(&line));
        agent.message("connected to the fleet test");
        agent
    }

    fn log(&self, agent: &str) -> String {
        self.place.path(&format!("{agent}.jsonl")).to_str().expect("a plain path").to_owned()
    }

    /// Starts a command of an operator.
    fn command(&self, line: &str) -> Running {
        let mut command = self.place.command(&words(line));
        command.env("LINERATE_FLEET", self.place.path("fleet-operator"));
        self.place.start_command(command)
    }

    fn run(&self, line: &str) -> Ran {
        self.command(line).end()
    }
}

#[server_test(Program("nats-server"))]
fn stream_between_members_of_a_fleet_is_measured_and_logged() {
    let fleet = Fleet::start();
    let _agents = [fleet.agent("site-a"), fleet.agent("site-b")];
    let ran = fleet.run("stream fleet:site-a fleet:site-b --time 500ms --repeats 1 --json");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let record = ran.json();
    let hosts: Vec<&str> =
        record["hosts"].as_array().expect("hosts").iter().filter_map(|host| host["name"].as_str()).collect();
    assert_eq!(hosts, ["site-a", "site-b"]);
    for agent in ["site-a", "site-b"] {
        let text = std::fs::read_to_string(fleet.log(agent)).expect("the log");
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let count = |event: &str| lines.iter().filter(|line| line["event"] == event).count();
        assert!(count("begin") > 0 && count("begin") == count("end"), "{text}");
        assert!(lines.iter().filter(|line| line["event"] == "end").all(|line| line["outcome"] == "finished"), "{text}");
    }
    let error = fleet.run("stream fleet:site-a fleet:site-c --time 500ms");
    error.says(3, &["fleet:site-c", "linerate fleet list", "serve --fleet"]);
    fleet.run("stream fleet:site-a fleet:=x").says(2, &["fleet:=x", "fleet:site=berlin"]);
}

#[server_test(Program("nats-server"))]
fn trial_survives_a_restart_of_nats() {
    let mut fleet = Fleet::start();
    let _agents = [fleet.agent("site-a"), fleet.agent("site-b")];
    let run = fleet.command("stream fleet:site-a fleet:site-b --time 8s --repeats 1 --json");
    let log = fleet.log("site-a");
    linerate_testsuite::wait_until("a session is in progress", || {
        std::fs::read_to_string(&log).ok().filter(|text| text.contains("begin"))
    });
    // A start order is not repeated for long, since it would start late: the sessions have passed it.
    std::thread::sleep(Duration::from_secs(2));
    fleet.server.restart();
    let ran = run.end();
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    ran.json();
}

#[server_test(Program("nats-server"))]
fn agent_that_is_killed_ends_the_run_with_its_name() {
    let fleet = Fleet::start();
    let mut agents = [fleet.agent("site-a"), fleet.agent("site-b")];
    let run = fleet.command("stream fleet:site-a fleet:site-b --time 60s --repeats 1");
    let log = fleet.log("site-b");
    linerate_testsuite::wait_until("a session is in progress", || {
        std::fs::read_to_string(&log).ok().filter(|text| text.contains("begin"))
    });
    agents[1].kill();
    let ran = run.end();
    assert_ne!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.contains("fleet:site-b"), "{}", ran.err);
}

#[server_test(Program("nats-server"))]
fn agent_of_a_fleet_needs_credentials_of_its_own() {
    let fleet = Fleet::start();
    let serve = "serve --ephemeral --listen 127.0.0.1:0 --fleet";
    let missing = fleet.place.path("nowhere");
    fleet.run(&format!("{serve} {}", missing.display())).says(2, &["nowhere", "linerate fleet enrol"]);
    let operator = fleet.place.path("fleet-operator");
    fleet.run(&format!("{serve} {}", operator.display())).says(2, &["role operator", "linerate fleet enrol"]);
    let _agent = fleet.agent("site-a");
    let folder = fleet.place.path("fleet-site-a");
    fleet.run(&format!("{serve} {}", folder.display())).says(3, &["site-a", "already", "linerate fleet enrol"]);
    fleet.run("serve --ephemeral --listen 127.0.0.1:0 --hours 6-7").says(2, &["20:00-06:00"]);
}
