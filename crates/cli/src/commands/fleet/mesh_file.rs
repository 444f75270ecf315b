//! The fleet's file of meshes, read and checked.

use super::measure::check;
use crate::exit::Failure;
use linerate_schedule::FleetFile;
use std::path::Path;

/// Reads the file, and checks that each test is a command of this program.
///
/// # Errors
/// The file cannot be read, or declares something that cannot be.
pub(super) fn read(path: &Path) -> Result<FleetFile, Failure> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    let file = FleetFile::parse(&path.display().to_string(), &text).map_err(Failure::usage)?;
    for mesh in &file.meshes {
        check(mesh.test.words())
            .map_err(|error| Failure::usage(format!("{}: mesh {}: test: {error}", path.display(), mesh.name)))?;
    }
    Ok(file)
}
