//! A progress bar on standard error. Where that is not a terminal, a search for frame rates writes a line now and then.

mod time_left;

use crate::output::{language, say_of_run, stderr_width};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use linerate_model::{Direction, FramesTask, HostName, Message, Meter, Path, SessionProgress, Task, Trial};
use linerate_report::{Language, LiveRate, live, said};
use linerate_runner::Event;
use linerate_units::{BitRate, ByteCount, FrameRate, OpRate};
use std::collections::BTreeMap;
use std::io::{IsTerminal as _, stderr, stdout};
use std::time::{Duration, Instant};
use time_left::TimeLeft;

/// Steps of the bar for one trial.
const STEPS: u64 = 1_000;
/// The bar of a run whose number of trials is known.
const COUNTED: &str = "{bar:24} {percent:>3} %  {prefix}{wide_msg}";
/// The same where there is no room for it.
const NARROW: &str = "{percent:>3} %  {wide_msg}";
/// Columns that a bar with some words needs.
const ROOM: usize = 60;
/// The line of a search, which ends when it has found what it looks for.
const OPEN: &str = "{elapsed}  {wide_msg}";

/// Time between two lines of a search where there is no terminal.
const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// Shows which trial runs, how far the run is, and the rate just now.
pub(crate) struct Bar {
    bar: ProgressBar,
    lang: Language,
    /// What runs: the trial's name, and what is known so far.
    doing: String,
    /// What is shown of the meters.
    shown: LiveRate,
    /// When the run began, and what its trials take.
    start: Instant,
    time: TimeLeft,
    /// Attempts that were spoilt, and made again.
    repeats: usize,
    /// Trials done before this one, and how many there will be; none where that is not known.
    done: usize,
    at_most: Option<usize>,
    /// Files and bytes of the copy that runs.
    files: u64,
    bytes: u64,
    /// Bytes that the hosts of a stream that ends by volume send and receive, each byte at each end.
    volume: u64,
    told: BTreeMap<HostName, SessionProgress>,
    /// When the next line of a search is due; `None` if none is written.
    next_line: Option<Duration>,
}

impl Bar {
    /// Returns a bar that shows nothing yet. `in_lines` says that the run prints a line for each result, so that a search needs no others.
    pub(crate) fn new(in_lines: bool) -> Self {
        let is_drawn = stderr().is_terminal();
        let mut bar = Self::drawn(is_drawn);
        bar.next_line = (!is_drawn && !in_lines).then_some(BETWEEN_LINES);
        bar
    }

    /// The same for a run whose events are printed: where both would be on one terminal, there is no bar.
    pub(crate) fn beside_events() -> Self {
        Self::drawn(stderr().is_terminal() && !stdout().is_terminal())
    }

    /// The same for a run that is shown in another way.
    pub(crate) fn hidden() -> Self {
        Self::drawn(false)
    }

    fn drawn(is_drawn: bool) -> Self {
        let target = if is_drawn { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        Self {
            bar: ProgressBar::with_draw_target(Some(STEPS), target),
            lang: language(),
            doing: String::new(),
            shown: LiveRate::Payload,
            start: Instant::now(),
            time: TimeLeft::default(),
            repeats: 0,
            done: 0,
            at_most: None,
            files: 0,
            bytes: 0,
            volume: 0,
            told: BTreeMap::new(),
            next_line: None,
        }
    }

    /// Takes note of an event.
    pub(crate) fn note(&mut self, event: &Event<'_>) {
        self.note_at(self.start.elapsed(), event);
    }

    /// The same, of an event at that time since the run began.
    fn note_at(&mut self, now: Duration, event: &Event<'_>) {
        match event {
            Event::Begins { trial, progress, .. } => {
                self.shown = live(trial.task().kind()).rate;
                self.time.begins(now, trial);
                (self.done, self.at_most) = (progress.done, progress.at_most);
                (self.files, self.bytes, self.volume) = (0, 0, volume(trial));
                self.told.clear();
                self.doing = doing(self.lang, trial, progress.known.as_ref());
                let template = match self.at_most {
                    Some(_) if stderr_width() < ROOM => NARROW,
                    Some(_) => COUNTED,
                    None => OPEN,
                };
                self.bar
                    .set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
                self.bar.set_length(self.at_most.unwrap_or(1).max(self.done + 1) as u64 * STEPS);
                self.show(now, "");
                if let Some(line) = self.line(now) {
                    say_of_run(&line);
                }
            }
            Event::Preparing { host, doing: Some(doing) } => {
                self.show(now, &format!("  {host}: {}", self.lang.text(doing.text())));
            }
            Event::Preparing { .. } => {}
            Event::Starts { files, bytes } => {
                (self.files, self.bytes) = (*files, *bytes);
                self.show(now, "");
            }
            Event::Progress { host, progress } => {
                self.told.insert((*host).clone(), (*progress).clone());
                self.show(now, &format!("  {}", self.rate()));
            }
            Event::Repeating { reason } => {
                self.repeats += 1;
                self.show(now, &format!(": {}", self.lang.message(&reason.text)));
            }
            Event::Ended { .. } => self.time.ends(now),
            Event::Started { .. } | Event::Concluded { .. } => {}
        }
    }

    /// Does something that writes to the terminal, the bar out of its way.
    pub(crate) fn beside(&self, write: impl FnOnce()) {
        self.bar.suspend(write);
    }

    /// Shows the trial with `what` there is to say of it.
    fn show(&self, now: Duration, what: &str) {
        let lang = self.lang;
        let again = (self.repeats > 0)
            .then(|| format!("  {}", said!(lang, "bar-again", "measured again {times}x", times = self.repeats)));
        let message = format!("{}{}{what}", self.doing, again.unwrap_or_default());
        let share = match self.volume {
            0 => self.sum(|meter| meter.received_bytes) as f64 / self.bytes.max(1) as f64,
            volume => self.sum(|meter| meter.sent_bytes + meter.received_bytes) as f64 / volume as f64,
        };
        let within = (self.time.within(now, share) * STEPS as f64) as u64;
        self.bar.set_position(self.done as u64 * STEPS + within);
        let after = self.at_most.map(|all| all.saturating_sub(self.done + 1));
        let left = after.and_then(|after| self.time.left(now, share, after));
        let left = left
            .map(|left| format!("{}  ", said!(lang, "bar-left", "about {time} left", time = time_left::shown(left))));
        self.bar.set_prefix(left.unwrap_or_default());
        self.bar.set_message(crate::output::visible(&message).into_owned());
        self.bar.tick();
    }

    /// Returns the line that is due at `now` where there is no terminal: streams print their intervals, searches for frame rates do not.
    fn line(&mut self, now: Duration) -> Option<String> {
        let is_due = self.shown == LiveRate::Frames && now >= self.next_line?;
        is_due.then(|| {
            self.next_line = Some(now + BETWEEN_LINES);
            self.bar.message()
        })
    }

    fn sum(&self, count: impl Fn(&Meter) -> u64) -> u64 {
        self.told.values().map(|told| count(&told.meter)).sum()
    }

    /// Returns the mean rate of all hosts in this trial so far, warm-up included; empty before it began.
    fn rate(&self) -> String {
        let time = self.told.values().map(|told| told.running).max().unwrap_or_default();
        let bits = |bytes| BitRate::of(ByteCount::new(bytes), time).map(|rate| rate.to_string());
        let (bytes, operations) = (self.sum(|meter| meter.received_bytes), self.sum(|meter| meter.operations));
        match self.shown {
            LiveRate::Payload => bits(bytes).unwrap_or_default(),
            LiveRate::Requests => OpRate::of(operations, time).map(|rate| rate.to_string()).unwrap_or_default(),
            LiveRate::Frames => FrameRate::of(operations, time).map(|rate| rate.to_string()).unwrap_or_default(),
            LiveRate::Files => {
                let copied = said!(
                    self.lang,
                    "bar-copied",
                    "{files} of {all_files} files, {bytes} of {all_bytes}",
                    files = operations,
                    all_files = self.files,
                    bytes = ByteCount::new(bytes),
                    all_bytes = ByteCount::new(self.bytes)
                );
                match bits(bytes) {
                    Some(rate) => format!("{copied}  {rate}"),
                    None => copied,
                }
            }
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Bytes that the hosts with agents send and receive in a stream that ends by volume; zero for others.
fn volume(trial: &Trial) -> u64 {
    let (Some(volume), Task::Stream(stream)) = (trial.volume(), trial.task()) else { return 0 };
    let ways = if stream.direction == Direction::Both { 2 } else { 1 };
    let ends = |path: &Path| if path.server.agent().is_some() { 2 } else { 1 };
    volume.get().saturating_mul(ways * stream.paths.iter().map(ends).sum::<u64>())
}

/// What runs: the bounds of a search so far and the load that is tried, else the trial's name.
fn doing(lang: Language, trial: &Trial, known: Option<&Message>) -> String {
    let Some(known) = known.map(|known| lang.message(known)) else { return trial.name.clone() };
    let Task::Frames(frames) = trial.task() else { return format!("{}  {known}", trial.name) };
    match load(frames) {
        Some(load) => said!(lang, "bar-trial-at", "{known}; trial at {load}", known = known, load = load.to_string()),
        None => known,
    }
}

/// The load of all streams together; none where one is sent as fast as possible.
fn load(frames: &FramesTask) -> Option<FrameRate> {
    let rates: Option<Vec<u64>> = frames.streams.iter().map(|stream| Some(stream.rate?.get())).collect();
    Some(FrameRate::per_second(rates?.iter().sum()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_method::Progress;
    use linerate_model::{Caveat, CaveatKind, Preparation, StreamTask, Timing, Transport, message};
    use linerate_units::Nanos;

    fn begins(trial: &Trial, done: usize) -> Event<'_> {
        Event::Begins { trial, attempt: 0, progress: Progress { done, at_most: Some(6), known: None } }
    }

    #[test]
    fn the_bar_follows_the_trials_done_and_the_time() {
        let task = Task::Stream(StreamTask::plain(Transport::Tcp, ByteCount::new(1)));
        let trial = Trial::new("tcp", task, Timing::of(Nanos::from_secs(1), Nanos::from_secs(3)));
        let mut bar = Bar::hidden();
        let at = Duration::from_secs;
        bar.note_at(at(10), &begins(&trial, 3));
        assert_eq!((bar.bar.position(), bar.bar.length()), (3 * STEPS, Some(6 * STEPS)));
        assert_eq!(bar.bar.prefix(), "about 12 s left  ");
        let meter = Meter { received_bytes: 125_000_000, ..Meter::default() };
        let second = Nanos::from_secs(1);
        let progress = SessionProgress { running: second, measured: Some(second), meter, ..SessionProgress::default() };
        bar.note_at(at(12), &Event::Progress { host: &"b".into(), progress: &progress });
        assert_eq!(bar.bar.position(), 3 * STEPS + STEPS / 2);
        assert_eq!(bar.bar.prefix(), "about 10 s left  ");
        assert_eq!(bar.rate(), "1 Gbit/s");
    }

    #[test]
    fn a_volume_advances_by_its_bytes() {
        let plain = StreamTask::plain(Transport::Tcp, ByteCount::new(1));
        let stream = StreamTask {
            paths: vec![Path::between("a", "b")],
            direction: Direction::Both,
            volume: Some(ByteCount::new(1_000)),
            ..plain
        };
        let trial = Trial::new("tcp", Task::Stream(stream), Timing::of(Nanos::default(), Nanos::from_secs(600)));
        let mut bar = Bar::hidden();
        bar.note_at(Duration::ZERO, &begins(&trial, 0));
        assert_eq!(bar.bar.prefix(), "", "nothing has been sent");
        // Of 4,000 bytes at both ends, a sent 600 and received 200, and b received 600 and sent 600.
        for (host, sent_bytes, received_bytes) in [("a", 600, 200), ("b", 600, 600)] {
            let meter = Meter { sent_bytes, received_bytes, ..Meter::default() };
            let progress = SessionProgress { meter, ..SessionProgress::default() };
            bar.note_at(Duration::from_secs(1), &Event::Progress { host: &host.into(), progress: &progress });
        }
        assert_eq!(bar.bar.position(), STEPS / 2);
        assert_eq!(bar.bar.prefix(), "about 11 s left  ");
    }

    /// Repeats are a counter. Off a terminal nothing is drawn, and no line of them is written.
    #[test]
    fn repeats_are_counted() {
        let task = Task::Stream(StreamTask::plain(Transport::Tcp, ByteCount::new(1)));
        let trial = Trial::new("tcp", task, Timing::of(Nanos::default(), Nanos::from_secs(1)));
        let reason = Caveat::new(CaveatKind::CpuStolen, Message::untranslated("the hypervisor took 9 % of a core"));
        let mut bar = Bar::hidden();
        assert!(bar.bar.is_hidden());
        for _ in 0..3 {
            bar.note(&begins(&trial, 0));
            bar.note(&Event::Repeating { reason: &reason });
        }
        assert_eq!(bar.bar.message(), "tcp  measured again 3x: the hypervisor took 9 % of a core");
        bar.note(&begins(&trial, 1));
        assert_eq!(bar.bar.message(), "tcp  measured again 3x");
    }

    #[test]
    fn search_without_a_terminal_writes_a_line_now_and_then() {
        let task = Task::Stream(StreamTask::plain(Transport::Tcp, ByteCount::new(1)));
        let trial = Trial::new("throughput 64", task, Timing::of(Nanos::default(), Nanos::from_secs(1)));
        let line = |next_line, shown, seconds| {
            let mut bar = Bar::hidden();
            bar.next_line = next_line;
            bar.note_at(Duration::ZERO, &begins(&trial, 0));
            bar.shown = shown;
            let line = bar.line(Duration::from_secs(seconds));
            (line, bar.line(Duration::from_secs(seconds)))
        };
        let due = Some(BETWEEN_LINES);
        assert_eq!(line(due, LiveRate::Frames, 10), (Some("throughput 64".to_owned()), None));
        assert_eq!(line(due, LiveRate::Frames, 9), (None, None), "it is not due");
        assert_eq!(line(due, LiveRate::Payload, 10), (None, None), "streams have intervals");
        assert_eq!(line(None, LiveRate::Frames, 10), (None, None), "there is a terminal");
    }

    #[test]
    fn the_bar_is_told_in_the_users_language() {
        let task = Task::Stream(StreamTask::plain(Transport::Tcp, ByteCount::new(1)));
        let trial = Trial::new("tcp", task, Timing::of(Nanos::from_secs(1), Nanos::from_secs(3)));
        let reason = Caveat::new(CaveatKind::CpuStolen, message!("known-done", "done"));
        let told = |lang: Language| {
            let mut bar = Bar::hidden();
            bar.lang = lang;
            let known = Some(message!("known-learning", "learning"));
            let progress = Progress { done: 0, at_most: Some(2), known };
            bar.note_at(Duration::ZERO, &Event::Begins { trial: &trial, attempt: 0, progress });
            bar.note_at(Duration::ZERO, &Event::Repeating { reason: &reason });
            let repeated = bar.bar.message();
            bar.note_at(Duration::ZERO, &Event::Preparing { host: &"b".into(), doing: Some(Preparation::Connecting) });
            (bar.shown, bar.files, bar.bytes) = (LiveRate::Files, 2_000, 3_000_000);
            let meter = Meter { received_bytes: 1_000_000, operations: 1_000, ..Meter::default() };
            bar.told.insert("b".into(), SessionProgress { meter, ..SessionProgress::default() });
            [bar.bar.prefix(), repeated, bar.bar.message(), bar.rate()]
        };
        let english = [
            "about 8 s left  ",
            "tcp  learning  measured again 1x: done",
            "tcp  learning  measured again 1x  b: connecting",
            "1,000 of 2,000 files, 1 MB of 3 MB",
        ];
        assert_eq!(told(Language::English), english);
        for (told, english) in told(Language::Japanese).iter().zip(english) {
            let words = ["about", "left", "learning", "again", "done", "connecting", "of", "files"];
            assert!(!told.is_ascii() && !words.iter().any(|word| told.contains(word)), "{told}: {english}");
        }
    }
}
