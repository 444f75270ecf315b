//! The display while a run goes on: a thread that draws and reads keys, and never holds up the run.

use super::screen::{DISPLAY, Screen, is_taken};
use super::state::State;
use crate::interrupt;
use crate::output::{say, style};
use crate::progress::length;
use linerate_method::Progress;
use linerate_model::{HostName, Record, StreamEvent, TrialResult};
use linerate_report::Language;
use linerate_runner::{Event, Telling};
use linerate_units::Nanos;
use ratatui::crossterm::event::{self, Event as Input, KeyCode, KeyEventKind, KeyModifiers};
use std::io;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Length of the intervals that are drawn: hosts tell their progress so often.
const EVERY: Nanos = Nanos::from_millis(200);
/// How long a key is waited for before events of the run are looked at again.
const TICK: Duration = Duration::from_millis(100);

/// The display of a run. The terminal is given back when it is dropped.
pub(crate) struct Display {
    telling: Telling,
    /// None when the display is to end.
    news: Option<Sender<News>>,
    thread: Option<JoinHandle<()>>,
}

/// What the display is told.
enum News {
    Started(Box<Record>),
    Happened(StreamEvent),
    Begins { progress: Progress, length: Option<Nanos> },
    Preparing { host: HostName, doing: String },
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
        let show = move || {
            if let Err(error) = show(screen, &receiver, &cancel) {
                say(&format!("linerate: the display ended: {error}; the run goes on without it"));
            }
        };
        let thread = Builder::new().name(DISPLAY.to_owned()).spawn(show)?;
        Ok(Self { telling: Telling::new(Some(EVERY)), news: Some(news), thread: Some(thread) })
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
                self.tell(News::Preparing { host: (*host).clone(), doing: (*doing).to_owned() });
            }
            Event::Ended { result } => self.tell(News::Ended(Box::new((*result).clone()))),
            _ => {}
        }
    }

    fn tell(&self, news: News) {
        // A display that has ended is told nothing.
        let _ = self.news.as_ref().map(|sender| sender.send(news));
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        self.news = None;
        // What a panic of the display said was printed.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Draws what is told until nothing more is, or until the terminal is given back.
fn show(mut screen: Screen, news: &Receiver<News>, cancel: &watch::Receiver<bool>) -> io::Result<()> {
    let (began, text) = (Instant::now(), style());
    let mut state: Option<State> = None;
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
        let second = began.elapsed().as_secs();
        if let Some(state) = &mut state {
            let stopping = *cancel.borrow();
            changed |= std::mem::replace(&mut state.stopping, stopping) != stopping;
            if changed || drawn_at != Some(second) {
                screen.draw(state, began.elapsed().into(), &text)?;
                drawn_at = Some(second);
            }
        }
        if event::poll(TICK)? {
            match event::read()? {
                Input::Key(key) if key.kind == KeyEventKind::Press => {
                    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
                    match key.code {
                        // As the signal: asking a second time ends at once.
                        KeyCode::Char('c') if is_control => interrupt::ask(),
                        KeyCode::Char('q') | KeyCode::Esc if !*cancel.borrow() => interrupt::ask(),
                        _ => {}
                    }
                }
                Input::Resize(..) => drawn_at = None,
                _ => {}
            }
        }
    }
    Ok(())
}

fn apply(state: &mut Option<State>, news: News, language: Language) {
    match (news, state) {
        (News::Started(record), state) => *state = Some(State::new(*record, language)),
        (News::Happened(event), Some(state)) => state.take(&event),
        (News::Begins { progress, length }, Some(state)) => state.schedule(progress, length),
        (News::Preparing { host, doing }, Some(state)) => state.preparing(&host, &doing),
        (News::Ended(result), Some(state)) => state.ended(*result),
        // A run tells first that it has started.
        (_, None) => {}
    }
}
