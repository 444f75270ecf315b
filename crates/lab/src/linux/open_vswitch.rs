//! Open vSwitch as the device of a lab, with the userspace datapath, which needs no kernel module.
//!
//! A child process of the lab runs ovsdb-server and ovs-vswitchd in the device's network namespace. A mount namespace
//! gives them an empty /run for database and sockets. They cannot reach an Open vSwitch of the machine, and the
//! kernel removes their files when they end.

mod watch;

pub use watch::OpenVswitchWatch;

use crate::LabError;
use crate::linux::lifeline::wait_for_end;
use crate::linux::open_vswitch_limits::OpenVswitchLimits;
use linerate_sys::namespace::enter_mount_namespace;
use linerate_sys::netlink::Route;
use linerate_sys::process::{Placement, spawn};
use linerate_sys::thread::SessionFirst;
use linerate_sys::{Error, affinity};
use nix::mount::{MsFlags, mount};
use std::env;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Line that the process prints when the switch forwards.
pub(crate) const READY: &str = "ready";
/// The Debian package with all programs, by itself or by what it depends on.
const PACKAGE: &str = "openvswitch-switch";
/// Folder of the database and the sockets.
const FOLDER: &str = "/run";
/// Socket of the database, at its default place in the folder.
const DATABASE_SOCKET: &str = "/run/db.sock";
const BRIDGE: &str = "br0";
/// Time for ovs-vswitchd to make the bridge: the machine may be busy.
const CONFIGURE_S: u64 = 60;
/// Interval of looking for the socket.
const LOOK: Duration = Duration::from_millis(5);

/// Makes an empty database.
const DATABASE_TOOL: &str = "ovsdb-tool";
/// Serves the database.
const DATABASE_SERVER: &str = "ovsdb-server";
/// Forwards frames.
const SWITCH: &str = "ovs-vswitchd";
/// Writes the bridge into the database, and waits until it is made.
const CONTROL: &str = "ovs-vsctl";

/// Checks that the programs are installed.
pub(crate) fn check_programs() -> Result<(), LabError> {
    for name in [DATABASE_TOOL, DATABASE_SERVER, SWITCH, CONTROL] {
        find(name).map_err(failed)?;
    }
    Ok(())
}

/// Returns the error of the lab for a problem of Open vSwitch.
pub(crate) fn failed(error: io::Error) -> LabError {
    LabError::OpenVswitch { problem: error.to_string() }
}

/// Returns the path of a program. Also searches the folders of system programs, which a user's PATH may lack.
fn find(name: &str) -> io::Result<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    let mut files = env::split_paths(&path).chain(system).map(|folder| folder.join(name));
    files
        .find(|file| file.is_file())
        .ok_or_else(|| io::Error::other(format!("the program {name} is missing; install the Debian package {PACKAGE}")))
}

/// Makes all interfaces of the calling thread's namespace, except loopback, ports of an Open vSwitch, and runs it until
/// standard input ends. With a `core`, all its threads run there. Prints one line to standard output when it is ready,
/// and another if a program ends early.
///
/// # Errors
///
/// Fails if a program is missing or ends, or if the bridge cannot be made.
pub fn serve(limits: &OpenVswitchLimits, core: Option<u32>) -> Result<(), Error> {
    let mut running = Running::default();
    let result = run(limits, core, &mut running);
    // A lab that was kept reads no more.
    let _ = result.as_ref().map_err(|error| writeln!(io::stdout(), "{error}"));
    running.end();
    result.map_err(|error| Error::new("run", "Open vSwitch", error))
}

fn run(limits: &OpenVswitchLimits, core: Option<u32>, running: &mut Running) -> io::Result<()> {
    // The programs inherit core and order. A refusal makes the switch slower.
    if let Some(core) = core {
        let _ = affinity::pin(core);
    }
    let _first = core.and_then(|_| SessionFirst::new().ok());
    // Open vSwitch adds interfaces of its own later.
    let ports = ports().map_err(io::Error::other)?;
    enter_private_folder().map_err(io::Error::other)?;
    let (sender, events) = mpsc::channel();
    let lab = sender.clone();
    thread::Builder::new().name(String::from("lab")).spawn(move || {
        // An error ends the switch as well.
        let _ = wait_for_end();
        let _ = lab.send(Event::LabEnded);
    })?;
    let created = command(DATABASE_TOOL)?.arg("create").output()?;
    if !created.status.success() {
        let problem = String::from_utf8_lossy(&created.stderr).trim_end().to_owned();
        return Err(io::Error::other(format!("{DATABASE_TOOL} made no database: {problem}")));
    }
    running.start(DATABASE_SERVER, &[format!("--remote=punix:{DATABASE_SOCKET}")], &sender)?;
    wait_for(Path::new(DATABASE_SOCKET));
    running.start(SWITCH, &[], &sender)?;
    running.start(CONTROL, &configuration(&ports, limits), &sender)?;
    for event in &events {
        match event {
            Event::LabEnded => break,
            Event::Ended(CONTROL) => {
                running.check_configured()?;
                writeln!(io::stdout(), "{READY}")?;
            }
            Event::Ended(name) => return Err(running.ended(name)),
        }
    }
    Ok(())
}

/// Returns the names of the interfaces that become ports.
fn ports() -> Result<Vec<String>, Error> {
    let links = Route::open()?.links()?;
    Ok(links.into_iter().filter(|link| !link.loopback).map(|link| link.name).collect())
}

/// Gives the calling thread, and the programs that it starts, an empty folder for the files of Open vSwitch.
fn enter_private_folder() -> Result<(), Error> {
    enter_mount_namespace()?;
    mount(Some("tmpfs"), FOLDER, Some("tmpfs"), MsFlags::empty(), Some("mode=0700"))
        .map_err(|error| Error::new("mount(tmpfs)", FOLDER, error))
}

/// Waits until the socket is there. The programs would try again only after a second.
fn wait_for(socket: &Path) {
    let deadline = Instant::now() + Duration::from_secs(CONFIGURE_S);
    while !socket.exists() && Instant::now() < deadline {
        thread::sleep(LOOK);
    }
}

/// Returns a command that runs a program of Open vSwitch with its files in the private folder.
fn command(name: &str) -> io::Result<Command> {
    let mut command = Command::new(find(name)?);
    for variable in ["OVS_RUNDIR", "OVS_DBDIR", "OVS_SYSCONFDIR", "OVS_LOGDIR"] {
        command.env(variable, FOLDER);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null());
    Ok(command)
}

/// Returns the arguments of ovs-vsctl that make the bridge.
fn configuration(ports: &[String], limits: &OpenVswitchLimits) -> Vec<String> {
    let timeout = format!("--timeout={CONFIGURE_S}");
    let mut arguments = vec!["--no-syslog", "--retry", &timeout, "--", "add-br", BRIDGE];
    arguments.extend(["--", "set", "bridge", BRIDGE, "datapath_type=netdev", "fail-mode=standalone"]);
    let settings: Vec<_> = limits.settings().iter().map(|setting| format!("other-config:{setting}")).collect();
    arguments.extend(settings.iter().map(String::as_str));
    // The queueing disciplines of the ports are the lab's.
    arguments.extend(["--", "--id=@none", "create", "qos", "type=linux-noop"]);
    for port in ports {
        arguments.extend(["--", "add-port", BRIDGE, port, "--", "set", "port", port, "qos=@none"]);
    }
    arguments.into_iter().map(str::to_owned).collect()
}

/// Events in the life of a switch.
enum Event {
    /// The lab is gone.
    LabEnded,
    /// The program of this name has ended.
    Ended(&'static str),
}

/// Programs of a switch.
#[derive(Default)]
struct Running(Vec<Program>);

/// A program that was started.
struct Program {
    name: &'static str,
    child: Child,
    log: Arc<Mutex<Log>>,
}

/// First and last line that a program logged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Log {
    first: Option<String>,
    last: Option<String>,
}

impl Running {
    /// Starts a program. The calling thread must outlive it.
    fn start(&mut self, name: &'static str, arguments: &[String], events: &mpsc::Sender<Event>) -> io::Result<()> {
        let mut command = command(name)?;
        command.args(arguments).stderr(Stdio::piped());
        if name != CONTROL {
            command.args(["--verbose=syslog:off", "--verbose=console:warn"]);
        }
        let placement = Placement { ends_with_thread: true, ..Placement::default() };
        let mut child = spawn(&mut command, &placement).map_err(io::Error::other)?;
        let log = Arc::default();
        if let Some(output) = child.stderr.take() {
            let log = Arc::clone(&log);
            let events = events.clone();
            thread::Builder::new().name(name.to_owned()).spawn(move || {
                read(output, &log);
                let _ = events.send(Event::Ended(name));
            })?;
        }
        self.0.push(Program { name, child, log });
        Ok(())
    }

    /// Checks that ovs-vsctl, which has ended, has made the bridge with all its ports.
    fn check_configured(&mut self) -> io::Result<()> {
        let Some(control) = self.0.iter_mut().find(|program| program.name == CONTROL) else { return Ok(()) };
        let status = control.child.wait()?;
        // It succeeds even if a port could not be set up, and says so.
        let Some(problem) = control.log().first else {
            return if status.success() { Ok(()) } else { Err(io::Error::other(format!("{CONTROL} ended: {status}"))) };
        };
        let switch = self.0.iter().find(|program| program.name == SWITCH);
        let cause = switch.and_then(|switch| switch.log().first).unwrap_or_else(|| String::from("nothing was logged"));
        Err(io::Error::other(format!("{problem} First line in the log of {SWITCH}: {cause}")))
    }

    /// Returns the error for a program that has ended.
    fn ended(&mut self, name: &str) -> io::Error {
        let Some(program) = self.0.iter_mut().find(|program| program.name == name) else {
            return io::Error::other(format!("{name} ended"));
        };
        let status = program.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        let line = program.log().last.unwrap_or_else(|| String::from("none"));
        io::Error::other(format!("{name} ended early ({status}); its last log line: {line}"))
    }

    /// Ends the programs and waits for them.
    fn end(self) {
        for mut program in self.0 {
            // An error means that it has ended.
            let _ = program.child.kill();
            let _ = program.child.wait();
        }
    }
}

impl Program {
    fn log(&self) -> Log {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Reads the log of a program until it ends.
fn read(output: ChildStderr, log: &Mutex<Log>) {
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        log.lock().unwrap_or_else(PoisonError::into_inner).add(&line);
    }
}

impl Log {
    /// Adds a line, as in `2026-11-29T21:13:14Z|00001|netdev_linux|WARN|text`, without what precedes the text.
    fn add(&mut self, line: &str) {
        let text = line.splitn(5, '|').nth(4).unwrap_or(line);
        self.first.get_or_insert_with(|| text.to_owned());
        self.last = Some(text.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_keeps_the_text_of_its_first_and_last_line() {
        let mut log = Log::default();
        for line in [
            "2026-11-29T21:13:14Z|00001|netdev_linux|WARN|opening \"/dev/net/tun\" failed: Permission denied",
            "2026-11-29T21:13:14Z|00002|dpif|WARN|failed to create datapath",
            "Segmentation fault",
        ] {
            log.add(line);
        }
        assert_eq!(log.first.as_deref(), Some("opening \"/dev/net/tun\" failed: Permission denied"));
        assert_eq!(log.last.as_deref(), Some("Segmentation fault"));
    }

    #[test]
    fn configuration_has_every_port_and_limit() {
        let limits = OpenVswitchLimits { addresses: Some(256), ageing: None };
        let line = configuration(&["port-a".to_owned(), "port-b".to_owned()], &limits).join(" ");
        for part in [
            "datapath_type=netdev fail-mode=standalone other-config:mac-table-size=256 --",
            "-- add-port br0 port-a -- set port port-a qos=@none",
            "-- add-port br0 port-b -- set port port-b qos=@none",
        ] {
            assert!(line.contains(part), "{line}");
        }
    }

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        assert!(find("sh").is_ok());
        let error = failed(find("ovs-no-such-program").expect_err("there is none")).to_string();
        assert!(error.contains("ovs-no-such-program") && error.contains("openvswitch-switch"), "{error}");
    }
}
