//! Copies of folder trees: rate, time by stage, clients, size classes, and what was left out.

use crate::blocks::section::{Block, Section};
use crate::blocks::table::{Column, Table};
use crate::figures::{MISSING, bytes_per_s, grouped, nanos, per_second, percent, plain};
use crate::language::Language;
use crate::records::tasks;
use crate::said;
use crate::subjects::contract::Subject;
use crate::subjects::live::{self, Live, LiveChart, LiveColumn, LiveRate, ValueKind};
use crate::wording::listed;
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
    what: "over-time-copied",
    kind: ValueKind::BytesPerSecond,
    value: |interval| Some(interval.received_bps / 8.0),
};

const LIVE: Live = Live::new(
    LiveRate::Files,
    "Copied",
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
                table.caption = said!(lang, "copy-caption-of", caption = table.caption, name = plain(&result.name));
            }
            Block::Table(table)
        })
    });
    Section::answer("copy", said!(lang, "copy-section"), tables.collect())
}

fn stages(lang: Language, found: &CopyFigures) -> Option<Table> {
    let columns = vec![
        Column::new("column-stage"),
        Column::new("column-busy"),
        Column::new("column-on-a-core"),
        Column::new("column-waits-for-previous"),
        Column::new("column-waits-for-next"),
        Column::new("column-threads").ranked(1),
    ];
    let row = |(stage, share): (&CopyStage, &linerate_model::StageShare)| {
        let shares = [share.busy, share.cpu, share.waiting_for_previous, share.waiting_for_next];
        let mut row = vec![Some(lang.named("stage", stage.name()))];
        row.extend(shares.map(percent));
        row.push(Some(share.threads.to_string()));
        row
    };
    Table::filled(said!(lang, "copy-caption-stages"), columns, found.stages.iter().map(row).collect())
}

fn clients(lang: Language, found: &CopyFigures) -> Option<Table> {
    if found.clients.len() < 2 {
        return None;
    }
    let mut columns = vec![
        Column::new("column-client"),
        Column::new("column-bytes-s"),
        Column::new("column-share"),
        Column::new("column-done-after"),
        Column::new("column-files").ranked(1),
        Column::new("column-bytes").ranked(2),
    ];
    if found.clients.iter().any(|client| client.tree.is_some()) {
        columns.push(Column::new("column-tree").ranked(3));
    }
    let row = |client: &linerate_model::CopyClient| {
        let mut row = vec![
            Some(said!(lang, "charts-path", from = plain(&client.from.0), to = plain(&client.to.0))),
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
    Table::filled(said!(lang, "copy-caption-clients"), columns, rows)
}

fn sizes(lang: Language, found: &CopyFigures) -> Option<Table> {
    let columns = vec![
        Column::new("column-file-size"),
        Column::new("column-copy-files"),
        Column::new("column-bytes").ranked(2),
        Column::new("column-file-p50"),
        Column::new("column-frame-p99"),
        Column::new("column-copy-slowest").ranked(1),
    ];
    let row = |class: &linerate_model::SizeClass| {
        let from = match class.from_bytes {
            0 => said!(lang, "copy-size-empty"),
            bytes => said!(lang, "copy-size-from", bytes = ByteCount::new(bytes)),
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
    Table::filled(said!(lang, "copy-caption-sizes"), columns, found.sizes.iter().map(row).collect())
}

fn faults(lang: Language, faults: &[CopyFault]) -> Option<Table> {
    let columns = vec![Column::new("column-not-copied"), Column::new("column-copy-stage"), Column::new("column-why")];
    let row = |fault: &CopyFault| {
        let path = if fault.path.is_empty() { said!(lang, "copy-fault-whole") } else { plain(&fault.path) };
        vec![Some(path), Some(lang.named("stage", fault.stage.name())), Some(plain(&fault.reason))]
    };
    Table::filled(said!(lang, "copy-caption-faults"), columns, faults.iter().take(FAULTS_SHOWN).map(row).collect())
}

/// Returns the sentences of the figures.
fn sentences(lang: Language, task: Option<&CopyTask>, found: &CopyFigures) -> Vec<String> {
    let unknown = || MISSING.to_owned();
    let mut all = vec![said!(
        lang,
        "copy-found",
        bytes_per_s = bytes_per_s(found.bytes_per_s).unwrap_or_else(unknown),
        files_per_s = per_second(found.files_per_s).unwrap_or_else(unknown),
        files = found.files,
        bytes = ByteCount::new(found.bytes),
        time = nanos(found.time_ns)
    )];
    let runs = found.runs_bytes_per_s.iter().copied();
    let low = runs.clone().reduce(f64::min).and_then(bytes_per_s);
    all.push(match (found.runs_bytes_per_s.len(), low, runs.reduce(f64::max).and_then(bytes_per_s)) {
        (2, Some(low), Some(high)) => said!(lang, "copy-runs-two", low = low, high = high),
        (runs @ 2.., Some(low), Some(high)) if runs % 2 == 0 => {
            said!(lang, "copy-runs-middle", runs = runs, low = low, high = high)
        }
        (runs @ 2.., Some(low), Some(high)) => said!(lang, "copy-runs-median", runs = runs, low = low, high = high),
        _ => said!(lang, "copy-runs-one"),
    });
    if found.files_kept > 0 {
        all.push(said!(lang, "copy-kept", files = found.files_kept));
    }
    all.push(match (found.verified, task.map(|task| task.options.verify)) {
        (true, Some(CopyVerify::ReadBack)) => said!(lang, "copy-verified-read-back"),
        (true, _) => said!(lang, "copy-verified-received"),
        (false, Some(CopyVerify::None)) => said!(lang, "copy-verified-none"),
        (false, _) if found.files_verified == found.files => said!(lang, "copy-verified-all-copied"),
        (false, _) => said!(lang, "copy-verified-some", verified = found.files_verified, files = found.files),
    });
    if found.faults_total > 0 {
        all.push(said!(lang, "copy-faults", faults = found.faults_total));
    }
    all
}

/// Returns the parties of a copy.
fn parties(lang: Language, plan: &CopyTask) -> String {
    let names =
        |hosts: &[linerate_model::HostName]| listed(lang, &hosts.iter().map(|host| plain(&host.0)).collect::<Vec<_>>());
    let tree = match plan.trees() {
        [tree] => plain(&tree.to_string()),
        trees => said!(lang, "copy-trees", count = trees.len()),
    };
    match plan.way {
        CopyWay::Path => said!(lang, "copy-parties-within", tree = tree, sources = names(&plan.sources)),
        CopyWay::Nfs | CopyWay::Smb if matches!(plan.from, CopyFrom::Server(_)) => {
            said!(lang, "copy-parties-to", tree = tree, destinations = names(&plan.destinations))
        }
        CopyWay::Linerate | CopyWay::Nfs | CopyWay::Smb => said!(
            lang,
            "copy-parties-from-to",
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
        CopyFrom::Files => said!(lang, "copy-from-files"),
        CopyFrom::Memory => said!(lang, "copy-from-memory"),
        CopyFrom::Server(_) => said!(lang, "copy-from-server"),
    };
    let into = match &plan.into {
        CopyInto::Folder(path) => said!(lang, "copy-into-folder", path = plain(path)),
        CopyInto::Scratch => said!(lang, "copy-into-scratch"),
        CopyInto::Discard => said!(lang, "copy-into-discard"),
        CopyInto::Server(_) => said!(lang, "copy-into-server"),
    };
    let way = match plan.way {
        CopyWay::Linerate => said!(lang, "copy-way-linerate", lanes = options.lanes),
        CopyWay::Path => said!(lang, "copy-way-path", lanes = options.lanes),
        CopyWay::Nfs => said!(lang, "copy-way-nfs", lanes = options.lanes),
        CopyWay::Smb => said!(lang, "copy-way-smb", lanes = options.lanes),
    };
    let sync = match options.sync {
        CopySync::End => said!(lang, "copy-sync-end"),
        CopySync::Each => said!(lang, "copy-sync-each"),
        CopySync::None => said!(lang, "copy-sync-none"),
    };
    let cache = match options.cache {
        CopyCache::AsIs => said!(lang, "copy-cache-as-is"),
        CopyCache::Cold => said!(lang, "copy-cache-cold"),
        CopyCache::Warm => said!(lang, "copy-cache-warm"),
    };
    let trees: Vec<String> = plan.trees().iter().map(|tree| plain(&tree.to_string())).collect();
    let each = (trees.len() > 1).then(|| said!(lang, "copy-method-trees", trees = listed(lang, &trees)));
    let copied = said!(lang, "copy-method", from = from, way = way, value = into, sync = sync, cache = cache);
    each.into_iter().chain([copied, said!(lang, "copy-method-time")]).collect()
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
