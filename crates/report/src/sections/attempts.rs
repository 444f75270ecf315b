//! Attempts whose figures do not count: their number, their trials, and why.

use crate::blocks::section::{Block, Entry, Section};
use crate::figures::plain;
use crate::language::Language;
use crate::said;
use crate::wording::message;
use linerate_model::{CaveatKind, Message, Record, Standing};

/// Entries a reader sees; the other ones are only counted.
const MOST: usize = 20;

/// Attempts at one trial that do not count for one reason.
struct Group<'a> {
    trial: &'a str,
    /// Kind of caveat that spoilt them, `None` if they failed.
    kind: Option<CaveatKind>,
    /// Why, in the record's words: those of the first attempt.
    why: Message,
    attempts: usize,
}

/// Returns how many attempts were spoilt or failed, and the reason by trial. `None` if all count.
pub(crate) fn section(lang: Language, record: &Record) -> Option<Section> {
    let groups = groups(record);
    let count = |spoilt: bool| -> usize {
        groups.iter().filter(|group| group.kind.is_some() == spoilt).map(|group| group.attempts).sum()
    };
    let all = record.trials.len();
    let spoilt = count(true);
    let failed = count(false);
    let mut sentences = Vec::new();
    if spoilt > 0 {
        sentences.push(said!(lang, "attempts-spoilt", if spoilt == 1 { "One of {all} attempts was spoilt by the measuring hosts. It was repeated, and its figures do not count." } else { "{spoilt} of {all} attempts were spoilt by the measuring hosts. They were repeated, and their figures \
                 do not count." }, spoilt = spoilt, all = all));
    }
    if failed > 0 {
        sentences.push(said!(
            lang,
            "attempts-failed",
            if failed == 1 { "One of {all} attempts failed." } else { "{failed} of {all} attempts failed." },
            failed = failed,
            all = all
        ));
    }
    if groups.len() > MOST {
        sentences.push(said!(lang, "attempts-more", "Not listed: {more} more.", more = groups.len() - MOST));
    }
    let entry = |group: &Group<'_>| {
        let what = match group.kind {
            Some(_) => said!(
                lang,
                "attempts-of-trial-spoilt",
                if attempts == 1 { "One attempt was spoilt." } else { "{attempts} attempts were spoilt." },
                attempts = group.attempts
            ),
            None => said!(
                lang,
                "attempts-of-trial-failed",
                if attempts == 1 { "One attempt failed." } else { "{attempts} attempts failed." },
                attempts = group.attempts
            ),
        };
        Entry::new(plain(group.trial), vec![what, message(lang, &group.why)])
    };
    let entries = groups.iter().take(MOST).map(entry).collect();
    let blocks = vec![Block::Sentences(sentences), Block::Entries(entries)];
    Section::summary("attempts", said!(lang, "section-attempts", "Attempts that do not count"), blocks)
        .map(Section::folded)
}

/// Attempts that do not count, by trial and reason, in the order they first came.
fn groups(record: &Record) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for attempt in &record.trials {
        let (kind, why) = match &attempt.standing {
            Standing::Counted => continue,
            Standing::Spoilt { reason } => (Some(reason.kind), reason.text.clone()),
            Standing::Failed { reason } => (None, Message::untranslated(reason)),
        };
        let trial = attempt.trial.name.as_str();
        // The numbers in a doubt's text differ from attempt to attempt; its kind does not.
        let same =
            |group: &&mut Group<'_>| group.trial == trial && group.kind == kind && (kind.is_some() || group.why == why);
        match groups.iter_mut().find(same) {
            Some(group) => group.attempts += 1,
            None => groups.push(Group { trial, kind, why, attempts: 1 }),
        }
    }
    groups
}
