//! What a run was made to find out, beside the results of its cells.

use crate::{CopyOutcome, DeviceOutcome, NfsOutcome};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was found; the fields of each kind stand side by side.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Findings {
    /// Of a device.
    #[serde(flatten)]
    pub device: DeviceOutcome,
    /// Of an NFS server; none for other runs.
    #[serde(flatten)]
    pub nfs: Option<NfsOutcome>,
    /// Of a copy; none for other runs.
    #[serde(flatten)]
    pub copy: Option<CopyOutcome>,
}

impl From<DeviceOutcome> for Findings {
    fn from(device: DeviceOutcome) -> Self {
        Self { device, ..Self::default() }
    }
}

impl From<NfsOutcome> for Findings {
    fn from(nfs: NfsOutcome) -> Self {
        Self { nfs: Some(nfs), ..Self::default() }
    }
}

impl From<CopyOutcome> for Findings {
    fn from(copy: CopyOutcome) -> Self {
        Self { copy: Some(copy), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AddressTable;
    use std::collections::BTreeMap;

    /// A reader finds what was found by its own name, whatever else was found; and what was written is read back.
    #[test]
    fn kinds_stand_side_by_side() {
        let nfs = NfsOutcome {
            result: "nfs".into(),
            operations: BTreeMap::from([(crate::NfsOperation::Read, crate::OperationFigures::default())]),
            classes: BTreeMap::from([(crate::NfsClass::Read, crate::OperationFigures::default())]),
            curve: Vec::new(),
            peak: None,
        };
        let addresses = AddressTable {
            frame_bytes: 64,
            learned: 7,
            own: 1,
            capacity: 8,
            flooded_at: None,
            learn_frames_per_s: 1e3,
            learning: None,
            trials: 3,
            verdict: None,
            caveats: Vec::new(),
        };
        let device = DeviceOutcome { addresses: Some(addresses), ..DeviceOutcome::default() };
        let copy = CopyOutcome { files: 3, verified: true, ..CopyOutcome::default() };
        for outcome in [
            Findings::default(),
            Findings::from(nfs.clone()),
            Findings::from(copy.clone()),
            Findings::from(device.clone()),
            Findings { device, nfs: Some(nfs), copy: Some(copy) },
        ] {
            let written = serde_json::to_value(&outcome).expect("plain data");
            assert_eq!(written.get("operations").is_some(), outcome.nfs.is_some());
            assert_eq!(written.get("addresses").is_some(), outcome.device.addresses.is_some());
            assert_eq!(written.get("files_per_s").is_some(), outcome.copy.is_some());
            assert_eq!(serde_json::from_value::<Findings>(written).expect("it was written"), outcome);
        }
    }
}
