//! Records as lists show them: which there are, found by what they are about, a page at a time.

use crate::{Store, StoreError};
use linerate_model::{CaveatKind, Record, RecordId};
use rusqlite::types::Value;
use rusqlite::{Row, params_from_iter};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A run that has been silent for longer was killed: no trial, repeated because it was spoilt, takes so long by default.
const SILENCE: Duration = Duration::from_secs(30 * 60);

/// Text to search in is cut here, bytes: the names of thousands of cells would make every search slow.
const LONGEST: usize = 4096;

/// What every list reads, in the order of [`Listed::read`].
const COLUMNS: &str = "id, started_unix_ns, command, kind, cells, trials, finished, ended, changed_unix_ns";

/// A record as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub id: RecordId,
    /// When it began, nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// The command as typed.
    pub command: Vec<String>,
    /// What was measured, by the command's name: `stream`, `device` ...
    pub kind: String,
    /// How many things were to be measured.
    pub cells: u32,
    /// How many trials were made.
    pub trials: u32,
    /// It ran to its end.
    pub finished: bool,
    /// It ran to its end, or said that it was interrupted.
    ended: bool,
    /// When it was last written to, nanoseconds since 1970.
    pub changed_unix_ns: u64,
}

/// How far a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Its run goes on, or was killed a short while ago.
    UnderWay,
    /// It ran to its end.
    Finished,
    /// It was interrupted or killed; what was measured is kept.
    EndedEarly,
}

/// Which records to find; all if nothing is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    /// Each of these must occur in the record's name, its command, or the name of a host or of something measured; capitals
    /// do not matter.
    pub words: Vec<String>,
    /// What was measured, by the command's name.
    pub kind: Option<String>,
    /// Began then or later, nanoseconds since 1970.
    pub from_unix_ns: Option<u64>,
    /// Began before, nanoseconds since 1970.
    pub until_unix_ns: Option<u64>,
    /// Ran to its end, or not.
    pub finished: Option<bool>,
}

/// More words than anybody searches for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} words to search for are too many: give {} at the most", linerate_units::grouped(*.0 as u64), Query::MOST_WORDS)]
pub struct TooManyWords(usize);

impl Query {
    /// As many words can be searched for at once.
    pub const MOST_WORDS: usize = 32;

    /// The records in which every word of `text` occurs.
    pub fn text(text: &str) -> Result<Self, TooManyWords> {
        let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
        if words.len() > Self::MOST_WORDS {
            Err(TooManyWords(words.len()))
        } else {
            Ok(Self { words, ..Self::default() })
        }
    }

    /// Its conditions in SQL, and what stands for their question marks.
    fn conditions(&self) -> (String, Vec<Value>) {
        let mut values = Vec::new();
        let mut conditions = Vec::new();
        let mut demand = |condition, value: Value| {
            conditions.push(condition);
            values.push(value);
        };
        if let Some(kind) = &self.kind {
            demand("kind = ?", Value::from(kind.clone()));
        }
        if let Some(from) = self.from_unix_ns {
            demand("started_unix_ns >= ?", Value::from(instant(from)));
        }
        if let Some(until) = self.until_unix_ns {
            demand("started_unix_ns < ?", Value::from(instant(until)));
        }
        if let Some(finished) = self.finished {
            demand("finished = ?", Value::from(finished));
        }
        for word in &self.words {
            demand("instr(words, ?) > 0", Value::from(word.to_lowercase()));
        }
        let sql = if conditions.is_empty() { String::new() } else { format!("WHERE {}", conditions.join(" AND ")) };
        (sql, values)
    }
}

impl Listed {
    /// How far it is at `now`, nanoseconds since 1970.
    pub fn stage(&self, now_unix_ns: u64) -> Stage {
        let silent = Duration::from_nanos(now_unix_ns.saturating_sub(self.changed_unix_ns));
        match (self.finished, self.ended) {
            (true, _) => Stage::Finished,
            (false, false) if silent < SILENCE => Stage::UnderWay,
            _ => Stage::EndedEarly,
        }
    }

    fn read(row: &Row<'_>) -> Result<Self, rusqlite::Error> {
        Ok(Self {
            id: RecordId(row.get(0)?),
            started_unix_ns: row.get::<_, i64>(1)? as u64,
            command: command(row.get_ref(2)?.as_str()?),
            kind: row.get(3)?,
            cells: row.get(4)?,
            trials: row.get(5)?,
            finished: row.get(6)?,
            ended: row.get(7)?,
            changed_unix_ns: row.get::<_, i64>(8)? as u64,
        })
    }
}

impl Store {
    /// The newest records, newest first, at most `limit`.
    pub fn list(&self, limit: usize) -> Result<Vec<Listed>, StoreError> {
        self.find(&Query::default(), 0, limit)
    }

    /// The records that `query` asks for, newest first: at most `limit` behind the first `skipped`.
    pub fn find(&self, query: &Query, skipped: usize, limit: usize) -> Result<Vec<Listed>, StoreError> {
        let (conditions, mut values) = query.conditions();
        values.extend([limit, skipped].map(|number| Value::from(i64::try_from(number).unwrap_or(i64::MAX))));
        let sql = format!(
            "SELECT {COLUMNS} FROM record {conditions} ORDER BY started_unix_ns DESC, id DESC LIMIT ? OFFSET ?"
        );
        self.read(|connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            statement.query_map(params_from_iter(values), Listed::read)?.collect()
        })
    }

    /// The records of the study `name` that ran to their end, newest first, at most `limit`.
    pub fn of_study(&self, name: &str, limit: usize) -> Result<Vec<Record>, StoreError> {
        let query = Query { words: vec![of_study(name)], finished: Some(true), ..Query::default() };
        let mut records = Vec::new();
        for listed in self.find(&query, 0, limit)? {
            match self.load(&listed.id.0) {
                Ok(record) => records.push(record),
                // Deleted by another program since it was listed.
                Err(StoreError::Unknown { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        // A name may be the beginning of another.
        records.retain(|record| record.study.as_ref().is_some_and(|run| run.study == name));
        Ok(records)
    }

    /// How many records `query` asks for.
    pub fn count(&self, query: &Query) -> Result<usize, StoreError> {
        let (conditions, values) = query.conditions();
        let sql = format!("SELECT count(*) FROM record {conditions}");
        let count: i64 = self.read(|connection| {
            connection.prepare_cached(&sql)?.query_row(params_from_iter(values), |row| row.get(0))
        })?;
        Ok(usize::try_from(count).unwrap_or_default())
    }

    /// What was measured in any record, in order of name.
    pub fn kinds(&self) -> Result<Vec<String>, StoreError> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached("SELECT DISTINCT kind FROM record ORDER BY kind")?;
            statement.query_map([], |row| row.get(0))?.collect()
        })
    }

    /// The record called `name` (see [`Store::resolve`]) as a list shows it.
    pub fn listed(&self, name: &str) -> Result<Listed, StoreError> {
        let id = self.resolve(name)?;
        let sql = format!("SELECT {COLUMNS} FROM record WHERE id = ?");
        let mut found = self.read(|connection| {
            connection.prepare_cached(&sql)?.query_map([&id.0], Listed::read)?.collect::<Result<Vec<_>, _>>()
        })?;
        found.pop().ok_or_else(|| self.unknown(name))
    }
}

/// The name of the command that made a record; of one that ran in a lab the command that ran there.
pub(crate) fn kind(command: &[String]) -> String {
    let after = |words: &[String]| words.first().filter(|word| is_name(word)).cloned();
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

/// The text that is searched: the record's name, its command, its hosts and what it measures, in small letters.
pub(crate) fn words<'a>(id: &str, command: &'a [String], names: impl Iterator<Item = &'a str>) -> String {
    let mut text = id.to_lowercase();
    let typed = command.iter().skip(1).map(String::as_str);
    for word in typed.chain(names) {
        if text.len() + word.len() > LONGEST {
            break;
        }
        text.push(' ');
        text.push_str(&word.to_lowercase());
    }
    text
}

/// The same of a whole record.
pub(crate) fn words_of(record: &Record) -> String {
    let hosts = record.hosts.iter().map(|host| host.name.0.as_str());
    let cells = record.plan.cells.iter().map(|cell| cell.name.as_str());
    // Before all that may be cut off.
    let study = record.study.as_ref().map_or_else(String::new, |run| format!(" {}", of_study(&run.study)));
    words(&format!("{}{study}", record.id), &record.command, hosts.chain(cells))
}

/// The word by which the runs of a study are found.
fn of_study(name: &str) -> String {
    format!("study:{}", name.to_lowercase())
}

/// It says itself that it was interrupted.
pub(crate) fn was_interrupted(record: &Record) -> bool {
    record.caveats.iter().any(|caveat| caveat.kind == CaveatKind::Interrupted)
}

/// A command as it is stored.
pub(crate) fn command(json: &str) -> Vec<String> {
    serde_json::from_str(json).unwrap_or_default()
}

/// The time, nanoseconds since 1970.
pub(crate) fn now_unix_ns() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| instant(time.as_nanos() as u64))
}

/// A time as SQLite keeps it.
fn instant(unix_ns: u64) -> i64 {
    i64::try_from(unix_ns).unwrap_or(i64::MAX)
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
            ("linerate --strange", "other"),
            ("linerate", "other"),
            ("", "other"),
        ] {
            let command: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            assert_eq!(kind(&command), expected, "{line}");
        }
    }

    #[test]
    fn a_silent_run_was_killed() {
        let listed = |finished, ended| Listed {
            id: RecordId("x".into()),
            started_unix_ns: 1,
            command: vec![],
            kind: "stream".into(),
            cells: 1,
            trials: 1,
            finished,
            ended,
            changed_unix_ns: 1_000_000_000,
        };
        let (soon, late) = (61_000_000_000, 7_200_000_000_000);
        assert_eq!(listed(false, false).stage(soon), Stage::UnderWay);
        assert_eq!(listed(false, false).stage(late), Stage::EndedEarly);
        assert_eq!(listed(false, true).stage(soon), Stage::EndedEarly);
        assert_eq!(listed(true, true).stage(late), Stage::Finished);
        assert_eq!(listed(false, false).stage(0), Stage::UnderWay, "clocks may step back");
    }

    #[test]
    fn the_text_to_search_stays_short() {
        let names: Vec<String> = (0..10_000).map(|n| format!("UDP {n}")).collect();
        let text = words("ID", &["linerate".into(), "stream".into()], names.iter().map(String::as_str));
        assert!(text.starts_with("id stream udp 0 udp 1") && text.len() <= LONGEST, "{}", text.len());
    }
}
