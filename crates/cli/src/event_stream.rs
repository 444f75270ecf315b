//! `--json-stream`: what is told of a run, as lines of JSON on standard output.

use crate::output;
use linerate_model::StreamEvent;
use linerate_runner::{Event, Telling};
use linerate_units::Nanos;
use std::io::{self, ErrorKind};
use std::sync::mpsc;
use std::thread;
use tokio::sync::{oneshot, watch};

/// Writes the events of a run. A thread of its own writes, so that a reader that is slow holds up nothing that is measured.
pub(crate) struct EventStream {
    telling: Telling,
    lines: mpsc::Sender<String>,
    /// Comes when all is written, or nobody reads.
    written: oneshot::Receiver<()>,
}

impl EventStream {
    /// Events of a run, with intervals of `every`; none leaves intervals out. When nobody reads any more, `stop` turns true.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn new(every: Option<Nanos>, stop: watch::Sender<bool>) -> io::Result<Self> {
        let (lines, to_write) = mpsc::channel::<String>();
        let (done, written) = oneshot::channel();
        thread::Builder::new().name("events".into()).spawn(move || {
            write(&to_write, &stop);
            // Nobody waits for it if the run was given up.
            let _ = done.send(());
        })?;
        Ok(Self { telling: Telling::new(every), lines, written })
    }

    /// Writes what is told of an event.
    pub(crate) fn note(&mut self, event: &Event<'_>) {
        for told in self.telling.take(event) {
            // The thread has ended if nobody reads.
            let _ = self.lines.send(line(&told));
        }
    }

    /// Waits until all is written.
    pub(crate) async fn end(self) {
        drop(self.lines);
        let _ = self.written.await;
    }
}

fn line(event: &StreamEvent) -> String {
    serde_json::to_string(event).expect("an event holds only text keys and plain data") + "\n"
}

/// Writes lines until there are no more, or nobody reads them.
fn write(lines: &mpsc::Receiver<String>, stop: &watch::Sender<bool>) {
    for line in lines {
        let Err(error) = output::write(&line) else { continue };
        if error.kind() == ErrorKind::BrokenPipe {
            output::note_that_reader_left();
            stop.send_replace(true);
        } else {
            // What is measured is kept all the same.
            output::note_that_output_is_incomplete(&error);
        }
        return;
    }
}
