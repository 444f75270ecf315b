//! The NFS server nfs-ganesha, with rpcbind, in namespaces of their own.

use crate::wait_until;
use linerate_sys::namespace::NetNamespace;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

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
until [ -S /run/rpcbind.sock ]; do sleep 0.01; done
exec ganesha.nfsd -F -f /run/ganesha.conf -L /run/log -p /run/ganesha.pid -N NIV_EVENT
"#;

/// The server and its namespaces; all of it ends with this.
pub struct Ganesha {
    process: Child,
    /// Its network namespace, where its loopback address is.
    pub network: NetNamespace,
}

impl Ganesha {
    /// Starts it. It needs root, `rpcbind` and `ganesha.nfsd`.
    ///
    /// # Panics
    /// It does not serve within a minute.
    pub fn start() -> Self {
        let process = Command::new("unshare")
            .args(["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", WORLD])
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("unshare starts");
        let log = root(process.id()).join("run/log");
        wait_until("nfs-ganesha serves", || {
            fs::read_to_string(&log).is_ok_and(|log| log.contains("NFS SERVER INITIALIZED")).then_some(())
        });
        let network = NetNamespace::of_process(process.id()).expect("its network");
        Self { process, network }
    }

    /// A process in its namespaces.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The exported directory, as seen from here.
    pub fn exported(&self) -> PathBuf {
        root(self.process.id()).join("run/export")
    }

    /// Everything in the export, with what files hold.
    pub fn export(&self) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
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

impl Drop for Ganesha {
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
