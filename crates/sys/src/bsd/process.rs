//! Other processes.

/// Returns `None`: the environment of other processes is not read here.
pub fn variable_of_ancestor(_: &str) -> Option<String> {
    None
}
