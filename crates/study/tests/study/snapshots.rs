//! Reports of the published studies as files: a change of wording shows as a difference of a file.
//!
//! `cargo xtask snapshots` writes the files anew. Each study has a folder of `tests/snapshots`, each form of output a
//! file in it. docs/studies has the pages.

use crate::published::{published, published_in_japanese};
use linerate_report::{Language, Style};
use linerate_study::{markdown, text};

const TERMINAL: Style = Style { width: 100, colour: false, unicode: true, language: Language::English };
const JAPANESE: Style = Style { language: Language::Japanese, ..TERMINAL };

/// Compares with the file `tests/snapshots/FOLDER/NAME.snap`.
fn check(folder: &str, name: &str, shown: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(format!("../snapshots/{folder}"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, shown));
}

#[test]
fn studies() {
    // The page of 1998 has all kinds of findings, and a hundred results.
    for name in ["filecopy-2003", "l3switch-2008", "switches-2020"] {
        check(name, "terminal", &text(&published(name), &TERMINAL, None));
    }
    let report = published("filecopy-2003");
    check("filecopy-2003", "markdown", &markdown(Language::English, &report, None));
    check("filecopy-2003", "terminal-ja", &text(&published_in_japanese("filecopy-2003"), &JAPANESE, None));
}
