//! What is installed beside the program: manual pages, completions, the systemd unit, licences.

use super::{Architecture, LIMIT, Release};
use crate::process;
use anyhow::{Context, Result};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Shells, and where their completions go.
const COMPLETIONS: &[(&str, &str)] = &[
    ("bash", "usr/share/bash-completion/completions/linerate"),
    ("zsh", "usr/share/zsh/vendor-completions/_linerate"),
    ("fish", "usr/share/fish/vendor_completions.d/linerate.fish"),
    ("powershell", "usr/share/linerate/linerate.ps1"),
];
/// Files of the tree, and where they go.
const FILES: &[(&str, &str)] = &[
    ("packaging/linerate-agent.service", "usr/lib/systemd/system/linerate-agent.service"),
    ("README.md", "usr/share/doc/linerate/README.md"),
    ("CHANGELOG.md", "usr/share/doc/linerate/CHANGELOG.md"),
    ("LICENSE-APACHE", "usr/share/doc/linerate/LICENSE-APACHE"),
    ("LICENSE-MIT", "usr/share/doc/linerate/LICENSE-MIT"),
];
/// Where manual pages go.
const MANUAL: &str = "usr/share/man/man1";

/// The files of a package, as they lie below `/`.
pub(super) struct Tree {
    pub(super) architecture: Architecture,
    pub(super) root: PathBuf,
}

impl Tree {
    /// Where the program goes.
    pub(super) const PROGRAM: &str = "usr/bin/linerate";

    /// Lays out the files anew. The program itself writes the manual pages and completions; `interpreter` is what runs it here.
    pub(super) fn lay_out(
        release: &Release,
        architecture: Architecture,
        program: &Path,
        interpreter: &[&str],
    ) -> Result<Self> {
        let root = release.out.join("root").join(architecture.name());
        if root.exists() {
            fs::remove_dir_all(&root).with_context(|| format!("removing {}", root.display()))?;
        }
        let tree = Self { architecture, root };
        tree.add(Self::PROGRAM, &fs::read(program).with_context(|| format!("reading {}", program.display()))?, 0o755)?;
        for (from, to) in FILES {
            tree.add(to, &fs::read(from).with_context(|| format!("reading {from}"))?, 0o644)?;
        }
        let program = tree.root.join(Self::PROGRAM);
        let linerate = |arguments: &[&str]| {
            let mut words = interpreter.iter().map(AsRef::as_ref).chain([program.as_os_str()]);
            let mut command = Command::new(words.next().unwrap_or_default());
            command.args(words).args(arguments);
            process::run(command, LIMIT)
        };
        for (shell, to) in COMPLETIONS {
            tree.add(to, linerate(&["completions", shell])?.stdout.as_bytes(), 0o644)?;
        }
        let manual = tree.root.join(MANUAL);
        linerate(&["man", &manual.to_string_lossy()])?;
        tree.compress_manual(release, &manual)?;
        Ok(tree)
    }

    /// As Debian and rpm want it.
    fn compress_manual(&self, release: &Release, manual: &Path) -> Result<()> {
        let mut gzip = release.command("gzip");
        gzip.args(["--best", "--no-name", "--recursive"]).arg(manual);
        process::run(gzip, LIMIT)?;
        for file in self.files()? {
            let path = self.root.join(&file);
            if path.starts_with(manual) {
                set_mode(&path, 0o644)?;
            }
        }
        Ok(())
    }

    fn add(&self, to: &str, content: &[u8], mode: u32) -> Result<()> {
        let path = self.root.join(to);
        let folder = path.parent().unwrap_or(&self.root);
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        fs::write(&path, content).with_context(|| format!("writing {}", path.display()))?;
        set_mode(&path, mode)
    }

    /// The paths of all files, below the root and in order.
    pub(super) fn files(&self) -> Result<Vec<PathBuf>> {
        let (mut files, mut folders) = (Vec::new(), vec![self.root.clone()]);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).with_context(|| format!("listing {}", folder.display()))? {
                let path = entry.with_context(|| format!("listing {}", folder.display()))?.path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    files.push(path.strip_prefix(&self.root).unwrap_or(&path).to_owned());
                }
            }
        }
        files.sort();
        Ok(files)
    }
}

fn set_mode(path: &Path, mode: u32) -> Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).with_context(|| format!("chmod {}", path.display()))
}
