//! Child process of a lab that serves a host's slow disk.

use super::SlowDisk;
use super::files::Files;
use super::head::Head;
use crate::linux::lifeline::wait_for_end;
use fuser::{Config, MountOption, Session};
use linerate_sys::Error;
use linerate_sys::namespace::enter_mount_namespace;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Line that it prints when all is mounted.
pub(crate) const READY: &str = "ready";

/// Puts `folders` on a slow disk in a mount namespace of this process's own, says so, and serves it until standard
/// input ends.
pub fn serve(disk: &SlowDisk, folders: &[PathBuf]) -> Result<(), Error> {
    enter_mount_namespace()?;
    let head = Arc::new(Head::new(disk.clone()));
    let mut served = Vec::new();
    for folder in apart(folders)? {
        let failed = |call, error| Error::new(call, folder.display().to_string(), error);
        // What is below the mount is reached by this descriptor only.
        let top = File::open(&folder).map_err(|error| failed("open", error))?;
        // With the dot it is the folder itself, and not the link to it.
        let files = Files::new(PathBuf::from(format!("/proc/self/fd/{}/.", top.as_raw_fd())), Arc::clone(&head));
        let mut options = Config::default();
        options.mount_options = vec![MountOption::FSName("slow-disk".into()), MountOption::DefaultPermissions];
        let session = Session::new(files, &folder, &options).and_then(Session::spawn);
        let session = session.map_err(|error| {
            let why =
                format!("{error}; a slow disk needs /dev/fuse: load the module `fuse`, and let this user open it");
            failed("mount(fuse)", io::Error::other(why))
        })?;
        served.push((session, top));
    }
    println!("{READY}");
    wait_for_end()
}

/// The folders to mount: each as it is reached without links, or the one it will be made in; none below another.
fn apart(folders: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let mut all: Vec<PathBuf> = Vec::new();
    for folder in folders {
        let real_folder = folder.ancestors().find_map(|folder| folder.canonicalize().ok());
        match real_folder {
            Some(real_folder) if real_folder != Path::new("/") => all.push(real_folder),
            _ => {
                let why = io::Error::other("a slow disk cannot be the root; copy from and to folders below another");
                return Err(Error::new("mount", folder.display().to_string(), why));
            }
        }
    }
    all.sort();
    // Sorted, a folder comes before all that is below it.
    all.dedup_by(|later, earlier| later.starts_with(earlier));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_folder_is_mounted_once() {
        let home = tempfile::tempdir().expect("a folder");
        let path = |name: &str| home.path().join(name);
        for name in ["a", "a/b", "c"] {
            std::fs::create_dir(path(name)).expect("made");
        }
        let folders = apart(&[path("c/new"), path("a/b"), path("a"), path("c")]).expect("folders");
        assert_eq!(folders, [path("a"), path("c")].map(|path| path.canonicalize().expect("there")));
        let error = apart(&[PathBuf::from("/nowhere-at-all/x")]).expect_err("it would be the root").to_string();
        assert!(error.contains("cannot be the root"), "{error}");
    }
}
