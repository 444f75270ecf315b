//! A Samba server with its own files, passwords and port, on loopback.

use super::port::ClaimedPort;
use crate::{program, wait_until};
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// User that may log in. Samba requires an account of the system, and this one exists everywhere.
pub const USER: &str = "root";
/// The password of [`USER`].
pub const PASSWORD: &str = "a secret";

/// Shares, each a folder of its name: writable, read-only, with required encryption, and with durable writes.
const SHARES: [(&str, &str); 4] = [
    ("open", "read only = no"),
    ("closed", "read only = yes"),
    ("sealed", "read only = no\nsmb encrypt = required"),
    ("durable", "read only = no\nsync always = yes\nstrict sync = yes"),
];

/// A running server, which is ended on drop.
pub struct Samba {
    directory: TempDir,
    child: Child,
    /// Address of the server.
    pub address: SocketAddr,
    _claim: ClaimedPort,
}

impl Samba {
    /// Starts a server. It needs root, `smbd` and `smbpasswd`.
    ///
    /// # Panics
    /// It does not listen within a minute.
    pub fn start() -> Self {
        Self::start_with("")
    }

    /// Starts a server with further lines for its section `[global]`.
    pub fn start_with(settings: &str) -> Self {
        let directory = tempfile::tempdir().expect("a folder");
        let claim = ClaimedPort::new();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, claim.number));
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
        let samba = Self { directory, child, address, _claim: claim };
        wait_until("smbd listens", || TcpStream::connect(address).ok());
        samba
    }

    /// Returns the folder of a share.
    pub fn share(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Kills the server and its process for each connection.
    pub fn kill(&mut self) {
        let pid = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        let _ = self.child.kill();
        let _ = self.child.wait();
        for child in children.split_whitespace().filter_map(|child| child.parse().ok()) {
            let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(child), nix::sys::signal::Signal::SIGKILL);
        }
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
