//! The device's own load is a note beside its trials: whatever becomes of it, the trials are what they are.

use super::fake::{Act, FakeAgents, Step};
use super::{assert_led, execute, plans};
use crate::device_load::ReadCounters;
use crate::{DeviceWatch, Ended, RunError};
use futures_util::future::BoxFuture;
use linerate_control::AgentError;
use linerate_model::{CoreUse, DeviceTest, HostCounters, Record};
use linerate_units::Nanos;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How the device answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answers {
    Well,
    /// Each answer takes so long.
    Late(Duration),
    Never,
    WithErrors,
    /// Its reader has a fault.
    WithPanics,
    /// It was started anew: its counters begin again from zero.
    Backwards,
}

/// A device a quarter of whose core is busy.
struct Reader {
    answers: Answers,
    began: Instant,
}

impl ReadCounters for Reader {
    fn counters(&self) -> BoxFuture<'_, Result<HostCounters, AgentError>> {
        Box::pin(async {
            sleep(Duration::from_millis(1)).await;
            let mut at = Nanos::from(self.began.elapsed());
            match self.answers {
                Answers::Well => {}
                Answers::Late(time) => sleep(time).await,
                Answers::Never => std::future::pending().await,
                Answers::WithErrors => {
                    let message = "its counters are gone".into();
                    return Err(AgentError::Failed { address: "device".into(), message });
                }
                Answers::WithPanics => panic!("the reader has a fault"),
                Answers::Backwards => at = Nanos::new(u64::MAX / 2 - at.get()),
            }
            let busy = Nanos::new(at.get() / 4);
            let core = CoreUse { user: busy, idle: at - busy, ..CoreUse::default() };
            Ok(HostCounters { at, cores: vec![core], ..HostCounters::default() })
        })
    }
}

async fn tested(answers: Answers, agents: &FakeAgents) -> (Ended, Duration) {
    let reader = Reader { answers, began: Instant::now() };
    let device = DeviceWatch::reading(Arc::new(reader), false);
    execute(plans::device(DeviceTest::Throughput), agents, None, Some(device), None, &mut |_| ()).await
}

/// The rate found, frames per second.
fn found(record: &Record) -> f64 {
    record.device().expect("a device test").1.throughput[0].frames_per_s
}

#[tokio::test(start_paused = true)]
async fn a_device_without_a_load_reader_is_tested_without_one() {
    let undisturbed =
        execute(plans::device(DeviceTest::Throughput), &FakeAgents::new(&["a", "b"]), None, None, None, &mut |_| ())
            .await;
    for (answers, note) in [
        (Answers::Well, ""),
        (Answers::Late(Duration::from_secs(3)), "did not answer twice"),
        (Answers::Never, "did not answer twice"),
        (Answers::WithErrors, "its counters are gone"),
        (Answers::WithPanics, "were cut off"),
        (Answers::Backwards, "started anew"),
    ] {
        let agents = FakeAgents::new(&["a", "b"]);
        let (ended, time) = tested(answers, &agents).await;
        assert!(ended.failure.is_none(), "{answers:?}: {:?}", ended.failure);
        assert_led(&agents.attempts());
        assert_eq!(time, undisturbed.1, "{answers:?}: nobody waits for it");
        assert_eq!(found(&ended.record), found(&undisturbed.0.record), "{answers:?}");
        for result in &ended.record.trials {
            let load = result.device_load.as_ref().expect("the device was asked");
            assert_eq!(load.cpu.is_some(), note.is_empty(), "{answers:?}: {load:?}");
            let said = load.notes.iter().any(|said| said.contains(note));
            assert!(note.is_empty() && load.notes.is_empty() || said, "{answers:?}: {:?}", load.notes);
            assert!(load.cpu.is_none_or(|cpu| (cpu - 0.25).abs() < 0.01), "{load:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_ends_at_once_while_the_device_does_not_answer() {
    for act in [Act::Interrupt, Act::Lose] {
        let agents = FakeAgents::new(&["a", "b"])
            .script(move |moment| if moment.attempt == 1 && moment.step == Step::Running { act } else { Act::Pass });
        let (ended, time) = tested(Answers::Never, &agents).await;
        let interrupted = matches!(ended.failure, Some(RunError::Interrupted));
        assert_eq!(interrupted, act == Act::Interrupt, "{:?}", ended.failure);
        assert!(time < Duration::from_secs(1), "{time:?}");
        assert_led(&agents.attempts());
    }
}
