//! Charts as files: SVG as they are, and PNG drawn with the fonts of this machine.

#[cfg(feature = "png")]
mod png;

use crate::exit::Failure;
use linerate_report::Picture;
use std::path::Path;

/// Writes each picture into `folder`, which is made if it is missing, as `NAME.svg` and `NAME.png`. Where a PNG cannot be drawn, the
/// answer says why, and what to install.
pub(crate) fn write(folder: &Path, pictures: &[Picture]) -> Result<Option<String>, Failure> {
    write_svg(folder, pictures)?;
    #[cfg(feature = "png")]
    return png::write(folder, pictures);
    #[cfg(not(feature = "png"))]
    Ok(Some("no PNG is drawn: this linerate was built without PNG: build it with `--features png`".to_owned()))
}

fn write_svg(folder: &Path, pictures: &[Picture]) -> Result<(), Failure> {
    crate::private_report::make_folder(folder).map_err(|error| failed(folder, "", &error))?;
    pictures.iter().try_for_each(|Picture { name, svg }| write_file(folder, &format!("{name}.svg"), svg.as_bytes()))
}

fn write_file(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), Failure> {
    crate::private_report::write(&folder.join(name), bytes).map_err(|error| failed(folder, name, &error))
}

fn failed(folder: &Path, name: &str, error: &dyn std::fmt::Display) -> Failure {
    let path = folder.join(name);
    Failure::measure(format!("cannot write {}: {error}; name another folder with --charts", path.display()))
}
