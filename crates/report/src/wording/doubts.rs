//! Doubts in a few words each, for the heading above their sentences and for the short answer in a terminal.

use crate::language::Language;
use linerate_model::Caveat;

/// The doubts in a few words, each kind once, in the order of `caveats`.
pub(crate) fn in_short<'a>(lang: Language, caveats: impl Iterator<Item = &'a Caveat>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for caveat in caveats {
        let short = lang.text(caveat.kind.text());
        if !all.contains(&short) {
            all.push(short);
        }
    }
    all
}
