//! Start and end of each attempt at a copy: the copies of a record on one axis of time, a row for each destination.

use crate::blocks::axis::Axis;
use crate::blocks::chart::{Chart, SERIES};
use crate::blocks::columns;
use crate::blocks::drawing::{Drawing, Sign, TimeBar, TimeRow, TimeRows};
use crate::blocks::section::Block;
use crate::blocks::table::Table;
use crate::column;
use crate::figures::{self, nanos, plain};
use crate::language::Language;
use crate::said;
use crate::wording::listed;
use linerate_method::copy::clients;
use linerate_method::statistics::median;
use linerate_model::{AttemptSpan, CopyClient, Message, Record, Standing, Task, TrialResult};

/// Cap on the attempts that are drawn.
const MOST: usize = 100;
/// An empty stretch before the first copy that is a larger share of all is left out.
const EMPTY: f64 = 0.25;
/// Factor by which a pause has to exceed the time of all attempts to divide the chart.
const LONGEST_PAUSE: u64 = 10;

/// A destination's part in an attempt.
struct Part {
    /// Name of its row; `None` stands for all rows of the trial.
    row: Option<String>,
    /// Nanoseconds since 1970.
    from: u64,
    to: u64,
    bytes_per_s: Option<f64>,
    /// Whether all came to its end.
    is_complete: bool,
}

/// An attempt that kept when it was under way.
struct Attempt<'a> {
    result: &'a TrialResult,
    /// Number of the run, and why it does not count.
    name: String,
    /// Number for its bars; empty if it does not count.
    number: String,
    span: AttemptSpan,
    /// Parts, in the order of the destinations.
    parts: Vec<Part>,
    /// Time without a copy before it.
    idle: Option<u64>,
    /// Whether it was the fastest or the slowest run of its trial.
    sign: Option<Sign>,
}

/// The chart, and how many attempts it leaves out; none of fewer than two attempts. Where a run was resumed much later, each stretch of
/// time has a chart of its own: on one axis no bar would be seen.
pub(crate) fn blocks(lang: Language, record: &Record) -> Vec<Block> {
    let mut all = attempts(lang, record);
    if all.len() < 2 {
        return Vec::new();
    }
    let notice = said!(
        lang,
        "copy-timeline-notice",
        "The timeline shows the first {shown} of {attempts} attempts.",
        shown = MOST,
        attempts = all.len()
    );
    let notice = (all.len() > MOST).then(|| Block::Sentences(vec![notice]));
    all.truncate(MOST);
    mark_extremes(&mut all);
    let stretches = stretches(&all);
    let charts = stretches.iter().enumerate().map(|(at, stretch)| {
        let title = match stretches.len() {
            1 => said!(lang, "copy-timeline-title", "When each copy ran"),
            all => said!(
                lang,
                "copy-timeline-title-part",
                "When each copy ran, part {part} of {all}",
                part = at + 1,
                all = all
            ),
        };
        Block::chart(chart(lang, title, record.started_unix_ns, stretch))
    });
    notice.into_iter().chain(charts).collect()
}

/// The attempts, divided where nothing was under way for much longer than all of them were.
fn stretches<'a, 'r>(all: &'a [Attempt<'r>]) -> Vec<&'a [Attempt<'r>]> {
    let took = |span: AttemptSpan| span.ended_unix_ns.saturating_sub(span.began_unix_ns);
    let pause = all.iter().map(|attempt| took(attempt.span)).fold(0, u64::saturating_add).saturating_mul(LONGEST_PAUSE);
    let follows =
        |one: &Attempt<'_>, next: &Attempt<'_>| next.span.began_unix_ns.saturating_sub(one.span.ended_unix_ns) <= pause;
    all.chunk_by(follows).collect()
}

/// The attempts at copies in their order.
fn attempts<'a>(lang: Language, record: &'a Record) -> Vec<Attempt<'a>> {
    let mut all: Vec<Attempt<'_>> = Vec::new();
    for result in record.trials.iter().filter(|result| matches!(result.trial.task(), Task::Copy(_))) {
        let Some(span) = result.span else { continue };
        let before = all.iter().filter(|known| known.trial() == result.trial.name && known.result.is_counted());
        let run = before.count() + 1;
        let reason = |text: &Message| plain(lang.message(text).trim_end_matches(['.', '\u{3002}']));
        let name = match &result.standing {
            Standing::Counted => said!(lang, "over-time-run", "run {run}", run = run),
            Standing::Spoilt { reason: why } => {
                let attempt = result.attempt + 1;
                said!(
                    lang,
                    "over-time-spoilt",
                    "run {run}, attempt {attempt}, spoilt: {reason}",
                    run = run,
                    attempt = attempt,
                    reason = reason(&why.text)
                )
            }
            Standing::Failed { reason: why } => {
                let why = reason(&Message::untranslated(why));
                said!(lang, "copy-timeline-failed", "run {run}, failed: {reason}", run = run, reason = why)
            }
        };
        let number = if result.is_counted() { run.to_string() } else { String::new() };
        let parts = parts(lang, result, span);
        let copied_until = all.last().and_then(|before| before.parts.iter().map(|part| part.to).max());
        let idle = copied_until.zip(parts.first()).map(|(until, first)| first.from.saturating_sub(until));
        all.push(Attempt { result, name, number, span, parts, idle, sign: None });
    }
    all
}

/// The parts of an attempt: of a failed one the time it was under way, which is all that is known.
fn parts(lang: Language, result: &TrialResult, span: AttemptSpan) -> Vec<Part> {
    let AttemptSpan { began_unix_ns: began, ended_unix_ns: ended } = span;
    let (Task::Copy(task), Some(counted)) = (result.trial.task(), result.copy()) else {
        return vec![Part { row: None, from: began, to: ended.max(began), bytes_per_s: None, is_complete: false }];
    };
    let clients = clients(task, counted);
    // The clock of the copying host is believed as far as it can be right.
    let longest = clients.iter().map(|client| client.finished_ns).max().unwrap_or_default();
    let from = result.started_unix_ns.clamp(began, ended.saturating_sub(longest).max(began));
    let complete = counted.destinations.iter().flat_map(|part| &part.counted.sides).map(|side| side.complete);
    let part = |(client, is_complete): (&CopyClient, bool)| Part {
        row: Some(row_name(lang, client, task.sources.len() > 1)),
        from,
        to: from.saturating_add(client.finished_ns),
        bytes_per_s: Some(client.bytes_per_s),
        is_complete,
    };
    clients.iter().zip(complete).map(part).collect()
}

/// The destination, with its source where there are several.
fn row_name(lang: Language, client: &CopyClient, has_source: bool) -> String {
    let to = plain(&client.to.0);
    if has_source { said!(lang, "charts-path", "{from} to {to}", from = plain(&client.from.0), to = to) } else { to }
}

/// Marks the fastest and the slowest of the runs of each trial that came to their ends.
fn mark_extremes(all: &mut [Attempt<'_>]) {
    let trials: Vec<&str> = trials(all);
    for trial in trials {
        let runs = (0..all.len()).filter(|at| all[*at].trial() == trial && all[*at].is_whole());
        let mut runs: Vec<usize> = runs.collect();
        runs.sort_by_key(|at| all[*at].time());
        if let [fastest, .., slowest] = runs[..]
            && all[fastest].time() < all[slowest].time()
        {
            (all[fastest].sign, all[slowest].sign) = (Some(Sign::Up), Some(Sign::Down));
        }
    }
}

/// The names of the trials, each once.
fn trials<'a>(all: &[Attempt<'a>]) -> Vec<&'a str> {
    let mut trials: Vec<&str> = Vec::new();
    for attempt in all {
        let trial: &'a str = &attempt.result.trial.name;
        if !trials.contains(&trial) {
            trials.push(trial);
        }
    }
    trials
}

impl Part {
    /// Whether nothing but its beginning is known, as of a host that was lost.
    fn is_lost(&self) -> bool {
        !self.is_complete && self.from == self.to
    }
}

impl Attempt<'_> {
    fn trial(&self) -> &str {
        &self.result.trial.name
    }

    /// Whether it counts, and all its parts came to their ends.
    fn is_whole(&self) -> bool {
        self.result.is_counted() && self.parts.iter().all(|part| part.is_complete)
    }

    /// Until its last part was done.
    fn time(&self) -> u64 {
        self.parts.iter().map(|part| part.to - part.from).max().unwrap_or_default()
    }

    /// Whether a part was done last, so that the attempt took as long as it did.
    fn is_last(&self, part: &Part) -> bool {
        self.parts.iter().max_by_key(|part| part.to).is_some_and(|last| std::ptr::eq(last, part))
    }

    /// Whether a part held up others.
    fn held_up(&self, part: &Part) -> bool {
        self.parts.len() > 1 && self.is_last(part)
    }

    /// The sign of a part: that of its attempt stands at the part that was done last.
    fn sign_of(&self, part: &Part) -> Option<Sign> {
        self.sign.filter(|_| self.is_last(part))
    }

    /// Returns, in words, what sets a part apart.
    fn remarks(&self, lang: Language, part: &Part) -> Vec<String> {
        let sign = self.sign_of(part).map(|sign| match sign {
            Sign::Up => said!(lang, "copy-timeline-fastest", "fastest run"),
            Sign::Down => said!(lang, "copy-timeline-slowest", "slowest run"),
        });
        let last = self.held_up(part).then(|| said!(lang, "copy-timeline-last", "last to finish"));
        let incomplete =
            (part.row.is_some() && !part.is_complete).then(|| said!(lang, "copy-timeline-incomplete", "incomplete"));
        incomplete.into_iter().chain(sign).chain(last).collect()
    }

    /// Returns the text shown when the bar of a part is pointed at.
    fn label(&self, lang: Language, row: &str, part: &Part, zero: u64) -> String {
        let from = moment(part.from, zero);
        let to = moment(part.to, zero);
        let time = nanos(part.to - part.from);
        let rate = part.bytes_per_s.and_then(figures::bytes_per_s);
        let mut label = match rate {
            _ if part.is_lost() => said!(
                lang,
                "copy-timeline-point-lost",
                "{row}, {run}: began at {from}, end unknown",
                row = row,
                run = self.name,
                from = from
            ),
            Some(rate) => {
                said!(
                    lang,
                    "copy-timeline-point",
                    "{row}, {run}: {time} at {rate}, from {from} to {to}",
                    row = row,
                    run = self.name,
                    time = time,
                    rate = rate,
                    from = from,
                    to = to
                )
            }
            None => {
                said!(
                    lang,
                    "copy-timeline-point-failed",
                    "{row}, {run}: under way for {time}, from {from} to {to}",
                    row = row,
                    run = self.name,
                    time = time,
                    from = from,
                    to = to
                )
            }
        };
        if let Some(idle) = self.idle {
            label = said!(
                lang,
                "copy-timeline-idle",
                "{point}; {idle} without a copy before it",
                point = label,
                idle = nanos(idle)
            );
        }
        let remarks = self.remarks(lang, part);
        if !remarks.is_empty() {
            label = said!(
                lang,
                "copy-timeline-remarks",
                "{point} ({remarks})",
                point = label,
                remarks = listed(lang, &remarks)
            );
        }
        label
    }

    fn bar(&self, lang: Language, row: &str, part: &Part, zero: u64) -> TimeBar {
        TimeBar {
            class: match &self.result.standing {
                Standing::Spoilt { .. } => "spoilt",
                _ if part.is_complete => SERIES[0],
                _ => "failed",
            },
            from: seconds(part.from, zero),
            to: seconds(part.to, zero),
            around: (seconds(self.span.began_unix_ns, zero), seconds(self.span.ended_unix_ns, zero)),
            text: self.number.clone(),
            label: self.label(lang, row, part, zero),
            is_crossed: !part.is_complete,
            has_strong_end: self.held_up(part),
            sign: self.sign_of(part),
        }
    }
}

/// Seconds after the record's start.
fn seconds(unix_ns: u64, zero: u64) -> f64 {
    (unix_ns as i128 - i128::from(zero)) as f64 / 1e9
}

/// Returns the same text as it stands next to the axis.
fn moment(unix_ns: u64, zero: u64) -> String {
    format!("{:.3} s", seconds(unix_ns, zero))
}

/// Returns the chart of these attempts. Times are counted from `zero`, the record's start.
fn chart(lang: Language, title: String, zero: u64, all: &[Attempt<'_>]) -> Chart {
    let trials = trials(all);
    let groups = trials.iter().map(|trial| {
        let attempts: Vec<&Attempt<'_>> = all.iter().filter(|attempt| attempt.trial() == *trial).collect();
        TimeRows {
            name: if trials.len() > 1 { plain(trial) } else { String::new() },
            rows: rows(lang, zero, trial, &attempts),
        }
    });
    let drawing = Drawing::Timeline { x: axis(lang, zero, all), groups: groups.collect() };
    let table = table(lang, zero, all, &title);
    Chart { legend: legend(lang, all), drawing, table, title }
}

/// Returns the rows of a trial: each destination that any attempt names. An attempt that names none is in every row.
fn rows(lang: Language, zero: u64, trial: &str, own: &[&Attempt<'_>]) -> Vec<TimeRow> {
    let mut names: Vec<String> = Vec::new();
    for name in own.iter().flat_map(|attempt| &attempt.parts).filter_map(|part| part.row.as_ref()) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    if names.is_empty() {
        names.push(plain(trial));
    }
    let row = |name: String| {
        let is_own = |part: &&Part| part.row.as_ref().is_none_or(|row| *row == name);
        let parts =
            || own.iter().flat_map(|attempt| attempt.parts.iter().filter(is_own).map(move |part| (*attempt, part)));
        let counted = parts().filter(|(attempt, part)| attempt.result.is_counted() && part.is_complete);
        let times = counted.map(|(_, part)| (part.to - part.from) as f64).collect();
        TimeRow {
            bars: parts().map(|(attempt, part)| attempt.bar(lang, &name, part, zero)).collect(),
            figure: median(times).map(|time| nanos(time.round() as u64)).unwrap_or_default(),
            name,
        }
    };
    names.into_iter().map(row).collect()
}

fn axis(lang: Language, zero: u64, all: &[Attempt<'_>]) -> Axis {
    let spans = || all.iter().map(|attempt| attempt.span);
    let low = spans().map(|span| seconds(span.began_unix_ns, zero)).fold(f64::INFINITY, f64::min);
    let high = spans().map(|span| seconds(span.ended_unix_ns, zero)).fold(f64::NEG_INFINITY, f64::max);
    let low = if low > EMPTY * high { low } else { low.min(0.0) };
    Axis::seconds(said!(lang, "copy-timeline-axis", "seconds from the start of the record"), low, high)
}

/// Returns the legend of what is drawn.
fn legend(lang: Language, all: &[Attempt<'_>]) -> Vec<(&'static str, String)> {
    let has = |is: &dyn Fn(&Attempt<'_>) -> bool| all.iter().any(is);
    let spoilt = has(&|attempt| matches!(attempt.result.standing, Standing::Spoilt { .. }));
    let failed = has(&|attempt| attempt.parts.iter().any(|part| !part.is_complete));
    let signs = has(&|attempt| attempt.sign.is_some());
    let several = has(&|attempt| attempt.parts.len() > 1);
    let entries = [
        (
            true,
            SERIES[0],
            said!(lang, "copy-timeline-legend-bar", "copy, with the number of its run; at the right the median time"),
        ),
        (
            true,
            "around",
            said!(lang, "copy-timeline-legend-around", "rest of the attempt: preparation, other destinations, removal"),
        ),
        (spoilt, "spoilt", said!(lang, "copy-timeline-legend-spoilt", "spoilt, excluded from results")),
        (failed, "failed", said!(lang, "copy-timeline-legend-failed", "× failed or incomplete")),
        (signs, "sign", said!(lang, "copy-timeline-legend-signs", "▲ fastest run, ▼ slowest run")),
        (several, "sign", last(lang, all)),
    ];
    entries.into_iter().filter(|(is_there, ..)| *is_there).map(|(_, class, meaning)| (class, meaning)).collect()
}

/// Returns what a strong end means, and the destination that has it most often.
fn last(lang: Language, all: &[Attempt<'_>]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    let runs = all.iter().filter(|attempt| attempt.is_whole());
    for part in runs.flat_map(|attempt| attempt.parts.iter().filter(|part| attempt.held_up(part))) {
        let Some(row) = &part.row else { continue };
        match counts.iter_mut().find(|(known, _)| known == row) {
            Some((_, count)) => *count += 1,
            None => counts.push((row, 1)),
        }
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let runs: usize = counts.iter().map(|(_, count)| count).sum();
    match counts[..] {
        [(row, times), ref others @ ..] if others.first().is_none_or(|(_, count)| *count < times) => {
            said!(
                lang,
                "copy-timeline-legend-last-most",
                "│ last to finish in its run: most often {row}, in {times} of {runs}",
                row = row,
                times = times,
                runs = runs
            )
        }
        _ => said!(lang, "copy-timeline-legend-last", "│ last to finish in its run"),
    }
}

/// The bars as rows.
fn table(lang: Language, zero: u64, all: &[Attempt<'_>], title: &str) -> Table {
    let several = trials(all).len() > 1;
    let row = |attempt: &Attempt<'_>, part: &Part| {
        let run = if several {
            said!(lang, "copy-timeline-run-of", "{trial}, {run}", trial = plain(attempt.trial()), run = attempt.name)
        } else {
            attempt.name.clone()
        };
        let has_time = !part.is_lost();
        let remarks = attempt.remarks(lang, part);
        vec![
            Some(run),
            part.row.clone(),
            Some(moment(part.from, zero)),
            has_time.then(|| moment(part.to, zero)),
            has_time.then(|| nanos(part.to - part.from)),
            part.bytes_per_s.filter(|_| has_time).and_then(figures::bytes_per_s),
            attempt.idle.map(nanos),
            (!remarks.is_empty()).then(|| listed(lang, &remarks)),
        ]
    };
    Table {
        caption: title.to_owned(),
        columns: vec![
            columns::OVER_TIME_RUN,
            column!(
                "column-copy-destination",
                "destination",
                "the host that got the tree; where there are several sources, from which"
            ),
            column!(
                "column-copy-began",
                "began",
                "when the copy began, from the start of the record; of a failed attempt when its preparation began"
            ),
            column!(
                "column-copy-ended",
                "ended",
                "when the destination was complete, or the attempt had failed, from the start of the record"
            ),
            column!("column-copy-time", "time", "from beginning to end"),
            columns::BYTES_S,
            column!(
                "column-copy-idle",
                "idle before",
                "time without a copy before this run: removal, preparation and pause"
            ),
            column!(
                "column-copy-remarks",
                "remarks",
                "the fastest and the slowest run, the destination that finished last in its run, and incomplete copies"
            ),
        ],
        rows: all.iter().flat_map(|attempt| attempt.parts.iter().map(move |part| row(attempt, part))).collect(),
    }
}
