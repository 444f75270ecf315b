//! What may happen at each step.

use super::super::fake::{Act, Garbage, REQUEST_TIMEOUT, SILENCE, Step};
use std::fmt;
use std::time::Duration;

/// Something that happens at a step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Event {
    pub(super) step: Step,
    pub(super) act: Act,
    /// It happens in every attempt.
    pub(super) always: bool,
    /// What the host does when it is closed before its end.
    pub(super) on_close: Act,
}

/// What must come of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Consequence {
    /// The run ends as if nothing had happened.
    None,
    /// The trial is run again, where that may be done.
    Repeated,
    /// The trial fails. The session's latest stage was that, where it is known for certain.
    Failed(Option<&'static str>),
    /// The run is interrupted.
    Interrupted,
}

impl Event {
    fn new(step: Step, act: Act) -> Self {
        Self { step, act, always: false, on_close: Act::Pass }
    }

    pub(super) fn consequence(&self) -> Consequence {
        match self.act {
            Act::Pass | Act::Delay(_) => Consequence::None,
            Act::Spoil => Consequence::Repeated,
            Act::Interrupt => Consequence::Interrupted,
            Act::LoseAfter(_) => Consequence::Failed(None),
            Act::Fail | Act::Lose | Act::Silence | Act::WrongStage | Act::ListenAt(_) | Act::Count(_) => {
                Consequence::Failed(stage_before(self.step))
            }
        }
    }
}

/// The stage that a session told last before a step; none where that depends on its task.
fn stage_before(step: Step) -> Option<&'static str> {
    match step {
        Step::Open => Some("opening"),
        Step::Preparing | Step::Listening => Some("preparing"),
        Step::Connect | Step::Ready => Some("listening"),
        Step::Start | Step::Running => Some("ready"),
        Step::Window | Step::Sent => Some("running"),
        Step::Drain => Some("sent"),
        Step::Done | Step::Close => None,
        Step::Counts => Some("done"),
        Step::Check | Step::Clock => unreachable!("it fails no trial"),
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, act, always, on_close } = self;
        write!(f, "{act:?} at {step:?}")?;
        if *always {
            f.write_str(", always")?;
        }
        if *on_close != Act::Pass {
            write!(f, ", then {on_close:?} when it is closed")?;
        }
        Ok(())
    }
}

/// All events.
pub(super) fn all() -> Vec<Event> {
    let second = Duration::from_secs(1);
    let mut events = Vec::new();
    for step in Step::ALL {
        let timeout = if step.is_stage() { SILENCE } else { REQUEST_TIMEOUT };
        let mut acts = vec![Act::Fail, Act::Lose, Act::Silence, Act::Delay(timeout - second), Act::Interrupt];
        if step.is_stage() {
            acts.push(Act::WrongStage);
        }
        // While it waits for an order, or works. Who has sent last is done within a few ms.
        if step.is_stage() && step != Step::Done {
            acts.push(Act::LoseAfter(Duration::ZERO));
            acts.extend((step != Step::Sent).then_some(Act::LoseAfter(Duration::from_millis(5))));
        }
        if step == Step::Counts {
            acts.push(Act::Spoil);
            acts.extend(Garbage::ALL.map(Act::Count));
        }
        events.extend(acts.into_iter().map(|act| Event::new(step, act)));
    }
    events.push(Event { always: true, ..Event::new(Step::Counts, Act::Spoil) });
    for on_close in [Act::Silence, Act::Lose] {
        for (step, act) in [(Step::Preparing, Act::Interrupt), (Step::Running, Act::Fail), (Step::Running, Act::Lose)] {
            events.push(Event { on_close, ..Event::new(step, act) });
        }
    }
    events
}
