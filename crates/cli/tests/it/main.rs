//! Tests of the crate from outside.

mod amplification;
mod calibration;
mod compare;
mod confined;
mod copy;
mod copy_nfs;
mod copy_smb;
mod device;
mod device_hosts;
mod device_load;
#[cfg(feature = "snmp")]
mod device_snmp;
mod discovery;
mod faults;
mod firewall;
mod frames;
mod hosts;
mod iperf3;
mod ladder;
mod limits;
mod live;
mod loaded_latency;
mod many_flows;
mod nfs;
mod nfs_server;
mod outage;
mod path;
mod program;
mod reach;
mod record;
mod resume;
mod rpc;
mod saved_hosts;
mod service_unit;
mod slow_disk;
mod slow_links;
mod stamp;
mod study;
mod study_run;
mod truth;
#[cfg(feature = "tui")]
mod tui;
mod verdicts;
mod view;
mod volume;
