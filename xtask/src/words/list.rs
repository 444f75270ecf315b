//! The list of banned terms, as `xtask/words.toml` has it.

use super::pattern::Pattern;
use super::text::Word;
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::path::Path;

/// Where in the tree a term is banned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Where {
    /// Words of an identifier or of a Rust file's name: `half` is in `FrameHalf` and in `run_half`.
    Code,
    /// A whole identifier, as it is written: `Stand` is not in `Standing`.
    Types,
    /// Comments and strings of Rust, and all of any other file.
    Text,
    /// Markdown.
    Docs,
    /// Messages of the program (Project Fluent), their keys included.
    Locales,
}

/// Terms with one replacement.
#[derive(Debug)]
pub(super) struct Term {
    /// What to write instead.
    pub(super) write: String,
    banned: Vec<Pattern>,
    except: Vec<Pattern>,
    places: Vec<Where>,
    files: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    term: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    banned: Vec<String>,
    write: String,
    r#in: Vec<Where>,
    /// Phrases in which the term is legitimate.
    #[serde(default)]
    except: Vec<String>,
    /// Files and folders where it is legitimate: whole paths, or the ends of files' paths.
    #[serde(default)]
    files: Vec<String>,
}

/// Reads the list.
///
/// # Errors
/// If it is not TOML of this form, or a term has no words.
pub(super) fn read(list: &str) -> Result<Vec<Term>> {
    let list: List = toml::from_str(list).context("reading the list of banned terms")?;
    list.term.into_iter().map(Term::new).collect()
}

impl Term {
    fn new(entry: Entry) -> Result<Self> {
        let Entry { banned, write, r#in: places, except, files } = entry;
        if banned.is_empty() || places.is_empty() {
            bail!("a banned term without words, or banned nowhere: write `{write}`");
        }
        let exact = places.contains(&Where::Types);
        if exact && places.len() > 1 {
            bail!("`{}` is of `types` and of other places: make it two entries", banned[0]);
        }
        let patterns = |all: Vec<String>| all.iter().map(|one| Pattern::new(one, exact)).collect::<Result<Vec<_>>>();
        Ok(Self { write, banned: patterns(banned)?, except: patterns(except)?, places, files })
    }

    /// Returns true if the term is banned in such a place of such a file.
    pub(super) fn is_banned(&self, place: Where, file: &Path) -> bool {
        let is_allowed = self.files.iter().any(|allowed| file.ends_with(allowed) || file.starts_with(allowed));
        self.places.contains(&place) && !is_allowed
    }

    /// Returns the line and the pattern of each use of the term. Of uses that share words, the first one.
    pub(super) fn find(&self, words: &[Word]) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        let mut behind = 0;
        for at in 0..words.len() {
            let matches = |pattern: &&Pattern| {
                let end = pattern.end_of_match(words, at).filter(|_| at >= behind)?;
                let excused = self.except.iter().any(|except| except.overlaps(words, at, end));
                (!excused).then_some((end, pattern.to_string()))
            };
            if let Some((end, pattern)) = self.banned.iter().find_map(|pattern| matches(&pattern)) {
                found.push((words[at].line, pattern));
                behind = end;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_with_a_fault_is_refused() {
        for (list, complaint) in [
            ("[[term]]\nbanned = []\nwrite = \"x\"\nin = [\"code\"]", "without words"),
            ("[[term]]\nbanned = [\"a\"]\nwrite = \"x\"\nin = []", "banned nowhere"),
            ("[[term]]\nbanned = [\"A\"]\nwrite = \"x\"\nin = [\"types\", \"docs\"]", "two entries"),
            ("[[term]]\nbanned = [\" \"]\nwrite = \"x\"\nin = [\"docs\"]", "no words"),
            ("[[term]]\nbanned = [\"a\"]\nwrite = \"x\"\nin = [\"elsewhere\"]", "banned terms"),
            ("[[term]]\nbanned = [\"a\"]\nwrite = \"x\"\nin = [\"docs\"]\nexcpet = []", "banned terms"),
        ] {
            let error = format!("{:#}", read(list).unwrap_err());
            assert!(error.contains(complaint), "{list}: {error}");
        }
    }
}
