//! Where a server says what it has served.

use std::fmt;
use std::sync::Arc;

/// Takes a line for each test or trial that has ended. It is called on the thread that served it.
#[derive(Clone)]
pub struct Report(pub Arc<dyn Fn(&str) + Send + Sync>);

/// Says nothing.
impl Default for Report {
    fn default() -> Self {
        Self(Arc::new(|_| ()))
    }
}

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Report")
    }
}
