//! `[[measures]]` of a study's file.

use super::StudyError;
use super::factor::only_measured;
use super::file::{Reading, Source};
use crate::Metric;
use linerate_model::{Conditions, Layer, Measure, MeasureUnit, Medium, Transport};
use linerate_units::{BitRate, FrameRate, FrameSize};
use serde::Deserialize;
use toml::Spanned;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MeasureEntry {
    pub(super) column: Spanned<String>,
    title: Option<String>,
    unit: Option<Spanned<String>>,
    metric: Option<Spanned<String>>,
    counts: Option<Layer>,
    frame_bytes: Option<FrameSize>,
    medium: Option<Medium>,
    transport: Option<Transport>,
}

/// How the values of a measure come about.
pub(super) enum Value {
    /// From the data, times so much.
    Scaled(f64),
    /// As this metric of a record.
    Metric(Metric),
}

impl Value {
    pub(super) fn scale(self) -> f64 {
        if let Self::Scaled(scale) = self { scale } else { 1.0 }
    }

    pub(super) fn metric(self) -> Option<Metric> {
        if let Self::Metric(metric) = self { Some(metric) } else { None }
    }
}

impl MeasureEntry {
    /// The measure, and how its values come about.
    pub(super) fn measure(self, source: &Source<'_>, reading: &Reading) -> Result<(Measure, Value), StudyError> {
        let (unit, counts, value) = match reading {
            Reading::Data(_) => {
                let (unit, scale) = self.written_unit(source)?;
                (unit, self.counts, Value::Scaled(scale))
            }
            Reading::Run(run) => {
                let (metric, unit) = self.metric(source)?;
                (unit, (metric == Metric::Throughput).then(|| run.counts()), Value::Metric(metric))
            }
        };
        let column = self.column.into_inner();
        let metric = self.metric.map(Spanned::into_inner);
        let path = Conditions {
            medium: self.medium,
            transport: self.transport,
            frame_bytes: self.frame_bytes,
            ..Conditions::default()
        };
        let title = self.title.unwrap_or_else(|| column.replace('_', " "));
        Ok((Measure { title, column, metric, unit, counts, path }, value))
    }

    /// The unit of a column of data, and what turns its values into those that are kept.
    fn written_unit(&self, source: &Source<'_>) -> Result<(MeasureUnit, f64), StudyError> {
        if let Some(metric) = &self.metric {
            return Err(source.fault(metric, "metric", only_measured()));
        }
        let Some(written) = &self.unit else {
            let problem = "has no `unit`; expected one as bit/s, Mbit/s, MB/s, pps or k/s".to_owned();
            return Err(source.fault(&self.column, "column", problem));
        };
        let one = format!("1{}", written.get_ref());
        match (one.parse::<BitRate>(), one.parse::<FrameRate>()) {
            (_, Ok(scale)) if one.len() > 1 => Ok((MeasureUnit::PerS, scale.get() as f64)),
            (Ok(scale), _) if one.len() > 1 => Ok((MeasureUnit::BitsPerS, scale.get() as f64)),
            _ => {
                let problem = format!(
                    "`{}` is no unit of a rate; expected one as bit/s, Mbit/s, MB/s, pps or k/s",
                    written.get_ref()
                );
                Err(source.fault(written, "unit", problem))
            }
        }
    }

    /// The figure of a record, and its unit.
    fn metric(&self, source: &Source<'_>) -> Result<(Metric, MeasureUnit), StudyError> {
        if let Some(unit) = &self.unit {
            let problem = "is that of the metric in a study that is measured; expected it to be left out".to_owned();
            return Err(source.fault(unit, "unit", problem));
        }
        let known = || Metric::of_studies().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let Some(name) = &self.metric else {
            let problem = format!("has no `metric`; expected one of {}", known());
            return Err(source.fault(&self.column, "column", problem));
        };
        if self.counts.is_some() {
            let problem = "stands beside `counts`, which follows from it; expected that to be left out".to_owned();
            return Err(source.fault(name, "metric", problem));
        }
        let metric = Metric::named(name.get_ref()).and_then(|metric| Some((metric, metric.unit()?)));
        metric.ok_or_else(|| {
            let problem = format!("`{}` is no metric of a study; expected one of {}", name.get_ref(), known());
            source.fault(name, "metric", problem)
        })
    }
}
