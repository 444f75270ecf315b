//! Sessions in one process, for tests of engines. They do what runner and agents do for the hosts of a load.

pub mod one_path;

use crate::{Conductor, Counted, Engine, EngineFailure, ListenOptions, Stop, Stopped, Timeline, Work};
use linerate_model::{
    Assignment, Endpoints, Meter, Preparation, Readings, Ready, Role, Sampling, SessionId, SessionKey, Task, Timing,
};
use linerate_sys::clock;
use linerate_sys::thread::EngineThread;
use std::cell::RefCell;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

/// Returns the assignment of one host of a load, with the default sampling.
pub fn assignment(task: Task, timing: Timing, roles: Vec<Role>) -> Assignment {
    Assignment {
        id: SessionId("test".into()),
        key: SessionKey([5; 16]),
        task,
        timing,
        roles,
        password: None,
        sampling: Sampling::default(),
    }
}

/// Stages of a session, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reached {
    /// Creates what it needs.
    Preparing,
    /// Listens on its links.
    Listening,
    /// Waits for the start.
    Ready,
    /// Carries load.
    Running,
    /// Has sent everything.
    Sent,
    /// The engine has returned.
    Ended,
}

/// One host's session of a load with all hosts in this process. It controls its engine.
pub struct Session {
    assignment: Assignment,
    /// Index among the sessions of the load.
    index: usize,
    load: Arc<Load>,
    stop: Arc<Stop>,
    rate_limited: bool,
    listen_options: ListenOptions,
}

/// State that the sessions of a load share.
struct Load {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    sessions: Vec<Progress>,
    endpoints: Endpoints,
    /// Last barrier that all have reached. A session that wakes late passes it in any case.
    passed: Reached,
    /// Time at which all begin.
    start: Option<u64>,
    /// Whether a session ended before the start. Then nobody passes a barrier any more.
    broken: bool,
}

struct Progress {
    reached: Reached,
    ready: Ready,
    work: Option<Work>,
    stop: Arc<Stop>,
}

thread_local! {
/// Loads of this thread's sessions.
    static LOADS: RefCell<Vec<Weak<Load>>> = const { RefCell::new(Vec::new()) };
}

/// Does what [`thread::scope`] does. If `work` panics, the sessions that this thread has made are stopped, so that
/// their threads end and the test reports the panic.
pub fn scope<'env, T>(work: impl for<'scope> FnOnce(&'scope thread::Scope<'scope, 'env>) -> T) -> T {
    struct StopsOnPanic;
    impl Drop for StopsOnPanic {
        fn drop(&mut self) {
            if thread::panicking() {
                LOADS.take().iter().filter_map(Weak::upgrade).for_each(|load| load.stop("the test has failed"));
            }
        }
    }
    thread::scope(|scope| {
        let _stops = StopsOnPanic;
        work(scope)
    })
}

/// Makes a session for each assignment of one load. All pass each barrier together. A session that fails before the
/// start stops the others. The others do not wait for a session that ends later.
pub fn sessions(assignments: impl IntoIterator<Item = Assignment>) -> Vec<Session> {
    let state = State {
        sessions: Vec::new(),
        endpoints: Endpoints::new(),
        passed: Reached::Preparing,
        start: None,
        broken: false,
    };
    let load = Arc::new(Load { state: Mutex::new(state), changed: Condvar::new() });
    LOADS.with_borrow_mut(|loads| loads.push(Arc::downgrade(&load)));
    assignments.into_iter().enumerate().map(|(index, assignment)| session(&load, index, assignment)).collect()
}

fn session(load: &Arc<Load>, index: usize, assignment: Assignment) -> Session {
    let stop = Arc::<Stop>::default();
    let progress =
        Progress { reached: Reached::Preparing, ready: Ready::default(), work: None, stop: Arc::clone(&stop) };
    load.state().sessions.push(progress);
    // Wakes the session if it waits for the others.
    let waiting = Arc::clone(load);
    stop.on_stop(move || {
        let _state = waiting.state();
        waiting.changed.notify_all();
    });
    Session {
        assignment,
        index,
        load: Arc::clone(load),
        stop,
        rate_limited: false,
        listen_options: ListenOptions::default(),
    }
}

/// Runs the sessions of one load concurrently. Returns their results, in the order of `assignments`.
///
/// # Panics
/// The engine panicked.
pub fn run(
    engine: &dyn Engine,
    assignments: impl IntoIterator<Item = Assignment>,
) -> Vec<Result<Counted, EngineFailure>> {
    let sessions = sessions(assignments);
    thread::scope(|scope| {
        let threads: Vec<_> = sessions.iter().map(|session| scope.spawn(|| session.run(engine))).collect();
        let results =
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        results.collect()
    })
}

impl Session {
    /// Limits the rate of the session's host.
    pub fn rate_limited(self) -> Self {
        Self { rate_limited: true, ..self }
    }

    /// Makes the session's host listen with these options.
    pub fn listening_with(self, listen_options: ListenOptions) -> Self {
        Self { listen_options, ..self }
    }

    /// Runs `engine` on this thread until it returns.
    ///
    /// # Errors
    /// The engine failed.
    pub fn run(&self, engine: &dyn Engine) -> Result<Counted, EngineFailure> {
        /// Notes the end, also if the engine panics.
        struct Ending<'a>(&'a Session);
        impl Drop for Ending<'_> {
            fn drop(&mut self) {
                self.0.end();
            }
        }
        let _ending = Ending(self);
        engine.run(&self.assignment, self)
    }

    /// Stops the session, as an agent does when its runner disappears.
    pub fn stop(&self, reason: &str) {
        self.stop.set(reason.to_owned());
    }

    /// Waits until the session has reached `stage`. Returns false if that takes longer than `timeout`.
    pub fn wait_for(&self, stage: Reached, timeout: Duration) -> bool {
        let before = |state: &mut State| state.sessions[self.index].reached < stage;
        let (state, _) = self
            .load
            .changed
            .wait_timeout_while(self.load.state(), timeout, before)
            .unwrap_or_else(PoisonError::into_inner);
        state.sessions[self.index].reached >= stage
    }

    /// Returns the current stage.
    pub fn reached(&self) -> Reached {
        self.load.state().sessions[self.index].reached
    }

    /// Returns what the session reported when it was ready.
    pub fn ready_said(&self) -> Ready {
        self.load.state().sessions[self.index].ready
    }

    /// Returns the work done so far. `None` before the work began.
    pub fn meter(&self) -> Option<Meter> {
        self.load.state().sessions[self.index].work.as_ref().map(|work| work.meters.read())
    }

    /// Returns a sample of everything but the meter. `None` before the work began.
    pub fn readings(&self) -> Option<Readings> {
        let meters = self.load.state().sessions[self.index].work.as_ref().map(|work| Arc::clone(&work.meters))?;
        let mut readings = Readings::default();
        meters.sample(&mut readings);
        Some(readings)
    }

    /// Returns the start of the work. `None` before the session reported it.
    pub fn begins(&self) -> Option<u64> {
        self.load.state().sessions[self.index].work.as_ref().map(|work| work.start)
    }

    /// Returns the measured window. `None` before the work began, or if the work has none.
    pub fn window(&self) -> Option<Timeline> {
        self.load.state().sessions[self.index].work.as_ref().and_then(|work| work.window.clone())
    }

    /// Opens the window at `at` if the warm-up ends when the load is steady, as an agent does on the
    /// runner's order. Returns false if it was open, or if its work has not begun.
    pub fn open_window(&self, at: u64) -> bool {
        self.window().is_some_and(|window| window.set_open(at))
    }

    /// Returns the threads of the work. Empty before it began.
    pub fn threads(&self) -> Vec<EngineThread> {
        let state = self.load.state();
        state.sessions[self.index].work.as_ref().map(|work| work.threads.clone()).unwrap_or_default()
    }

    /// Returns whether all threads have ended. False before the work began.
    pub fn has_ended(&self) -> bool {
        self.load.state().sessions[self.index].work.as_ref().is_some_and(|work| work.meters.has_ended())
    }

    fn end(&self) {
        let mut state = self.load.state();
        state.sessions[self.index].reached = Reached::Ended;
        state.broken |= state.start.is_none();
        let is_broken = state.broken;
        self.load.changed.notify_all();
        drop(state);
        if is_broken {
            self.load.stop("another session ended before the start");
        }
    }

    /// Notes that the session has reached `stage`, and waits until all have.
    fn meet(&self, stage: Reached, note: impl FnOnce(&mut State)) -> Result<MutexGuard<'_, State>, Stopped> {
        let mut state = self.load.state();
        let own = &mut state.sessions[self.index].reached;
        *own = stage.max(*own);
        note(&mut state);
        self.load.changed.notify_all();
        let waits = |state: &mut State| {
            let ends = state.broken || self.stop.is_set();
            if !ends && state.sessions.iter().all(|session| session.reached >= stage) {
                state.passed = stage.max(state.passed);
            }
            !ends && state.passed < stage
        };
        let state = self.load.changed.wait_while(state, waits).unwrap_or_else(PoisonError::into_inner);
        if state.passed < stage { Err(Stopped) } else { Ok(state) }
    }
}

impl Conductor for Session {
    fn is_rate_limited(&self) -> bool {
        self.rate_limited
    }

    fn preparing(&self, _doing: Preparation) {}

    fn listening(&self, here: Endpoints) -> Result<Endpoints, Stopped> {
        let state = self.meet(Reached::Listening, |state| state.endpoints.extend(here))?;
        let known = self.assignment.connects().filter_map(|link| Some((link, *state.endpoints.get(&link)?)));
        Ok(known.collect())
    }

    fn ready(&self, ready: Ready) -> Result<u64, Stopped> {
        let mut state = self.meet(Reached::Ready, |state| state.sessions[self.index].ready = ready)?;
        let lead = state.sessions.iter().map(|session| session.ready.lead.get()).max().unwrap_or_default();
        Ok(*state.start.get_or_insert_with(|| clock::now() + lead))
    }

    fn runs(&self, work: Work) {
        let mut state = self.load.state();
        let own = &mut state.sessions[self.index];
        own.reached = own.reached.max(Reached::Running);
        own.work = Some(work);
        self.load.changed.notify_all();
    }

    fn listen_options(&self) -> ListenOptions {
        self.listen_options.clone()
    }

    fn sent(&self) -> Result<(), Stopped> {
        self.meet(Reached::Sent, |_| ()).map(drop)
    }

    fn stop(&self) -> &Arc<Stop> {
        &self.stop
    }
}

impl Load {
    fn stop(&self, reason: &str) {
        // The lock is free while the sessions stop: whatever they wake takes it.
        let stops: Vec<_> = self.state().sessions.iter().map(|session| Arc::clone(&session.stop)).collect();
        stops.iter().for_each(|stop| stop.set(reason.to_owned()));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Demand, EngineError, Meters, Needs};
    use linerate_model::{
        FrameEngine, FrameReceiver, FramesTask, LinkId, Listen, Role, RoleKind, SessionId, SessionKey, Task, Timing,
    };
    use linerate_units::Nanos;
    use std::net::{IpAddr, Ipv4Addr, SocketAddr};

    /// Passes all barriers, or fails if the session is called so.
    struct Walker;

    struct NoMeters;

    impl Meters for NoMeters {
        fn read(&self) -> Meter {
            Meter::default()
        }
    }

    const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    impl Engine for Walker {
        fn name(&self) -> &'static str {
            "walks"
        }

        fn takes(&self, _: &Task) -> bool {
            true
        }

        fn demand(&self, _: &Assignment) -> Result<Demand, EngineError> {
            Ok(Demand {
                sends: None,
                receives: None,
                time: None,
                flows: 0,
                needs: Needs::default(),
                exclusive: None,
                set_up: Nanos::default(),
            })
        }

        fn run(&self, assignment: &Assignment, host: &dyn Conductor) -> Result<Counted, EngineFailure> {
            if assignment.id.0 == "fails" {
                return Err(EngineError::new("planted").into());
            }
            let here = assignment.listens().map(|listen| (listen.link, SocketAddr::new(listen.address, listen.link.0)));
            let there = host.listening(here.collect())?;
            assert_eq!(there.keys().copied().collect::<Vec<_>>(), assignment.connects().collect::<Vec<_>>());
            let start = host.ready(Ready { lead: Nanos::from_millis(10), ..Ready::default() })?;
            assert_eq!(host.ready(Ready::default())?, start, "asked again, it is the same");
            assert!(host.stop().sleep_until(start));
            host.runs(Work { start, window: None, threads: Vec::new(), disks: Vec::new(), meters: Arc::new(NoMeters) });
            host.sent()?;
            Ok(Counted { roles: Vec::new(), started_unix_ns: start, caveats: Vec::new(), remains: Vec::new() })
        }
    }

    fn assignment(id: &str, listens: &[u16], connects: &[u16]) -> Assignment {
        let listen = |link: &u16| Listen { link: LinkId(*link), address: ADDRESS, folder: None };
        let task = FramesTask {
            home: "a".into(),
            ports: Vec::new(),
            streams: Vec::new(),
            time: Nanos::default(),
            settle: Nanos::default(),
            engine: FrameEngine::Auto,
            receiver: FrameReceiver::Port,
            line: None,
            hosts: Vec::new(),
        };
        Assignment {
            id: SessionId(id.to_owned()),
            key: SessionKey([0; 16]),
            task: Task::Frames(task),
            timing: Timing::UntilDone,
            roles: vec![Role {
                kind: RoleKind::Source,
                listens: listens.iter().map(listen).collect(),
                connects: connects.iter().copied().map(LinkId).collect(),
            }],
            password: None,
            sampling: linerate_model::Sampling::default(),
        }
    }

    #[test]
    fn all_pass_each_barrier_together() {
        let assignments = [("a", &[1, 2][..], &[][..]), ("b", &[], &[1]), ("c", &[], &[2])];
        let counted = run(&Walker, assignments.map(|(id, listens, connects)| assignment(id, listens, connects)));
        let starts: Vec<_> = counted.into_iter().map(|counted| counted.expect("it walks").started_unix_ns).collect();
        assert!(starts.len() == 3 && starts.iter().all(|start| *start == starts[0]), "{starts:?}");
    }

    #[test]
    fn one_that_fails_before_the_start_stops_the_others() {
        let mut ended = run(&Walker, ["walks", "fails"].map(|id| assignment(id, &[], &[])));
        assert_eq!(ended.pop().and_then(Result::err).expect("it fails").to_string(), "planted");
        assert_eq!(ended.pop().and_then(Result::err).expect("stopped").to_string(), Stopped.to_string());
    }

    #[test]
    fn a_stop_ends_the_waiting() {
        let sessions = sessions(["a", "b"].map(|id| assignment(id, &[], &[])));
        let ended = scope(|scope| {
            let running = scope.spawn(|| sessions[0].run(&Walker));
            assert!(sessions[0].wait_for(Reached::Listening, Duration::from_secs(60)));
            assert_eq!((sessions[0].reached(), sessions[0].meter()), (Reached::Listening, None));
            sessions[0].stop("enough");
            running.join().expect("no panic")
        });
        assert_eq!(ended.expect_err("stopped").to_string(), Stopped.to_string());
    }

    /// The other session may fail as soon as both have passed, before this one wakes.
    #[test]
    fn one_that_is_woken_late_passes_a_barrier_that_all_have_come_to() {
        let [late, other] = sessions(["a", "b"].map(|id| assignment(id, &[], &[]))).try_into().ok().expect("two");
        scope(|scope| {
            let listening = scope.spawn(|| late.listening(Endpoints::new()));
            assert!(late.wait_for(Reached::Listening, Duration::from_secs(60)));
            // It is not woken before this lets go of the lock.
            other.meet(Reached::Listening, |_| ()).expect("goes on").broken = true;
            assert!(listening.join().expect("no panic").is_ok());
        });
        assert!(other.ready(Ready::default()).is_err(), "the next one is not passed");
    }

    #[test]
    fn a_test_that_fails_stops_its_sessions() {
        let failed = std::panic::catch_unwind(|| {
            let sessions = sessions(["a", "b"].map(|id| assignment(id, &[], &[])));
            scope(|scope| {
                scope.spawn(|| sessions[0].run(&Walker));
                assert!(sessions[0].wait_for(Reached::Ended, Duration::ZERO), "planted");
            });
        });
        assert!(failed.expect_err("it panics").downcast_ref::<&str>().is_some_and(|why| *why == "planted"));
    }
}
