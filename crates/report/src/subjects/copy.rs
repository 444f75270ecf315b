//! Copies of folder trees: rate, time by stage, clients, size classes, and what was left out.

use crate::blocks::columns;
use crate::blocks::section::{Block, Section};
use crate::blocks::table::Table;
use crate::column;
use crate::figures::{MISSING, bytes_per_s, grouped, nanos, per_second, percent, plain};
use crate::language::Language;
use crate::records::tasks;
use crate::said;
use crate::subjects::contract::Subject;
use crate::subjects::live::{self, Live, LiveChart, LiveColumn, LiveRate, ValueKind};
use crate::wording::listed;
use linerate_model::text;
use linerate_model::{
    CopyCache, CopyFault, CopyFigures, CopyFrom, CopyInto, CopyStage, CopySync, CopyTask, CopyTree, CopyVerify,
    CopyWay, Measurement, Record, Task,
};
use linerate_units::ByteCount;

/// Faults shown one by one.
const FAULTS_SHOWN: usize = 20;

/// Copies of folder trees.
pub(crate) struct Copies;

const COPIED: LiveChart = LiveChart {
    what: text!("over-time-copied", "bytes of files in place"),
    kind: ValueKind::BytesPerSecond,
    value: |interval| Some(interval.received_bps / 8.0),
};

const LIVE: Live = Live::new(
    LiveRate::Files,
    text!("live-panel-copied", "Copied"),
    &[LiveColumn::Files, LiveColumn::Copied, LiveColumn::Rate, LiveColumn::AllFiles],
    &[COPIED, live::RETRANSMITS],
);

impl Subject for Copies {
    fn live(&self) -> &'static Live {
        &LIVE
    }

    fn sentences(&self, lang: Language, record: &Record, result: &Measurement) -> (Vec<String>, usize) {
        let Some(figures) = result.copy() else { return (Vec::new(), 0) };
        (sentences(lang, tasks::copy(record, &result.name), figures), 1)
    }

    fn section(&self, lang: Language, record: &Record) -> Option<Section> {
        section(lang, record)
    }

    fn parties(&self, lang: Language, task: &Task) -> Option<String> {
        match task {
            Task::Copy(task) => Some(parties(lang, task)),
            _ => None,
        }
    }

    fn method(&self, lang: Language, record: &Record) -> Vec<String> {
        tasks::copies(record).flat_map(|task| method(lang, task)).collect()
    }

    fn csv_rows(&self, record: &Record) -> Vec<Vec<String>> {
        csv_rows(record)
    }
}

/// Returns tables of each copy: time by stage, clients, size classes, and what was not copied.
fn section(lang: Language, record: &Record) -> Option<Section> {
    let several = record.copies().nth(1).is_some();
    let tables = record.copies().flat_map(|(result, found)| {
        let tables = [stages(lang, found), clients(lang, found), sizes(lang, found), faults(lang, &found.faults)];
        tables.into_iter().flatten().map(move |mut table| {
            if several {
                table.caption = said!(
                    lang,
                    "copy-caption-of",
                    "{caption}: {name}",
                    caption = table.caption,
                    name = plain(&result.name)
                );
            }
            Block::Table(table)
        })
    });
    Section::answer("copy", said!(lang, "copy-section", "Copy"), tables.collect())
}

fn stages(lang: Language, found: &CopyFigures) -> Option<Table> {
    let columns = vec![
        column!("column-stage", "stage", "a stage of the pipeline, in the order in which data passes"),
        column!("column-busy", "busy", "share of the time that its threads were at work"),
        column!(
            "column-on-a-core",
            "on a core",
            "share of the time that its threads ran on a core; the rest of their busy time is waiting for storage or \
             network"
        ),
        column!("column-waits-for-previous", "waits for previous", "share of the time that it had nothing to do"),
        column!("column-waits-for-next", "waits for next", "share of the time that what comes after held it up"),
        column!("column-threads", "threads", "its threads on all hosts").ranked(1),
    ];
    let row = |(stage, share): (&CopyStage, &linerate_model::StageShare)| {
        let shares = [share.busy, share.cpu, share.waiting_for_previous, share.waiting_for_next];
        let mut row = vec![Some(lang.text(stage.text()))];
        row.extend(shares.map(percent));
        row.push(Some(share.threads.to_string()));
        row
    };
    Table::filled(
        said!(lang, "copy-caption-stages", "Where the time went"),
        columns,
        found.stages.iter().map(row).collect(),
    )
}

fn clients(lang: Language, found: &CopyFigures) -> Option<Table> {
    if found.clients.len() < 2 {
        return None;
    }
    let mut columns = vec![
        column!("column-client", "client", "from which host to which"),
        columns::BYTES_S,
        column!("column-share", "share", "its share of the sum of all"),
        column!("column-done-after", "done after", "from the common start until all was in place"),
        column!("column-files", "files", "files that are in place").ranked(1),
        columns::BYTES.ranked(2),
    ];
    if found.clients.iter().any(|client| client.tree.is_some()) {
        columns.push(column!("column-tree", "tree", "what is copied to this client").ranked(3));
    }
    let row = |client: &linerate_model::CopyClient| {
        let mut row = vec![
            Some(said!(lang, "charts-path", "{from} to {to}", from = plain(&client.from.0), to = plain(&client.to.0))),
            bytes_per_s(client.bytes_per_s),
            percent(client.share),
            Some(nanos(client.finished_ns)),
            Some(grouped(client.files)),
            Some(ByteCount::new(client.bytes).to_string()),
            client.tree.as_ref().map(|tree| plain(&tree.to_string())),
        ];
        row.truncate(columns.len());
        row
    };
    let rows = found.clients.iter().map(row).collect();
    Table::filled(said!(lang, "copy-caption-clients", "Clients"), columns, rows)
}

fn sizes(lang: Language, found: &CopyFigures) -> Option<Table> {
    let columns = vec![
        column!("column-file-size", "file size", "files of this size and up to the next"),
        column!("column-copy-files", "files", "how many"),
        columns::BYTES.ranked(2),
        column!("column-file-p50", "p50", "median time from creation at the destination to the final name"),
        columns::FRAME_P99,
        column!("column-copy-slowest", "slowest", "the slowest").ranked(1),
    ];
    let row = |class: &linerate_model::SizeClass| {
        let from = match class.from_bytes {
            0 => said!(lang, "copy-size-empty", "empty"),
            bytes => said!(lang, "copy-size-from", "from {bytes}", bytes = ByteCount::new(bytes)),
        };
        vec![
            Some(from),
            Some(grouped(class.files)),
            Some(ByteCount::new(class.bytes).to_string()),
            Some(nanos(class.time_ns.p50)),
            Some(nanos(class.time_ns.p99)),
            Some(nanos(class.time_ns.max)),
        ]
    };
    Table::filled(said!(lang, "copy-caption-sizes", "Time for a file"), columns, found.sizes.iter().map(row).collect())
}

fn faults(lang: Language, faults: &[CopyFault]) -> Option<Table> {
    let columns = vec![
        column!("column-not-copied", "not copied", "its path in the tree"),
        column!("column-copy-stage", "stage", "where it failed"),
        column!("column-why", "why", "what the system said"),
    ];
    let row = |fault: &CopyFault| {
        let path =
            if fault.path.is_empty() { said!(lang, "copy-fault-whole", "(the copy)") } else { plain(&fault.path) };
        vec![Some(path), Some(lang.text(fault.stage.text())), Some(plain(&fault.reason))]
    };
    Table::filled(
        said!(lang, "copy-caption-faults", "Not copied"),
        columns,
        faults.iter().take(FAULTS_SHOWN).map(row).collect(),
    )
}

/// Returns the sentences of the figures.
fn sentences(lang: Language, task: Option<&CopyTask>, found: &CopyFigures) -> Vec<String> {
    let unknown = || MISSING.to_owned();
    let mut all = vec![said!(
        lang,
        "copy-found",
        if files == 1 {
            "{bytes_per_s} and {files_per_s} files a second: 1 file ({bytes}) in {time}."
        } else {
            "{bytes_per_s} and {files_per_s} files a second: {files} files ({bytes}) in {time}."
        },
        bytes_per_s = bytes_per_s(found.bytes_per_s).unwrap_or_else(unknown),
        files_per_s = per_second(found.files_per_s).unwrap_or_else(unknown),
        files = found.files,
        bytes = ByteCount::new(found.bytes),
        time = nanos(found.time_ns)
    )];
    let runs = found.runs_bytes_per_s.iter().copied();
    let low = runs.clone().reduce(f64::min).and_then(bytes_per_s);
    all.push(match (found.runs_bytes_per_s.len(), low, runs.reduce(f64::max).and_then(bytes_per_s)) {
        (2, Some(low), Some(high)) => said!(
            lang,
            "copy-runs-two",
            "This is the slower of 2 runs, which range from {low} to {high}.",
            low = low,
            high = high
        ),
        (runs @ 2.., Some(low), Some(high)) if runs % 2 == 0 => {
            said!(
                lang,
                "copy-runs-middle",
                "This is the slower of the two middle runs of {runs}, which range from {low} to {high}.",
                runs = runs,
                low = low,
                high = high
            )
        }
        (runs @ 2.., Some(low), Some(high)) => said!(
            lang,
            "copy-runs-median",
            "This is the median of {runs} runs, which range from {low} to {high}.",
            runs = runs,
            low = low,
            high = high
        ),
        _ => said!(lang, "copy-runs-one", "It was copied once; the spread is unknown."),
    });
    if found.files_kept > 0 {
        all.push(said!(
            lang,
            "copy-kept",
            if files == 1 {
                "1 file was there already and was left as it is."
            } else {
                "{files} files were there already and were left as they are."
            },
            files = found.files_kept
        ));
    }
    all.push(match (found.verified, task.map(|task| task.options.verify)) {
        (true, Some(CopyVerify::ReadBack)) => {
            said!(lang, "copy-verified-read-back", "Every byte was verified by reading it back.")
        }
        (true, _) => said!(lang, "copy-verified-received", "Every byte was verified as it arrived (BLAKE3)."),
        (false, Some(CopyVerify::None)) => said!(lang, "copy-verified-none", "Nothing was verified, as asked."),
        (false, _) if found.files_verified == found.files => {
            said!(lang, "copy-verified-all-copied", "All that was copied was verified.")
        }
        (false, _) => said!(
            lang,
            "copy-verified-some",
            "{verified} of {files} files were verified.",
            verified = found.files_verified,
            files = found.files
        ),
    });
    if found.faults_total > 0 {
        all.push(said!(
            lang,
            "copy-faults",
            if faults == 1 { "1 item was not copied." } else { "{faults} items were not copied." },
            faults = found.faults_total
        ));
    }
    all
}

/// Returns the parties of a copy.
fn parties(lang: Language, plan: &CopyTask) -> String {
    let names =
        |hosts: &[linerate_model::HostName]| listed(lang, &hosts.iter().map(|host| plain(&host.0)).collect::<Vec<_>>());
    let tree = match plan.trees() {
        [tree] => plain(&tree.to_string()),
        trees => said!(lang, "copy-trees", "{count} trees", count = trees.len()),
    };
    match plan.way {
        CopyWay::Path => said!(
            lang,
            "copy-parties-within",
            "copy of {tree} within {sources}",
            tree = tree,
            sources = names(&plan.sources)
        ),
        CopyWay::Nfs | CopyWay::Smb if matches!(plan.from, CopyFrom::Server(_)) => {
            said!(
                lang,
                "copy-parties-to",
                "copy of {tree} to {destinations}",
                tree = tree,
                destinations = names(&plan.destinations)
            )
        }
        CopyWay::Linerate | CopyWay::Nfs | CopyWay::Smb => said!(
            lang,
            "copy-parties-from-to",
            "copy of {tree} from {sources} to {destinations}",
            tree = tree,
            sources = names(&plan.sources),
            destinations = names(&plan.destinations)
        ),
    }
}

/// Returns the method of a copy.
fn method(lang: Language, plan: &CopyTask) -> Vec<String> {
    let options = &plan.options;
    let from = match &plan.from {
        CopyFrom::Files => said!(lang, "copy-from-files", "read from files"),
        CopyFrom::Memory => said!(lang, "copy-from-memory", "generated in memory"),
        CopyFrom::Server(_) => said!(lang, "copy-from-server", "read from a file server"),
    };
    let into = match &plan.into {
        CopyInto::Folder(path) => said!(lang, "copy-into-folder", "written to {path}", path = plain(path)),
        CopyInto::Scratch => said!(lang, "copy-into-scratch", "written to a temporary folder"),
        CopyInto::Discard => said!(lang, "copy-into-discard", "discarded at the destination"),
        CopyInto::Server(_) => said!(lang, "copy-into-server", "written to a folder of a file server"),
    };
    let way = match plan.way {
        CopyWay::Linerate => said!(
            lang,
            "copy-way-linerate",
            "from agent to agent over {lanes} TCP connections to each destination",
            lanes = options.lanes
        ),
        CopyWay::Path => said!(lang, "copy-way-path", "within the host by {lanes} pipelines", lanes = options.lanes),
        CopyWay::Nfs => {
            said!(lang, "copy-way-nfs", "by NFS version 3 over TCP and {lanes} pipelines", lanes = options.lanes)
        }
        CopyWay::Smb => said!(lang, "copy-way-smb", "by SMB over TCP and {lanes} pipelines", lanes = options.lanes),
    };
    let sync = match options.sync {
        CopySync::End => {
            said!(lang, "copy-sync-end", "all of it was synced to storage before the copy counted as complete")
        }
        CopySync::Each => said!(lang, "copy-sync-each", "each file was synced to storage before it got its name"),
        CopySync::None => said!(lang, "copy-sync-none", "writing back was left to the kernel"),
    };
    let cache = match options.cache {
        CopyCache::AsIs => said!(lang, "copy-cache-as-is", "caches were left as they were"),
        CopyCache::Cold => said!(lang, "copy-cache-cold", "caches were emptied before"),
        CopyCache::Warm => said!(lang, "copy-cache-warm", "the tree was read once before"),
    };
    let trees: Vec<String> = plan.trees().iter().map(|tree| plain(&tree.to_string())).collect();
    let each = (trees.len() > 1).then(|| {
        said!(lang, "copy-method-trees", "The trees, one for each destination: {trees}.", trees = listed(lang, &trees))
    });
    let copied = said!(
        lang,
        "copy-method",
        "The tree was {from}, copied {way}, and {value}; {sync}; {cache}.",
        from = from,
        way = way,
        value = into,
        sync = sync,
        cache = cache
    );
    each.into_iter().chain([copied, said!(lang, "copy-method-time", "Time runs from the common start until the last destination is complete. Each stage has threads of its own, \
         with a short queue to the next stage; within one host the stages take turns in one thread for each lane. \
         Shares are of the time of all threads of a stage. Holes of sparse files are not counted as bytes.")]).collect()
}

/// Rows of a CSV file: each copy, then its stages, clients and size classes. None where nothing was copied.
fn csv_rows(record: &Record) -> Vec<Vec<String>> {
    const COLUMNS: [&str; 17] = [
        "record",
        "result",
        "row",
        "name",
        "files",
        "bytes",
        "time_ns",
        "bytes_per_s",
        "files_per_s",
        "verified",
        "share",
        "busy",
        "waiting_for_previous",
        "waiting_for_next",
        "time_ns_p99",
        "cpu",
        "tree",
    ];
    let mut rows = Vec::new();
    for (result, found) in record.copies() {
        if rows.is_empty() {
            rows.push(COLUMNS.map(str::to_owned).to_vec());
        }
        let head = [("record", &record.id.0), ("result", &result.name)];
        let row = |cells: &[(&str, String)]| -> Vec<String> {
            let head_cells = head.iter().map(|(name, text)| (*name, *text));
            let cells: Vec<(&str, &String)> =
                head_cells.chain(cells.iter().map(|(name, text)| (*name, text))).collect();
            let cell = |name: &&str| cells.iter().find(|(column, _)| column == name).map(|(_, text)| (*text).clone());
            COLUMNS.iter().map(|name| cell(name).unwrap_or_default()).collect()
        };
        let trees = |task: &CopyTask| task.trees().iter().map(CopyTree::to_string).collect::<Vec<_>>().join("; ");
        let tree = tasks::copy(record, &result.name).map(trees);
        rows.push(row(&[
            ("row", String::from("copy")),
            ("name", tree.unwrap_or_default()),
            ("files", found.files.to_string()),
            ("bytes", found.bytes.to_string()),
            ("time_ns", found.time_ns.to_string()),
            ("bytes_per_s", found.bytes_per_s.to_string()),
            ("files_per_s", found.files_per_s.to_string()),
            ("verified", found.verified.to_string()),
        ]));
        rows.extend(found.stages.iter().map(|(stage, share)| {
            row(&[
                ("row", String::from("stage")),
                ("name", stage.name().to_owned()),
                ("busy", share.busy.to_string()),
                ("cpu", share.cpu.to_string()),
                ("waiting_for_previous", share.waiting_for_previous.to_string()),
                ("waiting_for_next", share.waiting_for_next.to_string()),
            ])
        }));
        rows.extend(found.clients.iter().map(|client| {
            row(&[
                ("row", String::from("client")),
                ("name", format!("{} to {}", client.from, client.to)),
                ("files", client.files.to_string()),
                ("bytes", client.bytes.to_string()),
                ("time_ns", client.finished_ns.to_string()),
                ("bytes_per_s", client.bytes_per_s.to_string()),
                ("share", client.share.to_string()),
                ("tree", client.tree.as_ref().map(CopyTree::to_string).unwrap_or_default()),
            ])
        }));
        rows.extend(found.sizes.iter().map(|class| {
            row(&[
                ("row", String::from("size")),
                ("name", format!("from {}", class.from_bytes)),
                ("files", class.files.to_string()),
                ("bytes", class.bytes.to_string()),
                ("time_ns", class.time_ns.p50.to_string()),
                ("time_ns_p99", class.time_ns.p99.to_string()),
            ])
        }));
    }
    rows
}
