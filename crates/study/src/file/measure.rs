//! `[[measures]]` of a study's file.

use super::StudyError;
use super::document::{Reading, Source};
use super::factor::only_measured;
use super::measured::Gathered;
use crate::study::{Conditions, Measure};
use linerate_method::Metric;
use linerate_model::{Layer, MeasureUnit, Medium, Transport};
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
    test: Option<Spanned<String>>,
    counts: Option<Layer>,
    frame_bytes: Option<FrameSize>,
    medium: Option<Medium>,
    transport: Option<Transport>,
}

/// Returns whether studies gather a metric.
fn of_studies(metric: Metric) -> bool {
    metric.unit().is_some()
}

/// Source of a measure's values.
pub(super) enum Value {
    /// Values of the data, multiplied by this factor.
    Scaled(f64),
    /// Values of records.
    Gathered(Gathered),
}

impl Value {
    pub(super) fn scale(self) -> f64 {
        if let Self::Scaled(scale) = self { scale } else { 1.0 }
    }

    pub(super) fn gathered(self) -> Option<Gathered> {
        if let Self::Gathered(gathered) = self { Some(gathered) } else { None }
    }
}

impl MeasureEntry {
    /// Returns the measure and the source of its values.
    pub(super) fn measure(self, source: &Source<'_>, reading: &Reading) -> Result<(Measure, Value), StudyError> {
        let (unit, counts, value) = match reading {
            Reading::Data(_) => {
                let (unit, scale) = self.written_unit(source)?;
                (unit, self.counts, Value::Scaled(scale))
            }
            Reading::Run(_, tests) => {
                let (metric, unit) = self.metric(source)?;
                let test = tests.of(source, self.test.as_ref(), &self.column)?;
                let counts = (metric == Metric::Throughput).then(|| tests.counts(test));
                let line = source.line(self.metric.as_ref().map_or(self.column.span(), Spanned::span).start);
                (unit, counts, Value::Gathered(Gathered { metric, test, line }))
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

    /// Returns the unit of a column of data, and the factor that converts its values to it.
    fn written_unit(&self, source: &Source<'_>) -> Result<(MeasureUnit, f64), StudyError> {
        for (field, name) in [(&self.metric, "metric"), (&self.test, "test")] {
            if let Some(field) = field {
                return Err(source.fault(field, name, only_measured()));
            }
        }
        let Some(written) = &self.unit else {
            let problem = "has no `unit`; expected one as bit/s, Mbit/s, MB/s, pps, k/s or times".to_owned();
            return Err(source.fault(&self.column, "column", problem));
        };
        if written.get_ref() == "times" {
            return Ok((MeasureUnit::Times, 1.0));
        }
        let one = format!("1{}", written.get_ref());
        match (one.parse::<BitRate>(), one.parse::<FrameRate>()) {
            (_, Ok(scale)) if one.len() > 1 => Ok((MeasureUnit::PerS, scale.get() as f64)),
            (Ok(scale), _) if one.len() > 1 => Ok((MeasureUnit::BitsPerS, scale.get() as f64)),
            _ => {
                let problem = format!(
                    "`{}` is no unit of a rate; expected one as bit/s, Mbit/s, MB/s, pps, k/s or times",
                    written.get_ref()
                );
                Err(source.fault(written, "unit", problem))
            }
        }
    }

    /// Returns the metric and its unit.
    fn metric(&self, source: &Source<'_>) -> Result<(Metric, MeasureUnit), StudyError> {
        if let Some(unit) = &self.unit {
            let problem = "is that of the metric in a study that is measured; expected it to be left out".to_owned();
            return Err(source.fault(unit, "unit", problem));
        }
        let Some(name) = &self.metric else {
            let problem = format!("has no `metric`; expected one of {}", Metric::names(of_studies));
            return Err(source.fault(&self.column, "column", problem));
        };
        if self.counts.is_some() {
            let problem = "stands beside `counts`, which follows from it; expected that to be left out".to_owned();
            return Err(source.fault(name, "metric", problem));
        }
        let metric = Metric::named(name.get_ref()).and_then(|metric| Some((metric, metric.unit()?)));
        metric.ok_or_else(|| {
            let problem =
                format!("`{}` is no metric of a study; expected one of {}", name.get_ref(), Metric::names(of_studies));
            source.fault(name, "metric", problem)
        })
    }
}
