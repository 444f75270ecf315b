//! Tables of results of streams, transactions, RPC and NFS.

use crate::language::Language;
use crate::subjects::flow_result::FlowResult;

/// A column of results: its key and rank, and how its cell is taken from a result.
pub(crate) type Figure = (&'static str, u8, fn(Language, &FlowResult<'_>) -> Option<String>);
