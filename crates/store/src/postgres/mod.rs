//! Records in a PostgreSQL database.

mod url;

pub use url::PostgresUrl;

/// x
pub(crate) struct AdvisoryLock;
impl AdvisoryLock {
    pub(crate) fn is_lost(&self) -> bool {
        false
    }
}
