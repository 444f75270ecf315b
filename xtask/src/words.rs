//! Checks the language of the tree: no banned word, and an ARCHITECTURE.md that is short and true.
//!
//! `xtask/words.toml` lists the words, what to write instead, and where each is banned. The reasons are in CONTRIBUTING.md.

mod architecture;
mod list;
mod pattern;
mod text;

use anyhow::{Context, Result, bail};
use list::{Term, Where};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use text::{Text, Word};

/// The list of banned terms.
const LIST: &str = "xtask/words.toml";

/// What is read: folders with all that is below them, and single files.
const ROOTS: &[&str] = &[
    "crates",
    "xtask",
    "docs",
    "scenarios",
    "scripts",
    "studies",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.toml",
    "Makefile",
    "README.md",
];

/// What is not read: build output, the list and this check itself, files made by the program, the output of other programs.
const SKIPPED: &[&str] = &[
    "target",
    LIST,
    "xtask/src/words.rs",
    "xtask/src/words",
    "docs/studies",
    "records_v1",
    "xtask/src/bench/captured",
];

/// Extensions of files without words to check. The JSON files are schemas and fixtures, written by the program.
const NOT_TEXT: &[&str] = &["csv", "json", "lock", "o", "png"];

/// One use of a banned term.
#[derive(Debug, PartialEq)]
struct Hit {
    file: PathBuf,
    /// Counted from 1; 0 for the file's own name.
    line: usize,
    /// The term as the list has it.
    banned: String,
    /// What to write instead.
    write: String,
}

/// Checks the tree around the current folder and prints every fault.
///
/// # Errors
/// If a file or the list cannot be read, or if there is a fault.
pub(crate) fn run() -> Result<()> {
    let terms = list::read(&std::fs::read_to_string(LIST).with_context(|| format!("reading {LIST}"))?)?;
    let mut hits = Vec::new();
    let mut files = 0;
    for root in ROOTS {
        for file in files_below(Path::new(root))? {
            let bytes = std::fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
            // What is not UTF-8 is no text: a store, a compressed fixture.
            let Ok(text) = String::from_utf8(bytes) else { continue };
            hits.extend(check(&file, &text, &terms));
            files += 1;
        }
    }
    let faults = architecture::check(Path::new("."))?;
    for hit in &hits {
        let place = if hit.line == 0 { "file name".to_owned() } else { hit.line.to_string() };
        println!("{}:{place}: `{}`: write {}", hit.file.display(), hit.banned, hit.write);
    }
    for fault in &faults {
        println!("{fault}");
    }
    if hits.is_empty() && faults.is_empty() {
        println!("{files} files use none of the {} banned terms; every path in ARCHITECTURE.md exists", terms.len());
        return Ok(());
    }
    println!("\n{}", summary(&hits));
    bail!("{} banned words ({LIST} lists them) and {} faults in ARCHITECTURE.md", hits.len(), faults.len())
}

/// Returns a line for each term found, with the number of its uses, most frequent first.
fn summary(hits: &[Hit]) -> String {
    let mut counts = BTreeMap::<&str, usize>::new();
    for hit in hits {
        *counts.entry(&hit.banned).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    counts.iter().map(|(term, count)| format!("{count:6}  {term}\n")).collect()
}

/// Returns the banned terms in one file and in its name, in the order of their lines.
fn check(file: &Path, content: &str, terms: &[Term]) -> Vec<Hit> {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let extension = file.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let mut hits = Vec::new();
    let mut find = |words: &[Word], place: Where| {
        for term in terms.iter().filter(|term| term.is_banned(place, file)) {
            for (line, banned) in term.find(words) {
                hits.push(Hit { file: file.to_owned(), line, banned, write: term.write.clone() });
            }
        }
    };
    match extension {
        "rs" => {
            let Text { code, text, types } = text::read_rust(content);
            find(&text::read_name(name), Where::Code);
            find(&code, Where::Code);
            find(&text, Where::Text);
            find(&types, Where::Types);
        }
        "md" => find(&text::read_plain(content), Where::Docs),
        "ftl" => find(&text::read_plain(content), Where::Locales),
        _ => find(&text::read_plain(content), Where::Text),
    }
    hits.sort_by_key(|hit| hit.line);
    hits
}

/// Returns the files to read at and below `root`, in a stable order.
fn files_below(root: &Path) -> Result<Vec<PathBuf>> {
    if root.is_file() {
        return Ok(vec![root.to_owned()]);
    }
    let mut files = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let listing = std::fs::read_dir(&folder).with_context(|| format!("listing {}", folder.display()))?;
        for entry in listing {
            let path = entry.with_context(|| format!("listing {}", folder.display()))?.path();
            let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
            if SKIPPED.iter().any(|skipped| path.ends_with(skipped)) || NOT_TEXT.contains(&extension) {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMS: &str = r#"
        [[term]]
        banned = ["half"]
        write = "assignment"
        in = ["code"]
        except = ["half width"]

        [[term]]
        banned = ["Stand"]
        write = "`Support`"
        in = ["types"]

        [[term]]
        banned = ["nor is * ruled out", "join line|lines"]
        write = "plain words"
        in = ["code", "text", "docs", "locales"]
        files = ["quotes.md", "docs/old"]
    "#;

    fn lines(file: &str, content: &str) -> Vec<usize> {
        let terms = list::read(TERMS).unwrap();
        check(Path::new(file), content, &terms).iter().map(|hit| hit.line).collect()
    }

    #[test]
    fn identifiers_are_found_by_their_words() {
        assert_eq!(lines("a.rs", "struct FrameHalf;\nfn run_half() {}\nconst HALF_WAY: u8 = 0;"), [1, 2, 3]);
        assert_eq!(lines("a.rs", "fn behalf() {}\nfn half_width() {}\nfn halfway() {}"), [0; 0]);
        assert_eq!(lines("frame_half.rs", ""), [0]);
    }

    #[test]
    fn code_terms_are_not_looked_for_in_comments_and_strings() {
        assert_eq!(lines("a.rs", "// half of it\n/* half */ const X: &str = \"half\";\nlet c = 'h'; // half"), [0; 0]);
    }

    #[test]
    fn types_are_found_by_their_whole_name_only() {
        assert_eq!(lines("a.rs", "fn f(s: Stand) {}\nstruct Standing;\nfn stand() {}\n// Stand"), [1]);
    }

    #[test]
    fn phrases_are_found_across_lines_of_a_comment_or_string() {
        assert_eq!(lines("a.rs", "/// Nor is the device\n/// ruled out. More.\nfn f() {}"), [1]);
        assert_eq!(lines("a.rs", "let x = \"a join \\\n    line of it\";"), [1]);
        assert_eq!(lines("a.rs", "// to join\nlet line = 1; // line"), [0; 0]);
        assert_eq!(lines("a.rs", "fn f(join_lines: &str) {}"), [1]);
    }

    #[test]
    fn phrases_end_with_the_sentence() {
        assert_eq!(lines("a.md", "What to join. Line by line.\nNor is it. Nobody ruled out."), [0; 0]);
        assert_eq!(lines("a.md", "The *join line*, twice.\nA Join-Line"), [1, 2]);
    }

    #[test]
    fn other_files_are_read_as_text() {
        assert_eq!(lines("a.ftl", "agent-join-line = 参加"), [1]);
        assert_eq!(lines("a.toml", "x = 1\n# its join line"), [2]);
    }

    #[test]
    fn a_term_is_allowed_where_the_list_says() {
        assert_eq!(lines("docs/quotes.md", "the join line"), [0; 0]);
        assert_eq!(lines("docs/old/a.md", "the join line"), [0; 0]);
        assert_eq!(lines("docs/older.md", "the join line"), [1]);
    }

    #[test]
    fn the_summary_counts_terms() {
        let hits = check(Path::new("a.rs"), "fn half() {}\n// join line\nfn half_b() {}", &list::read(TERMS).unwrap());
        assert_eq!(summary(&hits), "     2  half\n     1  join line|lines\n");
    }

    #[test]
    fn the_list_of_this_tree_can_be_read() {
        let list = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/words.toml")).unwrap();
        assert!(list::read(&list).unwrap().len() > 20);
    }
}
