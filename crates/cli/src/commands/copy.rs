//! `linerate copy`: a folder tree from host to host, or to and from a file server, and where the time went.

mod ends;
mod share;

use super::nfs::Server;
use crate::choice::{Choices, choice};
use crate::device_load::ServerLoadSource;
use crate::exit::Failure;
use crate::hosts::{HostArguments, HostBook, LOCAL, ReachedAgents, together};
use crate::measure::{Beside, RunRequest, conclude, reach};
use crate::options::{Family, Prove, Results};
use crate::output::say_of_run;
use clap::Args;
use ends::{End, Ends};
use linerate_method::copy::is_complete;
use linerate_model::{
    CopyCache, CopyExisting, CopyFrom, CopyInto, CopyLinks, CopyOnError, CopyOptions, CopySync, CopyTask, CopyTree,
    CopyVerify, CopyWay, HostName, Plan, Record, Repeats, Task, Timing, Trial, TrialResult,
};
use share::SmbUser;
use std::path::{Path, PathBuf, absolute};
use tokio::sync::watch;

/// Pipelines to each destination, and where each file takes several calls to a server.
const LANES: u16 = 2;
const SERVER_LANES: u16 = 8;
/// Within one host, where each is a thread, there are as many as it has cores, but at most so many.
const MOST_WITHIN: u32 = 8;

/// In `--to`, the end that drops what it gets.
const DISCARD: &str = "discard";

/// Copy a folder tree, verify it, and report the time of each stage
#[derive(Debug, Args)]
#[command(
    after_help = "\
Examples:
  linerate copy --tree like:system A B         a generated tree, removed again
  linerate copy --tree /srv/data --into /srv/new A B
  linerate copy --tree like:photos A --to B,C,D    to three hosts at once
  linerate copy --from memory --to discard A B     the network alone
  linerate copy --over path --tree /srv/data --into /mnt/x
  linerate copy --over nfs --tree like:system A 192.0.2.5:/srv/new
  linerate copy --over smb --user ann --tree like:mail A //192.0.2.5/data/new

Agents read and write only what `linerate serve --copy-directory` allows.
Content is not encrypted in transit.",
    after_long_help = "\
More examples:
  linerate copy --each like:system,seed=N A --to B,C,D     a tree for each host
  linerate copy --tree like:system A,C B                   from two hosts at once
  linerate copy --tree /srv/data --into /srv/new --existing resume A B
  linerate copy --over nfs 192.0.2.5:/srv/data --to A,B,C
  linerate copy --over nfs --tree like:system A B          B's agent serves NFS
  linerate copy --over smb --user ann //192.0.2.5/data --to A,B,C
  linerate lab -- copy --tree files=2000,folders=50,bytes=200M a b --json

If you name one host, it is the destination, and this machine is the source. With --over path one host does everything. With \
--over nfs an end may be SERVER:/EXPORT, or a folder below the export. A source folder's content is the tree; \
a missing destination folder is created. With --over smb an end may be //SERVER[:PORT]/SHARE[/FOLDER].

Exit codes: 0 everything was copied, 1 some files could not be copied, 2 usage, 3 the copy did not finish."
)]
pub(crate) struct Arguments {
    /// Source and destination, or the destination alone
    ///
    /// Separate several hosts by commas. With --over nfs or smb one end may be a server's folder, as SERVER:/EXPORT or
    /// //SERVER/SHARE.
    #[arg(value_name = "HOST|FOLDER", num_args = 0..=2)]
    pub(crate) hosts: Vec<String>,

    /// A folder, or like:system, like:photos or like:mail
    ///
    /// The folder is one of the source. files=N,folders=N,bytes=N,seed=N describes a tree to generate. The default is
    /// like:system, or what the server's folder holds.
    #[arg(long, value_name = "TREE")]
    tree: Option<CopyTree>,

    /// A tree of its own for each destination, instead of --tree: given once for each, in their order; or once with
    /// seed=N, where N is 1, 2, 3 and so on. From a file server: folders below the one that is named
    #[arg(long, value_name = "TREE", conflicts_with = "tree", hide_short_help = true)]
    each: Vec<String>,

    /// linerate (agents), path, nfs or smb
    ///
    /// Way of copying.
    #[arg(long, value_name = "WAY", default_value = "linerate", value_parser = choice::<CopyWay>(WAYS))]
    over: CopyWay,

    /// Source of the content: files or memory
    #[arg(long, value_name = "SOURCE", default_value = "files", value_parser = choice::<CopyFrom>(FROM))]
    from: CopyFrom,

    /// Several destinations; or discard, to write nothing
    ///
    /// Separate them by commas. `discard` verifies everything and writes nothing.
    #[arg(long, value_name = "HOST,...", value_delimiter = ',')]
    pub(crate) to: Vec<String>,

    /// Folder at the destination [default: a temporary one]
    ///
    /// A temporary folder is removed after the copy.
    #[arg(long, value_name = "DIR")]
    into: Option<String>,

    /// Parallel pipelines to each destination, each with a connection [default: 2; with --over path one for each core
    /// of the host, 2 to 8; with a file server 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64), hide_short_help = true)]
    lanes: Option<u16>,

    /// Number of runs [default: 3; with --into 1]
    ///
    /// The median run is reported.
    #[arg(long, short = 'r', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeats: Option<u32>,

    /// When bytes are verified [default: received; with --over path, nfs or smb: read-back]
    #[arg(long, value_parser = choice::<CopyVerify>(VERIFY), hide_short_help = true)]
    verify: Option<CopyVerify>,

    /// When data is made durable
    #[arg(long, default_value = "end", value_parser = choice::<CopySync>(SYNC), hide_short_help = true)]
    sync: CopySync,

    /// State of the caches at the start
    #[arg(long, default_value = "as-is", value_parser = choice::<CopyCache>(CACHE), hide_short_help = true)]
    cache: CopyCache,

    /// Reaction if a file cannot be copied
    #[arg(long, default_value = "continue", value_parser = choice::<CopyOnError>(ON_ERROR), hide_short_help = true)]
    on_error: CopyOnError,

    /// Symbolic links [default: copy; skip for a generated tree to an SMB server]
    #[arg(long, value_parser = choice::<CopyLinks>(LINKS), hide_short_help = true)]
    links: Option<CopyLinks>,

    /// Old files: refuse, replace, resume
    ///
    /// Files that the destination has already.
    #[arg(long, value_name = "WHAT", default_value = "refuse", value_parser = choice::<CopyExisting>(EXISTING))]
    existing: CopyExisting,

    #[command(flatten)]
    prove: Prove,

    #[command(flatten)]
    pub(crate) family: Family,

    #[command(flatten)]
    server: Server,

    #[command(flatten)]
    smb: SmbUser,

    #[command(flatten)]
    server_load: ServerLoadSource,

    #[command(flatten)]
    pub(crate) results: Results,
}

const WAYS: Choices = &[
    ("linerate", "From agent to agent over TCP"),
    ("path", "Within one host, to any mounted file system"),
    ("nfs", "To or from an NFS version 3 server, an existing one or an agent's"),
    ("smb", "To or from an SMB server, version 2 or 3"),
];
const FROM: Choices = &[("files", "From storage"), ("memory", "Generated in memory")];
const VERIFY: Choices = &[
    ("none", "Never"),
    ("received", "On arrival, before they are written"),
    ("read-back", "Read back through the file system"),
];
const SYNC: Choices = &[
    ("end", "All before the copy counts as done"),
    ("each", "Each file before it gets its name"),
    ("none", "Left to kernel writeback"),
];
const CACHE: Choices = &[
    ("as-is", "Unchanged"),
    ("cold", "Empty (reliable only as root)"),
    ("warm", "Holding the tree, as far as it fits"),
];
const LINKS: Choices =
    &[("copy", "Copied; those that the destination cannot hold are reported"), ("skip", "Skipped and counted")];
const ON_ERROR: Choices = &[("continue", "The others are copied"), ("stop", "The copy stops")];
const EXISTING: Choices = &[
    ("refuse", "A folder that is not empty is refused"),
    ("replace", "Files of the same names are replaced; other files stay"),
    ("resume", "Files of the same name, size and time are kept: continues an interrupted copy"),
];

impl Arguments {
    /// Folders that it names.
    pub(crate) fn folders(&self) -> Vec<PathBuf> {
        let each = self.each.iter().filter_map(|text| numbered(text, 1).parse().ok());
        let folders = self.tree.iter().cloned().chain(each).filter_map(|tree| match tree {
            CopyTree::Folder(path) => absolute(path).ok(),
            CopyTree::Made(_) => None,
        });
        // A destination that is still to be made is made in its parent.
        let into = self.into.clone().and_then(|into| absolute(into).ok()).map(|into| match into.parent() {
            Some(parent) if !into.exists() => parent.to_owned(),
            _ => into,
        });
        folders.chain(into).collect()
    }

    fn options(&self, tree: &CopyTree) -> CopyOptions {
        CopyOptions {
            lanes: self.lanes.unwrap_or_else(|| self.usual_lanes()),
            verify: self.verify.unwrap_or(match self.over {
                CopyWay::Linerate => CopyVerify::Received,
                CopyWay::Path | CopyWay::Nfs | CopyWay::Smb if self.discards() => CopyVerify::None,
                CopyWay::Path | CopyWay::Nfs | CopyWay::Smb => CopyVerify::ReadBack,
            }),
            sync: self.sync,
            cache: self.cache,
            on_error: self.on_error,
            existing: self.existing,
            links: self.links.unwrap_or(match (self.over, tree) {
                (CopyWay::Smb, CopyTree::Made(_)) => CopyLinks::Skip,
                // What a user's own tree loses is named.
                _ => CopyLinks::Copy,
            }),
        }
    }

    fn usual_lanes(&self) -> u16 {
        match self.over {
            // Within one host there may be more, once it is known: see [`lanes_within`].
            CopyWay::Linerate | CopyWay::Path => LANES,
            CopyWay::Nfs | CopyWay::Smb => SERVER_LANES,
        }
    }

    pub(crate) fn discards(&self) -> bool {
        self.to.iter().any(|to| to == DISCARD)
    }

    fn task(&self) -> Result<(CopyTask, HostArguments), Failure> {
        let Ends { sources: from, destinations: to } = ends::read(self)?;
        let all: Vec<&str> = from.hosts().iter().chain(to.hosts()).map(String::as_str).collect();
        let (hosts, mut sources) = together(&all).map_err(Failure::usage)?;
        let mut destinations = sources.split_off(from.hosts().len());
        for (end, names) in [("source", &sources), ("destination", &destinations)] {
            if let Some(twice) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
                return Err(Failure::usage(format!("{} is named twice as a {end}", twice.1)));
            }
        }
        let into = self.into(&to, if destinations.is_empty() { &sources } else { &destinations })?;
        let each = self.each(&from, &sources, &to, destinations.len())?;
        let (tree, content) = self.origin(&from, &sources)?;
        let tree = each.first().cloned().unwrap_or(tree);
        for (end, names) in [(from, &mut sources), (to, &mut destinations)] {
            if let End::Server { name, .. } = end {
                names.push(name);
            }
        }
        let options = self.options(&tree);
        let task = CopyTask {
            tree,
            each,
            way: self.over,
            sources,
            destinations,
            from: content,
            into,
            options,
            ip: self.family.ip(),
        };
        check(&task)?;
        Ok((task, hosts))
    }

    /// Where it is put, by `hosts` or in a server's folder.
    fn into(&self, to: &End, hosts: &[HostName]) -> Result<CopyInto, Failure> {
        match (&self.into, to.server()) {
            (Some(_), Some(_)) => Err(Failure::usage(
                "--into is a folder of a host; the server's is named behind its export, as SERVER:/EXPORT/DIR or //SERVER/SHARE/DIR",
            )),
            (Some(_), None) if self.discards() => {
                Err(Failure::usage("--to discard keeps nothing: it does not go with --into"))
            }
            (None, Some(server)) => Ok(CopyInto::Server(server.clone())),
            (None, None) if self.discards() => Ok(CopyInto::Discard),
            (Some(path), None) => Ok(CopyInto::Folder(on_host(path, here(hosts))?)),
            (None, None) => Ok(CopyInto::Scratch),
        }
    }

    /// The trees of `--each`, one for each destination.
    fn each(&self, from: &End, hosts: &[HostName], to: &End, destinations: usize) -> Result<Vec<CopyTree>, Failure> {
        let typed = match &self.each[..] {
            [] => return Ok(Vec::new()),
            _ if to.server().is_some() || destinations == 0 => {
                return Err(Failure::usage("--each is for the hosts that a copy goes to: name them with --to"));
            }
            [one] if numbered(one, 1) != *one => (1..=destinations).map(|number| numbered(one, number)).collect(),
            some if some.len() == destinations => some.to_vec(),
            some => {
                return Err(Failure::usage(format!(
                    "{} trees with --each for {destinations} destinations: give it once for each of them, or once with seed=N, as in \
                     like:system,seed=N",
                    some.len()
                )));
            }
        };
        let read = |text: String| match (text.parse().map_err(Failure::usage)?, from) {
            (CopyTree::Made(_), End::Server { .. }) => Err(Failure::usage(format!(
                "{text} is made up: from a file server --each names folders below the one that is named"
            ))),
            (tree, End::Server { .. }) => Ok(tree),
            (CopyTree::Folder(path), End::Hosts(_)) => Ok(CopyTree::Folder(on_host(&path, here(hosts))?)),
            (tree, End::Hosts(_)) => Ok(tree),
        };
        typed.into_iter().map(read).collect()
    }

    /// What is copied and where it is read: by `hosts`, or from a server's folder.
    fn origin(&self, from: &End, hosts: &[HostName]) -> Result<(CopyTree, CopyFrom), Failure> {
        let content = self.from.clone();
        Ok(match (from, &self.tree) {
            (End::Server { .. }, Some(_)) => {
                return Err(Failure::usage(
                    "--tree is of a host; what is copied from a server is the folder that is named with it",
                ));
            }
            (End::Server { .. }, None) if content == CopyFrom::Memory => {
                return Err(Failure::usage(
                    "--from memory makes content up: it does not go with a file server as source",
                ));
            }
            (End::Server { name, server }, None) => {
                (CopyTree::Folder(name.0.clone()), CopyFrom::Server(server.clone()))
            }
            (End::Hosts(_), Some(CopyTree::Folder(path))) => (CopyTree::Folder(on_host(path, here(hosts))?), content),
            (End::Hosts(_), Some(made)) => (made.clone(), content),
            (End::Hosts(_), None) => (CopyTree::default(), content),
        })
    }

    fn plan(&self, task: CopyTask, repeats: u32) -> Plan {
        let cell = Trial::new("copy", Task::Copy(task), Timing::UntilDone);
        self.prove.applied_to(Plan::sweep(vec![cell], Repeats::Times(repeats)))
    }

    fn repeats(&self, task: &CopyTask) -> Result<u32, Failure> {
        let stays = matches!(task.into, CopyInto::Folder(_) | CopyInto::Server(_));
        let repeats = self.repeats.unwrap_or(if stays { 1 } else { 3 });
        let again = match self.prove.prove {
            true => Some("--prove"),
            false => (repeats > 1).then_some("--repeats"),
        };
        match again.filter(|_| stays && task.options.existing != CopyExisting::Replace) {
            Some(option) => Err(Failure::usage(format!(
                "{option} into a folder that stays needs --existing replace: the second run finds what the first one wrote"
            ))),
            None => Ok(repeats),
        }
    }
}

/// A tree of `--each` for the destination of this number.
fn numbered(text: &str, number: usize) -> String {
    let words = text.split(',').map(|word| match word {
        "seed=N" => format!("seed={number}"),
        _ => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(",")
}

/// Whether all of them are this machine.
fn here(names: &[HostName]) -> bool {
    names.iter().all(|name| name.0 == LOCAL)
}

/// A folder of a host. One of this machine may be told from where the user is.
fn on_host(path: &str, here: bool) -> Result<String, Failure> {
    if Path::new(path).is_absolute() || !here && is_whole(path) {
        return Ok(path.to_owned());
    }
    if !here {
        return Err(Failure::usage(format!("`{path}` is of another host: write its path from / or its drive on")));
    }
    let path = absolute(path).map_err(Failure::usage)?;
    path.into_os_string().into_string().map_err(|path| Failure::usage(format!("{} is not UTF-8", path.display())))
}

/// Returns whether `path` is absolute on a host with any operating system: `/srv`, `C:\srv`, `\\server\share`.
fn is_whole(path: &str) -> bool {
    let drive = path.split_once(':').is_some_and(|(drive, rest)| {
        drive.len() == 1
            && drive.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && rest.starts_with(['/', '\\'])
    });
    drive || path.starts_with('/') || path.starts_with(r"\\")
}

/// Refuses before any host is asked what none would do.
fn check(task: &CopyTask) -> Result<(), Failure> {
    let CopyOptions { verify, existing, .. } = task.options;
    let refuse = |why: &str| Err(Failure::usage(why));
    if task.trees().iter().any(|tree| matches!(tree, CopyTree::Folder(_))) && task.from == CopyFrom::Memory {
        return refuse("--from memory makes content up: it goes with a made tree, as like:system, not with a folder");
    }
    if task.into == CopyInto::Discard && verify == CopyVerify::ReadBack {
        return refuse("--verify read-back needs something to be written: it does not go with --to discard");
    }
    if !matches!(task.into, CopyInto::Folder(_) | CopyInto::Server(_)) && existing != CopyExisting::Refuse {
        return refuse("--existing needs the folder that holds something: name it with --into");
    }
    if task.way == CopyWay::Nfs && task.into == CopyInto::Discard && !matches!(task.from, CopyFrom::Server(_)) {
        return refuse("--over nfs writes to a server, and --to discard writes nothing: use --over linerate");
    }
    if task.way != CopyWay::Linerate && verify == CopyVerify::Received {
        return refuse("--verify received is for --over linerate, whose source sends hashes; use read-back or none");
    }
    Ok(())
}

/// A tree below itself would be copied without end. Only where both ends are one machine can that be seen.
fn apart(task: &CopyTask, agents: &ReachedAgents) -> Result<(), Failure> {
    let CopyInto::Folder(into) = &task.into else { return Ok(()) };
    let machine = |name: &HostName| agents.find(name).ok().map(|agent| agent.host.boot_id.clone());
    let shared = task.sources.iter().any(|source| task.destinations.iter().any(|to| machine(to) == machine(source)));
    let above = task.trees().iter().find_map(|tree| match tree {
        CopyTree::Folder(tree) => (shared && Path::new(into).starts_with(tree)).then_some(tree),
        CopyTree::Made(_) => None,
    });
    above.map_or(Ok(()), |tree| Err(Failure::usage(format!("{into} is inside {tree}: the copy would copy itself"))))
}

pub(crate) async fn run(arguments: Arguments, book: HostBook, cancel: watch::Receiver<bool>) -> Result<(), Failure> {
    let (mut task, hosts) = arguments.task()?;
    let repeats = arguments.repeats(&task)?;
    let password = match task.way {
        CopyWay::Smb => arguments.smb.password().map_err(Failure::usage)?,
        _ => None,
    };
    let asked = RunRequest::of_plan(&arguments.results, &arguments.plan(task.clone(), repeats))?;
    let mut agents = reach(&book, &hosts, cancel.clone()).await?;
    if arguments.lanes.is_none() && task.way == CopyWay::Path {
        task.options.lanes = lanes_within(&task, &agents);
    }
    let device = match apart(&task, &agents) {
        Ok(()) => arguments.server_load.watch(&book, &mut agents, &hosts).await,
        Err(failure) => Err(failure),
    };
    let ended = match device {
        Ok(device) => asked.run(arguments.plan(task, repeats), &agents, Beside { password, device }, cancel).await,
        Err(failure) => Err(failure),
    };
    agents.close().await;
    let ended = ended?;
    conclude(&ended, &arguments.results)?;
    match judge(&ended.record) {
        // For a study, and for a comparison, it is a run like others.
        Err(Failure::Missed) if arguments.results.of_study.is_some() => {
            let (_, found) = ended.record.copies().next().expect("judged");
            say_of_run(&format!("not everything was copied: {} failed", found.faults_total));
            Ok(())
        }
        judged => judged,
    }
}

/// Lanes of copies within hosts: one for each core of the host that has the fewest.
fn lanes_within(task: &CopyTask, agents: &ReachedAgents) -> u16 {
    let cores = task.sources.iter().filter_map(|host| Some(agents.find(host).ok()?.host.cores)).min();
    LANES.max(cores.unwrap_or_default().min(MOST_WITHIN) as u16)
}

/// Whether all that was to be copied was.
fn judge(record: &Record) -> Result<(), Failure> {
    let Some((_, found)) = record.copies().next() else { return Ok(()) };
    let asked = |result: &&TrialResult| result.trial.proves.is_none();
    if !is_complete(record.counted().filter(asked).filter_map(|result| result.copy())) {
        let why = found.faults.first().map_or(String::new(), |fault| format!(": {}", fault.reason));
        return Err(Failure::Measure(format!("the copy did not come to its end{why}")));
    }
    if found.faults_total > 0 { Err(Failure::Missed) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_paths_of_other_hosts_are_of_any_system() {
        for whole in ["/srv/data", r"C:\data", "d:/data", r"\\server\share"] {
            assert!(is_whole(whole), "{whole}");
        }
        for part in ["data", "C:data", r"\data", "CD:/x", "", "1:/x"] {
            assert!(!is_whole(part), "{part}");
        }
    }
    use crate::choice::tests::check;

    #[test]
    fn every_choice_is_a_variant() {
        check::<CopyWay>(WAYS);
        check::<CopyFrom>(FROM);
        check::<CopyVerify>(VERIFY);
        check::<CopySync>(SYNC);
        check::<CopyCache>(CACHE);
        check::<CopyLinks>(LINKS);
        check::<CopyOnError>(ON_ERROR);
        check::<CopyExisting>(EXISTING);
    }
}
