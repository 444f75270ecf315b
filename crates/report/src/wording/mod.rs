//! Sentences of any content: messages of records, lists, sentences in a row.

pub(crate) mod doubts;
pub(crate) mod firmness;
pub(crate) mod sparkline;
pub(crate) mod verdict;
pub(crate) mod wrap;

use crate::figures::{self, plain, spread};
use crate::language::Language;
use crate::said;
use linerate_model::{Caveat, Message, Record, Repeats, Summary};

/// Returns a record's message as sentences in the reader's language.
pub(crate) fn message(lang: Language, message: &Message) -> String {
    sentence(&lang.message(message))
}

/// A text of a record as a sentence: with a capital and a full stop.
pub fn sentence(text: &str) -> String {
    let text = plain(text.trim());
    let mut chars = text.chars();
    let mut whole: String = chars.next().into_iter().flat_map(char::to_uppercase).chain(chars).collect();
    if !whole.is_empty() && !whole.ends_with(['.', '!', '?', '\u{3002}']) {
        // A Japanese sentence may end with a figure and its unit; then it has hiragana before.
        let is_japanese = !whole.ends_with(|last: char| last.is_ascii())
            || whole.contains(|c| ('\u{3041}'..='\u{309f}').contains(&c));
        whole.push(if is_japanese { '\u{3002}' } else { '.' });
    }
    whole
}

/// The kind of a doubt as its record writes it: `few-runs`.
pub(crate) fn kind(caveat: &Caveat) -> String {
    caveat.kind.name().to_owned()
}

/// Joins sentences: with a space between them, but not after a full-width stop.
pub fn in_a_row(sentences: &[String]) -> String {
    let mut row = String::new();
    for sentence in sentences {
        if !row.is_empty() && !row.ends_with('\u{3002}') {
            row.push(' ');
        }
        row.push_str(sentence);
    }
    row
}

/// `a`, `a and b`, `a, b and c`.
pub fn listed(lang: Language, items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => {
            said!(lang, "list-and", "{first} and {last}", first = lang.list(first), last = last)
        }
    }
}

/// `3 runs, 940 to 942 Mbit/s`, with the interval where the plan asked for one.
pub(crate) fn runs(
    lang: Language,
    record: &Record,
    summary: &Summary,
    show: impl Fn(f64) -> Option<String> + Copy,
) -> String {
    let mut text = spread(lang, summary, show);
    if let (Some(Repeats::Until { .. }), Some(interval)) = (record.plan.repeats(), summary.interval)
        && let (Some(low), Some(high)) = (show(interval.low), show(interval.high))
    {
        let range = if low == high { low } else { figures::range(lang, &low, &high) };
        text.push_str(&said!(
            lang,
            "results-mean-interval",
            "; mean {range} with {interval} % confidence",
            range = range,
            interval = interval.percent
        ));
    }
    text
}
