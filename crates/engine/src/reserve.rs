//! Parts of a host's budget for work that is no session of its agent.

use crate::Needs;
use std::fmt;
use std::sync::Arc;

/// Takes memory, threads and descriptors of what an agent's sessions leave of its budget, until the returned value is dropped. The error
/// says what would be too much, and the remedy.
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
