//! What is to be doubted of the device's own account of its load.

use linerate_model::{Caveat, CaveatKind, DeviceLoad, FramesRun, Message, message};

/// The doubts about the load of one trial. A device that was not asked leaves none.
pub(crate) fn doubts(load: Option<&DeviceLoad>) -> Vec<Caveat> {
    let Some(load) = load else { return Vec::new() };
    let doubt = |text: Message| Caveat::new(CaveatKind::DeviceLoad, text);
    let mut doubts: Vec<Caveat> = load
        .notes
        .iter()
        .map(|note| doubt(message!("caveat-device-note", "the device's own load: {note}", note)))
        .collect();
    if load.cpu.is_none() {
        doubts.push(doubt(message!(
            "caveat-device-cpu-unknown",
            "the device's CPU use in the deciding trial is unknown: many devices update that figure only every \
                 5 s; give --time 10s or longer"
        )));
    }
    doubts
}

/// Adds the caveats of a trial and of the device's load in it, each once.
pub(crate) fn add_caveats(caveats: &mut Vec<Caveat>, run: &FramesRun<'_>) {
    for caveat in run.result.caveats.iter().cloned().chain(doubts(run.result.device_load.as_ref())) {
        if !caveats.contains(&caveat) {
            caveats.push(caveat);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_without_a_figure_says_what_to_do() {
        assert_eq!(doubts(None), []);
        let known = DeviceLoad { cpu: Some(0.4), ..DeviceLoad::default() };
        assert_eq!(doubts(Some(&known)), []);
        let unknown = DeviceLoad { notes: vec!["it left a question unanswered".to_owned()], ..DeviceLoad::default() };
        let said = doubts(Some(&unknown));
        assert!(said[0].text.contains("unanswered") && said[1].text.contains("--time 10s"), "{said:?}");
    }
}
