//! The display while a run goes on: a thread that draws and reads keys, and never holds up the run.

use super::screen::{DISPLAY, Screen, is_taken};
use super::state::State;
use crate::interrupt;
use crate::output::{say, style};
use linerate_method::Progress;
use linerate_model::{HostName, Preparation, Record, StreamEvent, Task, Trial, TrialResult};
use linerate_report::Language;
use linerate_runner::{Event, Telling};
use linerate_sys::terminal::{KeyWait, Keys};
use linerate_units::Nanos;
use ratatui::crossterm::event::{self, Event as Input, KeyCode, KeyModifiers};
use ratatui::crossterm::terminal::size;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Length of the intervals that are drawn: hosts tell their progress so often.
const EVERY: Nanos = Nanos::from_millis(200);
/// How long the end of the display is waited for: a terminal may take no output any more.
const LAST: Duration = Duration::from_secs(2);

/// Time to wait for a key before the run is looked at again.
const TICK: Duration = Duration::from_millis(100);

/// The display of a run. The terminal is given back when it is dropped.
pub(crate) struct Display {
    telling: Telling,
    /// None when the display is to end.
    news: Option<Sender<News>>,
    thread: Option<JoinHandle<()>>,
    /// Closed when the thread ends.
    ended: Receiver<()>,
}

/// What the display is told.
enum News {
    Started(Box<Record>),
    Happened(StreamEvent),
    Begins { progress: Progress, length: Option<Nanos> },
    Preparing { host: HostName, doing: Option<Preparation> },
    Ended(Box<TrialResult>),
}

impl Display {
    /// Takes the terminal for a run that `cancel` stops.
    ///
    /// # Errors
    /// The terminal cannot be set up.
    pub(crate) fn open(cancel: watch::Receiver<bool>) -> io::Result<Self> {
        let screen = Screen::take()?;
        let (news, receiver) = channel();
        let (end, ended) = channel::<()>();
        let show = move || {
            let _end = end;
            if let Err(error) = show(screen, &receiver, &cancel) {
                say(&format!("linerate: the display ended: {error}; the run goes on without it"));
            }
        };
        let thread = Builder::new().name(DISPLAY.to_owned()).spawn(show)?;
        Ok(Self { telling: Telling::new(Some(EVERY)), news: Some(news), thread: Some(thread), ended })
    }

    /// Takes note of an event.
    pub(crate) fn note(&mut self, event: &Event<'_>) {
        if let Event::Started { record } = event {
            self.tell(News::Started(Box::new((*record).clone())));
        }
        for happened in self.telling.take(event) {
            self.tell(News::Happened(happened));
        }
        match event {
            Event::Begins { trial, progress, .. } => {
                self.tell(News::Begins { progress: progress.clone(), length: length(trial) });
            }
            Event::Preparing { host, doing } => {
                self.tell(News::Preparing { host: (*host).clone(), doing: *doing });
            }
            Event::Ended { result } => self.tell(News::Ended(Box::new((*result).clone()))),
            _ => {}
        }
    }

    fn tell(&self, news: News) {
        if let Some(sender) = &self.news {
            // A display that has ended needs no news.
            let _ = sender.send(news);
        }
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        self.news = None;
        if self.ended.recv_timeout(LAST) == Err(RecvTimeoutError::Disconnected) {
            // What a panic of the display said was printed.
            let _ = self.thread.take().map(JoinHandle::join);
        }
    }
}

/// Draws what is told until nothing more is, or until the terminal is given back.
fn show(mut screen: Screen, news: &Receiver<News>, cancel: &watch::Receiver<bool>) -> io::Result<()> {
    let (began, text) = (Instant::now(), style());
    let mut state: Option<State> = None;
    let keys = Keys::open()?;
    let mut drawn_at = None;
    while is_taken() {
        let mut changed = false;
        loop {
            match news.try_recv() {
                Ok(news) => apply(&mut state, news, text.language),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return Ok(()),
            }
            changed = true;
        }
        let drawing = (began.elapsed().as_secs(), size()?);
        if let Some(state) = &mut state {
            let stopping = *cancel.borrow();
            changed |= std::mem::replace(&mut state.stopping, stopping) != stopping;
            if changed || drawn_at != Some(drawing) {
                screen.draw(state, began.elapsed().into(), &text)?;
                drawn_at = Some(drawing);
            }
        }
        match keys.wait(TICK)? {
            KeyWait::Pressed => press(cancel)?,
            KeyWait::TimedOut => {}
            KeyWait::Closed => break,
        }
    }
    Ok(())
}

/// Does what the keys that were pressed ask for.
fn press(cancel: &watch::Receiver<bool>) -> io::Result<()> {
    while event::poll(Duration::ZERO)? {
        let Input::Key(key) = event::read()? else { continue };
        // Windows also reports that a key was released.
        if !key.is_press() {
            continue;
        }
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            // As the signal: asking a second time ends at once.
            KeyCode::Char('c') if is_control => interrupt::ask(),
            KeyCode::Char('q') | KeyCode::Esc if !*cancel.borrow() => interrupt::ask(),
            _ => {}
        }
    }
    Ok(())
}

fn apply(state: &mut Option<State>, news: News, language: Language) {
    match (news, state) {
        (News::Started(record), state) => *state = Some(State::new(*record, language)),
        (News::Happened(event), Some(state)) => state.take(&event),
        (News::Begins { progress, length }, Some(state)) => state.schedule(progress, length),
        (News::Preparing { host, doing }, Some(state)) => state.preparing(&host, doing),
        (News::Ended(result), Some(state)) => state.ended(*result),
        // A run tells first that it has started.
        (_, None) => {}
    }
}

/// How long the measured load runs; none if it runs until it is done, or has sent its volume.
fn length(trial: &Trial) -> Option<Nanos> {
    match (trial.task(), trial.window()) {
        (Task::Frames(frames), _) => Some(frames.time),
        (_, window) => window.filter(|_| trial.volume().is_none()).map(|window| window.measure),
    }
}
