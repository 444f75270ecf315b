//! A device that answers, and readings of it.

use super::cpu::{Averages, CpuReading};
use super::error::SnmpError;
use super::interfaces::{Columns, Interfaces};
use super::target::Target;
use super::wire::{Answer, Wire};
use linerate_model::DeviceLoad;
use linerate_units::Nanos;
use std::time::{Duration, Instant};

const SYS_DESCR: [u64; 9] = [1, 3, 6, 1, 2, 1, 1, 1, 0];
const SYS_UP_TIME: [u64; 9] = [1, 3, 6, 1, 2, 1, 1, 3, 0];
const SYS_NAME: [u64; 9] = [1, 3, 6, 1, 2, 1, 1, 5, 0];

/// Sources by name, as in [`DeviceLoad::source`].
const RAW: &str = "snmp UCD raw counters";
const PER_CPU_AVERAGE: &str = "snmp hrProcessorLoad (1-minute average)";
const AVERAGE: &str = "snmp ssCpuIdle (1-minute average)";
const NO_CPU: &str = "snmp";
/// Period of those averages.
const MINUTE: Duration = Duration::from_secs(60);

/// Description that a device gives of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Device {
    /// `sysName`; empty if it does not say.
    pub name: String,
    /// `sysDescr`; empty if it does not say.
    pub description: String,
}

/// A device that answered.
pub struct Session {
    wire: Wire,
    device: Device,
    columns: Columns,
}

impl Session {
    /// Reaches the device and finds out what it has. Each question waits 2 s for its answer and is asked three times.
    pub async fn open(target: &Target) -> Result<Self, SnmpError> {
        let mut wire = Wire::new(target).await?;
        let answers = wire.get(&[SYS_DESCR.to_vec(), SYS_NAME.to_vec(), SYS_UP_TIME.to_vec()]).await?;
        if answers.iter().all(Option::is_none) {
            return Err(SnmpError::Hidden { address: wire.address() });
        }
        let mut texts = answers.into_iter().map(|answer| answer.and_then(Answer::into_text).unwrap_or_default());
        let (description, name) = (texts.next().unwrap_or_default(), texts.next().unwrap_or_default());
        let columns = Columns::find(&mut wire).await?;
        Ok(Self { wire, device: Device { name, description }, columns })
    }

    /// Returns the device's description of itself.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Reads everything once. The device may answer from figures some seconds old: see [`super::Watcher`].
    pub async fn sample(&mut self) -> Result<Reading, SnmpError> {
        Ok(Reading {
            cpu: self.cpu().await?,
            averages: self.averages().await?,
            interfaces: self.interfaces().await?,
            columns: self.columns.clone(),
        })
    }

    pub(super) async fn cpu(&mut self) -> Result<CpuReading, SnmpError> {
        CpuReading::take(&mut self.wire).await
    }

    pub(super) async fn averages(&mut self) -> Result<Averages, SnmpError> {
        Averages::take(&mut self.wire).await
    }

    pub(super) async fn interfaces(&mut self) -> Result<Interfaces, SnmpError> {
        Interfaces::take(&mut self.wire, &self.columns).await
    }

    pub(super) fn columns(&self) -> &Columns {
        &self.columns
    }
}

/// A device's counters at one time.
#[derive(Debug, Clone)]
pub struct Reading {
    cpu: CpuReading,
    averages: Averages,
    interfaces: Interfaces,
    columns: Columns,
}

impl Reading {
    /// Returns the time of the reading.
    pub fn at(&self) -> Instant {
        self.cpu.at
    }

    /// Returns the load between an earlier reading of the same device and this one.
    pub fn load_since(&self, earlier: &Self) -> DeviceLoad {
        let mut load = DeviceLoad {
            window: Nanos::from(self.at().saturating_duration_since(earlier.at())),
            ..DeviceLoad::default()
        };
        if !restarted(&mut load, &earlier.cpu, &self.cpu) {
            add_cpu(&mut load, self.cpu.ticks.is_some(), Some((&earlier.cpu, &self.cpu)), &self.averages);
            add_interfaces(&mut load, &earlier.interfaces, &self.interfaces, &self.columns);
        }
        load
    }
}

/// Returns whether the device started anew between two readings, in which case its counters did too and nothing else
/// can be said.
pub(super) fn restarted(load: &mut DeviceLoad, first: &CpuReading, last: &CpuReading) -> bool {
    let restarted = last.restarted_since(first);
    if restarted {
        load.source = NO_CPU.into();
        load.notes
            .push("the device or its SNMP service started anew within the window: its counters are left out".into());
    }
    restarted
}

/// Adds the CPUs: if the device counts their time, what it counted between two readings; else the averages at the end.
pub(super) fn add_cpu(
    load: &mut DeviceLoad,
    counts: bool,
    span: Option<(&CpuReading, &CpuReading)>,
    averages: &Averages,
) {
    let busiest = averages.busiest();
    if counts {
        load.source = RAW.into();
        if let Some(shares) =
            span.and_then(|(before, after)| after.ticks.zip(before.ticks).and_then(|(now, then)| now.since(&then)))
        {
            load.cpu = Some(shares.busy);
            load.softirq = shares.softirq;
        } else {
            load.notes.push(
                "the device's CPU counters did not move within the window: it renews them every few seconds \
                 (net-snmp: 5 s); use longer trials"
                    .into(),
            );
        }
        if let Some(busiest) = busiest {
            load.notes.push(format!(
                "this device tells single CPUs only as 1-minute averages: the busiest was at {:.0} % in the minute \
                 before the window's end",
                busiest * 100.0
            ));
        }
        return;
    }
    if let Some(busiest) = busiest {
        load.source = PER_CPU_AVERAGE.into();
        load.cpu = Some(averages.per_cpu.iter().sum::<f64>() / averages.per_cpu.len() as f64);
        load.busiest_cpu = Some(busiest);
        load.per_cpu = averages.per_cpu.clone();
    } else if let Some(average) = averages.all {
        load.source = AVERAGE.into();
        load.cpu = Some(average);
    } else {
        load.source = NO_CPU.into();
        load.notes.push(
            "the device shows no CPU figures: neither UCD-SNMP-MIB systemStats nor HOST-RESOURCES-MIB \
             hrProcessorLoad (a net-snmp that started just now has none yet)"
                .into(),
        );
    }
    if load.cpu.is_some() && Duration::from(load.window) < MINUTE {
        load.notes.push(format!(
            "CPU use is the average of the device's last minute, and the window only {}: the figure holds what was \
             before it",
            load.window
        ));
    }
}

/// Adds what the interfaces counted between two readings of their table.
pub(super) fn add_interfaces(load: &mut DeviceLoad, before: &Interfaces, after: &Interfaces, columns: &Columns) {
    if after.is_empty() {
        load.notes.push("the device shows no interface counters (IF-MIB)".into());
    } else if after.differs_from(before) {
        load.interfaces = after.since(before, columns);
    } else {
        load.notes.push(
            "no interface counter of the device moved, though our own questions pass one: it answered from an old \
             table (net-snmp keeps it 3 s)"
                .into(),
        );
    }
}
