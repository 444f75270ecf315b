//! Commands whose plan is known before a host is reached.

use crate::calibration::CalibrationOption;
use crate::exit::Failure;
use crate::hosts::{HostArguments, HostBook};
use crate::measure::{Beside, RunRequest, TuneOption, conclude, reach};
use crate::options::Results;
use linerate_model::Plan;
use tokio::sync::watch;

/// Runs `plan` between `hosts` with the choices of `tune`, compares results with the tester limits of `calibration`, and shows them.
pub(crate) async fn measure(
    plan: Plan,
    hosts: &HostArguments,
    book: HostBook,
    results: &Results,
    calibration: &CalibrationOption,
    tune: &TuneOption,
    cancel: watch::Receiver<bool>,
) -> Result<(), Failure> {
    let asked = RunRequest::of_plan(results, &plan)?;
    let named = calibration.named(asked.store.as_ref())?;
    let agents = reach(&book, hosts, cancel.clone()).await?;
    let ended = async {
        let plan = tune.apply(plan, false, &asked, &agents, cancel.clone()).await?;
        let calibrated = calibration.limits(named.as_ref(), &plan, &asked, &agents)?;
        asked.run(Plan { calibrated, ..plan }, &agents, Beside::default(), cancel).await
    }
    .await;
    agents.close().await;
    conclude(&ended?, results)
}
