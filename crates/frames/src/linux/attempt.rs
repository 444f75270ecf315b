//! An attempt at a trial, by XDP or by packet sockets.

use crate::FrameError;
use crate::linux::carrier::Carrier;
use crate::linux::plan::{Plan, Stream};
use crate::linux::progress::Progress;
use linerate_engine::{Conductor, Stopped, Work};
use linerate_model::{Caveat, FrameEngine, FrameStreamPart, Ready};
use linerate_sys::{Error, clock};
use linerate_units::Nanos;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Interval of checking the ports' links.
pub(crate) const LOOK: Duration = Duration::from_millis(50);

/// Time from knowing the start to the first frame, for starting threads, nanoseconds.
pub(crate) const LEAD: u64 = 20_000_000;

/// Time for this thread to receive the start, nanoseconds.
const START_DELIVERY: u64 = 50_000_000;

/// Bytes of a frame's check sequence, which ports remove.
pub(crate) const FCS: u64 = 4;

/// Counts of a trial on this host.
#[derive(Debug)]
pub(crate) struct Counts {
    /// Engine that was used, never `auto`.
    pub(crate) engine: FrameEngine,
    /// Begin of sending, nanoseconds since 1970.
    pub(crate) started_unix_ns: u64,
    /// Counts of each stream, in the task's order.
    pub(crate) streams: Vec<FrameStreamPart>,
    /// Caveats of the measurement.
    pub(crate) caveats: Vec<Caveat>,
}

/// Trial as run by XDP or packet sockets.
pub(crate) struct Attempt<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) progress: Arc<Progress>,
    pub(crate) host: &'a dyn Conductor,
    pub(crate) carrier: &'a Carrier,
    /// Time without arrivals that ends the trial, nanoseconds.
    pub(crate) settle: u64,
}

/// Wait for the first arrival at a port, which may be at the end of a long path (RFC 2544 section 23).
const FIRST_ARRIVAL: u64 = 2_000_000_000;

/// Longest wait for frames that keep arriving: some devices forward frames in loops.
const LONGEST: u64 = 10_000_000_000;

/// Wait for frames that are still on their way after the last one was sent.
struct Settling {
    settle: u64,
    sent: u64,
    /// Number of frames at each port.
    received: Vec<u64>,
    /// Time of the last change of these numbers.
    changed: u64,
}

impl Settling {
    fn new(settle: u64, sent: u64) -> Self {
        Self { settle, sent, received: Vec::new(), changed: sent }
    }

    /// Returns the end of the wait, for the frames `received` at each port so far. Returns `None` if the trial is over
    /// at `now`.
    fn until(&mut self, received: &[u64], now: u64) -> Option<u64> {
        if self.received != received {
            self.received = received.to_vec();
            self.changed = now;
        }
        let quiet = if received.contains(&0) { self.settle.max(FIRST_ARRIVAL) } else { self.settle };
        let until = (self.changed + quiet).min(self.sent + self.settle.max(LONGEST));
        (now < until).then_some(until)
    }
}

impl Attempt<'_> {
    /// Returns the session's stop flag.
    pub(crate) fn stop(&self) -> &AtomicBool {
        self.host.stop().flag()
    }

    /// Reports that the ports count, and waits for the start. Returns the due time of the first frame, on
    /// [`clock::now`]'s clock.
    ///
    /// The time is at least `lead` from now, because packet sockets that replace XDP begin later than the other hosts.
    ///
    /// # Errors
    /// The session was stopped.
    pub(crate) fn begin(&self, lead: u64) -> Result<u64, FrameError> {
        let start = self.host.ready(Ready { lead: Nanos::new(lead + START_DELIVERY), ..Ready::default() })?;
        let start = start.max(clock::now() + lead);
        self.progress.begin();
        // If packet sockets replace XDP, the series of the trial begins anew.
        self.host.runs(Work {
            start,
            window: None,
            threads: Vec::new(),
            disks: Vec::new(),
            meters: Arc::clone(&self.progress) as _,
        });
        Ok(start)
    }

    /// Stops the session if a port lost its link.
    pub(crate) fn look(&self) {
        if let Some(interface) = self.carrier.look() {
            self.host.stop().set(format!("port {interface} lost its link"));
        }
    }

    /// Waits until the other hosts have sent everything of a trial that began at `start` too, then for stragglers. Checks the links
    /// meanwhile.
    ///
    /// # Errors
    /// The session was stopped.
    pub(crate) fn settle(&self, start: u64) -> Result<(), FrameError> {
        let host = self.host;
        // A host reports progress until it says that it has sent all, and one that only receives has sent all at once.
        self.wait_until(self.planned_end(start))?;
        thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            thread::Builder::new()
                .name(String::from("drain"))
                .spawn_scoped(scope, move || sender.send(host.sent()))
                .map_err(|error| Error::new("pthread_create", "the thread that waits for other hosts", error))?;
            loop {
                match receiver.recv_timeout(LOOK) {
                    Ok(all_sent) => return Ok::<_, FrameError>(all_sent?),
                    Err(RecvTimeoutError::Timeout) => self.look(),
                    Err(RecvTimeoutError::Disconnected) => return Err(Stopped.into()),
                }
            }
        })?;
        let mut settling = Settling::new(self.settle, clock::now());
        while let Some(until) = settling.until(&self.received(), clock::now()) {
            self.wait_until(until.min(clock::now() + LOOK.as_nanos() as u64))?;
        }
        Ok(())
    }

    /// Returns the end of sending on time. Streams with a count may end earlier and are left out.
    fn planned_end(&self, start: u64) -> u64 {
        let timed = self.plan.streams.iter().filter(|stream| stream.wish.count.is_none());
        timed.map(|stream| self.plan.planned_end(stream, start)).max().unwrap_or(start)
    }

    /// Waits until `time`. Checks the links meanwhile.
    fn wait_until(&self, time: u64) -> Result<(), FrameError> {
        while clock::now() < time {
            if self.host.stop().is_set() {
                return Err(Stopped.into());
            }
            clock::sleep_until(time.min(clock::now() + LOOK.as_nanos() as u64));
            self.look();
        }
        Ok(())
    }

    /// Returns the number of frames so far at each port of this host that receives signed streams.
    fn received(&self) -> Vec<u64> {
        let mut ports: Vec<usize> = self
            .plan
            .streams
            .iter()
            .filter(|stream| stream.signature_at.is_some())
            .flat_map(Stream::receivers)
            .collect();
        ports.sort_unstable();
        ports.dedup();
        ports.into_iter().map(|port| self.progress.received(port)).collect()
    }

    /// Returns the number of frames of the stream that were due, or that were `sent` if it has neither rate nor count.
    pub(crate) fn intended(&self, stream: usize, sent: u64) -> u64 {
        match &self.plan.streams[stream] {
            stream if stream.wish.rate.is_some() => stream.due.unwrap_or(sent).max(sent),
            _ => sent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Returns the end of a trial with `settle`, in milliseconds. `received` returns the frames at two ports by time.
    fn over(settle: u64, received: impl Fn(u64) -> [u64; 2]) -> u64 {
        let mut settling = Settling::new(settle * MS, 0);
        (0..).find(|now| settling.until(&received(*now), now * MS).is_none()).expect("it ends")
    }

    #[test]
    fn trial_waits_for_frames_on_a_long_path() {
        assert_eq!(over(100, |_| [5, 5]), 100, "all had arrived");
        assert_eq!(over(100, |now| [u64::from(now >= 600), 9]), 700, "the first one arrives after 600 ms");
        assert_eq!(over(100, |now| [now.min(800), 9]), 900, "they arrive for 800 ms");
        assert_eq!(over(100, |_| [0, 9]), 2_000, "none arrives at one port");
        assert_eq!(over(3_000, |_| [0, 9]), 3_000);
        assert_eq!(over(100, |now| [now, now]), 10_000, "they never cease");
    }
}
