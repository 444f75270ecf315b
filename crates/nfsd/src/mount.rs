//! The MOUNT protocol, version 3 (RFC 1813 appendix I): a caller's way to the first handle. One directory is exported,
//! `/`.

use crate::arguments::Arguments;
use crate::handle::Handle;
use crate::reply::put;
use crate::store::{DirOpArgs, Name, Store};
use linerate_oncrpc::message::Refused;
use linerate_oncrpc::server::{Call, Program};
use nfs3_types::mount::{
    MNTPATHLEN, MOUNT_PROGRAM, PROGRAM, VERSION, dirpath, export_node, exports, fhandle3, mountbody, mountlist,
    mountres3, mountres3_ok, mountstat3, name as mount_name,
};
use nfs3_types::nfs3::{ftype3, nfsstat3};
use nfs3_types::xdr_codec::{List, Opaque};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};

/// Mounts remembered for DUMP; it is only for people to look at.
const REMEMBERED: usize = 256;
/// AUTH_NONE and AUTH_SYS: the flavours for a server without a key. With a key, the caller learnt its flavour before.
const FLAVOURS: [u32; 2] = [1, 0];

/// The program.
pub(super) struct Mount {
    store: Arc<dyn Store>,
    mounted: Mutex<BTreeSet<(IpAddr, Vec<u8>)>>,
}

impl Mount {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, mounted: Mutex::default() }
    }

    fn mount(&self, path: &[u8], call: &Call<'_>) -> mountres3<'static> {
        match self.find(path) {
            Ok(handle) => {
                let mut mounted = self.mounted.lock().unwrap_or_else(PoisonError::into_inner);
                if mounted.len() < REMEMBERED {
                    mounted.insert((call.peer.ip(), path.to_vec()));
                }
                let fhandle = fhandle3(Opaque::owned(handle.to_bytes().to_vec()));
                mountres3::Ok(mountres3_ok { fhandle, auth_flavors: FLAVOURS.to_vec() })
            }
            Err(status) => mountres3::Err(status),
        }
    }

    /// The directory at `path`, from the exported one on.
    fn find(&self, path: &[u8]) -> Result<Handle, mountstat3> {
        if path.len() > MNTPATHLEN {
            return Err(mountstat3::MNT3ERR_NAMETOOLONG);
        }
        let mut directory = self.store.root();
        for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            let place = Name::new(name).map(|name| DirOpArgs { directory, name });
            let (found, attributes) = place.and_then(|place| self.store.lookup(place)).map_err(status)?;
            if attributes.type_ != ftype3::NF3DIR {
                return Err(mountstat3::MNT3ERR_NOTDIR);
            }
            directory = found;
        }
        Ok(directory)
    }

    fn dump(&self, reply: &mut Vec<u8>) {
        let mounted = self.mounted.lock().unwrap_or_else(PoisonError::into_inner);
        let bodies = mounted.iter().map(|(host, path)| mountbody {
            ml_hostname: mount_name(Opaque::owned(host.to_string().into_bytes())),
            ml_directory: dirpath(Opaque::borrowed(path)),
        });
        let list: mountlist<'_, '_> = List(bodies.collect());
        put(reply, &list);
    }

    fn forget(&self, which: impl Fn(&(IpAddr, Vec<u8>)) -> bool) {
        self.mounted.lock().unwrap_or_else(PoisonError::into_inner).retain(|mount| !which(mount));
    }
}

impl Program for Mount {
    fn number(&self) -> u32 {
        PROGRAM
    }

    fn versions(&self) -> RangeInclusive<u32> {
        VERSION..=VERSION
    }

    /// Files are removed after the load, and then the caller unmounts.
    fn is_in_use(&self) -> bool {
        !self.mounted.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn call(&self, call: &Call<'_>, reply: &mut Vec<u8>) -> Result<Option<u64>, Refused> {
        let procedure = MOUNT_PROGRAM::try_from(call.procedure).map_err(|_| Refused::ProcedureUnavailable)?;
        let mut arguments = Arguments::new(call.args);
        match procedure {
            MOUNT_PROGRAM::MOUNTPROC3_NULL => {}
            MOUNT_PROGRAM::MOUNTPROC3_MNT => put(reply, &self.mount(arguments.opaque()?, call)),
            MOUNT_PROGRAM::MOUNTPROC3_DUMP => self.dump(reply),
            MOUNT_PROGRAM::MOUNTPROC3_UMNT => {
                let path = arguments.opaque()?;
                self.forget(|(host, mounted)| *host == call.peer.ip() && mounted == path);
            }
            MOUNT_PROGRAM::MOUNTPROC3_UMNTALL => self.forget(|(host, _)| *host == call.peer.ip()),
            MOUNT_PROGRAM::MOUNTPROC3_EXPORT => {
                let root = export_node { ex_dir: dirpath(Opaque::borrowed(b"/")), ex_groups: List::default() };
                let list: exports<'_, '_> = List(vec![root]);
                put(reply, &list);
            }
        }
        Ok(None)
    }
}

fn status(status: nfsstat3) -> mountstat3 {
    match status {
        nfsstat3::NFS3ERR_NOENT => mountstat3::MNT3ERR_NOENT,
        nfsstat3::NFS3ERR_NOTDIR => mountstat3::MNT3ERR_NOTDIR,
        nfsstat3::NFS3ERR_ACCES | nfsstat3::NFS3ERR_PERM | nfsstat3::NFS3ERR_XDEV => mountstat3::MNT3ERR_ACCES,
        nfsstat3::NFS3ERR_INVAL => mountstat3::MNT3ERR_INVAL,
        nfsstat3::NFS3ERR_NAMETOOLONG => mountstat3::MNT3ERR_NAMETOOLONG,
        _ => mountstat3::MNT3ERR_IO,
    }
}
