//! Phrases to look for: words, choices of words (`line|lines`), and `*` for one to four words of any kind.

use super::text::{self, Word};
use anyhow::{Result, bail};
use std::fmt;

/// The most words that a `*` stands for.
const LONGEST_GAP: usize = 4;

/// A phrase to look for.
#[derive(Debug)]
pub(super) struct Pattern {
    written: String,
    elements: Vec<Element>,
}

#[derive(Debug)]
enum Element {
    /// One of these words.
    OneOf(Vec<String>),
    /// One to [`LONGEST_GAP`] words of any kind.
    Gap,
}

impl Pattern {
    /// Reads a phrase; `exact` keeps upper and lower case, as for the name of a type.
    ///
    /// # Errors
    /// If it holds no words.
    pub(super) fn new(written: &str, exact: bool) -> Result<Self> {
        let mut elements = Vec::new();
        for part in written.split_whitespace() {
            if part == "*" {
                elements.push(Element::Gap);
            } else if exact {
                elements.push(Element::OneOf(part.split('|').map(str::to_owned).collect()));
            } else if part.contains('|') {
                elements.push(Element::OneOf(part.split('|').map(str::to_lowercase).collect()));
            } else {
                elements.extend(text::read_plain(part).into_iter().map(|word| Element::OneOf(vec![word.word])));
            }
        }
        if !elements.iter().any(|element| matches!(element, Element::OneOf(_))) {
            bail!("`{written}` holds no words");
        }
        Ok(Self { written: written.to_owned(), elements })
    }

    /// Returns the index behind the phrase, if it begins at the word `at`.
    pub(super) fn end_of_match(&self, words: &[Word], at: usize) -> Option<usize> {
        end_of(&self.elements, words, at)
    }

    /// Returns true if the phrase is somewhere in `words` and shares a word with those from `start` to before `end`.
    pub(super) fn overlaps(&self, words: &[Word], start: usize, end: usize) -> bool {
        let longest = self.elements.len() * LONGEST_GAP;
        (start.saturating_sub(longest)..end).any(|at| self.end_of_match(words, at).is_some_and(|behind| behind > start))
    }
}

fn end_of(elements: &[Element], words: &[Word], at: usize) -> Option<usize> {
    let Some((first, rest)) = elements.split_first() else { return Some(at) };
    match first {
        Element::OneOf(choices) => {
            let word = words.get(at)?;
            if choices.contains(&word.word) { end_of(rest, words, at + 1) } else { None }
        }
        Element::Gap => (1..=LONGEST_GAP)
            .take_while(|length| words.get(at + length - 1).is_some_and(|word| !word.is_break()))
            .find_map(|length| end_of(rest, words, at + length)),
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_in(pattern: &str, text: &str) -> bool {
        let words = text::read_plain(text);
        let pattern = Pattern::new(pattern, false).unwrap();
        (0..words.len()).any(|at| pattern.end_of_match(&words, at).is_some())
    }

    #[test]
    fn a_gap_is_one_to_four_words_of_one_sentence() {
        assert!(is_in("nor is * ruled out", "Nor is it ruled out"));
        assert!(is_in("nor is * ruled out", "nor is the slow old switch ruled out"));
        assert!(!is_in("nor is * ruled out", "nor is ruled out"));
        assert!(!is_in("nor is * ruled out", "nor is one of the five things ruled out"));
        assert!(!is_in("nor is * ruled out", "nor is it. All ruled out"));
    }

    #[test]
    fn a_choice_is_one_of_its_words() {
        assert!(is_in("bears|tells nothing", "it tells nothing"));
        assert!(!is_in("bears|tells nothing", "it counts nothing"));
    }

    #[test]
    fn signs_between_words_do_not_count() {
        assert!(is_in("99 % in", "column 99 % in"));
        assert!(is_in("of below", "share_of_below"));
        assert!(!is_in("of below", "of what is below"));
    }
}
