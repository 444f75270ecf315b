//! What a reader sees of a copy.

use crate::sample;
use linerate_model::{
    Confidence, CopyCache, CopyClient, CopyExisting, CopyFault, CopyFigures, CopyFrom, CopyInto, CopyLinks,
    CopyOnError, CopyOptions, CopyStage, CopySync, CopyTask, CopyTree, CopyVerify, CopyWay, Detail, IpVersion, Limit,
    Measurement, Message, Plan, Quantity, Record, Repeats, StageShare, Task, Timing, Trial, Verdict,
};
use linerate_report::{Language, csv, html};

pub(crate) fn record() -> Record {
    let task = Task::Copy(CopyTask {
        tree: "like:system".parse::<CopyTree>().expect("a tree"),
        each: Vec::new(),
        way: CopyWay::Linerate,
        sources: vec!["a".into()],
        destinations: vec!["b".into(), "=c".into()],
        from: CopyFrom::Files,
        into: CopyInto::Scratch,
        options: CopyOptions {
            lanes: 2,
            verify: CopyVerify::Received,
            sync: CopySync::End,
            cache: CopyCache::Cold,
            on_error: CopyOnError::Continue,
            existing: CopyExisting::Refuse,
            links: CopyLinks::Copy,
        },
        ip: IpVersion::V4,
    });
    let client = |to: &str, share, finished_ns| CopyClient {
        from: "a".into(),
        to: to.into(),
        tree: None,
        files: 6_578,
        bytes: 680_000_000,
        finished_ns,
        bytes_per_s: 40e6,
        share,
    };
    let stage = |busy| StageShare {
        busy,
        waiting_for_previous: 0.75 - busy,
        waiting_for_next: 0.25,
        cpu: busy / 8.0,
        threads: 4,
        ..StageShare::default()
    };
    let fault = CopyFault { path: "<b>/x".into(), stage: CopyStage::Write, reason: "No space left on device".into() };
    let found = CopyFigures {
        files: 13_156,
        bytes: 1_360_000_000,
        time_ns: 17_000_000_000,
        bytes_per_s: 80e6,
        files_per_s: 774.0,
        runs_bytes_per_s: vec![79e6, 80e6, 81e6],
        files_verified: 13_156,
        stages: [(CopyStage::Send, stage(0.7)), (CopyStage::Write, stage(0.1))].into(),
        busiest_stage: Some(CopyStage::Send),
        clients: vec![client("b", 0.55, 15_000_000_000), client("=c", 0.45, 17_000_000_000)],
        faults: vec![fault],
        faults_total: 1,
        ..CopyFigures::default()
    };
    let result = Measurement {
        name: "copy".to_owned(),
        quantity: Quantity::PayloadBps,
        main: sample::summary(640e6, 0.025),
        tester_limit: None,
        verdict: Verdict::new(
            Limit::StorageWrite,
            Confidence::High,
            vec![Message::untranslated("stage write waited for storage")],
        ),
        caveats: vec![],
        detail: Detail::Copy(Box::new(found)),
    };
    let mut record = sample::record(&[], "b", vec![result]);
    record.plan = Plan::sweep(vec![Trial::new("copy", task, Timing::UntilDone)], Repeats::Times(3));
    record
}

#[test]
fn names_of_files_are_escaped() {
    let page = html(Language::English, &record());
    assert!(page.contains("&lt;b&gt;/x") && !page.contains("<b>/x"));
}

/// Where each client has a tree of its own, the table of clients and the rows name it.
#[test]
fn each_clients_own_tree_is_told() {
    let mut record = record();
    assert!(!html(Language::English, &record).contains("like:mail") && !csv(&record).contains("like:mail"));
    let Detail::Copy(found) = &mut record.results[0].detail else { panic!("a copy") };
    found.clients[1].tree = Some("like:mail,seed=2".parse::<CopyTree>().expect("a tree"));
    let page = html(Language::English, &record);
    assert!(page.contains("<td>like:mail,seed=2") || page.contains(">like:mail,seed=2<"), "{page}");
    assert!(csv(&record).lines().any(|row| row.contains("client,a to =c") && row.ends_with("\"like:mail,seed=2\"")));
}

#[test]
fn a_file_has_a_row_for_the_copy_each_stage_and_each_client() {
    let text = csv(&record());
    let rows: Vec<Vec<&str>> = text.split_terminator("\r\n").map(|line| line.split(',').collect()).collect();
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{text}");
    let kinds: Vec<&str> = rows[1..].iter().map(|row| row[2]).collect();
    assert_eq!(kinds, ["copy", "stage", "stage", "client", "client"]);
    let at = |name: &str| rows[0].iter().position(|column| *column == name).expect("a column");
    assert_eq!((rows[1][at("bytes_per_s")], rows[2][at("busy")]), ("80000000", "0.7"));
}

#[test]
fn several_trees_are_counted_in_the_title_and_named_where_the_method_is() {
    let mut record = record();
    let linerate_model::Goal::Sweep(sweep) = &mut record.plan.goal else { panic!("a sweep") };
    let Task::Copy(task) = sweep.cells[0].task_mut() else { panic!("a copy") };
    task.each = ["like:system,seed=1", "like:system,seed=2"].map(|tree| tree.parse().expect("a tree")).into();
    let page = html(Language::English, &record);
    assert!(page.contains("<h1>copy of 2 trees from a to b and =c</h1>"), "{page}");
    assert!(page.contains("The trees, one for each destination: like:system and like:system,seed=2."), "{page}");
}
