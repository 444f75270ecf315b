//! The NFS server nfs-ganesha, with rpcbind, in their own namespaces.

use crate::wait_until;
use linerate_sys::namespace::NetNamespace;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Script that starts the servers. Their files are in a private /run, which disappears with them. The export requires
/// clients to use privileged ports.
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

/// The server and its namespaces, which end on drop.
pub struct Ganesha {
    process: Child,
    /// Network namespace of its loopback address.
    pub network: NetNamespace,
}

impl Ganesha {
    /// Starts the server. It needs root, `rpcbind` and `ganesha.nfsd`.
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

    /// Returns a process in its namespaces.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Returns the path of the exported directory from outside the namespaces.
    pub fn exported(&self) -> PathBuf {
        root(self.process.id()).join("run/export")
    }

    /// Returns all files of the export with their contents.
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

/// Returns the path of a process's root.
fn root(pid: u32) -> PathBuf {
    format!("/proc/{pid}/root").into()
}
