//! How much memory there is for this process.

/// Main memory that this process may use, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsableMemory {
    /// Memory of the host, or the tightest limit of the process's control groups.
    Known(u64),
    /// The process is in a control group whose limit cannot be read, or the kernel reports no memory size.
    Unknown,
}
