//! An engine that goes through all stages, and panics, fails or waits where a test says.

use linerate_engine::{
    Conductor, Counted, Demand, Engine, EngineError, EngineFailure, FailedBy, Meters, Needs, Stopped, Timeline, Work,
};
use linerate_model::{Assignment, EndCounts, FlowCounts, LinkId, Meter, Preparation, Ready, RoleCounts, Task, Window};
use linerate_sys::clock;
use linerate_units::{BitRate, Nanos};
use std::sync::{Arc, Condvar, Mutex};

/// Where a script may have something happen: after each of the conductor's calls has returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Point {
    Preparing,
    Connecting,
    Starting,
    Running,
    Draining,
}

impl Point {
    pub(super) const ALL: [Self; 5] =
        [Self::Preparing, Self::Connecting, Self::Starting, Self::Running, Self::Draining];
}

/// What happens there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    Panic,
    Fail,
    /// A thread of the engine's own stops it for a reason.
    StopItself,
    /// It waits until it is stopped.
    Hold,
    /// It waits until the test lets it go, whatever else happens.
    Ignore,
}

/// How long it is at work without a window, nanoseconds.
const WITHOUT_WINDOW: u64 = 1_000_000_000;

/// An engine that does what its script says. Clones share the script.
#[derive(Clone)]
pub(super) struct Scripted(Arc<Shared>);

struct Shared {
    script: Mutex<Script>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Sessions in `run`.
    under_way: usize,
    /// Of them, those that ignore everything now.
    ignoring: usize,
    /// These may go.
    let_go: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Script {
    pub(super) fault: Option<(Point, Fault)>,
    pub(super) demand: Demand,
    /// What it leaves behind, however it ends.
    pub(super) remains: Vec<String>,
    /// Its warm-up and window; none is at work for a fifth of a second, and measured all the while.
    pub(super) window: Option<Window>,
    /// It gives way to another engine, which begins anew with the same times.
    pub(super) gives_way: bool,
    /// Links that it says it listens on.
    pub(super) listens: Vec<LinkId>,
}

impl Scripted {
    pub(super) fn new() -> Self {
        let demand = Demand {
            sends: Some(BitRate::per_second(8_000_000)),
            receives: Some(BitRate::per_second(0)),
            time: Some(Nanos::from_millis(100)),
            flows: 1,
            needs: Needs::default(),
            exclusive: None,
            set_up: Nanos::default(),
        };
        let window = Window { measure: Nanos::from_millis(20), ..Window::default() };
        let script = Script {
            fault: None,
            demand,
            remains: Vec::new(),
            window: Some(window),
            gives_way: false,
            listens: Vec::new(),
        };
        Self(Arc::new(Shared { script: Mutex::new(script), state: Mutex::default(), changed: Condvar::new() }))
    }

    pub(super) fn with(fault: (Point, Fault)) -> Self {
        let engine = Self::new();
        engine.change(|script| script.fault = Some(fault));
        engine
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Script)) {
        change(&mut self.0.script.lock().expect("no panic"));
    }

    pub(super) fn boxed(&self) -> Vec<Box<dyn Engine>> {
        vec![Box::new(self.clone())]
    }

    /// Sessions that its `run` has not returned from.
    pub(super) fn under_way(&self) -> usize {
        self.0.state.lock().expect("no panic").under_way
    }

    /// Of them, those that ignore everything now.
    pub(super) fn ignoring(&self) -> usize {
        self.0.state.lock().expect("no panic").ignoring
    }

    /// Lets those go that ignore everything.
    pub(super) fn let_go(&self) {
        self.0.state.lock().expect("no panic").let_go = true;
        self.0.changed.notify_all();
    }

    fn script(&self) -> Script {
        self.0.script.lock().expect("no panic").clone()
    }

    fn at(&self, point: Point, host: &dyn Conductor) -> Result<(), FailedBy> {
        let Some((_, fault)) = self.script().fault.filter(|(at, _)| *at == point) else { return Ok(()) };
        match fault {
            Fault::Panic => panic!("as the script says"),
            Fault::Fail => Err(EngineError::new(format!("failed while {point:?}")).into()),
            Fault::StopItself => {
                host.stop().set(format!("a thread failed while {point:?}"));
                Err(Stopped.into())
            }
            Fault::Hold => {
                host.stop().sleep_until(u64::MAX);
                Err(Stopped.into())
            }
            Fault::Ignore => {
                let mut state = self.0.state.lock().expect("no panic");
                state.ignoring += 1;
                let mut state = self.0.changed.wait_while(state, |state| !state.let_go).expect("no panic");
                state.ignoring -= 1;
                Err(Stopped.into())
            }
        }
    }

    fn work(&self, script: &Script, host: &dyn Conductor) -> Result<u64, FailedBy> {
        host.preparing(Preparation::MakingFiles);
        self.at(Point::Preparing, host)?;
        let address = ([127, 0, 0, 1], 7).into();
        host.listening(script.listens.iter().map(|link| (*link, address)).collect())?;
        self.at(Point::Connecting, host)?;
        let start = host.ready(Ready { lead: Nanos::from_millis(1), files: 0, bytes: 0 })?;
        assert_eq!(host.ready(Ready::default()), Ok(start), "asked again, it gives the same answer");
        self.at(Point::Starting, host)?;
        let timeline = script.window.map(|window| Timeline::new(start, window));
        let work = || Work {
            start,
            window: timeline.clone(),
            threads: Vec::new(),
            disks: Vec::new(),
            meters: Arc::new(Elapsed(start)),
        };
        host.runs(work());
        if script.gives_way {
            host.runs(work());
        }
        self.at(Point::Running, host)?;
        let closes = || timeline.as_ref().map_or(start + WITHOUT_WINDOW, Timeline::close);
        // While it is not known when the window opens, that is looked for.
        while clock::now() < closes() {
            if !host.stop().sleep_until(closes().min(clock::now() + 1_000_000)) {
                return Err(Stopped.into());
            }
        }
        host.sent()?;
        self.at(Point::Draining, host)?;
        Ok(start)
    }
}

/// Meters that count milliseconds.
struct Elapsed(u64);

impl Meters for Elapsed {
    fn read(&self) -> Meter {
        Meter { operations: clock::now().saturating_sub(self.0) / 1_000_000, ..Meter::default() }
    }
}

/// Counts a session as under way until it is dropped, panics included.
struct UnderWay<'a>(&'a Shared);

impl<'a> UnderWay<'a> {
    fn new(shared: &'a Shared) -> Self {
        shared.state.lock().expect("no panic").under_way += 1;
        Self(shared)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.state.lock().expect("no panic").under_way -= 1;
        self.0.changed.notify_all();
    }
}

impl Engine for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn takes(&self, _: &Task) -> bool {
        true
    }

    fn demand(&self, _: &Assignment) -> Result<Demand, EngineError> {
        Ok(self.script().demand)
    }

    fn run(&self, assignment: &Assignment, host: &dyn Conductor) -> Result<Counted, EngineFailure> {
        let _under_way = UnderWay::new(&self.0);
        let script = self.script();
        match self.work(&script, host) {
            Ok(start) => {
                let flow = FlowCounts { sent_bytes: 1_000, received_bytes: 10, tcp: None };
                let end = EndCounts { flows: vec![flow], ..EndCounts::default() };
                Ok(Counted {
                    roles: assignment.roles.iter().map(|_| RoleCounts::Flows(Box::new(end.clone()))).collect(),
                    started_unix_ns: start,
                    caveats: Vec::new(),
                    remains: script.remains,
                })
            }
            Err(error) => Err(EngineFailure { error, remains: script.remains }),
        }
    }
}
