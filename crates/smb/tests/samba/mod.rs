//! A Samba server of a test's own: its files, its passwords and its port, on loopback, gone with the test.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Who may log in: only an account of the system can, and this one is everywhere.
pub(crate) const USER: &str = "root";
pub(crate) const PASSWORD: &str = "a secret";

/// The shares, each a folder of its name: to write, to read only, one that demands encryption, and one that makes each write durable.
const SHARES: [(&str, &str); 4] = [
    ("open", "read only = no"),
    ("closed", "read only = yes"),
    ("sealed", "read only = no\nsmb encrypt = required"),
    ("durable", "read only = no\nsync always = yes\nstrict sync = yes"),
];

/// A server that runs.
pub(crate) struct Samba {
    directory: TempDir,
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Samba {
    /// Starts one; none where that cannot be, which is said aloud, and a failure in CI.
    pub(crate) fn start(test: &str) -> Option<Self> {
        Self::start_with(test, "")
    }

    /// Likewise, with `settings` of its own.
    pub(crate) fn start_with(test: &str, settings: &str) -> Option<Self> {
        let missing = ["smbd", "smbpasswd"].into_iter().find(|name| program(name).is_none());
        let why = match missing {
            Some(name) => format!("it needs {name} (Debian package samba)"),
            None if !nix::unistd::geteuid().is_root() => String::from("it needs root"),
            None => return Some(Self::start_here(settings)),
        };
        assert!(std::env::var_os("CI").is_none(), "{test} must not be skipped in CI: {why}");
        eprintln!("SKIPPED: {test}: {why}");
        None
    }

    fn start_here(settings: &str) -> Self {
        let directory = tempfile::tempdir().expect("a folder");
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
        let address = port.expect("a free port");
        let here = directory.path().display();
        let mut conf = format!(
            "[global]\nserver role = standalone server\nmap to guest = Bad User\nsmb ports = {}\ninterfaces = lo\n\
             bind interfaces only = yes\ndisable netbios = yes\nload printers = no\nprintcap name = /dev/null\n\
             disable spoolss = yes\npassdb backend = tdbsam:{here}/passdb.tdb\nlog file = {here}/log\nlog level = 1\n\
             {settings}\n",
            address.port()
        );
        for name in
            ["private dir", "state directory", "cache directory", "lock directory", "pid directory", "ncalrpc dir"]
        {
            let folder = directory.path().join(name.replace(' ', "-"));
            std::fs::create_dir(&folder).expect("a folder");
            conf += &format!("{name} = {}\n", folder.display());
        }
        for (name, options) in SHARES {
            std::fs::create_dir(directory.path().join(name)).expect("a folder");
            conf += &format!("[{name}]\npath = {here}/{name}\nguest ok = yes\n{options}\n");
        }
        let file = directory.path().join("smb.conf");
        std::fs::write(&file, conf).expect("written");
        add_user(&file);
        let child = Command::new(program("smbd").expect("it is here"))
            .args(["--foreground", "--no-process-group", "--configfile"])
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("smbd starts");
        let samba = Self { directory, child, address };
        let until = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(address).is_err() {
            assert!(Instant::now() < until, "smbd does not listen: {}", samba.log());
            std::thread::sleep(Duration::from_millis(20));
        }
        samba
    }

    /// The folder of a share.
    pub(crate) fn share(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Kills it, and the process that it has for each connection.
    pub(crate) fn kill(&mut self) {
        let pid = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        let _ = self.child.kill();
        let _ = self.child.wait();
        for child in children.split_whitespace().filter_map(|child| child.parse().ok()) {
            let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(child), nix::sys::signal::Signal::SIGKILL);
        }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Samba {
    fn drop(&mut self) {
        self.kill();
    }
}

fn add_user(conf: &Path) {
    let mut child = Command::new(program("smbpasswd").expect("it is here"))
        .arg("-c")
        .arg(conf)
        .args(["-s", "-a", USER])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("smbpasswd starts");
    let mut input = child.stdin.take().expect("it is piped");
    write!(input, "{PASSWORD}\n{PASSWORD}\n").expect("it reads");
    drop(input);
    assert!(child.wait().expect("it ends").success(), "smbpasswd adds {USER}");
}

/// Where a program is. Those of the system may not be in an ordinary user's PATH.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    path.split(':').map(|folder| Path::new(folder).join(name)).find(|path| path.is_file())
}
