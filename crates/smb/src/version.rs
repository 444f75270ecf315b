//! The versions of SMB.

use std::fmt;

/// Versions of SMB (MS-SMB2 1.7, dialects), earliest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// 2.0.2: Windows Vista, Server 2008.
    V2_0_2,
    /// 2.1: Windows 7, Server 2008 R2.
    V2_1,
    /// 3.0: Windows 8, Server 2012.
    V3_0,
    /// 3.0.2: Windows 8.1, Server 2012 R2.
    V3_0_2,
    /// 3.1.1: Windows 10, Server 2016. The first version that binds the login to the negotiation.
    #[default]
    V3_1_1,
}

impl Version {
    /// Every version, earliest first.
    pub const ALL: [Self; 5] = [Self::V2_0_2, Self::V2_1, Self::V3_0, Self::V3_0_2, Self::V3_1_1];

    /// Its number in messages (MS-SMB2 2.2.3, Dialects).
    pub(crate) fn number(self) -> u16 {
        match self {
            Self::V2_0_2 => 0x0202,
            Self::V2_1 => 0x0210,
            Self::V3_0 => 0x0300,
            Self::V3_0_2 => 0x0302,
            Self::V3_1_1 => 0x0311,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::V2_0_2 => "2.0.2",
            Self::V2_1 => "2.1",
            Self::V3_0 => "3.0",
            Self::V3_0_2 => "3.0.2",
            Self::V3_1_1 => "3.1.1",
        })
    }
}
