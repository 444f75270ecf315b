//! What is released: static programs, and packages of them for each processor.
//!
//! Programs are linked with musl, so that they run on every Linux. C code (SQLite, ring) is compiled by clang with the headers of
//! musl, and all is linked by the rust-lld of the toolchain: no cross compiler is needed. So that two
//! builds of one commit can be the same, byte for byte, paths are mapped and times are those of the commit
//! (`SOURCE_DATE_EPOCH`, reproducible-builds.org); `--again` compares.

mod formats;
mod image;
mod sbom;
mod tree;
mod trial;

use crate::process::{self, cargo, catch_interrupts};
use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};
use nix::sys::stat::{Mode, umask};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tree::Tree;

/// Commands that only copy and compress end within this time.
const LIMIT: Duration = Duration::from_secs(300);

/// The version of nfpm that packages were tried with.
const NFPM_VERSION: &str = "v2.43.0";

/// What to build.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Build for this processor only; may be repeated. By default for all.
    #[arg(long = "arch", value_name = "ARCH")]
    architectures: Vec<Architecture>,
    /// Where the packages go.
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

    /// As Rust, rpm and uname name it.
    fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// As Debian, Go and OCI name it.
    fn debian(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    /// The target of the compiler.
    fn target(self) -> String {
        format!("{}-unknown-linux-musl", self.name())
    }

    /// True if its programs run on this machine.
    fn is_ours(self) -> bool {
        self.name() == std::env::consts::ARCH
    }
}

/// What all packages of one release have in common.
struct Release {
    version: String,
    /// When the commit was made, seconds since 1970.
    epoch: u64,
    /// Where the packages go.
    out: PathBuf,
}

impl Release {
    fn of_this_commit(out: &Path) -> Result<Self> {
        let mut git = Command::new("git");
        git.args(["log", "-1", "--format=%ct"]);
        let said = process::run(git, LIMIT).context("asking for the time of the commit")?.stdout;
        let epoch = said.trim().parse().with_context(|| format!("reading `{}` of git log", said.trim()))?;
        fs::create_dir_all(out).with_context(|| format!("making {}", out.display()))?;
        let out = out.canonicalize().with_context(|| format!("finding {}", out.display()))?;
        Ok(Self { version: env!("CARGO_PKG_VERSION").to_owned(), epoch, out })
    }

    /// A command whose output has the time of the commit, and no other.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("SOURCE_DATE_EPOCH", self.epoch.to_string()).env("LC_ALL", "C").env("TZ", "UTC");
        command
    }
}

/// Builds all packages, and says what they came to.
///
/// # Errors
///
/// A tool is missing or fails, or a package does not do what it must.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let began = Instant::now();
    let mut architectures = arguments.architectures.clone();
    if architectures.is_empty() {
        architectures.extend(Architecture::ALL);
    }
    architectures.sort();
    architectures.dedup();
    check_tools(&architectures)?;
    if arguments.again {
        check_committed()?;
    }
    // Files and folders have the same modes whoever builds them.
    umask(Mode::S_IWGRP | Mode::S_IWOTH);
    let release = Release::of_this_commit(&arguments.out)?;
    build(&release, &architectures)?;
    let trees =
        architectures.iter().map(|&architecture| tree_of(&release, architecture)).collect::<Result<Vec<_>>>()?;
    catch_interrupts()?;
    let mut files = Vec::new();
    for tree in &trees {
        files.push(formats::archive(&release, tree)?);
        files.extend(formats::packages(&release, tree)?);
        files.push(sbom::write(&release, tree.architecture)?);
    }
    files.push(image::write(&release, &trees)?);
    let sums = checksums(&release, &files)?;
    for file in &files {
        let size = fs::metadata(file).with_context(|| format!("reading {}", file.display()))?.len();
        println!("{:>11} bytes  {}", size, file.display());
    }
    println!("packages made in {:.0} s", began.elapsed().as_secs_f64());
    if arguments.try_out {
        trial::run(&release, &trees, &files)?;
    }
    if arguments.again {
        built_again(arguments, &release, &sums)?;
    }
    Ok(())
}

/// Names at once all tools that are missing: a build takes minutes.
fn check_tools(architectures: &[Architecture]) -> Result<()> {
    let mut missing: Vec<String> = ["clang", "llvm-ar", "tar", "gzip", "git"]
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
        if !architecture.is_ours() && !runs(emulator) {
            missing.push(format!("the command {emulator}, for the program writes its manual pages itself"));
        }
    }
    if !runs("nfpm") {
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
    Command::new(tool).arg("--version").output().is_ok_and(|said| said.status.success())
}

/// A clone has commits alone: what is not committed would not be built again.
fn check_committed() -> Result<()> {
    let mut status = Command::new("git");
    status.args(["status", "--porcelain"]);
    let changes = process::run(status, LIMIT)?.stdout;
    ensure!(changes.is_empty(), "--again builds the commit in a clone; commit your changes first");
    Ok(())
}

/// Where Debian keeps the headers of musl.
fn headers(architecture: Architecture) -> PathBuf {
    format!("/usr/include/{}-linux-musl", architecture.name()).into()
}

/// Lays out the program that was built, and what is installed with it.
fn tree_of(release: &Release, architecture: Architecture) -> Result<Tree> {
    let program = Path::new("target").join(architecture.target()).join("dist/linerate");
    let interpreter: &[&str] = if architecture.is_ours() { &[] } else { &trial::EMULATOR_OF[architecture as usize] };
    Tree::lay_out(release, architecture, &program, interpreter)
}

/// Builds the static programs of all processors at once: most of a build is the optimisation of one program, which takes one core.
fn build(release: &Release, architectures: &[Architecture]) -> Result<()> {
    let targets: Vec<String> = architectures.iter().map(|architecture| architecture.target()).collect();
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "add"]).args(&targets);
    process::run(rustup, LIMIT).with_context(|| format!("adding to the toolchain: {}", targets.join(", ")))?;

    let root = std::env::current_dir().context("finding the current folder")?;
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let home = home.context("neither CARGO_HOME nor HOME is set")?;
    let mapped = [(root.as_path(), "linerate"), (home.as_path(), "cargo")];
    let (mut map_for_c, mut map_for_rust) = (String::new(), String::new());
    for (path, name) in mapped {
        write!(map_for_c, " -ffile-prefix-map={}=/{name}", path.display())?;
        write!(map_for_rust, " --remap-path-prefix={}=/{name}", path.display())?;
    }
    let mut clang = Command::new("clang");
    clang.arg("-print-resource-dir");
    let resources = process::run(clang, LIMIT)?.stdout;

    let mut command = cargo();
    command
        .args(["build", "--locked", "--profile", "dist", "--package", "linerate", "--target-dir", "target"])
        .env("SOURCE_DATE_EPOCH", release.epoch.to_string())
        .env_remove("RUSTFLAGS");
    for (architecture, target) in architectures.iter().zip(&targets) {
        let (lower, upper) = (target.replace('-', "_"), target.replace('-', "_").to_uppercase());
        let for_c = format!(
            "--target={}-linux-musl -nostdinc -isystem {}/include -isystem {}{map_for_c}",
            architecture.name(),
            resources.trim(),
            headers(*architecture).display()
        );
        command
            .args(["--target", target])
            .env(format!("CC_{lower}"), "clang")
            .env(format!("AR_{lower}"), "llvm-ar")
            .env(format!("CFLAGS_{lower}"), for_c)
            .env(format!("CARGO_TARGET_{upper}_LINKER"), "rust-lld")
            .env(format!("CARGO_TARGET_{upper}_RUSTFLAGS"), map_for_rust.trim());
    }
    let began = Instant::now();
    let status = command.status().context("starting `cargo build`")?;
    if !status.success() {
        bail!("the program was not built for {} ({status})", targets.join(", "));
    }
    println!("built for {} in {:.0} s", targets.join(" and "), began.elapsed().as_secs_f64());
    Ok(())
}

/// Writes SHA256SUMS, as `sha256sum --check` reads it. Returns the sum of each file by its name.
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

/// The SHA-256 of a file, in hexadecimal.
fn sha256(file: &Path) -> Result<String> {
    let mut command = Command::new("sha256sum");
    command.arg("--").arg(file);
    let said = process::run(command, LIMIT)?.stdout;
    said.split_whitespace().next().map(str::to_owned).with_context(|| format!("sha256sum of {}", file.display()))
}

/// Builds the same commit from a fresh clone in another folder, and compares each file.
fn built_again(arguments: &Arguments, release: &Release, first: &BTreeMap<String, String>) -> Result<()> {
    let folder = tempfile::tempdir().context("making a folder for the second build")?;
    let clone = folder.path().join("clone");
    let mut git = Command::new("git");
    git.args(["clone", "--quiet", "."]).arg(&clone);
    process::run(git, LIMIT)?;
    let mut again = cargo();
    again.current_dir(&clone).args(["xtask", "package"]).env_remove("CARGO_TARGET_DIR");
    for architecture in &arguments.architectures {
        again.args(["--arch", architecture.name()]);
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
