//! Following a device's load during a trial.

use super::cpu::{Averages, CpuReading};
use super::error::SnmpError;
use super::interfaces::Interfaces;
use super::session::{Device, Session, add_cpu, add_interfaces, restarted};
use super::target::Target;
use linerate_model::DeviceLoad;
use linerate_units::Nanos;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, oneshot};
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// Interval of requests for the CPU counters during a trial: one request in one frame.
const POLL: Duration = Duration::from_millis(500);
/// Interval of requests for the interface table when waiting for a new one.
const SETTLE_POLL: Duration = Duration::from_millis(250);
/// A little more than net-snmp keeps its interface table (3 s).
const SETTLE: Duration = Duration::from_secs(4);

/// Follows a device: [`Watcher::start`] before a trial, [`Watcher::stop`] after it.
///
/// A device renews its CPU counters on its own schedule. Between start and stop they are asked for twice a second, and
/// the load is taken between the first and the last renewal seen: both lie within the trial, whatever the schedule. One
/// renewal only leaves a span that began before the trial, and none leaves nothing; `notes` say so.
///
/// Neither call fails: a device that falls silent costs the figures, not the trial. It asks from a task of the caller's
/// runtime, which may be of one thread.
pub struct Watcher {
    session: Arc<Mutex<Session>>,
    device: Device,
    settle: Duration,
    renewal: Option<Duration>,
    watch: Option<Watch>,
}

/// A trial under way.
struct Watch {
    started: Instant,
    stop: Option<oneshot::Sender<()>>,
    polls: JoinHandle<Log>,
}

/// Readings of a device during a trial.
#[derive(Default)]
struct Log {
    /// The CPUs at the start and each time that their counters had moved, in order.
    renewals: Vec<CpuReading>,
    /// The first reading and the last, moved or not.
    first: Option<CpuReading>,
    last: Option<CpuReading>,
    /// The interfaces at the start.
    interfaces: Option<Interfaces>,
    /// Questions asked and not answered, and why the last one was not.
    asked: u32,
    failed: u32,
    error: Option<String>,
}

impl Log {
    fn add(&mut self, result: Result<CpuReading, SnmpError>) {
        let Some(reading) = self.answered(result) else { return };
        if reading.ticks.is_some() && self.renewals.last().is_none_or(|last| last.ticks != reading.ticks) {
            self.renewals.push(reading.clone());
        }
        self.first.get_or_insert_with(|| reading.clone());
        self.last = Some(reading);
    }

    fn answered<T>(&mut self, result: Result<T, SnmpError>) -> Option<T> {
        self.asked += 1;
        match result {
            Ok(answer) => Some(answer),
            Err(error) => {
                self.failed += 1;
                self.error = Some(error.to_string());
                None
            }
        }
    }

    /// The readings that the CPU load is taken between: the outermost renewals within the window, or else the one with
    /// what was there at the start.
    fn span(&self) -> Option<(&CpuReading, &CpuReading)> {
        match self.renewals.as_slice() {
            [before, after] => Some((before, after)),
            [_, first, .., last] => Some((first, last)),
            _ => None,
        }
    }

    /// The shortest time between two renewals.
    fn renewal(&self) -> Option<Duration> {
        let times: Vec<Instant> = self.renewals.iter().skip(1).map(|reading| reading.at).collect();
        times.windows(2).map(|pair| pair[1].duration_since(pair[0])).min()
    }

    /// Says what all that amounts to.
    fn report(&self, load: &mut DeviceLoad, closing: Option<&Closing>, session: &Session) {
        self.add_silence(load);
        let (Some(first), Some(last)) = (&self.first, &self.last) else { return };
        if restarted(load, first, last) {
            return;
        }
        // What a device averages counts only if asked for at the end.
        if last.ticks.is_some() {
            let averages = closing.map(|closing| closing.averages.clone()).unwrap_or_default();
            add_cpu(load, true, self.span(), &averages);
        } else if let Some(closing) = closing {
            add_cpu(load, false, None, &closing.averages);
        }
        if let (true, [_, only]) = (load.cpu.is_some(), self.renewals.as_slice()) {
            load.notes.push(format!(
                "the device renewed its CPU counters only once within the window, {} before its end: the figure \
                 holds what came before the window and lacks that end; use longer trials",
                Nanos::from(last.at - only.at)
            ));
        }
        let (Some(before), Some(closing)) = (&self.interfaces, closing) else { return };
        add_interfaces(load, before, &closing.interfaces, session.columns());
        if !closing.renewed && !load.interfaces.is_empty() {
            load.notes.push(
                "the interface counters may lack the window's end: the device was not seen to renew them after it"
                    .into(),
            );
        }
    }

    fn add_silence(&self, load: &mut DeviceLoad) {
        if let Some(error) = &self.error {
            load.notes.push(format!(
                "the device left {} of {} questions unanswered; the last: {error}",
                self.failed, self.asked
            ));
        }
    }
}

impl Watcher {
    /// Reaches the device, as [`Session::open`].
    pub async fn open(target: &Target) -> Result<Self, SnmpError> {
        Ok(Self::new(Session::open(target).await?))
    }

    /// A watcher over an open session.
    pub fn new(session: Session) -> Self {
        let device = session.device().clone();
        Self { session: Arc::new(Mutex::new(session)), device, settle: SETTLE, renewal: None, watch: None }
    }

    /// How long [`Watcher::stop`] may wait for an interface table that was surely made after the trial; 4 s unless
    /// told, which suits net-snmp. Zero takes what the device has.
    pub fn settle(mut self, settle: Duration) -> Self {
        self.settle = settle;
        self
    }

    /// Returns the device's description of itself.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Asks until the device has renewed its CPU counters often enough to know how often it does, or `timeout` is
    /// over. None if they were not seen to move. Trials teach it as well.
    pub async fn learn_renewal(&mut self, timeout: Duration) -> Option<Duration> {
        let started = Instant::now();
        let mut log = Log::default();
        while log.renewal().is_none() && started.elapsed() < timeout {
            log.add(self.session.lock().await.cpu().await);
            sleep(POLL).await;
        }
        self.renewal = shorter(self.renewal, log.renewal());
        self.renewal
    }

    /// The shortest trial whose CPU figure surely lies within it: two renewals. None while their spacing is unknown.
    pub fn shortest_window(&self) -> Option<Nanos> {
        self.renewal.map(|renewal| Nanos::from((renewal + POLL) * 2))
    }

    /// Begins the window, once the device has answered or was given up. A window still open is dropped.
    pub async fn start(&mut self) {
        self.watch = None;
        let mut log = Log::default();
        let mut session = self.session.lock().await;
        log.interfaces = log.answered(session.interfaces().await);
        if log.failed == 0 {
            log.add(session.cpu().await);
        }
        drop(session);
        let (stop, stopped) = oneshot::channel();
        let polls = tokio::spawn(follow(Arc::clone(&self.session), log, stopped));
        self.watch = Some(Watch { started: Instant::now(), stop: Some(stop), polls });
    }

    /// Ends the window as [`Watcher::stop`], but takes the interface table as the device has it: for short trials, of
    /// which a wait after each would make a long test.
    pub async fn stop_at_once(&mut self) -> DeviceLoad {
        let settle = std::mem::take(&mut self.settle);
        let load = self.stop().await;
        self.settle = settle;
        load
    }

    /// Ends the window and says what the device counted. May take as long as [`Watcher::settle`] says, and where the
    /// device is silent as long as its questions wait.
    pub async fn stop(&mut self) -> DeviceLoad {
        let mut load = DeviceLoad { source: "snmp".into(), ..DeviceLoad::default() };
        let Some(mut watch) = self.watch.take() else {
            load.notes.push("the device was not watched".into());
            return load;
        };
        load.window = Nanos::from(watch.started.elapsed());
        let Some(mut log) = watch.log().await else {
            load.notes.push("the questions to the device were cut off".into());
            return load;
        };
        let mut session = self.session.lock().await;
        let failed = log.failed;
        log.add(session.cpu().await);
        self.renewal = shorter(self.renewal, log.renewal());
        // A device that is silent now would keep each further question waiting.
        let closing = if log.failed == failed { self.closing(&mut session, &mut log).await } else { None };
        log.report(&mut load, closing.as_ref(), &session);
        load
    }

    /// The averages and the interfaces after the window.
    async fn closing(&self, session: &mut Session, log: &mut Log) -> Option<Closing> {
        let averages = log.answered(session.averages().await)?;
        let at_stop = log.answered(session.interfaces().await)?;
        let mut closing = Closing { averages, interfaces: at_stop.clone(), renewed: false };
        let stopped = Instant::now();
        while stopped.elapsed() < self.settle && !closing.renewed && !closing.interfaces.is_empty() {
            sleep(SETTLE_POLL).await;
            closing.interfaces = log.answered(session.interfaces().await)?;
            closing.renewed = closing.interfaces.differs_from(&at_stop);
        }
        if closing.renewed {
            // Each column is a question of its own, and the device may have renewed the table between two of them.
            match log.answered(session.interfaces().await) {
                Some(again) => closing.interfaces = again,
                // Some columns may be older, which the note on the end of the window tells.
                None => closing.renewed = false,
            }
        }
        Some(closing)
    }
}

/// Readings after a window.
struct Closing {
    averages: Averages,
    interfaces: Interfaces,
    /// The table was seen to be made after the window.
    renewed: bool,
}

impl Watch {
    /// Ends the polls. None if their runtime has.
    async fn log(&mut self) -> Option<Log> {
        // If nobody listens any more, the polls have ended by themselves.
        let _ = self.stop.take().map(|stop| stop.send(()));
        (&mut self.polls).await.ok()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.polls.abort();
    }
}

/// Asks for the CPU counters until told to stop. A question under way is dropped, which its session bears.
async fn follow(session: Arc<Mutex<Session>>, mut log: Log, mut stopped: oneshot::Receiver<()>) -> Log {
    loop {
        let reading = async {
            sleep(POLL).await;
            session.lock().await.cpu().await
        };
        tokio::select! {
            _ = &mut stopped => return log,
            result = reading => log.add(result),
        }
    }
}

fn shorter(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    one.into_iter().chain(other).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snmp::cpu::Ticks;

    /// A device that renews its counters every `renewal` half seconds, asked `polls` times.
    fn log(renewal: u32, polls: u32) -> Log {
        let started = Instant::now();
        let mut log = Log::default();
        for poll in 0..polls {
            let idle = 1000 + 50 * (poll / renewal) * renewal;
            log.add(Ok(CpuReading {
                at: started + POLL * poll,
                uptime: Some(i64::from(poll) * 50),
                ticks: Ticks::new([Some(7), None, None, Some(idle), None, None, None, None, None]),
            }));
        }
        log
    }

    fn span(log: &Log) -> Option<Duration> {
        log.span().map(|(before, after)| after.at - before.at)
    }

    #[test]
    fn the_load_lies_between_renewals_within_the_trial() {
        let long = log(10, 60);
        assert_eq!(span(&long), Some(Duration::from_secs(20)));
        assert_eq!(long.renewal(), Some(Duration::from_secs(5)));
        let first = long.span().expect("a span").0;
        assert!(first.at > long.renewals[0].at, "what was there at the start may be older than the trial");
    }

    #[test]
    fn one_renewal_is_better_than_none() {
        assert_eq!(span(&log(10, 15)), Some(Duration::from_secs(5)));
        assert_eq!(log(10, 15).renewal(), None);
        assert_eq!(span(&log(10, 9)), None);
    }

    #[test]
    fn a_silent_device_is_a_note() {
        let mut log = log(10, 5);
        let address = "192.0.2.1:161".parse().expect("an address");
        log.add(Err(SnmpError::Closed { address }));
        assert_eq!((log.asked, log.failed), (6, 1));
        let mut load = DeviceLoad::default();
        log.add_silence(&mut load);
        assert!(load.notes[0].contains("1 of 6") && load.notes[0].contains("192.0.2.1:161"), "{load:?}");
    }
}
