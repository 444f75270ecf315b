//! The terminal: taken for the display, and given back however the program goes on.

use super::draw::draw;
use super::state::State;
use crate::exit::Failure;
use crate::output;
use linerate_report::Style;
use linerate_units::Nanos;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use std::io::{self, IsTerminal as _, Stdout, stdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::thread;

/// The name of the thread that draws.
pub(super) const DISPLAY: &str = "display";

/// Whether the display has the terminal.
static TAKEN: AtomicBool = AtomicBool::new(false);
/// Held while the display is drawn: nothing is drawn on a terminal that was given back.
static DRAWING: Mutex<()> = Mutex::new(());

/// Checks that there is a terminal to show the run on.
///
/// # Errors
/// Standard output is none.
pub(crate) fn check() -> Result<(), Failure> {
    if stdout().is_terminal() {
        return Ok(());
    }
    Err(Failure::usage(
        "--tui draws on a terminal, and standard output is none: leave --tui out, or do not redirect the output",
    ))
}

/// The terminal while the display has it. It is given back when this is dropped.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    /// Takes the terminal. What the program says until it is given back is printed then.
    ///
    /// # Errors
    /// The terminal cannot be set up; it is as it was.
    pub(super) fn take() -> io::Result<Self> {
        give_back_on_panic();
        TAKEN.store(true, Ordering::SeqCst);
        output::hold();
        let entered = enable_raw_mode()
            .and_then(|()| execute!(stdout(), EnterAlternateScreen, Hide))
            .and_then(|()| Terminal::new(CrosstermBackend::new(stdout())));
        match entered {
            Ok(terminal) => Ok(Self { terminal }),
            Err(error) => {
                give_back();
                Err(error)
            }
        }
    }

    /// Draws `state`, `running` after the run began. Does nothing on a terminal that was given back.
    ///
    /// # Errors
    /// The terminal takes no output.
    pub(super) fn draw(&mut self, state: &State, running: Nanos, text: &Style) -> io::Result<()> {
        let _drawing = DRAWING.lock().unwrap_or_else(PoisonError::into_inner);
        if is_taken() {
            self.terminal.draw(|frame| draw(frame, state, running, text))?;
        }
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Whether the display has the terminal.
pub(crate) fn is_taken() -> bool {
    TAKEN.load(Ordering::SeqCst)
}

/// Gives the terminal back as it was: its screen, its cursor and its line discipline. Does nothing if it was given back already.
pub(crate) fn give_back() {
    // A panic while it draws has the lock.
    let draws = thread::current().name() == Some(DISPLAY);
    let _drawing = (!draws).then(|| DRAWING.lock().unwrap_or_else(PoisonError::into_inner));
    if TAKEN.swap(false, Ordering::SeqCst) {
        // A terminal that is gone needs nothing.
        let _ = disable_raw_mode();
        let _ = execute!(stdout(), LeaveAlternateScreen, Show);
        output::release();
    }
}

/// What a panic says is to be seen.
fn give_back_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            report(panic);
        }));
    });
}
