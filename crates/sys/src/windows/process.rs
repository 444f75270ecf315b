//! Other processes.

/// Returns the value of an environment variable in the nearest ancestor of this process that has it. Always `None`: Windows does
/// not show the environment of other processes.
pub fn variable_of_ancestor(_name: &str) -> Option<String> {
    None
}
