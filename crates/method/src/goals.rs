//! The method of each goal.

use crate::contract::Method;
use crate::curve::Curve;
use crate::device::Device;
use crate::ladder::Climb;
use crate::sweep::Sweep;
use linerate_model::{Goal, Host, Plan};

/// Returns the method that measures `plan` between `hosts`, at its start.
pub fn of(plan: &Plan, hosts: &[Host]) -> Box<dyn Method> {
    match &plan.goal {
        Goal::Sweep(_) => Box::new(Sweep::new(plan, hosts)),
        Goal::Curve(curve) => Box::new(Curve::new(plan, curve, hosts)),
        Goal::Device(device) => Box::new(Device::new(device, &plan.calibrated)),
        Goal::Ladder(ladder) => Box::new(Climb::new(plan, ladder, hosts)),
    }
}
