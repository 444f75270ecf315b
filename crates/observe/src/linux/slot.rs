//! The slot of an interface's card, from `/sys/bus/pci/devices` (Documentation/ABI/testing/sysfs-bus-pci).

use linerate_model::{Bus, Slot};
use std::fs;
use std::path::Path;

/// The slot of the card at `address`, as its driver calls it, by the files below `sys`, which is `/sys`; none where that is no card on
/// PCI Express or the system does not tell. Of parallel PCI no file tells width and clock.
pub(crate) fn slot(sys: &Path, address: &str) -> Option<Slot> {
    if address.is_empty() || address.contains('/') {
        return None;
    }
    let device = sys.join("bus/pci/devices").join(address);
    let read = |name: &str| fs::read_to_string(device.join(name)).ok().map(|text| text.trim().to_owned());
    let bus = |which: &str| {
        let transfers = transfers(&read(&format!("{which}_link_speed"))?)?;
        Bus::pcie(transfers, read(&format!("{which}_link_width"))?.parse().ok()?)
    };
    // A machine with one memory says -1.
    let numa_node = read("numa_node").and_then(|node| node.parse().ok());
    Some(Slot { bus: bus("current")?, card: bus("max"), numa_node })
}

/// `8.0 GT/s PCIe` in units of 100 million transfers per second.
fn transfers(text: &str) -> Option<u64> {
    let (giga, tenths) = text.split_once(" GT/s")?.0.split_once('.')?;
    Some(giga.parse::<u64>().ok()? * 10 + tenths.parse::<u64>().ok().filter(|tenths| *tenths < 10)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planted(files: &[(&str, &str)]) -> Option<Slot> {
        let sys = tempfile::tempdir().expect("a folder");
        let device = sys.path().join("bus/pci/devices/0000:03:00.0");
        fs::create_dir_all(&device).expect("made");
        files.iter().for_each(|(name, text)| fs::write(device.join(name), format!("{text}\n")).expect("written"));
        slot(sys.path(), "0000:03:00.0")
    }

    #[test]
    fn a_slot_is_read_from_its_files() {
        let bus = |name: &str| name.parse::<Bus>().expect(name);
        let narrow = [
            ("current_link_speed", "2.5 GT/s PCIe"),
            ("current_link_width", "4"),
            ("max_link_speed", "8.0 GT/s PCIe"),
            ("max_link_width", "8"),
            ("numa_node", "1"),
        ];
        let found = planted(&narrow);
        assert_eq!(found, Some(Slot { bus: bus("pcie-1-x4"), card: Some(bus("pcie-3-x8")), numa_node: Some(1) }));
        let found =
            planted(&[("current_link_speed", "16.0 GT/s PCIe"), ("current_link_width", "16"), ("numa_node", "-1")]);
        assert_eq!(found, Some(Slot { bus: bus("pcie-4-x16"), card: None, numa_node: None }));
    }

    #[test]
    fn what_tells_no_slot_has_none() {
        // A virtual function, and an interface without a card.
        assert_eq!(planted(&[("current_link_speed", "Unknown"), ("current_link_width", "0")]), None);
        assert_eq!(planted(&[]), None);
        // Links that are made, as veth and tun, have no address or one of another kind.
        let sys = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(sys.path().join("bus/pci/devices")).expect("made");
        assert_eq!(["", "tap", "..", "a/b"].map(|address| slot(sys.path(), address)), [None; 4]);
    }
}
