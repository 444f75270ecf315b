//! Places of stores: the same tests run on SQLite and on PostgreSQL.

use linerate_store::{Store, StoreLocation};
use linerate_testsuite::servers::Postgres;
use std::path::PathBuf;
use tempfile::TempDir;

/// A place without a store, for one test.
pub(crate) enum Place<'a> {
    /// A file in a folder of its own.
    File(TempDir),
    /// An empty database of a server.
    Database { server: &'a Postgres, name: String },
}

impl Place<'_> {
    pub(crate) fn file() -> Self {
        Self::File(tempfile::tempdir().expect("a temporary folder"))
    }

    /// A file in memory: SQLite waits for a disk at the end of every change, and a writer for all before it.
    pub(crate) fn file_in_memory() -> Self {
        tempfile::tempdir_in("/dev/shm").map_or_else(|_| Self::file(), Self::File)
    }

    /// Returns where the store is, as typed.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::File(_) => self.path().expect("a file").display().to_string(),
            Self::Database { server, name } => server.url(linerate_testsuite::servers::ADMINISTRATOR, name),
        }
    }

    pub(crate) fn location(&self) -> StoreLocation {
        self.text().parse().expect("a location")
    }

    /// Opens the store. Each is like another program's.
    pub(crate) fn open(&self) -> Store {
        Store::open(&self.location()).expect("opens")
    }

    fn path(&self) -> Option<PathBuf> {
        match self {
            Self::File(folder) => Some(folder.path().join("results.db")),
            Self::Database { .. } => None,
        }
    }

    /// Runs statements on the store's tables, behind its back.
    pub(crate) fn sql(&self, statements: &str) {
        match self {
            Self::File(_) => self.connection().execute_batch(statements).expect("statements"),
            Self::Database { server, name } => drop(server.sql(name, statements)),
        }
    }

    /// Returns the text that a statement selects.
    pub(crate) fn selected(&self, statement: &str) -> String {
        match self {
            Self::File(_) => {
                let text = format!("SELECT CAST(({statement}) AS TEXT)");
                self.connection().query_row(&text, [], |row| row.get(0)).expect("a row")
            }
            Self::Database { server, name } => server.sql(name, statement),
        }
    }

    fn connection(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.path().expect("a file")).expect("open")
    }
}

/// A test of both backends.
pub(crate) type Case = (&'static str, fn(&Place<'_>));

/// Defines tests on SQLite, and the list of the same tests for PostgreSQL.
macro_rules! on_both_backends {
    ($($name:ident),+ $(,)?) => {
        pub(crate) const CASES: &[crate::place::Case] = &[$((concat!(module_path!(), "::", stringify!($name)), $name)),+];

        mod on_sqlite {
            $(#[test]
            fn $name() {
                super::$name(&crate::place::Place::file_in_memory());
            })+
        }
    };
}
pub(crate) use on_both_backends;
