//! The program as a user runs it: its own store and runtime directory, its exit code, what it prints where.

use linerate_store::{Query, Store, StoreLocation};
use linerate_testsuite::wait_until;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;
use tempfile::TempDir;

/// No run of a test takes so long, even on a slow machine.
const LONGEST: Duration = Duration::from_secs(600);

/// A folder of its own for one test.
pub(crate) struct TestFolder {
    pub(crate) directory: TempDir,
}

/// A test that failed with a lab up takes it down all the same.
impl Drop for TestFolder {
    fn drop(&mut self) {
        if self.path("linerate").exists() {
            self.run(&["lab", "down"]);
        }
    }
}

/// What a run came to.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl TestFolder {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a temporary directory can be made") }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        std::fs::write(self.path(name), text).expect("a temporary file can be written");
        self.path(name).to_str().expect("the path is UTF-8").to_owned()
    }

    /// The file of a bench whose bridge drops a tenth of what goes to host b.
    pub(crate) fn lossy_bench(&self) -> String {
        let fault = "[[fault]]\nkind = \"loss\"\nat = \"device:b\"\nratio = \"1/10\"\n";
        let bench = format!("name = \"lossy\"\nhosts = [\"a\", \"b\"]\n[device]\nkind = \"bridge\"\n{fault}");
        self.file("lossy.toml", &bench)
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
        command
            .args(arguments)
            .current_dir(self.directory.path())
            .env("LINERATE_STORE", self.path("results.db"))
            .env("XDG_RUNTIME_DIR", self.directory.path())
            .env("XDG_DATA_HOME", self.directory.path())
            .stdin(Stdio::null());
        command
    }

    /// The command in a mount namespace of its own, after `mounts` has changed that.
    pub(crate) fn command_after(&self, mounts: &str, arguments: &[&str]) -> Command {
        let program = self.command(arguments);
        let mut shell = Command::new("unshare");
        shell.args(["--mount", "sh", "-c", &format!("{mounts} && exec \"$@\""), "sh"]);
        shell.arg(program.get_program()).args(program.get_args()).current_dir(self.directory.path());
        shell.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?)))).stdin(Stdio::null());
        shell
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        self.start(arguments).end()
    }

    /// Runs, demands success, and reads the one record on standard output.
    pub(crate) fn measure(&self, arguments: &[&str]) -> Value {
        let ran = self.run(arguments);
        assert_eq!(ran.code, Some(0), "{arguments:?}\n{}", ran.err);
        ran.json()
    }

    /// The store, looked at within this process: to start a program for each look would keep a core busy.
    pub(crate) fn store(&self) -> Store {
        Store::open(&StoreLocation::file(self.path("results.db"))).expect("a store")
    }

    /// How many trials of the latest run count, as far as the store says.
    pub(crate) fn trials(&self) -> u64 {
        let latest = self.store().list(&Query::default(), 0, 1).expect("listed").pop();
        latest.map_or(0, |run| run.trials.into())
    }

    /// The process of the agent of a host of the kept lab.
    pub(crate) fn agent(&self, host: &str) -> i32 {
        let kept = std::fs::read_to_string(self.path("linerate/lab.json")).expect("a kept lab has a file");
        let kept: Value = serde_json::from_str(&kept).expect("it is JSON");
        kept["agents"][host]["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok()).expect("a process id")
    }

    /// Packets that an interface of a host of the kept lab has received so far.
    pub(crate) fn packets_received(&self, host: &str, interface: &str) -> u64 {
        // A process sees the counters of its own network namespace there.
        let counters = std::fs::read_to_string(format!("/proc/{}/net/dev", self.agent(host))).expect("counters");
        let counts = counters.lines().find_map(|line| line.trim_start().strip_prefix(interface)?.strip_prefix(':'));
        let counts = counts.unwrap_or_else(|| panic!("{host} has no {interface}"));
        counts.split_whitespace().nth(1).and_then(|packets| packets.parse().ok()).expect("a count of packets")
    }

    /// Waits until `host` of the kept lab receives next to nothing any more. Probes alone would be 100 packets a second.
    pub(crate) fn wait_for_silence(&self, host: &str) {
        wait_until("nothing is sent any more", || {
            let before = self.packets_received(host, "eth0");
            // What comes within this time is what is looked at.
            std::thread::sleep(Duration::from_millis(500));
            (self.packets_received(host, "eth0") < before + 25).then_some(())
        });
    }

    /// Starts the program and leaves it running.
    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        self.start_command(self.command(arguments))
    }

    /// Starts a command that is not to end by itself, as a shell that becomes the program.
    pub(crate) fn start_command(&self, mut command: Command) -> Running {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        Running { child: child.expect("the program starts") }
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).expect("output is UTF-8"),
            err: String::from_utf8(output.stderr).expect("messages are UTF-8"),
        }
    }
}

impl Ran {
    /// Standard output, which must hold one JSON value and nothing else.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}\n{}", self.out, self.err))
    }

    /// Whether standard output has these words. Prose is wrapped: where its lines break depends on the figures in them.
    pub(crate) fn shows(&self, words: &str) -> bool {
        self.out.contains(words) || self.out.split_whitespace().collect::<Vec<_>>().join(" ").contains(words)
    }

    /// Demands an exit code and words on standard output.
    pub(crate) fn prints(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{}", self.err);
        for word in words {
            assert!(self.shows(word), "`{word}` is missing in: {}", self.out);
        }
    }

    /// Demands an exit code and words in what was said.
    pub(crate) fn says(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{}", self.err);
        for word in words {
            assert!(self.err.contains(word), "`{word}` is missing in: {}", self.err);
        }
    }
}

/// A program under way; ended with the test.
pub(crate) struct Running {
    child: Child,
}

impl Running {
    /// Takes a program whose output is piped.
    pub(crate) fn of(child: Child) -> Self {
        Self { child }
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a process id fits")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).expect("the program still runs");
    }

    /// Whether it has not ended yet.
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("the program can be waited for").is_none()
    }

    /// Ends it with SIGKILL, and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it is a child of this process");
        self.child.wait().expect("the program can be waited for");
    }

    /// Waits until the program's children number `count`; a lab has one for each host.
    pub(crate) fn wait_for_children(&self, count: usize) -> Vec<i32> {
        wait_until(&format!("the program has {count} children"), || {
            Some(children(self.pid())).filter(|children| children.len() >= count)
        })
    }

    /// One line of standard output.
    pub(crate) fn line(&mut self) -> String {
        line_of(self.child.stdout.as_mut().expect("standard output is piped"))
    }

    /// The next message that has `words` in it.
    pub(crate) fn message(&mut self, words: &str) -> String {
        let out = self.child.stderr.as_mut().expect("messages are piped");
        let mut lines = std::iter::repeat_with(|| line_of(out)).take_while(|line| !line.is_empty());
        lines.find(|line| line.contains(words)).unwrap_or_else(|| panic!("no message has `{words}`"))
    }

    pub(crate) fn end(mut self) -> Ran {
        let pid = self.pid();
        let child = std::mem::replace(&mut self.child, Command::new("true").spawn().expect("true(1) starts"));
        let (ended, end) = channel();
        std::thread::spawn(move || ended.send(child.wait_with_output()));
        match end.recv_timeout(LONGEST) {
            Ok(output) => output.expect("the program can be waited for").into(),
            Err(_) => {
                let state = threads(pid);
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
                panic!("the program still ran after {LONGEST:?}, its threads and its children's:\n{state}");
            }
        }
    }
}

/// A line, without its end; empty behind the last.
fn line_of(out: &mut impl Read) -> String {
    let (mut line, mut byte) = (Vec::new(), [0]);
    while out.read_exact(&mut byte).is_ok() && byte != [b'\n'] {
        line.push(byte[0]);
    }
    String::from_utf8(line).expect("output is UTF-8")
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the threads of a process, and of those that it started, wait for.
fn threads(pid: i32) -> String {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let own = tasks.map(|task| {
        let [name, state] =
            ["comm", "wchan"].map(|file| std::fs::read_to_string(task.path().join(file)).unwrap_or_default());
        format!("{pid} {}: {state}\n", name.trim())
    });
    own.chain(children(pid).into_iter().map(threads)).collect()
}

/// Direct children of a process, whichever of its threads started them.
pub(crate) fn children(pid: i32) -> Vec<i32> {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    tasks
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|line| line.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>())
        .collect()
}

/// Whether a process still runs (a zombie does not).
pub(crate) fn alive(pid: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    status.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// Waits until none of the processes runs any more.
pub(crate) fn wait_until_gone(pids: &[i32]) {
    wait_until("the processes end", || pids.iter().all(|pid| !alive(*pid)).then_some(()));
}

/// A command line as typed, without quotes.
pub(crate) fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// The number at a JSON pointer.
pub(crate) fn number(value: &Value, pointer: &str) -> f64 {
    let found = value.pointer(pointer).and_then(Value::as_f64);
    found.unwrap_or_else(|| {
        panic!("no number at {pointer} of {}", value.to_string().chars().take(4_000).collect::<String>())
    })
}

/// The first attempt of `record` that counts and whose name is as `wanted`. One that the tester spoilt may stand before it.
pub(crate) fn counted_as(record: &Value, wanted: impl Fn(&str) -> bool) -> &Value {
    let mut trials = record["trials"].as_array().expect("a record has trials").iter();
    let is =
        |trial: &&Value| trial["standing"]["is"] == "counted" && trial["trial"]["name"].as_str().is_some_and(&wanted);
    trials.find(is).unwrap_or_else(|| panic!("no such trial counts: {}", record["trials"]))
}

/// The first attempt of `record` that counts.
pub(crate) fn counted(record: &Value) -> &Value {
    counted_as(record, |_| true)
}

/// Demands that `value` is within `share` of `truth`.
/// The frames that were sent of those that were `due`: all of them, or fewer if the tester was held up, which it says then.
pub(crate) fn frames_sent(flow: &Value, due: f64) -> f64 {
    let sent = number(flow, "/sent");
    let held_up = flow["caveats"].to_string().contains("below-offered-rate");
    assert!(sent == due || held_up && sent < due, "{sent} of {due} were sent: {flow}");
    sent
}

pub(crate) fn close(what: &str, value: f64, truth: f64, share: f64) {
    let off = (value - truth) / truth;
    assert!(off.abs() <= share, "{what}: {value} is {:+.2} % off {truth}", off * 100.0);
    eprintln!("{what}: {value:.0}, {:+.3} % off the truth", off * 100.0);
}
