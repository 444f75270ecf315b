//! Subjects of results: a module for each task, for device tests and for ladders.

pub(crate) mod copy;
pub(crate) mod device;
pub(crate) mod flow_sentences;
pub(crate) mod flow_table;
pub(crate) mod frames;
pub(crate) mod ladder;
pub(crate) mod lines;
pub(crate) mod mesh;
pub(crate) mod nfs;
pub(crate) mod rpc;
pub(crate) mod runs;
pub(crate) mod shares;
pub(crate) mod stream;
