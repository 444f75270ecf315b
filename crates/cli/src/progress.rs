//! A progress bar on standard error; silent when that is not a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use linerate_model::{HostName, Workload};
use linerate_runner::{CopyEvent, DeviceEvent, Event};
use linerate_units::{BitRate, ByteCount, FrameRate, Nanos, OpRate};
use std::collections::BTreeMap;
use std::io::{IsTerminal as _, stderr};

/// Steps of the bar for one trial.
const STEPS: u64 = 1_000;

/// Shows which trial runs, how far all are, and the rate just now.
pub(crate) struct Bar {
    bar: ProgressBar,
    trial: String,
    measure: Nanos,
    stream: bool,
    done: u64,
    received: BTreeMap<HostName, (Nanos, u64)>,
}

impl Bar {
    /// A bar that shows nothing yet.
    pub(crate) fn new() -> Self {
        let target = if stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(STEPS), target);
        let style = ProgressStyle::with_template("{bar:24} {percent:>3} %  about {eta} left  {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let (trial, received) = (String::new(), BTreeMap::new());
        Self { bar, trial, measure: Nanos::default(), stream: true, done: 0, received }
    }

    /// Takes note of an event.
    pub(crate) fn note(&mut self, event: &Event<'_>) {
        match event {
            Event::TrialBegins { spec, done, total } => {
                self.trial.clone_from(&spec.name);
                self.measure = spec.timing.measure;
                self.stream = matches!(spec.workload, Workload::Stream(_));
                self.done = *done as u64 * STEPS;
                self.received.clear();
                self.bar.set_length(*total as u64 * STEPS);
                self.bar.set_position(self.done);
                // A probed trial begins with its probes alone, which tell no progress.
                let idle = if spec.probe.is_some() { "  idle path" } else { "" };
                self.bar.set_message(format!("{}{idle}", self.trial));
            }
            Event::FramesBegin { trial } => {
                self.trial.clone_from(&trial.name);
                self.bar.set_message(self.trial.clone());
            }
            Event::CopyBegins { tree } => self.bar.set_message(format!("copy of {tree}")),
            Event::Progress { host, progress } => {
                let count = if self.stream { progress.received_bytes } else { progress.transactions };
                self.received.insert((*host).clone(), (progress.elapsed, count));
                let within = progress.elapsed.get().min(self.measure.get()) * STEPS / self.measure.get().max(1);
                self.bar.set_position(self.done + within);
                self.bar.set_message(format!("{}  {}", self.trial, self.rate()));
            }
            Event::Repeating { reason } => self.bar.suspend(|| {
                crate::output::say(&format!("linerate: {}: measured again: {}", self.trial, reason.text));
            }),
            Event::TrialEnded { .. } => (),
        }
    }

    /// All receivers' mean rate in this trial so far.
    fn rate(&self) -> String {
        let time = self.received.values().map(|(elapsed, _)| *elapsed).max().unwrap_or_default();
        let count = self.received.values().map(|(_, count)| count).sum();
        let rate = if self.stream {
            BitRate::of(ByteCount::new(count), time).map(|rate| rate.to_string())
        } else {
            OpRate::of(count, time).map(|rate| rate.to_string())
        };
        rate.unwrap_or_default()
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Shows which trial of a device test runs, and the bounds so far.
pub(crate) struct DeviceBar(ProgressBar);

impl DeviceBar {
    /// A bar that shows nothing yet.
    pub(crate) fn new() -> Self {
        let target = if stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        bar.set_style(
            ProgressStyle::with_template("{elapsed}  {wide_msg}").unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        Self(bar)
    }

    /// Takes note of an event.
    pub(crate) fn note(&mut self, event: &DeviceEvent<'_>) {
        match event {
            DeviceEvent::TrialBegins { trial, known } => {
                let load: u64 = trial.streams.iter().filter_map(|stream| stream.rate).map(|rate| rate.get()).sum();
                self.0.set_message(format!("{known}; trial at {}", FrameRate::per_second(load)));
                self.0.tick();
            }
            // A search may repeat many; how many were is told at the end.
            DeviceEvent::Repeating { reason } => self.0.set_message(format!("measured again: {}", reason.text)),
        }
    }
}

impl Drop for DeviceBar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Shows how far a copy is: files, bytes, rate, time left.
pub(crate) struct CopyBar {
    bar: ProgressBar,
    /// Which of how many runs.
    run: String,
    files: u64,
}

impl CopyBar {
    /// A bar that shows nothing yet.
    pub(crate) fn new() -> Self {
        let target = if stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        Self { bar: ProgressBar::with_draw_target(None, target), run: String::new(), files: 0 }
    }

    /// Takes note of an event.
    pub(crate) fn note(&mut self, event: &CopyEvent<'_>) {
        match event {
            CopyEvent::Begins { done, total } => {
                self.run = if *total > 1 { format!("run {} of {total}  ", done + 1) } else { String::new() };
            }
            CopyEvent::Preparing { host, doing } if !doing.is_empty() => {
                self.style("{elapsed}  {wide_msg}");
                self.bar.set_message(format!("{}{host}: {doing}", self.run));
                self.bar.tick();
            }
            CopyEvent::Preparing { .. } => {}
            CopyEvent::Starts { files, bytes } => {
                self.files = *files;
                self.style("{bar:24} {percent:>3} %  about {eta} left  {wide_msg}");
                self.bar.reset();
                self.bar.set_length(*bytes);
            }
            CopyEvent::Progress(done) => {
                self.bar.set_position(done.bytes);
                let bytes = ByteCount::new(done.bytes);
                let rate = BitRate::of(bytes, done.elapsed).map_or_else(String::new, |rate| format!("  {rate}"));
                self.bar.set_message(format!("{}{} of {} files, {bytes}{rate}", self.run, done.files, self.files));
            }
        }
    }

    fn style(&self, template: &str) {
        self.bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
    }
}

impl Drop for CopyBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
