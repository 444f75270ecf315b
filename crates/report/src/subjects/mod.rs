//! Subjects of results: a module for each task, for device tests and for ladders.

pub(crate) mod contract;
pub(crate) mod copy;
pub(crate) mod device;
pub(crate) mod flow_sentences;
pub(crate) mod flow_table;
pub(crate) mod frames;
pub(crate) mod hops;
pub(crate) mod ladder;
pub(crate) mod lines;
pub(crate) mod live;
pub(crate) mod mesh;
pub(crate) mod nfs;
pub(crate) mod parties;
pub(crate) mod rpc;
pub(crate) mod runs;
pub(crate) mod shares;
pub(crate) mod stream;
pub(crate) mod transact;

use crate::language::Language;
use contract::Subject;
use linerate_model::{Record, TaskKind, Verdict};

/// All subjects, in the order of documents.
pub(crate) const ALL: [&dyn Subject; 8] = [
    &stream::Stream,
    &transact::Transact,
    &rpc::Rpc,
    &nfs::Nfs,
    &copy::Copies,
    &hops::Hops,
    &frames::Frames,
    &device::DeviceTests,
];

/// Returns the subject of a task.
pub(crate) fn subject(task: TaskKind) -> &'static dyn Subject {
    match task {
        TaskKind::Stream => &stream::Stream,
        TaskKind::Transact => &transact::Transact,
        TaskKind::Rpc => &rpc::Rpc,
        TaskKind::Nfs => &nfs::Nfs,
        TaskKind::Copy => &copy::Copies,
        TaskKind::Frames => &frames::Frames,
        TaskKind::Hops => &hops::Hops,
    }
}

/// Returns what a running task shows.
pub fn live(task: TaskKind) -> &'static live::Live {
    subject(task).live()
}

/// Returns the verdicts of a record that are not those of a result, each with its name.
pub(crate) fn verdicts(lang: Language, record: &Record) -> Vec<(String, &Verdict)> {
    ALL.iter().flat_map(|subject| subject.verdicts(lang, record)).collect()
}
