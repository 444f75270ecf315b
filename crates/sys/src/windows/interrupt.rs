//! Requests to end the program: Ctrl-C, Ctrl-Break, a closed console, the end of the system, and those to a service.

use super::service;
use std::io;
use tokio::signal::windows::{
    CtrlBreak, CtrlC, CtrlClose, CtrlShutdown, ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown,
};

/// The requests to end this program. From the first call of [`StopRequests::new`] on, Ctrl-C and Ctrl-Break no longer end it by
/// themselves. After its console was closed, Windows ends it in 5 s; services have 20 s when the system ends.
#[derive(Debug)]
pub struct StopRequests {
    interrupt: CtrlC,
    terminate: CtrlBreak,
    close: CtrlClose,
    shutdown: CtrlShutdown,
}

impl StopRequests {
    /// Receives the requests from now on. It needs a runtime of tokio.
    ///
    /// # Errors
    /// The system accepts no handler.
    pub fn new() -> io::Result<Self> {
        Ok(Self { interrupt: ctrl_c()?, terminate: ctrl_break()?, close: ctrl_close()?, shutdown: ctrl_shutdown()? })
    }

    /// Waits for the next request.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => (),
            _ = self.terminate.recv() => (),
            _ = self.close.recv() => (),
            _ = self.shutdown.recv() => (),
            () = service::stopped() => (),
        }
    }
}
