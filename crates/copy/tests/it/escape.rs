//! Attack: whoever may write below an allowed folder puts a symbolic link in the place of a folder, over and over,
//! while copies and shares open it (RENAME and SYMLINK of an NFS share, or a local user). Nothing outside may be read,
//! written, chmodded or removed.

use crate::pair::{OPTIONS, assignment, census, copier, folder, made, one, role, task};
use linerate_copy::{AllowedFolders, Copy};
use linerate_engine::testing::run;
use linerate_model::{CopyExisting, CopyFrom, CopyInto, CopyOptions, CopyTree, CopyVerify, RoleKind};
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use tempfile::{TempDir, tempdir};

/// So many attempts of each kind succeed. With folders opened a second time by path, several of them get out.
const WANTED: usize = 40;
/// Attempts at the most: many meet the link, and are refused.
const ATTEMPTS: usize = 20_000;

/// An allowed folder with `data` in it, and a folder outside with a secret.
struct Scene {
    allowed: TempDir,
    outside: TempDir,
    swapping: AtomicBool,
}

impl Scene {
    fn new() -> Self {
        let scene =
            Self { allowed: tempdir().expect("made"), outside: tempdir().expect("made"), swapping: true.into() };
        fs::create_dir(scene.data()).expect("made");
        fs::create_dir_all(scene.outside.path().join("closed/below")).expect("made");
        fs::write(scene.outside.path().join("secret"), "secret").expect("written");
        fs::set_permissions(scene.outside.path().join("closed"), Permissions::from_mode(0o500)).expect("set");
        scene
    }

    fn data(&self) -> PathBuf {
        self.allowed.path().join("data")
    }

    fn engine(&self) -> Copy {
        Copy::new(AllowedFolders { allowed: vec![self.allowed.path().to_owned()], scratch: None })
    }

    /// Exchanges what `victims` names with a link that leads out, and back, until told to stop.
    fn swap(&self, victims: &impl Fn() -> Vec<PathBuf>) {
        let link = self.allowed.path().join("link");
        symlink(self.outside.path(), &link).expect("a link");
        while self.swapping.load(Ordering::Relaxed) {
            for victim in victims() {
                for _ in 0..2 {
                    // A victim that is gone is not exchanged.
                    let _ = renameat2(AT_FDCWD, &victim, AT_FDCWD, &link, RenameFlags::RENAME_EXCHANGE);
                }
            }
        }
    }

    /// Does `attempt` beside the swaps until it has succeeded often enough; nothing outside changes.
    fn attack(&self, victims: impl Fn() -> Vec<PathBuf> + Sync, attempt: impl Fn(usize) -> bool) {
        let before = census(self.outside.path());
        let succeeded = thread::scope(|scope| {
            scope.spawn(|| self.swap(&victims));
            let _ends = SwapsEnd(&self.swapping);
            (0..ATTEMPTS).filter(|number| attempt(*number)).take(WANTED).count()
        });
        assert_eq!(census(self.outside.path()), before, "nothing outside is changed");
        assert_eq!(succeeded, WANTED);
    }
}

/// Ends the swaps when it is dropped, also by a failed assertion.
struct SwapsEnd<'a>(&'a AtomicBool);

impl Drop for SwapsEnd<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

fn options() -> CopyOptions {
    CopyOptions { existing: CopyExisting::Replace, verify: CopyVerify::ReadBack, ..OPTIONS }
}

#[test]
fn a_swapped_folder_is_never_left_by_a_share() {
    let scene = Scene::new();
    let served = |_| {
        let into = CopyInto::Folder(folder(&scene.data()));
        let task = task(options(), made("files=2,folders=1,bytes=2k"), CopyFrom::Memory, into);
        let server = role(RoleKind::FileServer, &[(0, None)], &[]);
        let copier = role(RoleKind::Copier { folder: None, destination: 0 }, &[], &[0]);
        let assignments = [server, copier].map(|role| assignment(&task, vec![role]));
        run(&scene.engine(), assignments).into_iter().all(|counted| counted.is_ok())
    };
    scene.attack(|| vec![scene.data()], served);
}

#[test]
fn a_swapped_folder_is_never_left_by_a_destination() {
    let scene = Scene::new();
    let written = |number: usize| {
        let into = CopyInto::Folder(folder(&scene.data().join(format!("new-{number}"))));
        let session = copier(options(), made("files=2,folders=1,bytes=2k"), CopyFrom::Memory, into);
        session.run(&scene.engine()).is_ok()
    };
    scene.attack(|| vec![scene.data()], written);
}

#[test]
fn a_swapped_folder_is_never_left_by_a_source() {
    let scene = Scene::new();
    fs::write(scene.data().join("public"), "public").expect("written");
    let copied = |number: usize| {
        let to = scene.allowed.path().join(format!("copied-{number}"));
        let tree = CopyTree::Folder(folder(&scene.data()));
        let into = CopyInto::Folder(folder(&to));
        let read = copier(options(), tree, CopyFrom::Files, into).run(&scene.engine()).map(one);
        let names: Vec<_> = census(&to).into_keys().collect();
        assert!(names.is_empty() || names == [b"public"], "{names:?}");
        read.is_ok()
    };
    scene.attack(|| vec![scene.data()], copied);
}

#[test]
fn a_swapped_scratch_folder_is_never_left_when_it_is_removed() {
    let scene = Scene::new();
    let victims = |home: &Path| {
        let entries = fs::read_dir(home).expect("listed").flatten().map(|entry| entry.path());
        entries
            .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("linerate-copy-")))
            .collect()
    };
    let removed = |_| {
        let session = copier(options(), made("files=20,folders=10,bytes=20k"), CopyFrom::Files, CopyInto::Scratch);
        session.run(&scene.engine()).is_ok()
    };
    scene.attack(|| victims(scene.allowed.path()), removed);
}
