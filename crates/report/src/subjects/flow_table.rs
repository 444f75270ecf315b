//! Tables of results of streams, transactions, RPC and NFS.

use crate::language::Language;
use linerate_model::Measurement;

/// A column of results: its key and rank, and how its cell is taken from a result.
pub(crate) type Figure = (&'static str, u8, fn(Language, &Measurement) -> Option<String>);
