//! Child processes of a lab, for planted limits and faults: a neighbour that takes a core's time, a slow disk, a path,
//! cross traffic, a slow router, the PAUSE frames of a reference device, an Open vSwitch, and a keeper that removes a control group when its agent
//! is gone.
//!
//! Each lives until its standard input ends. The other end of that pipe is the lab's, and the agents' of a lab that is
//! kept, so that they end with it however it ends, and the keeper still does its work after a kill -9.

use crate::linux::lifeline::wait_for_end;
use crate::linux::open_vswitch::{self, OpenVswitchWatch};
use crate::linux::open_vswitch_limits::OpenVswitchLimits;
use crate::linux::path::{self, PathPlan, PathWatch};
use crate::linux::slow_disk::READY;
use crate::{LabError, SlowDisk, SlowRouter};
use linerate_sys::affinity;
use linerate_sys::cgroup;
use linerate_sys::namespace::{MountNamespace, NetNamespace};
use linerate_sys::process::{Placement, ProcessId, spawn};
use linerate_sys::thread::SessionFirst;
use linerate_units::{ByteCount, Nanos, Ratio};
use std::fs;
use std::io::{self, BufRead as _, BufReader, PipeReader, PipeWriter};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Period of a neighbour: busy for its share, asleep for the remainder.
const TURN: Duration = Duration::from_millis(10);
/// The period of a quota, the kernel's own default.
const PERIOD_US: u64 = 100_000;
/// The shortest quota that the kernel takes.
const QUOTA_MINIMUM_US: u64 = 1_000;
/// Time that a keeper waits for the agent to be gone, and the lab for the keeper.
const GRACE: Duration = Duration::from_secs(5);

/// Child processes of a lab.
pub(crate) struct ChildProcesses {
    program: PathBuf,
    children: Vec<Child>,
    ends: PipeReader,
    lives: Option<PipeWriter>,
}

impl ChildProcesses {
    pub(crate) fn new(program: &Path) -> Result<Self, LabError> {
        let (ends, lives) = io::pipe().map_err(|error| {
            LabError::at("plant the faults")(linerate_sys::Error::new("pipe2", "the lab's life line", error))
        })?;
        Ok(Self { program: program.to_owned(), children: Vec::new(), ends, lives: Some(lives) })
    }

    /// Returns the descriptor that keeps them alive while it is open.
    pub(crate) fn life(&self) -> Result<OwnedFd, LabError> {
        let life = self.lives.as_ref().map_or_else(|| Err(io::ErrorKind::NotFound.into()), PipeWriter::try_clone);
        life.map(OwnedFd::from).map_err(|error| failed(linerate_sys::Error::new("dup", "the lab's life line", error)))
    }

    /// Starts a neighbour that takes `share` of `core`, `first` among all that run there.
    pub(crate) fn take(&mut self, core: u32, share: Ratio, first: bool) -> Result<(), LabError> {
        let mut words = vec![String::from("neighbour"), core.to_string(), share.as_f64().to_string()];
        words.extend(first.then(|| String::from("first")));
        self.start(&words)
    }

    /// Allows process `pid` no more than `share` of a core.
    pub(crate) fn limit(&mut self, pid: u32, share: Ratio) -> Result<(), LabError> {
        let failed = |path: &Path, error: io::Error| {
            let object = format!("{} (a CPU quota needs a control group that this user may make)", path.display());
            LabError::at("plant the CPU quota")(linerate_sys::Error::new("write", object, error))
        };
        let parent_group = cgroup::groups("cpu").into_iter().next().ok_or_else(|| {
            failed(Path::new("/sys/fs/cgroup"), io::Error::other("no hierarchy with the cpu controller is mounted"))
        })?;
        let group = parent_group.join(format!("linerate-{pid}"));
        // The keeper first: whatever happens next, somebody removes the group.
        self.start(&[String::from("keeper"), group.display().to_string()])?;
        let write = |name: &str, text: String| {
            let file = group.join(name);
            fs::write(&file, text).map_err(|error| failed(&file, error))
        };
        let quota = ((share.as_f64() * PERIOD_US as f64) as u64).max(QUOTA_MINIMUM_US);
        // Version 2 hands the controller down only where that is asked for; it is there already in version 1.
        let _ = fs::write(parent_group.join("cgroup.subtree_control"), "+cpu");
        fs::create_dir(&group).map_err(|error| failed(&group, error))?;
        if group.join("cpu.max").exists() {
            write("cpu.max", format!("{quota} {PERIOD_US}"))?;
        } else {
            write("cpu.cfs_period_us", PERIOD_US.to_string())?;
            write("cpu.cfs_quota_us", quota.to_string())?;
        }
        write("cgroup.procs", pid.to_string())
    }

    /// Puts `folders` on a slow disk, for who enters the mount namespace.
    pub(crate) fn slow_disk(&mut self, disk: &SlowDisk, folders: &[PathBuf]) -> Result<MountNamespace, LabError> {
        let step = format!("plant the slow disk of host {}", disk.host);
        let mut command = self.command(&[String::from("slow-disk"), disk.to_string()])?;
        command.arg("--").args(folders);
        let process = self.spawn_until_ready(command, None, &step)?;
        MountNamespace::of_process(process).map_err(LabError::at(step))
    }

    /// Starts the process that answers for a slow router, in the router's namespace.
    pub(crate) fn slow_router(&mut self, plan: &SlowRouter, router: &NetNamespace) -> Result<(), LabError> {
        let command = self.command(&[String::from("slow-router"), plan.to_string()])?;
        self.spawn_until_ready(command, Some(router), "plant the slow router").map(drop)
    }

    /// Starts the process that sends the PAUSE frames of a reference device, as its map `asked` asks for them.
    pub(crate) fn pauses(&mut self, asked: BorrowedFd<'_>, device: &NetNamespace) -> Result<(), LabError> {
        let failed = |error: io::Error| {
            LabError::at("make the reference device")(linerate_sys::Error::new("spawn", "its PAUSE frames", error))
        };
        let (reader, writer) = io::pipe().map_err(failed)?;
        let mut command = self.command(&[String::from("pauses")])?;
        command.stdout(asked.try_clone_to_owned().map_err(failed)?).stderr(writer);
        self.spawn(command, Some(device))?;
        read_ready(reader).map_err(failed)
    }

    /// Starts an Open vSwitch between the ports in `device`, on one `core` if it is given.
    pub(crate) fn open_vswitch(
        &mut self,
        limits: &OpenVswitchLimits,
        core: Option<u32>,
        device: &NetNamespace,
    ) -> Result<OpenVswitchWatch, LabError> {
        let (ours, its) = UnixStream::pair().map_err(open_vswitch::failed)?;
        let mut words = vec![String::from("open-vswitch"), limits.to_string()];
        words.extend(core.map(|core| core.to_string()));
        let mut command = self.command(&words)?;
        command.stdout(OwnedFd::from(its)).stderr(Stdio::null());
        self.spawn(command, Some(device))?;
        let mut output = BufReader::new(ours);
        let mut line = String::new();
        output.read_line(&mut line).map_err(open_vswitch::failed)?;
        match line.trim_end() {
            open_vswitch::READY => OpenVswitchWatch::new(output),
            "" => Err(open_vswitch::failed(io::Error::other("its process ended early"))),
            problem => Err(open_vswitch::failed(io::Error::other(problem.to_owned()))),
        }
    }

    /// Starts what sends datagrams of `size` bytes by the first socket, one each `interval`, and receives by the
    /// second.
    pub(crate) fn exchange(
        &mut self,
        [sender, receiver]: [OwnedFd; 2],
        interval: Nanos,
        size: ByteCount,
    ) -> Result<(), LabError> {
        let words = [String::from("cross"), interval.get().to_string(), size.get().to_string()];
        let mut command = self.command(&words)?;
        command.stdout(sender).stderr(receiver);
        self.spawn(command, None).map(drop)
    }

    /// Starts the path of `plan` between the ports in `device`.
    pub(crate) fn path(&mut self, plan: &PathPlan, device: &NetNamespace) -> Result<PathWatch, LabError> {
        let failed =
            |error: io::Error| LabError::at("make the path")(linerate_sys::Error::new("spawn", "the path", error));
        let (ours, its) = UnixStream::pair().map_err(failed)?;
        let mut command = self.command(&[String::from("path"), plan.to_string()])?;
        command.stdout(OwnedFd::from(its)).stderr(Stdio::null());
        self.spawn(command, Some(device))?;
        let mut output = BufReader::new(ours);
        let mut words = String::new();
        output.read_line(&mut words).map_err(failed)?;
        match words.trim_end() {
            path::READY => Ok(PathWatch::new(output)),
            "" => Err(failed(io::Error::other("it ended without a word"))),
            words => Err(failed(io::Error::other(words.to_owned()))),
        }
    }

    /// Ends them; to be called when the agents are gone.
    pub(crate) fn end(mut self) {
        self.lives = None;
        for child in &mut self.children {
            let deadline = Instant::now() + GRACE;
            while matches!(child.try_wait(), Ok(None)) {
                if Instant::now() > deadline {
                    // Not yet waited for: the number is still its own.
                    let _ = ProcessId::of(child.id()).is_none_or(|process| process.end(Duration::ZERO).is_ok());
                    break;
                }
                thread::sleep(Duration::from_millis(5));
            }
            let _ = child.wait();
        }
    }

    fn start(&mut self, words: &[String]) -> Result<(), LabError> {
        let mut command = self.command(words)?;
        command.stdout(Stdio::null()).stderr(Stdio::null());
        self.spawn(command, None).map(drop)
    }

    /// Returns a command that runs this program until the lab is gone.
    fn command(&self, words: &[String]) -> Result<Command, LabError> {
        let ends = self.ends.try_clone();
        let ends = ends.map_err(|error| failed(linerate_sys::Error::new("dup", "the lab's life line", error)))?;
        let mut command = Command::new(&self.program);
        command.args(["lab", "beside"]).args(words).stdin(ends);
        Ok(command)
    }

    /// Starts it, waits until it is ready, and returns its number. `step` is for errors.
    fn spawn_until_ready(
        &mut self,
        mut command: Command,
        net: Option<&NetNamespace>,
        step: &str,
    ) -> Result<u32, LabError> {
        let failed = |error: io::Error| LabError::at(step)(linerate_sys::Error::new("spawn", "its process", error));
        let (reader, writer) = io::pipe().map_err(failed)?;
        command.stdout(writer.try_clone().map_err(failed)?).stderr(writer);
        let process = self.spawn(command, net)?;
        read_ready(reader).map_err(failed)?;
        Ok(process)
    }

    /// Starts it, in a network if one is said, and gives its number.
    fn spawn(&mut self, mut command: Command, net: Option<&NetNamespace>) -> Result<u32, LabError> {
        let placement = Placement { own_session: true, net: net.map(|net| net.as_fd()), ..Placement::default() };
        let child = spawn(&mut command, &placement).map_err(failed)?;
        let number = child.id();
        self.children.push(child);
        Ok(number)
    }
}

/// Waits until a process is ready, or returns why it is not.
fn read_ready(output: PipeReader) -> io::Result<()> {
    let mut words = String::new();
    BufReader::new(output).read_line(&mut words)?;
    match words.trim_end() {
        READY => Ok(()),
        words => Err(io::Error::other(words.to_owned())),
    }
}

fn failed(error: linerate_sys::Error) -> LabError {
    LabError::at("plant the faults")(error)
}

/// Takes `share` of `core` until standard input ends; `first` among all that run there.
pub fn neighbour(core: u32, share: f64, first: bool) -> Result<(), linerate_sys::Error> {
    thread::spawn(move || {
        // What is refused makes for a milder neighbour.
        let _ = affinity::pin(core);
        let _first = first.then(SessionFirst::new);
        let busy = TURN.mul_f64(share.clamp(0.0, 1.0));
        loop {
            let begun = Instant::now();
            while begun.elapsed() < busy {
                std::hint::spin_loop();
            }
            thread::sleep(TURN.saturating_sub(begun.elapsed()));
        }
    });
    wait_for_end()
}

/// Waits until standard input ends and the control group is empty, and removes it.
pub fn keeper(group: &Path) -> Result<(), linerate_sys::Error> {
    wait_for_end()?;
    let deadline = Instant::now() + GRACE;
    loop {
        match fs::remove_dir(group) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if Instant::now() > deadline => {
                return Err(linerate_sys::Error::new("rmdir", group.display().to_string(), error));
            }
            Err(_) => thread::sleep(Duration::from_millis(5)),
            Ok(()) => return Ok(()),
        }
    }
}
