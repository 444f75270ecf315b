//! Commands whose plan is known before a host is reached.

use crate::calibration::CalibrationOption;
use crate::exit::Failure;
use crate::hosts::{HostArguments, HostBook};
use crate::measure::{Beside, RunRequest, conclude, reach};
use crate::options::Results;
use linerate_model::Plan;
use tokio::sync::watch;

/// Runs `plan` between `hosts`, compares results with the tester limits of `calibration`, and shows them.
pub(crate) async fn measure(
    plan: Plan,
    hosts: &HostArguments,
    book: HostBook,
    results: &Results,
    calibration: &CalibrationOption,
    beside: Beside,
    cancel: watch::Receiver<bool>,
) -> Result<(), Failure> {
    let asked = RunRequest::of_plan(results, &plan)?;
    let named = calibration.named(asked.store.as_ref())?;
    let agents = reach(&book, hosts, cancel.clone()).await?;
    let ended = match calibration.limits(named.as_ref(), &plan, &asked, &agents) {
        Ok(calibrated) => asked.run(Plan { calibrated, ..plan }, &agents, beside, cancel).await,
        Err(failure) => Err(failure),
    };
    agents.close().await;
    conclude(&ended?, results)
}
