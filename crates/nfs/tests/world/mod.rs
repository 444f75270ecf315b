//! A server of other hands: nfs-ganesha, with rpcbind, in namespaces of their own.

#![allow(dead_code, reason = "each test file uses its own part")]

use linerate_sys::namespace::NetNamespace;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Everything it needs lies in a /run of its own, which goes with it. The export wants callers to come from privileged ports.
const WORLD: &str = r#"
set -e
ip link set lo up
mount -t tmpfs tmpfs /run
mkdir -p /run/rpcbind /run/ganesha /run/export/theirs
echo kept > /run/export/theirs/file
cat > /run/ganesha.conf <<CONF
NFS_CORE_PARAM {
  Protocols = 3; Enable_UDP = true; NFS_Port = 2049; MNT_Port = 20048;
  Enable_NLM = false; Enable_RQUOTA = false;
}
NFSV4 { Graceless = true; }
EXPORT {
  Export_Id = 1; Path = /run/export; Pseudo = /export; Filesystem_Id = 1.1;
  Protocols = 3; Transports = UDP, TCP; Access_Type = RW; Squash = No_Root_Squash; SecType = sys;
  PrivilegedPort = true;
  FSAL { Name = VFS; }
}
CONF
rpcbind -w -f &
sleep 0.5
exec ganesha.nfsd -F -f /run/ganesha.conf -L /run/log -p /run/ganesha.pid -N NIV_EVENT
"#;

/// The server and what lies around it; all of it ends with this.
pub(crate) struct World {
    process: Child,
    pub(crate) network: NetNamespace,
}

impl World {
    /// None if it, or another of the `tools`, is not here, which is a failure in CI and said aloud elsewhere.
    pub(crate) fn start(test: &str, tools: &[&str]) -> Option<Self> {
        let all = ["rpcbind", "ganesha.nfsd"].iter().chain(tools);
        let missing = all.copied().find(|name| program(name).is_none());
        let why = match missing {
            Some(name) => format!("it needs {name} (see scripts/install-packages.sh)"),
            None if NetNamespace::new().is_err() => "it makes namespaces, which needs root".to_owned(),
            None => return Some(Self::begin()),
        };
        assert!(std::env::var_os("CI").is_none(), "{test}: {why}");
        // Not eprintln!, which the test harness would swallow.
        writeln!(std::io::stderr(), "SKIPPED: {test}: {why}").expect("stderr");
        None
    }

    fn begin() -> Self {
        let process = Command::new("unshare")
            .args(["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", WORLD])
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("unshare starts");
        let log = root(process.id()).join("run/log");
        let until = Instant::now() + Duration::from_secs(30);
        loop {
            let said = fs::read_to_string(&log).unwrap_or_default();
            if said.contains("NFS SERVER INITIALIZED") {
                break;
            }
            assert!(Instant::now() < until, "nfs-ganesha does not start: {said}");
            std::thread::sleep(Duration::from_millis(50));
        }
        let network = NetNamespace::of_process(process.id()).expect("its network");
        Self { process, network }
    }

    /// Whose namespaces it is in.
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The exported directory, as seen from here.
    pub(crate) fn exported(&self) -> PathBuf {
        root(self.process.id()).join("run/export")
    }

    /// Everything in the export, with what files hold.
    pub(crate) fn export(&self) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        let top = self.exported();
        let mut found = BTreeMap::new();
        let mut directories = vec![top];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(&directory).expect("lists").flatten() {
                let path = entry.path();
                if path.is_dir() {
                    found.insert(path.clone(), None);
                    directories.push(path);
                } else {
                    found.insert(path.clone(), Some(fs::read(&path).expect("reads")));
                }
            }
        }
        found
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // With it goes the first process of its namespace, and with that all others.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The files as a process sees them.
fn root(pid: u32) -> PathBuf {
    format!("/proc/{pid}/root").into()
}

fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    places.map(|place| place.join(name)).find(|program| program.is_file())
}
