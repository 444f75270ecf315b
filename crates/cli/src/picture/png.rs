//! Charts drawn as PNG.

use super::write_file;
use crate::exit::Failure;
use linerate_report::Picture;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::{Database, ID};
use resvg::usvg::{FallbackSelectionFn, FontResolver, Options, Tree};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Pixels of a PNG for each unit of the drawing: sharp on paper and on fine screens.
const SCALE: f32 = 2.0;
/// Families that are asked for first, of those that usual systems have.
const FAMILIES: [&str; 4] = ["Noto Sans", "DejaVu Sans", "Liberation Sans", "Arial"];

/// Writes each picture into `folder` as `NAME.png`. One with letters that no font of this machine has is left out; then the answer
/// says so, and what to install.
pub(super) fn write(folder: &Path, pictures: &[Picture]) -> Result<Option<String>, Failure> {
    let mut fonts = Database::new();
    fonts.load_system_fonts();
    write_with(fonts, folder, pictures)
}

fn write_with(fonts: Database, folder: &Path, pictures: &[Picture]) -> Result<Option<String>, Failure> {
    let Some(pen) = Pen::with(fonts) else {
        return Ok(Some(
            "no PNG is drawn: this machine has no font; install one, as the package fonts-noto-core or fonts-dejavu-core"
                .to_owned(),
        ));
    };
    let mut lacking = None;
    let mut left_out = 0;
    for Picture { name, svg } in pictures {
        let png = pen.draw(svg)?;
        match pen.lacked() {
            None => write_file(folder, &format!("{name}.png"), &png)?,
            Some(letter) => {
                lacking.get_or_insert(letter);
                left_out += 1;
            }
        }
    }
    Ok(lacking.map(|letter| {
        format!(
            "{left_out} of {} charts are not drawn as PNG, but as SVG only: no font of this machine has the letter {letter}; install \
             one, for Japanese as the package fonts-noto-cjk (Debian, Ubuntu) or google-noto-sans-cjk-fonts (Fedora)",
            pictures.len()
        )
    }))
}

/// Draws with the fonts of a machine, and knows what these turn out to lack.
struct Pen {
    options: Options<'static>,
    /// The first letter that no font has.
    lacking: Arc<Mutex<Option<char>>>,
}

impl Pen {
    /// A pen with these fonts; none where there is no font.
    fn with(mut fonts: Database) -> Option<Self> {
        let known = |family: &&&str| fonts.faces().any(|face| face.families.iter().any(|(name, _)| name == **family));
        let any = || fonts.faces().next().and_then(|face| Some(face.families.first()?.0.clone()));
        let family = FAMILIES.iter().find(known).map(|family| (*family).to_owned()).or_else(any)?;
        fonts.set_sans_serif_family(family);

        let lacking = Arc::new(Mutex::new(None));
        let (told, usual) = (Arc::clone(&lacking), FontResolver::default_fallback_selector());
        // Called for each letter that the family lacks. What has no answer would be drawn as a box.
        let select_fallback = move |letter: char, used: &[ID], fonts: &mut Arc<Database>| {
            let found = alike(letter, used, fonts, &usual);
            if found.is_none() && letter.is_alphabetic() {
                told.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(letter);
            }
            found
        };
        let font_resolver = FontResolver { select_fallback: Box::new(select_fallback), ..FontResolver::default() };
        Some(Self { options: Options { fontdb: Arc::new(fonts), font_resolver, ..Options::default() }, lacking })
    }

    /// The drawing as PNG.
    fn draw(&self, svg: &str) -> Result<Vec<u8>, Failure> {
        let failed = |error: &dyn std::fmt::Display| {
            Failure::measure(format!("cannot draw a chart as PNG: {error}; the SVG has it"))
        };
        let tree = Tree::from_str(svg, &self.options).map_err(|error| failed(&error))?;
        let (width, height) = (tree.size().width() * SCALE, tree.size().height() * SCALE);
        let mut pixels =
            Pixmap::new(width.ceil() as u32, height.ceil() as u32).ok_or_else(|| failed(&"it has no size"))?;
        resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
        pixels.encode_png().map_err(|error| failed(&error))
    }

    /// A letter of the last drawing that no font has.
    fn lacked(&self) -> Option<char> {
        self.lacking.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The face for a letter that the family lacks: like the family without serifs and as bold, if there is one.
fn alike(letter: char, used: &[ID], fonts: &mut Arc<Database>, usual: &FallbackSelectionFn<'_>) -> Option<ID> {
    let weight = fonts.face(*used.first()?)?.weight;
    let (mut passed, mut found) = (used.to_vec(), Vec::new());
    while let Some(face) = usual(letter, &passed, fonts) {
        passed.push(face);
        found.push(face);
    }
    let likeness = |id: &ID| {
        let face = fonts.face(*id);
        let sans = face.is_some_and(|face| face.families.iter().any(|(name, _)| name.contains("Sans")));
        (sans, face.is_some_and(|face| face.weight == weight))
    };
    // The first of the equally good, as the database has them: `max_by_key` gives the last.
    found.into_iter().rev().max_by_key(likeness)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::write_svg;

    /// Writes pictures in both forms.
    fn write_both(fonts: Database, folder: &Path, pictures: &[Picture]) -> Option<String> {
        write_svg(folder, pictures).and_then(|()| write_with(fonts, folder, pictures)).expect("written")
    }

    /// A picture that says only this.
    fn saying(text: &str) -> Picture {
        let svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100\" height=\"40\"><rect width=\"100%\" height=\"100%\" \
             fill=\"#fff\"/><text x=\"4\" y=\"30\" font-size=\"24\" font-family=\"sans-serif\">{text}</text></svg>"
        );
        Picture { name: "1-x".to_owned(), svg }
    }

    /// Only fonts of these names, which have Latin letters; none where this machine has none of them.
    fn latin() -> Option<Database> {
        let mut fonts = Database::new();
        fonts.load_system_fonts();
        let others: Vec<ID> = fonts
            .faces()
            .filter(|face| !face.families.iter().any(|(name, _)| FAMILIES.contains(&name.as_str())))
            .map(|face| face.id)
            .collect();
        others.into_iter().for_each(|id| fonts.remove_face(id));
        if fonts.is_empty() {
            linerate_testsuite::skip(module_path!(), "it needs the Debian package fonts-dejavu-core");
            return None;
        }
        Some(fonts)
    }

    #[test]
    fn a_picture_is_written_in_both_forms_and_is_not_blank() {
        let Some(fonts) = latin() else { return };
        let folder = tempfile::tempdir().expect("a folder");
        let (charts, picture) = (folder.path().join("charts"), saying("Mbit/s"));
        let hint = write_both(fonts, &charts, std::slice::from_ref(&picture));
        assert_eq!(hint, None);
        assert_eq!(std::fs::read_to_string(charts.join("1-x.svg")).expect("the SVG"), picture.svg);
        let drawn = Pixmap::decode_png(&std::fs::read(charts.join("1-x.png")).expect("the PNG")).expect("it decodes");
        assert_eq!((drawn.width(), drawn.height()), (200, 80));
        let dark = drawn.pixels().iter().filter(|pixel| pixel.red() < 64).count();
        assert!((100..8_000).contains(&dark), "{dark} dark pixels: the text is drawn");
    }

    #[test]
    fn letters_that_no_font_has_are_not_drawn_as_boxes() {
        let Some(fonts) = latin() else { return };
        let folder = tempfile::tempdir().expect("a folder");
        let pictures = [saying("遅延 ms"), Picture { name: "2-y".to_owned(), ..saying("ms") }];
        let hint = write_both(fonts, folder.path(), &pictures).expect("a hint");
        for part in ["1 of 2 charts", "SVG only", "the letter 遅", "fonts-noto-cjk"] {
            assert!(hint.contains(part), "{hint}");
        }
        let written = |name: &str| folder.path().join(name).exists();
        assert!(written("1-x.svg") && !written("1-x.png"), "the SVG is whole, a PNG would not be");
        assert!(written("2-y.svg") && written("2-y.png"), "the other is not held back");
    }

    #[test]
    fn a_letter_that_the_family_lacks_looks_like_the_others() {
        use resvg::usvg::fontdb::{FaceInfo, Language, Source, Stretch, Style, Weight};
        let mut fonts = Database::new();
        let mut face = |family: &str, weight| {
            fonts.push_face_info(FaceInfo {
                id: ID::dummy(),
                source: Source::Binary(Arc::new([0_u8; 0])),
                index: 0,
                families: vec![(family.to_owned(), Language::English_UnitedStates)],
                post_script_name: family.to_owned(),
                style: Style::Normal,
                weight,
                stretch: Stretch::Normal,
                monospaced: false,
            })
        };
        let own = face("DejaVu Sans", Weight::NORMAL);
        let serif = face("Noto Serif CJK JP", Weight::NORMAL);
        let bold = face("Noto Sans CJK JP", Weight::BLACK);
        let right = face("Noto Sans CJK JP", Weight::NORMAL);
        let chosen = |among: Vec<ID>| {
            let usual: FallbackSelectionFn<'_> =
                Box::new(move |_, used, _| among.iter().copied().find(|face| !used.contains(face)));
            alike('遅', &[own], &mut Arc::new(fonts.clone()), &usual)
        };
        assert_eq!(chosen(vec![serif, bold, right]), Some(right));
        assert_eq!(chosen(vec![serif, bold]), Some(bold));
        assert_eq!(chosen(vec![serif]), Some(serif));
        assert_eq!(chosen(Vec::new()), None);
    }

    #[test]
    fn without_any_font_the_svg_is_written_all_the_same() {
        let folder = tempfile::tempdir().expect("a folder");
        let hint = write_both(Database::new(), folder.path(), &[saying("ms")]).expect("a hint");
        assert!(hint.contains("no font") && hint.contains("fonts-dejavu-core"), "{hint}");
        assert!(folder.path().join("1-x.svg").exists() && !folder.path().join("1-x.png").exists());
    }
}
