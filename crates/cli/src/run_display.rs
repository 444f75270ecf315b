//! What is shown of a run while it goes on.

use crate::event_stream::EventStream;
use crate::live_lines::LiveLines;
use crate::output::{print, say, stderr_width};
use crate::progress::Bar;
use crate::result_lines::ResultLines;
use crate::tui::Display;
use linerate_model::Record;
use linerate_runner::Event;

/// A progress bar, and beside it what was asked for.
pub(crate) struct RunDisplay {
    pub(crate) bar: Bar,
    /// The whole terminal, in place of the bar and of all lines.
    pub(crate) tui: Option<Display>,
    /// A line for each interval.
    pub(crate) live: Option<LiveLines>,
    /// A line for each result.
    pub(crate) results: Option<ResultLines>,
    /// Events as JSON.
    pub(crate) events: Option<EventStream>,
}

impl RunDisplay {
    /// Takes note of an event.
    pub(crate) fn note(&mut self, event: &Event<'_>) {
        let Self { bar, tui, live, results, events } = self;
        if let Some(tui) = tui {
            return tui.note(event);
        }
        bar.note(event);
        if let Some(live) = live {
            let lines = live.take(event, stderr_width());
            if !lines.is_empty() {
                bar.beside(|| lines.iter().for_each(|line| say(line)));
            }
        }
        if let (Some(results), Event::Ended { result }) = (results, event) {
            bar.beside(|| results.take(result).iter().for_each(|line| print(line)));
        }
        if let Some(events) = events {
            events.note(event);
        }
    }

    /// Shows what is left to show of the run.
    pub(crate) async fn end(self, record: &Record) {
        let Self { bar, tui, results, events, .. } = self;
        // The terminal is as it was before anything is printed.
        drop((bar, tui));
        if let Some(mut results) = results {
            results.rest(record).iter().for_each(|line| print(line));
        }
        if let Some(events) = events {
            events.end().await;
        }
    }
}
