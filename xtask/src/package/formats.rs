//! The files of a package as `.tar.gz`, `.deb` and `.rpm`.

use super::tree::Tree;
use super::{LIMIT, Release};
use crate::process;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// Packs a folder below `parent`, the same for the same files: sorted, root's, with the time of the commit.
pub(super) fn tar(release: &Release, parent: &Path, member: &str, to: &Path) -> Result<()> {
    let mut tar = release.command("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu"])
        .arg(format!("--mtime=@{}", release.epoch))
        .arg(format!("--directory={}", parent.display()));
    if to.extension().is_some_and(|extension| extension == "gz") {
        tar.arg("--use-compress-program=gzip --best --no-name");
    }
    tar.arg("--create").arg(format!("--file={}", to.display())).arg(member);
    process::run(tar, LIMIT).map(drop)
}

/// The archive for those who install by hand, and for `cargo binstall`.
pub(super) fn archive(release: &Release, tree: &Tree) -> Result<PathBuf> {
    let name = format!("linerate-{}-{}", release.version, tree.architecture.target());
    let parent = release.out.join("root");
    let folder = parent.join(&name);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    // Program, README and licences lie on top, where people look; the rest as it is installed.
    for file in tree.files()? {
        let top = file == Path::new(Tree::PROGRAM) || file.starts_with("usr/share/doc");
        let to = folder.join(if top { Path::new(file.file_name().unwrap_or_default()) } else { &file });
        fs::create_dir_all(to.parent().unwrap_or(&folder)).with_context(|| format!("making {}", to.display()))?;
        fs::copy(tree.root.join(&file), &to).with_context(|| format!("copying to {}", to.display()))?;
    }
    let to = release.out.join(format!("{name}.tar.gz"));
    tar(release, &parent, &name, &to)?;
    fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))?;
    Ok(to)
}

/// Builds the Debian and the RPM package by nfpm (`packaging/nfpm.yaml`). Their scripts leave the agent's unit off until
/// `systemctl enable`.
pub(super) fn packages(release: &Release, tree: &Tree) -> Result<[PathBuf; 2]> {
    let architecture = tree.architecture;
    let deb = release.out.join(format!("linerate_{}_{}.deb", release.version, architecture.debian()));
    let rpm = release.out.join(format!("linerate-{}-1.{}.rpm", release.version, architecture.name()));
    for (packager, to) in [("deb", &deb), ("rpm", &rpm)] {
        let mut nfpm = release.command("nfpm");
        nfpm.args(["package", "--config", "packaging/nfpm.yaml", "--packager", packager, "--target"])
            .arg(to)
            .env("VERSION", &release.version)
            .env("ARCH", architecture.debian())
            .env("ROOT", &tree.root);
        process::run(nfpm, LIMIT)?;
    }
    Ok([deb, rpm])
}
