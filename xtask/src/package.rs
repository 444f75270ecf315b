//! Builds a release: programs, and their packages for each system and processor.
//!
//! Programs for Linux are linked with musl, so that they run on every Linux. No cross compiler is needed: clang compiles the C
//! code (SQLite, ring) with the headers of musl, and the toolchain's rust-lld links. Builds are reproducible: paths are
//! mapped, and all times are the commit's (`SOURCE_DATE_EPOCH`, reproducible-builds.org). `--again` checks this.

mod elsewhere;
mod formats;
mod image;
mod sbom;
mod tree;
mod trial;

use crate::process::{self, cargo, catch_interrupts};
use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};
use elsewhere::System;
use nix::sys::stat::{Mode, umask};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tree::Tree;

/// Time limit of commands that only copy and compress.
const LIMIT: Duration = Duration::from_secs(300);

/// Version of nfpm that the packages were tested with.
const NFPM_VERSION: &str = "v2.43.0";

/// Options of `cargo xtask package`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Build for this system only. May be repeated. By default all are built.
    #[arg(long = "system", value_name = "SYSTEM")]
    systems: Vec<System>,
    /// Build for this processor of Linux only. May be repeated. By default all are built.
    #[arg(long = "arch", value_name = "ARCH")]
    architectures: Vec<Architecture>,
    /// Where the files of the release will be found. The manifests of winget and scoop name it, and are written only with it.
    #[arg(long, value_name = "URL")]
    download_url: Option<String>,
    /// Folder of the packages.
    #[arg(long, value_name = "DIR", default_value = "target/package")]
    out: PathBuf,
    /// Then install and try each package in a root of its own (root, mmdebstrap and skopeo).
    #[arg(long)]
    try_out: bool,
    /// Then build the commit once more, in another folder, and fail if a file differs.
    #[arg(long)]
    again: bool,
}

/// A processor for which packages are built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Architecture {
    #[value(name = "x86_64")]
    X86_64,
    #[value(name = "aarch64")]
    Aarch64,
}

impl Architecture {
    const ALL: [Self; 2] = [Self::X86_64, Self::Aarch64];

    /// Returns the name in Rust, rpm and uname.
    fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// Returns the name in Debian, Go and OCI.
    fn debian(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    /// Returns the compiler's target.
    fn target(self) -> String {
        format!("{}-unknown-linux-musl", self.name())
    }

    /// Returns whether its programs run on this machine.
    fn is_native(self) -> bool {
        self.name() == std::env::consts::ARCH
    }
}

/// Properties shared by all packages of a release.
struct Release {
    version: String,
    /// Time of the commit, in seconds since 1970.
    epoch: u64,
    /// Folder of the packages.
    out: PathBuf,
}

impl Release {
    fn of_this_commit(out: &Path) -> Result<Self> {
        let mut git = Command::new("git");
        git.args(["log", "-1", "--format=%ct"]);
        let time = process::run(git, LIMIT).context("asking for the time of the commit")?.stdout;
        let epoch = time.trim().parse().with_context(|| format!("reading `{}` of git log", time.trim()))?;
        fs::create_dir_all(out).with_context(|| format!("making {}", out.display()))?;
        let out = out.canonicalize().with_context(|| format!("finding {}", out.display()))?;
        Ok(Self { version: env!("CARGO_PKG_VERSION").to_owned(), epoch, out })
    }

    /// Returns a command that writes the time of the commit instead of the current time.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("SOURCE_DATE_EPOCH", self.epoch.to_string()).env("LC_ALL", "C").env("TZ", "UTC");
        command
    }
}

/// Builds all packages and prints their sizes.
///
/// # Errors
///
/// A tool is missing or fails, or a package does not work.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let started = Instant::now();
    let mut architectures = arguments.architectures.clone();
    if architectures.is_empty() {
        architectures.extend(Architecture::ALL);
    }
    architectures.sort();
    architectures.dedup();
    let mut systems = arguments.systems.clone();
    if systems.is_empty() {
        systems.extend(System::ALL);
    }
    systems.sort();
    systems.dedup();
    if !systems.contains(&System::Linux) {
        architectures.clear();
    }
    check_tools(&systems, &architectures)?;
    if arguments.again {
        check_committed()?;
    }
    // The modes of files and folders must not depend on the builder's umask.
    umask(Mode::S_IWGRP | Mode::S_IWOTH);
    let release = Release::of_this_commit(&arguments.out)?;
    if !architectures.is_empty() {
        build(&release, &architectures)?;
    }
    let trees =
        architectures.iter().map(|&architecture| tree_of(&release, architecture)).collect::<Result<Vec<_>>>()?;
    catch_interrupts()?;
    let mut files = Vec::new();
    for tree in &trees {
        files.push(formats::archive(&release, tree)?);
        files.extend(formats::packages(&release, tree)?);
        files.push(sbom::write(&release, &tree.architecture.target(), tree.architecture.name())?);
    }
    if !trees.is_empty() {
        files.push(image::write(&release, &trees)?);
    }
    for system in systems {
        files.extend(elsewhere::write(&release, system, arguments.download_url.as_deref())?);
    }
    let sums = checksums(&release, &files)?;
    for file in &files {
        let size = fs::metadata(file).with_context(|| format!("reading {}", file.display()))?.len();
        println!("{:>11} bytes  {}", size, file.display());
    }
    println!("packages made in {:.0} s", started.elapsed().as_secs_f64());
    if arguments.try_out {
        trial::run(&release, &trees, &files)?;
    }
    if arguments.again {
        compare_second_build(arguments, &release, &sums)?;
    }
    Ok(())
}

/// Fails with the names of all missing tools, before a build of several minutes starts.
fn check_tools(systems: &[System], architectures: &[Architecture]) -> Result<()> {
    let for_linux: &[&str] = if architectures.is_empty() { &[] } else { &["clang", "llvm-ar"] };
    let mut missing: Vec<String> = [for_linux, &["tar", "gzip", "git"]]
        .concat()
        .into_iter()
        .filter(|tool| !runs(tool))
        .map(|tool| format!("the command {tool}"))
        .collect();
    for architecture in architectures {
        if !headers(*architecture).join("stdio.h").is_file() {
            missing.push(format!(
                "the headers of musl for {} ({})",
                architecture.name(),
                headers(*architecture).display()
            ));
        }
        let [emulator] = trial::EMULATOR_OF[*architecture as usize];
        if !architecture.is_native() && !runs(emulator) {
            missing.push(format!("the command {emulator}, for the program writes its manual pages itself"));
        }
    }
    for system in systems {
        system.find_missing(&mut missing);
    }
    if !architectures.is_empty() && !runs("nfpm") {
        bail!(
            "missing: the command nfpm; `go install github.com/goreleaser/nfpm/v2/cmd/nfpm@{NFPM_VERSION}` installs it"
        );
    }
    if !missing.is_empty() {
        bail!("missing: {}; `scripts/install-packages.sh build package` installs them", missing.join(", "));
    }
    Ok(())
}

fn runs(tool: &str) -> bool {
    Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Fails if there are uncommitted changes, because the second build has only the commit.
fn check_committed() -> Result<()> {
    let mut status = Command::new("git");
    status.args(["status", "--porcelain"]);
    let changes = process::run(status, LIMIT)?.stdout;
    ensure!(changes.is_empty(), "--again builds the commit in a clone; commit your changes first");
    Ok(())
}

/// Returns Debian's folder of the headers of musl.
fn headers(architecture: Architecture) -> PathBuf {
    format!("/usr/include/{}-linux-musl", architecture.name()).into()
}

/// Lays out the program and the files installed with it.
fn tree_of(release: &Release, architecture: Architecture) -> Result<Tree> {
    let program = Path::new("target").join(architecture.target()).join("dist/linerate");
    let interpreter: &[&str] = if architecture.is_native() { &[] } else { &trial::EMULATOR_OF[architecture as usize] };
    Tree::lay_out(release, architecture, &program, interpreter)
}

/// Builds the static programs of all processors at once, since the optimisation of each takes most of the time on one
/// core.
fn build(release: &Release, architectures: &[Architecture]) -> Result<()> {
    let targets: Vec<String> = architectures.iter().map(|architecture| architecture.target()).collect();
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "add"]).args(&targets);
    process::run(rustup, LIMIT).with_context(|| format!("adding to the toolchain: {}", targets.join(", ")))?;

    let maps = path_maps()?;
    let mut clang = Command::new("clang");
    clang.arg("-print-resource-dir");
    let resources = process::run(clang, LIMIT)?.stdout;

    let mut command = cargo();
    command
        .args(["build", "--locked", "--profile", "dist", "--package", "linerate", "--target-dir", "target"])
        .env("SOURCE_DATE_EPOCH", release.epoch.to_string())
        .env_remove("RUSTFLAGS");
    for (architecture, target) in architectures.iter().zip(&targets) {
        let lower = target.replace('-', "_");
        let upper = lower.to_uppercase();
        let for_c = format!(
            "--target={}-linux-musl -nostdinc -isystem {}/include -isystem {} {}",
            architecture.name(),
            resources.trim(),
            headers(*architecture).display(),
            maps.for_c
        );
        command
            .args(["--target", target])
            .env(format!("CC_{lower}"), "clang")
            .env(format!("AR_{lower}"), "llvm-ar")
            .env(format!("CFLAGS_{lower}"), for_c)
            .env(format!("CARGO_TARGET_{upper}_LINKER"), "rust-lld")
            .env(format!("CARGO_TARGET_{upper}_RUSTFLAGS"), &maps.for_rust);
    }
    let started = Instant::now();
    let status = command.status().context("starting `cargo build`")?;
    if !status.success() {
        bail!("the program was not built for {} ({status})", targets.join(", "));
    }
    println!("built for {} in {:.0} s", targets.join(" and "), started.elapsed().as_secs_f64());
    Ok(())
}

/// Options of the compilers that replace the paths of this machine in programs.
struct PathMaps {
    for_c: String,
    for_rust: String,
}

fn path_maps() -> Result<PathMaps> {
    let root = std::env::current_dir().context("finding the current folder")?;
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let home = home.context("neither CARGO_HOME nor HOME is set")?;
    let mut maps = PathMaps { for_c: String::new(), for_rust: String::new() };
    for (path, name) in [(root.as_path(), "linerate"), (home.as_path(), "cargo")] {
        write!(maps.for_c, "-ffile-prefix-map={}=/{name} ", path.display())?;
        write!(maps.for_rust, "--remap-path-prefix={}=/{name} ", path.display())?;
    }
    maps.for_rust.truncate(maps.for_rust.trim_end().len());
    Ok(maps)
}

/// Writes SHA256SUMS in the format of `sha256sum --check`. Returns the sum of each file by its name.
fn checksums(release: &Release, files: &[PathBuf]) -> Result<BTreeMap<String, String>> {
    let mut sums = BTreeMap::new();
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        sums.insert(name, sha256(file)?);
    }
    let text: String = sums.iter().map(|(name, sum)| format!("{sum}  {name}\n")).collect();
    let path = release.out.join("SHA256SUMS");
    fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    Ok(sums)
}

/// Returns the SHA-256 of a file in hexadecimal.
fn sha256(file: &Path) -> Result<String> {
    let mut command = Command::new("sha256sum");
    command.arg("--").arg(file);
    let output = process::run(command, LIMIT)?.stdout;
    output.split_whitespace().next().map(str::to_owned).with_context(|| format!("sha256sum of {}", file.display()))
}

/// Builds the same commit from a fresh clone in another folder, and compares each file.
fn compare_second_build(arguments: &Arguments, release: &Release, first: &BTreeMap<String, String>) -> Result<()> {
    let folder = tempfile::tempdir().context("making a folder for the second build")?;
    let clone = folder.path().join("clone");
    let mut git = Command::new("git");
    git.args(["clone", "--quiet", "."]).arg(&clone);
    process::run(git, LIMIT)?;
    let mut again = cargo();
    again.current_dir(&clone).args(["xtask", "package"]).env_remove("CARGO_TARGET_DIR");
    for system in &arguments.systems {
        again
            .arg("--system")
            .arg(system.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned()));
    }
    for architecture in &arguments.architectures {
        again.args(["--arch", architecture.name()]);
    }
    if let Some(url) = &arguments.download_url {
        again.args(["--download-url", url]);
    }
    let status = again.status().context("starting the second build")?;
    if !status.success() {
        bail!("the second build failed ({status})");
    }
    let second = fs::read_to_string(clone.join("target/package/SHA256SUMS")).context("reading the second sums")?;
    let differing: Vec<&str> = first
        .iter()
        .filter(|(name, sum)| !second.lines().any(|line| line == format!("{sum}  {name}")))
        .map(|(name, _)| name.as_str())
        .collect();
    if !differing.is_empty() {
        bail!("built twice at {} s, these files differ: {}", release.epoch, differing.join(", "));
    }
    println!("built again in another folder: all {} files are the same", first.len());
    Ok(())
}
