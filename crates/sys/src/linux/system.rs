//! This machine.

use crate::Error;
use std::fs;

/// Returns an identifier of this start of this machine.
///
/// # Errors
/// The kernel does not show it, as in some containers.
pub fn boot_id() -> Result<String, Error> {
    let path = "/proc/sys/kernel/random/boot_id";
    let text = fs::read_to_string(path).map_err(|error| Error::new("read", path, error))?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    #[test]
    fn boot_has_one_identifier() {
        assert_eq!(super::boot_id().expect("an identifier").len(), 36);
    }
}
