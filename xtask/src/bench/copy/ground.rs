//! What all tools of a copy share: the tree, the storage it is copied to, what the caches hold, and how time is taken.

use super::Comparison;
use super::ways::{Client, Server, Tool};
use crate::bench::lab::{Lab, RECEIVER, SENDER};
use crate::bench::peers::port;
use crate::process::{self, Running};
use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::fs::{self, File, FileType};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long one copy may take.
const LIMIT: Duration = Duration::from_secs(600);
/// What a timed script's last line begins with.
const STAMP: &str = "from-to-ns";
/// Where a write of 3 drops what the caches hold (proc_sys_vm(5)).
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// What the caches hold when a copy starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cache {
    /// All of the tree.
    Warm,
    /// Nothing of it.
    Cold,
}

impl Cache {
    /// As linerate has it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Warm => "warm",
            Self::Cold => "cold",
        }
    }
}

/// How many files there are below a folder, and bytes in them.
type Size = (u64, u64);

/// The lab, with a made tree and a folder to copy it to.
pub(super) struct Ground {
    pub(super) lab: Lab,
    to: String,
    folder: TempDir,
    size: Size,
    /// A copy counts as done when all is durable.
    durable: bool,
    runs: u32,
}

impl Ground {
    /// Brings up a lab as `bench` tells it, whose hosts may use a folder in the storage, and makes the tree there.
    pub(super) fn lay(comparison: &Comparison<'_>, bench: &[&str]) -> Result<Self> {
        let Comparison { folder: records, storage, tree, durable, program, .. } = *comparison;
        fs::create_dir_all(storage).with_context(|| format!("making {}", storage.display()))?;
        let made = tempfile::Builder::new().prefix("linerate-bench-").tempdir_in(storage);
        let folder = made.with_context(|| format!("making a folder in {}", storage.display()))?;
        spread(folder.path())?;
        let path = folder.path().canonicalize().context("finding the storage")?;
        // Into the folder itself, for that is what the lab's hosts are allowed by it.
        let first =
            format!("copy a --over path --from memory --tree files=1,folders=1,bytes=1 --into {}", path.display());
        let lab = Lab::up_with(program, records, bench, &words(&first))?;
        let to = lab.address(RECEIVER)?;
        let mut ground = Self { lab, to, folder, size: (0, 0), durable, runs: 0 };
        let make = format!("copy a --over path --from memory --tree {tree} --sync none --verify none");
        let made = words(&make).into_iter().chain(["--into".to_owned(), ground.tree().display().to_string()]);
        process::run(ground.lab.linerate(&made.collect::<Vec<_>>()), LIMIT)?;
        without_links(&ground.tree())?;
        ground.size = census(&ground.tree())?;
        Ok(ground)
    }

    fn tree(&self) -> PathBuf {
        self.folder.path().join("tree")
    }

    /// Where the current run copies to. Each has a name of its own, by which [`spread`] places it.
    fn destination(&self) -> PathBuf {
        self.folder.path().join(format!("into-{}", self.runs))
    }

    /// Bytes of the tree's files.
    pub(super) fn bytes(&self) -> u64 {
        self.size.1
    }

    /// Copies the tree with `tool` to a fresh folder, which is removed again, and gives the seconds that took.
    pub(super) fn time(&mut self, tool: &Tool, cache: Cache) -> Result<f64> {
        self.runs += 1;
        self.prepare(cache, tool)?;
        let seconds = self.copy(tool, cache)?;
        let copied = census(&self.destination())?;
        if copied != self.size {
            bail!("{} copied {copied:?} of {:?} files and bytes", tool.name, self.size);
        }
        fs::remove_dir_all(self.destination()).context("removing what was copied")?;
        Ok(seconds)
    }

    /// What linerate, told `more`, says of its copy with warm caches and `tool`'s server at the receiving host meanwhile.
    pub(super) fn copied(&mut self, tool: &Tool, more: &str) -> Result<Copied> {
        self.runs += 1;
        self.prepare(Cache::Warm, tool)?;
        let port = port(self.runs);
        let server = self.start(tool, port)?;
        let copied = self.linerate(more, Cache::Warm, port);
        if let Some(server) = server {
            server.stop(Signal::SIGTERM)?;
        }
        fs::remove_dir_all(self.destination()).context("removing what was copied")?;
        copied
    }

    fn start(&self, tool: &Tool, port: u16) -> Result<Option<Running>> {
        let Some(Server { script, .. }) = &tool.server else { return Ok(None) };
        let mut started = Running::start(self.shell(RECEIVER, script, port))?;
        self.lab.await_listening(&mut started, port)?;
        Ok(Some(started))
    }

    fn copy(&self, tool: &Tool, cache: Cache) -> Result<f64> {
        let port = port(self.runs);
        let mut server = self.start(tool, port)?;
        let mut seconds = match tool.client {
            Client::Linerate(words) => self.linerate(&format!("{words} --tree $TREE"), cache, port)?.time_ns / 1e9,
            Client::Shell(script) => {
                let (begun, mut ended) = stamps(&process::run(self.shell(SENDER, script, port), LIMIT)?.stdout)?;
                if tool.server.as_ref().is_some_and(|server| server.ends)
                    && let Some(server) = server.take()
                {
                    ended = ended.max(stamps(&server.finish(LIMIT)?.stdout)?.1);
                }
                (ended - begun) as f64 / 1e9
            }
        };
        if let Some(server) = server {
            server.stop(Signal::SIGTERM)?;
        }
        if self.durable && matches!(tool.client, Client::Shell(_)) {
            let begun = Instant::now();
            let into = File::open(self.destination()).context("opening what was copied")?;
            nix::unistd::syncfs(&into).context("syncfs of what was copied")?;
            seconds += begun.elapsed().as_secs_f64();
        }
        Ok(seconds)
    }

    /// An empty folder to copy to, nothing left to be written, and the caches as they are to be.
    fn prepare(&self, cache: Cache, tool: &Tool) -> Result<()> {
        fs::create_dir(self.destination()).context("making the folder to copy to")?;
        nix::unistd::sync();
        match cache {
            Cache::Warm => read_all(&self.tree())?,
            Cache::Cold => {
                fs::write(DROP_CACHES, "3\n")
                    .with_context(|| format!("writing {DROP_CACHES}; cold caches need root"))?;
            }
        }
        // linerate's agents run already: a peer is not to wait for its program to be read from storage either.
        for program in ["sh", "env", "date"].iter().chain(tool.programs) {
            // Some know no such option; they were read nevertheless.
            let _ = self.lab.inside(SENDER, [program, "--version"]).output();
        }
        Ok(())
    }

    fn linerate(&self, more: &str, cache: Cache, port: u16) -> Result<Copied> {
        let sync = if self.durable { "end" } else { "none" };
        let line = format!("copy {more} --cache {} --sync {sync} --repeats 1", cache.name());
        let named = |word: String| {
            self.names(port).iter().fold(word, |word, (name, value)| word.replace(&format!("${name}"), value))
        };
        let record = process::run(self.lab.linerate(&words(&line).into_iter().map(named).collect::<Vec<_>>()), LIMIT)?;
        Copied::read(&record.stdout)
    }

    /// What words and scripts call the folders and the server's place.
    fn names(&self, port: u16) -> [(&'static str, String); 5] {
        let folder = |path: PathBuf| path.display().to_string();
        [
            ("TREE", folder(self.tree())),
            ("INTO", folder(self.destination())),
            ("SCRATCH", folder(self.folder.path().to_owned())),
            ("TO", self.to.clone()),
            ("PORT", port.to_string()),
        ]
    }

    /// A script inside a host, which tells when it began and ended.
    fn shell(&self, host: &str, script: &str, port: u16) -> Command {
        let environment = self.names(port).map(|(name, value)| format!("{name}={value}"));
        let script =
            format!("begun=$(date +%s%N)\n({script})\nstatus=$?\necho {STAMP} $begun $(date +%s%N)\nexit $status");
        let words = ["sh".to_owned(), "-c".to_owned(), script];
        self.lab.inside(host, std::iter::once("env".to_owned()).chain(environment).chain(words))
    }
}

/// What linerate's record says of a copy.
pub(super) struct Copied {
    pub(super) time_ns: f64,
    pub(super) bytes_per_s: f64,
    /// Each client and its share of the sum of all rates: the destinations, or where several write to one server, the sources.
    pub(super) shares: Vec<(String, f64)>,
    /// Stages and their busy shares, in the order of the record.
    pub(super) stages: Vec<(String, f64)>,
    pub(super) busiest: String,
}

impl Copied {
    /// Of a copy that left nothing out.
    pub(super) fn read(record: &str) -> Result<Self> {
        let record: Value = serde_json::from_str(record).context("reading linerate's record as JSON")?;
        let found = &record["results"][0];
        let number = |value: &Value, what| value.as_f64().with_context(|| format!("the record lacks {what}"));
        if number(&found["faults_total"], "what was not copied")? > 0.0 {
            bail!("linerate left something out: {}", found["faults"]);
        }
        let clients = found["clients"].as_array().map_or(&[][..], Vec::as_slice);
        let to_one = clients.len() > 1 && clients.iter().all(|client| client["to"] == clients[0]["to"]);
        let shares = clients.iter().map(|client| {
            let name = client[if to_one { "from" } else { "to" }].as_str().context("a client has no name")?;
            Ok((name.to_owned(), number(&client["share"], "a client's share")?))
        });
        let stages = found["stages"].as_object().into_iter().flatten();
        let stages = stages.map(|(name, share)| Ok((name.clone(), number(&share["busy"], "a stage's share")?)));
        Ok(Self {
            time_ns: number(&found["time_ns"], "its time")?,
            bytes_per_s: number(&found["bytes_per_s"], "its rate")?,
            shares: shares.collect::<Result<_>>()?,
            stages: stages.collect::<Result<_>>()?,
            busiest: found["busiest_stage"].as_str().unwrap_or("none").to_owned(),
        })
    }
}

/// The words of a line.
pub(super) fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// Has the file system place the folders made in this one far from each other, where it can (chattr(1), `T`). Where files were
/// removed within a minute, ext4 takes several times as long to make others: it looks at every inode that is cached before it gives
/// one out, and gives none out so soon (`recently_deleted` in its ialloc.c). Each run would pay for the one before.
fn spread(folder: &Path) -> Result<()> {
    let command = Command::new("chattr").arg("+T").arg(folder).output();
    let output = command.context("starting chattr, of the Debian package e2fsprogs")?;
    if !output.status.success() {
        eprintln!("note: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// When a timed script began and ended, nanoseconds since 1970.
fn stamps(written: &str) -> Result<(u64, u64)> {
    let line = written.lines().rev().find_map(|line| line.strip_prefix(STAMP));
    let line = line.with_context(|| format!("a script did not tell its times: {written}"))?;
    let mut stamps = line.split_whitespace().map(str::parse);
    match (stamps.next(), stamps.next()) {
        (Some(Ok(begun)), Some(Ok(ended))) if ended > begun => Ok((begun, ended)),
        _ => bail!("a script told no times: {line}"),
    }
}

/// Removes symbolic links: SMB has none, and every way is to copy the same tree.
fn without_links(root: &Path) -> Result<()> {
    below(root, &|kind| kind.is_symlink(), &mut |path| fs::remove_file(path))
}

/// Each regular file below a folder.
fn files(root: &Path, action: &mut dyn FnMut(&Path) -> io::Result<()>) -> Result<()> {
    below(root, &|kind| kind.is_file(), action)
}

/// All below a folder that is of a kind.
fn below(
    root: &Path,
    wanted: &dyn Fn(FileType) -> bool,
    action: &mut dyn FnMut(&Path) -> io::Result<()>,
) -> Result<()> {
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let listed = |error| format!("listing {}: {error}", folder.display());
        for entry in fs::read_dir(&folder).map_err(|error| anyhow::Error::msg(listed(error)))? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if wanted(kind) {
                action(&entry.path()).with_context(|| format!("at {}", entry.path().display()))?;
            }
        }
    }
    Ok(())
}

fn census(root: &Path) -> Result<Size> {
    let (mut count, mut bytes) = (0, 0);
    files(root, &mut |path| {
        (count, bytes) = (count + 1, bytes + path.symlink_metadata()?.len());
        Ok(())
    })?;
    Ok((count, bytes))
}

/// Brings a tree into the cache.
fn read_all(root: &Path) -> Result<()> {
    let mut piece = vec![0; 256 << 10];
    files(root, &mut |path| {
        let mut file = File::open(path)?;
        while file.read(&mut piece)? > 0 {}
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_tells_when_it_began_and_ended() {
        assert_eq!(stamps("noise\nfrom-to-ns 5 9\n").unwrap(), (5, 9));
        for wrong in ["", "from-to-ns 9 5", "from-to-ns 9"] {
            assert!(stamps(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn files_and_bytes_are_counted_without_links() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("in")).unwrap();
        fs::write(folder.path().join("in/a"), "abc").unwrap();
        fs::write(folder.path().join("b"), "de").unwrap();
        std::os::unix::fs::symlink("b", folder.path().join("c")).unwrap();
        assert_eq!(census(folder.path()).unwrap(), (2, 5));
        read_all(folder.path()).unwrap();
        without_links(folder.path()).unwrap();
        assert!(!folder.path().join("c").is_symlink());
        assert_eq!(census(folder.path()).unwrap(), (2, 5));
    }

    #[test]
    fn a_record_tells_time_shares_and_stages_and_what_was_left_out_is_no_copy() {
        let record = r#"{"results":[{"time_ns":2e9,"bytes_per_s":5e6,"faults_total":0,"faults":[],"busiest_stage":"send",
            "clients":[{"to":"b","share":0.75},{"to":"c","share":0.25}],
            "stages":{"send":{"busy":0.9},"read":{"busy":0.1}}}]}"#;
        let copied = Copied::read(record).unwrap();
        assert_eq!((copied.time_ns, copied.busiest.as_str()), (2e9, "send"));
        assert_eq!(copied.shares, [("b".to_owned(), 0.75), ("c".to_owned(), 0.25)]);
        assert!(copied.stages.contains(&("send".to_owned(), 0.9)));
        let writing =
            record.replace(r#""to":"b""#, r#""from":"e","to":"a""#).replace(r#""to":"c""#, r#""from":"f","to":"a""#);
        assert_eq!(Copied::read(&writing).unwrap().shares, [("e".to_owned(), 0.75), ("f".to_owned(), 0.25)]);
        let partly = record.replace(r#""faults_total":0"#, r#""faults_total":3"#);
        assert!(Copied::read(&partly).is_err());
    }
}
