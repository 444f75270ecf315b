//! However a lab ends, nothing stays; unless it is kept.

use crate::support::{agents_told, bench_program, fake_agent, up, wait_for};
use linerate_testsuite::{alone, lab_test, wait_until};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The network namespaces that processes are in.
fn namespaces() -> BTreeSet<String> {
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    let links = entries.filter_map(|entry| fs::read_link(entry.path().join("ns/net")).ok());
    links.map(|link| link.to_string_lossy().into_owned()).collect()
}

/// Network namespaces. They are held open, so that the kernel gives their numbers to no others.
pub(crate) struct Spaces {
    pub(crate) names: BTreeSet<String>,
    _held: Vec<fs::File>,
}

/// The network namespaces of the agents that run now, but of those before. Other programs' come and go as they like.
pub(crate) fn namespaces_of_agents(before: &Outside) -> Spaces {
    let agents = agents_told("").into_iter().filter(|agent| !before.agents.contains(agent));
    let opened = agents.filter_map(|(pid, _)| {
        let path = format!("/proc/{pid}/ns/net");
        let held = fs::File::open(&path).ok()?;
        Some((fs::read_link(path).ok()?.to_string_lossy().into_owned(), held))
    });
    let (names, held) = opened.unzip();
    Spaces { names, _held: held }
}

/// Waits until all is as it was `before`, and no process is in any of the namespaces. The kernel removes a namespace by
/// a worker of its own, in its own time.
pub(crate) fn nothing_stays(before: &Outside, spaces: &Spaces) {
    let gone = || (Outside::now() == *before && namespaces().is_disjoint(&spaces.names)).then_some(());
    wait_until("all that the lab had goes", gone);
}

/// Links in this test's own namespace.
fn links() -> Vec<String> {
    let mut route = linerate_sys::netlink::Route::open().expect("netlink");
    route.links().expect("links").into_iter().map(|link| link.name).collect()
}

/// How to run the test of a kept lab that another program built.
const KEPT_LAB_TEST: [&str; 3] = ["--exact", "endings::kept_lab_from_another_program", "--ignored"];

/// What is there before a lab and must be there after it, and nothing else.
#[derive(Debug, PartialEq)]
pub(crate) struct Outside {
    agents: Vec<(u32, String)>,
    links: Vec<String>,
    named: Vec<String>,
}

impl Outside {
    pub(crate) fn now() -> Self {
        let named = fs::read_dir("/run/netns").into_iter().flatten().flatten();
        Self {
            agents: agents_told(""),
            links: links(),
            named: named.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect(),
        }
    }
}

/// The example program, with a bench up.
pub(crate) struct Program {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Program {
    pub(crate) fn start(command: &mut Command, arguments: &[&str]) -> Self {
        Self::start_with(command, &fake_agent(), arguments)
    }

    fn start_with(command: &mut Command, agent: &Path, arguments: &[&str]) -> Self {
        command.arg(agent).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the example program `bench`");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("piped"));
        Self { child, input, output }
    }

    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("output");
        line.trim_end().to_owned()
    }

    pub(crate) fn number(&self) -> u32 {
        self.child.id()
    }

    fn ask(&mut self, line: &str) -> String {
        writeln!(self.input.as_mut().expect("open"), "{line}").expect("input");
        self.line()
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().expect("kill -9");
        self.child.wait().expect("wait");
    }

    fn finish(mut self) {
        self.input = None;
        assert!(self.child.wait().expect("wait").success());
    }
}

pub(crate) fn bench_command(runtime: &Path) -> Command {
    let mut command = Command::new(bench_program());
    command.env("XDG_RUNTIME_DIR", runtime);
    command
}

#[lab_test]
fn a_lab_that_is_dropped_or_taken_down_leaves_nothing() {
    let _alone = alone();
    let before = Outside::now();
    let lab = up("name = 'x'");
    assert_eq!(agents_told("").len(), before.agents.len() + 4);
    wait_for(lab.down());
    assert_eq!(Outside::now(), before);
    drop(up("name = 'x'\ndevice = { kind = 'router' }"));
    assert_eq!(Outside::now(), before);
}

#[lab_test]
fn a_program_killed_leaves_nothing() {
    let _alone = alone();
    let before = Outside::now();
    let runtime = tempfile::tempdir().expect("a directory");
    let mut program = Program::start(&mut bench_command(runtime.path()), &["switch"]);
    assert_eq!(program.line(), "up");
    assert_eq!(agents_told("").len(), before.agents.len() + 4);
    let spaces = namespaces_of_agents(&before);
    assert_eq!(spaces.names.len(), 4);
    // A program in a host ends too.
    writeln!(program.input.as_mut().expect("open"), "a exec {} serve guest", fake_agent().display()).expect("input");
    wait_until("the program runs", || (agents_told("guest").len() == 1).then_some(()));
    program.kill();
    nothing_stays(&before, &spaces);
    assert_eq!(fs::read_dir(runtime.path()).expect("directory").count(), 0);
}

#[lab_test]
fn a_kept_lab_stays_until_it_is_taken_down() {
    let _alone = alone();
    let before = Outside::now();
    let runtime = tempfile::tempdir().expect("a directory");
    let mut program = Program::start(&mut bench_command(runtime.path()), &["switch", "keep"]);
    assert_eq!(program.line(), "up");
    program.finish();
    assert_eq!(agents_told("").len(), before.agents.len() + 4);
    let spaces = namespaces_of_agents(&before);
    let file = runtime.path().join("linerate/lab.json");
    assert_eq!(fs::metadata(&file).expect("state").permissions().mode() & 0o777, 0o600);

    // A second one is refused and changes nothing.
    let mut second = bench_command(runtime.path());
    second.arg(fake_agent()).args(["cable", "keep"]).stdin(Stdio::null());
    let refused = second.output().expect("bench");
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && words.contains("AlreadyKept"), "{words}");
    assert_eq!(agents_told("").len(), before.agents.len() + 4);

    // The rest in a program of its own, because the environment says where the file is.
    let status = Command::new(std::env::current_exe().expect("this program"))
        .args(KEPT_LAB_TEST)
        .env("XDG_RUNTIME_DIR", runtime.path())
        .status();
    assert!(status.expect("this program").success());
    assert!(!file.exists());
    nothing_stays(&before, &spaces);

    // What is stale is no lab, and is removed.
    let pid = std::process::id();
    let ticks = 1;
    let agent = format!("{{\"pid\":{pid},\"started_ticks\":{ticks},\"url\":\"{}\"}}", agent_url());
    let state = format!("{{\"bench\":\"x\",\"boot_id\":\"other\",\"agents\":{{\"a\":{agent}}}}}");
    fs::write(&file, state).expect("state");
    let mut program = Program::start(&mut bench_command(runtime.path()), &["cable"]);
    assert_eq!(program.line(), "up");
    program.finish();
    let mut third = Program::start(&mut bench_command(runtime.path()), &["cable", "keep"]);
    assert_eq!(third.line(), "up");
    // Killed before it says keep: what it built can still be found and taken down.
    let spaces = namespaces_of_agents(&before);
    third.kill();
    assert!(file.exists());
    let status = Command::new(std::env::current_exe().expect("this program"))
        .args(KEPT_LAB_TEST)
        .env("XDG_RUNTIME_DIR", runtime.path())
        .status();
    assert!(status.expect("this program").success());
    nothing_stays(&before, &spaces);
}

/// Started by the test above with a kept lab to look into and take down.
#[test]
#[ignore = "part of a_kept_lab_stays_until_it_is_taken_down"]
fn kept_lab_from_another_program() {
    let kept = linerate_lab::kept().expect("state").expect("a kept lab");
    assert_eq!(kept.hosts().len(), agents_told("").len());
    let addresses = || {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg("grep -q 198.18.0.1 /proc/self/net/fib_trie && exit 7");
        kept.enter(&crate::support::host("a"), shell).expect("enter")
    };
    assert_eq!(addresses().code(), Some(7));
    let error = kept.enter(&crate::support::host("q"), Command::new("true")).expect_err("no such host").to_string();
    assert!(error.contains("`q`"), "{error}");
    kept.down().expect("down");
    assert!(linerate_lab::kept().expect("state").is_none());
    assert_eq!(agents_told(""), []);
}

fn agent_url() -> String {
    format!("linerate://127.0.0.1:4747#{}.{}", "0".repeat(32), "0".repeat(64))
}

/// A user without any privilege, by custom `nobody`.
const NOBODY: u32 = 65_534;

/// A directory of that user with programs that it may run, wherever the checkout is.
struct Home {
    directory: tempfile::TempDir,
    bench: PathBuf,
    agent: PathBuf,
    test: PathBuf,
}

impl Home {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        chown(directory.path(), Some(NOBODY), Some(NOBODY)).expect("chown");
        let copy = |program: PathBuf| {
            let copied = directory.path().join(program.file_name().expect("a program"));
            fs::copy(&program, &copied).expect("copy");
            chown(&copied, Some(NOBODY), Some(NOBODY)).expect("chown");
            copied
        };
        let bench = copy(bench_program());
        let agent = copy(fake_agent());
        let test = copy(std::env::current_exe().expect("this program"));
        Self { directory, bench, agent, test }
    }

    /// `program` as that user.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("XDG_RUNTIME_DIR", self.directory.path()).current_dir(self.directory.path());
        command.uid(NOBODY).gid(NOBODY);
        command
    }

    fn start(&self, arguments: &[&str]) -> Program {
        Program::start_with(&mut self.command(&self.bench), &self.agent, arguments)
    }
}

#[lab_test]
fn an_ordinary_user_builds_a_lab() {
    let _alone = alone();
    let before = Outside::now();
    let home = Home::new();
    let bench = "name = 'x'\nhosts = ['a', 'b']\nlink = { rate = '100M' }\ndevice = { kind = 'router' }\n\
                 [[fault]]\nkind = 'loss'\nat = 'a'\nratio = '1%'";
    fs::write(home.directory.path().join("x.toml"), bench).expect("bench file");
    let mut program = home.start(&["x.toml"]);
    assert_eq!(program.line(), "up");
    assert_eq!(agents_told("").len(), before.agents.len() + 2);
    assert_eq!(program.ask("a grep -q 198.18.1.2 /proc/self/net/fib_trie"), "exit status: 0");
    assert_eq!(program.ask("b exit 5"), "exit status: 5");
    program.finish();
    assert_eq!(Outside::now(), before);

    // Killed, it leaves nothing either.
    let mut program = home.start(&["switch"]);
    assert_eq!(program.line(), "up");
    let spaces = namespaces_of_agents(&before);
    program.kill();
    nothing_stays(&before, &spaces);

    // Kept, it is found and taken down from outside the user namespace.
    let mut program = home.start(&["switch", "keep"]);
    assert_eq!(program.line(), "up");
    let spaces = namespaces_of_agents(&before);
    program.finish();
    let status = home.command(&home.test).args(KEPT_LAB_TEST).status();
    assert!(status.expect("this program").success());
    nothing_stays(&before, &spaces);
}

#[lab_test]
fn a_user_who_may_not_is_told_what_would_change_that() {
    let _alone = alone();
    // In a user namespace of its own, where no more may be made, and without the privilege it gives.
    let home = Home::new();
    let forbid = "echo 0 > /proc/sys/user/max_user_namespaces && \
                  exec setpriv --bounding-set=-all --inh-caps=-all ./bench agent switch";
    let refused = home.command(Path::new("unshare")).args(["-Ur", "sh", "-c", forbid]).output().expect("unshare");
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success(), "{words}");
    assert!(
        words.contains("unshare(CLONE_NEWUSER)") && words.contains("sysctl -w user.max_user_namespaces=15000"),
        "{words}"
    );
}
