//! The text in which runs are searched, and the kind of run that a command makes.

use linerate_model::{Record, Tuning, from_command_name, typed};

/// The text is cut here, bytes: the names of thousands of cells would make every search slow.
const LONGEST: usize = 4096;

/// The text by which `record` is found, in small letters: its name, its study, its command, its hosts and what it measures.
pub(crate) fn search_text(record: &Record) -> String {
    let hosts = record.hosts.iter().map(|host| host.name.0.as_str());
    let cells = record.plan.cells().iter().map(|cell| cell.name.as_str());
    // Before all that may be cut off.
    let study = record.study.as_ref().map(|run| format!("study:{}", run.study));
    joined(record.id.0.as_str(), study.as_deref().into_iter().chain(typed(&record.command)).chain(hosts).chain(cells))
}

/// `first` and as many of `words` as there is room for, in small letters.
fn joined<'a>(first: &str, words: impl Iterator<Item = &'a str>) -> String {
    let mut text = first.to_lowercase();
    for word in words {
        if text.len() + word.len() > LONGEST {
            break;
        }
        text.push(' ');
        text.push_str(&word.to_lowercase());
    }
    text
}

/// A tester limit that a command measured for itself: it has that command's words, and is another kind of run.
pub(crate) const TESTER_LIMIT: &str = "tester-limit";

/// Kind of a tuning, which has the words of the command that it was made for.
const TUNING: &str = "tuning";

/// The kind of run that a record is: the name of its command, if that is no tester limit or tuning of another run.
pub(crate) fn kind_of(record: &Record) -> String {
    if record.plan.tuning == Some(Tuning::Candidates) {
        return TUNING.to_owned();
    }
    // `linerate calibrate` and `linerate device calibrate` were asked for.
    let is_asked_for = record.command.iter().any(|word| word == "calibrate");
    match record.plan.is_calibration() && !is_asked_for {
        true => TESTER_LIMIT.to_owned(),
        false => kind(&record.command),
    }
}

/// The name of the command that made a record; of one that ran in a lab the command that ran there; of another program its name.
pub(crate) fn kind(command: &[String]) -> String {
    const OTHERS: [&str; 1] = ["iperf3"];
    if let Some(other) = typed(command).next().filter(|program| OTHERS.contains(program)) {
        return other.to_owned();
    }
    let after = |words: &[String]| from_command_name(words).first().filter(|word| is_name(word)).cloned();
    let first = after(command.get(1..).unwrap_or_default());
    let inner = command.iter().position(|word| word == "--").and_then(|at| after(&command[at + 1..]));
    match first {
        Some(lab) if lab == "lab" => inner.unwrap_or(lab),
        Some(name) => name,
        None => "other".to_owned(),
    }
}

/// A command's name, not an option nor a file.
fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_lowercase()) && word.chars().all(|c| c.is_ascii_lowercase() || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_of_the_kind_of_its_command() {
        for (line, expected) in [
            ("linerate stream a b --udp", "stream"),
            ("/usr/bin/linerate lab", "lab"),
            ("linerate lab --link 1Gbit/s -- transact a b", "transact"),
            ("linerate device throughput --ports a,b", "device"),
            ("linerate stream a -- b", "stream"),
            ("linerate --lang ja calibrate a b", "calibrate"),
            ("linerate --lang=en lab --link 1Gbit/s -- --lang ja transact a b", "transact"),
            ("linerate --lang", "other"),
            ("linerate --strange", "other"),
            ("iperf3 -c 192.0.2.5 -R", "iperf3"),
            ("linerate", "other"),
            ("", "other"),
        ] {
            let command: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            assert_eq!(kind(&command), expected, "{line}");
        }
    }

    #[test]
    fn the_text_to_search_stays_short() {
        let names: Vec<String> = (0..10_000).map(|n| format!("UDP {n}")).collect();
        let text = joined("ID", ["stream"].into_iter().chain(names.iter().map(String::as_str)));
        assert!(text.starts_with("id stream udp 0 udp 1") && text.len() <= LONGEST, "{}", text.len());
    }
}
