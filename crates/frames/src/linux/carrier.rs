//! Watch over the links of the ports while a trial runs.
//!
//! Frames lost on a dead link are not a loss of the device: such a trial fails, and names the port.

use crate::linux::plan::Plan;
use linerate_sys::interface::Link;
use linerate_sys::netlink::Route;
use std::cell::RefCell;

/// Links of the ports of a trial.
pub(crate) struct Carrier {
    state: RefCell<State>,
}

struct State {
    route: Route,
    ports: Vec<(u32, String)>,
    /// Carrier changes of each port at the first check, which is after the start: attaching a program may take the
    /// carrier away for a while.
    changes: Vec<Option<u32>>,
    lost: Option<String>,
}

impl Carrier {
    pub(crate) fn of(plan: &Plan) -> Result<Self, linerate_sys::Error> {
        let ports: Vec<_> = plan.ports.iter().map(|port| (port.link, port.interface.clone())).collect();
        let changes = vec![None; ports.len()];
        Ok(Self { state: RefCell::new(State { route: Route::open()?, ports, changes, lost: None }) })
    }

    /// Checks the links. Returns the port that lost its link, now or before.
    pub(crate) fn look(&self) -> Option<String> {
        let state = &mut *self.state.borrow_mut();
        if state.lost.is_none()
            && let Ok(links) = state.route.links()
        {
            state.note(&links);
        }
        state.lost.clone()
    }

    /// Returns the port that lost its link, if any.
    pub(crate) fn lost(self) -> Option<String> {
        self.state.into_inner().lost
    }
}

impl State {
    fn note(&mut self, links: &[Link]) {
        for ((index, name), changes) in self.ports.iter().zip(&mut self.changes) {
            let steady = links
                .iter()
                .find(|link| link.index == *index)
                .is_some_and(|link| link.up && *changes.get_or_insert(link.carrier_changes) == link.carrier_changes);
            if !steady {
                self.lost = Some(name.clone());
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_that_was_down_meanwhile_is_lost() {
        let fine = [link(1, true, 2), link(2, true, 7)];
        assert_eq!(lost_after(&[fine.clone(), fine.clone()]), None);
        assert_eq!(lost_after(&[fine.clone(), [link(1, true, 2), link(2, false, 8)]]), Some("p1".to_owned()));
        assert_eq!(lost_after(&[fine.clone(), [link(1, true, 4), link(2, true, 7)]]), Some("p0".to_owned()));
        assert_eq!(lost_after(&[fine, [link(3, true, 2), link(2, true, 7)]]), Some("p0".to_owned()));
    }

    fn link(index: u32, up: bool, carrier_changes: u32) -> Link {
        Link { index, up, carrier_changes, ..Link::default() }
    }

    /// Returns the lost port of two ports after these readings of their links.
    fn lost_after(readings: &[[Link; 2]]) -> Option<String> {
        let mut state = State {
            route: Route::open().expect("a netlink socket needs no privilege"),
            ports: vec![(1, "p0".to_owned()), (2, "p1".to_owned())],
            changes: vec![None; 2],
            lost: None,
        };
        readings.iter().for_each(|links| state.note(links));
        state.lost
    }
}
