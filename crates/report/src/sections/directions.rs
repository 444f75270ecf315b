//! Both directions of a path in one sentence.

use crate::language::Language;
use crate::records::tasks;
use crate::said;
use crate::wording::{sentence, verdict};
use linerate_model::{Direction, Limit, Measurement, Record, StreamTask, Task, Verdict};

/// Returns what limited the two directions of a stream, `None` for any other record.
pub(crate) fn joint(lang: Language, record: &Record) -> Option<String> {
    let [sent, received] = &record.results[..] else { return None };
    // Places on the path have the numbers of each direction's own hops.
    if sent.verdict.section.is_some() || received.verdict.section.is_some() {
        return None;
    }
    if !are_directions(stream(record, sent)?, stream(record, received)?) {
        return None;
    }
    let text = match common(&sent.verdict, &received.verdict) {
        Some(verdict) => said!(
            lang,
            "directions-same",
            "Both directions: {statement}",
            statement = verdict::statement(lang, &verdict)
        ),
        None => said!(
            lang,
            "directions-differ",
            "Sent: {sent}. Received: {received}",
            sent = verdict::statement(lang, &sent.verdict),
            received = verdict::statement(lang, &received.verdict)
        ),
    };
    Some(sentence(&text))
}

/// The stream that a result is of.
fn stream<'a>(record: &'a Record, result: &Measurement) -> Option<&'a StreamTask> {
    match tasks::trials(record).into_iter().find(|trial| trial.name == result.name)?.task() {
        Task::Stream(task) => Some(task),
        _ => None,
    }
}

/// Whether two streams differ in their direction alone, and in the cores that are pinned for it.
fn are_directions(sent: &StreamTask, received: &StreamTask) -> bool {
    (sent.direction, received.direction) == (Direction::Send, Direction::Receive)
        && sent.paths == received.paths
        && sent.net.transport == received.net.transport
        && sent.message_bytes == received.message_bytes
}

/// Returns what limited both, with the lower of two confidences; `None` if the limits differ.
fn common(sent: &Verdict, received: &Verdict) -> Option<Verdict> {
    let same = sent.limit == received.limit && sent.place == received.place;
    let open = sent.limit == Limit::CannotTell && sent.also != received.also;
    (same && !open).then(|| Verdict {
        also: sent.also.iter().filter(|limit| received.also.contains(limit)).copied().collect(),
        confidence: sent.confidence.min(received.confidence),
        ..sent.clone()
    })
}
