//! Charts as files: SVG as they are, PNG drawn with the fonts of this machine.

use crate::exit::Failure;
use linerate_report::Picture;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};
use std::path::Path;

/// Pixels of a PNG for each unit of the drawing: sharp on paper and on fine screens.
const SCALE: f32 = 2.0;
/// Families that are asked for first, of those that usual systems have.
const FAMILIES: [&str; 4] = ["Noto Sans", "DejaVu Sans", "Liberation Sans", "Arial"];

/// Writes each picture into `folder`, which is made if it is missing, as `NAME.svg` and `NAME.png`.
pub(crate) fn write(folder: &Path, pictures: &[Picture]) -> Result<(), Failure> {
    let failed = |name: &str, error: &dyn std::fmt::Display| {
        Failure::measure(format!(
            "cannot write {}: {error}; name another folder with --charts",
            folder.join(name).display()
        ))
    };
    std::fs::create_dir_all(folder).map_err(|error| failed("", &error))?;
    let options = with_fonts()?;
    for Picture { name, svg } in pictures {
        for (name, bytes) in
            [(format!("{name}.svg"), svg.clone().into_bytes()), (format!("{name}.png"), png(svg, &options)?)]
        {
            std::fs::write(folder.join(&name), bytes).map_err(|error| failed(&name, &error))?;
        }
    }
    Ok(())
}

/// The machine's fonts.
fn with_fonts() -> Result<Options<'static>, Failure> {
    let mut options = Options::default();
    let fonts = options.fontdb_mut();
    fonts.load_system_fonts();
    let known = |family: &&&str| fonts.faces().any(|face| face.families.iter().any(|(name, _)| name == **family));
    let any = || fonts.faces().next().and_then(|face| Some(face.families.first()?.0.clone()));
    let family = FAMILIES.iter().find(|family| known(family)).map(|family| (*family).to_owned()).or_else(any).ok_or_else(|| {
        Failure::measure("cannot draw PNG: this machine has no font; install one, as the package fonts-noto-core or fonts-dejavu-core")
    })?;
    fonts.set_sans_serif_family(family);
    Ok(options)
}

fn png(svg: &str, options: &Options<'_>) -> Result<Vec<u8>, Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::measure(format!("cannot draw a chart as PNG: {error}; the SVG has it"))
    };
    let tree = Tree::from_str(svg, options).map_err(|error| failed(&error))?;
    let (width, height) = (tree.size().width() * SCALE, tree.size().height() * SCALE);
    let mut pixels = Pixmap::new(width.ceil() as u32, height.ceil() as u32).ok_or_else(|| failed(&"it has no size"))?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| failed(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_written_in_both_forms_and_is_not_blank() {
        let folder = tempfile::tempdir().expect("a folder");
        let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100\" height=\"40\"><rect width=\"100%\" height=\"100%\" \
                   fill=\"#fff\"/><text x=\"4\" y=\"30\" font-size=\"24\" font-family=\"sans-serif\">Mbit/s</text></svg>";
        let picture = Picture { name: "1-x".to_owned(), svg: svg.to_owned() };
        let charts = folder.path().join("charts");
        match write(&charts, &[picture]) {
            Err(Failure::Measure(why)) if why.contains("no font") && std::env::var("CI").as_deref() != Ok("true") => {
                eprintln!("SKIPPED: charts as PNG: {why}");
                return;
            }
            written => written.expect("written"),
        }
        assert_eq!(std::fs::read_to_string(charts.join("1-x.svg")).expect("the SVG"), svg);
        let drawn = Pixmap::decode_png(&std::fs::read(charts.join("1-x.png")).expect("the PNG")).expect("it decodes");
        assert_eq!((drawn.width(), drawn.height()), (200, 80));
        let dark = drawn.pixels().iter().filter(|pixel| pixel.red() < 64).count();
        assert!((100..8_000).contains(&dark), "{dark} dark pixels: the text is drawn");
    }
}
