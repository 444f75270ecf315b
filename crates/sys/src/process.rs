//! Child processes that do not outlive their parent.
