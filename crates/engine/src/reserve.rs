//! Parts of a host's budget for work outside the sessions of its agent.

use crate::Needs;
use std::fmt;
use std::sync::Arc;

/// Function that reserves memory, threads and descriptors from an agent's budget, until the returned value is dropped.
/// The error names the exceeded limit, and the remedy.
#[derive(Clone)]
pub struct Reserve(pub Arc<dyn Fn(Needs) -> Result<Arc<Needs>, String> + Send + Sync>);

/// Grants everything.
impl Default for Reserve {
    fn default() -> Self {
        Self(Arc::new(|needs| Ok(Arc::new(needs))))
    }
}

impl fmt::Debug for Reserve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reserve")
    }
}
