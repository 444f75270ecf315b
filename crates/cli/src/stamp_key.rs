//! Keys of STAMP's authenticated mode, in files of hexadecimal digits.

use linerate_agent::private_file;
use linerate_probes::stamp::Key;
use std::path::Path;

/// Reads the digits of a key from a file that its owner alone can read.
///
/// # Errors
/// The file cannot be read, others can read it too, or it contains no key.
pub(crate) fn read(option: &str, file: &Path) -> Result<String, String> {
    let digits = match private_file::read(file) {
        Ok(Some(text)) => match Key::from_hex(&text) {
            Ok(_) => Ok(text.trim().to_owned()),
            Err(error) => Err(error.to_string()),
        },
        Ok(None) => Err("there is no such file; `openssl rand -hex 32` makes a key".to_owned()),
        Err(error) => Err(error.to_string()),
    };
    digits.map_err(|reason| format!("{option} {}: {reason}", file.display()))
}
