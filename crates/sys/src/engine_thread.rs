//! Threads of engines.

/// An engine thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineThread {
    /// Its name, as in `send 0`.
    pub name: String,
    /// The kernel's thread number.
    pub tid: i32,
    /// It sends data (or asks, in transactions); otherwise it receives (or answers).
    pub sends: bool,
}
