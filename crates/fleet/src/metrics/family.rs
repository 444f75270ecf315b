//! Every metric of a fleet, one row each.

/// Type of a metric, as Prometheus names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FamilyKind {
    /// A number that only grows.
    Counter,
    /// A number that rises and falls.
    Gauge,
}

impl FamilyKind {
    /// Returns the word of a `# TYPE` line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
        }
    }
}

/// Defines [`Family`]: `Variant = "name", Kind, ["label", ..], "help";`, one row for each metric.
macro_rules! families {
    ($($Variant:ident = $name:literal, $Kind:ident, [$($label:literal),*], $help:literal;)+) => {
        /// A metric: all series with one name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Family {
            $(#[doc = $help] $Variant,)+
        }

        impl Family {
            /// All metrics in the order of the page.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$Variant),+];

            /// Returns the name of the metric.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$Variant => $name,)+
                }
            }

            /// Returns whether the metric is a counter or a gauge.
            pub fn kind(self) -> FamilyKind {
                match self {
                    $(Self::$Variant => FamilyKind::$Kind,)+
                }
            }

            /// Returns the labels of a series in addition to those of its pair or host.
            pub fn labels(self) -> &'static [&'static str] {
                match self {
                    $(Self::$Variant => &[$($label),*],)+
                }
            }

            /// Returns the text of the `# HELP` line.
            pub fn help(self) -> &'static str {
                match self {
                    $(Self::$Variant => $help,)+
                }
            }
        }
    };
}

families! {
    BuildInfo = "linerate_build_info", Gauge, ["version"], "Version of the controller; the value is always 1.";

    PairThroughput = "linerate_pair_throughput_bits_per_second", Gauge, [],
        "Payload rate of the newest result of the pair and test, median of its repeats.";
    PairOperations = "linerate_pair_operations_per_second", Gauge, ["quantity"],
        "Transactions, calls, frames or files per second of the newest result; quantity names which.";
    PairLatency = "linerate_pair_latency_seconds", Gauge, ["quantity"],
        "Latency of the newest result; quantity names the statistic, for example latency_p99.";
    PairLoss = "linerate_pair_loss_ratio", Gauge, [],
        "Share of the datagrams or frames that were lost in the newest result, 0 to 1.";
    PairDuration = "linerate_pair_duration_seconds", Gauge, ["quantity"],
        "Recovery time or buffer depth of a device between the hosts; quantity names which.";
    PairEntries = "linerate_pair_entries", Gauge, [],
        "Addresses or neighbours that a device between the hosts holds.";
    PairLinkShare = "linerate_pair_link_share_ratio", Gauge, [],
        "Result as a share of the link's rate, 0 to 1; absent if the rate of the link is unknown.";
    PairLimit = "linerate_pair_limit", Gauge, ["limit", "confidence"],
        "Limit of the newest result and the confidence in it; the value is always 1.";
    PairLastSuccess = "linerate_pair_last_success_timestamp_seconds", Gauge, [],
        "Time of the newest result, in seconds since 1970.";
    PairLastAttemptSuccess = "linerate_pair_last_attempt_success", Gauge, [],
        "Whether the newest attempt gave a result: 1, or 0 if it failed.";
    PairResultsLeftOut = "linerate_pair_results_left_out_total", Counter, [],
        "Results of pairs without series here because the limit on pairs was reached.";
    PairsShown = "linerate_pairs", Gauge, [], "Pairs and tests with series here.";

    Trials = "linerate_trials_total", Counter, ["mesh", "outcome"],
        "Trials that ended, by outcome: counted, spoilt or failed.";
    TrialBytes = "linerate_trial_bytes_total", Counter, ["mesh"], "Payload bytes that trials moved.";
    MissedSlots = "linerate_missed_slots_total", Counter, ["mesh", "reason"],
        "Trials that were due and did not run within their slip, by reason.";

    Scheduling = "linerate_scheduler_leader", Gauge, [],
        "Whether this process holds the scheduler's lease: 1 or 0.";
    Plans = "linerate_scheduler_plans_total", Counter, [], "Times that the scheduler planned.";
    PlanningSeconds = "linerate_scheduler_planning_seconds_total", Counter, [], "Time spent planning.";
    LastPlan = "linerate_scheduler_last_plan_timestamp_seconds", Gauge, [],
        "Time of the newest plan, in seconds since 1970.";
    OutstandingTrials = "linerate_scheduler_outstanding_trials", Gauge, [], "Trials that were ordered and have not ended.";

    Records = "linerate_records_total", Counter, ["outcome"],
        "Records that arrived for the store: stored, duplicate or failed.";

    AgentsEnrolled = "linerate_agents_enrolled", Gauge, [], "Agents that the fleet knows.";
    AgentsPresent = "linerate_agents_present", Gauge, [], "Agents that report their presence.";
    AgentPresent = "linerate_agent_present", Gauge, [], "Whether the agent reports its presence: 1 or 0.";

    AlertsFiring = "linerate_alerts_firing", Gauge, ["kind"], "Alerts that are raised now.";
    AlertsRaised = "linerate_alerts_raised_total", Counter, ["kind"], "Alerts that were raised.";
    Notifications = "linerate_notifications_total", Counter, ["target", "outcome"],
        "Alerts sent to a webhook or Alertmanager: delivered, retried, refused or dropped.";
    NotificationQueue = "linerate_notification_queue", Gauge, ["target"],
        "Alerts that wait to be sent to the target.";

    PushedSamples = "linerate_remote_write_samples_total", Counter, ["outcome"],
        "Samples pushed by remote write: delivered or failed.";
}

impl Family {
    /// Returns whether the series of the metric have the labels of a pair: from, to, test, sites and zones.
    pub fn is_per_pair(self) -> bool {
        matches!(
            self,
            Self::PairThroughput
                | Self::PairOperations
                | Self::PairLatency
                | Self::PairLoss
                | Self::PairDuration
                | Self::PairEntries
                | Self::PairLinkShare
                | Self::PairLimit
                | Self::PairLastSuccess
                | Self::PairLastAttemptSuccess
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_follow_the_conventions_of_prometheus() {
        let names: BTreeSet<&str> = Family::ALL.iter().map(|family| family.name()).collect();
        assert_eq!(names.len(), Family::ALL.len(), "each name once");
        for family in Family::ALL {
            let name = family.name();
            assert!(name.starts_with("linerate_"), "{name}");
            assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
            assert_eq!(name.ends_with("_total"), family.kind() == FamilyKind::Counter, "{name}");
            assert!(family.help().ends_with('.') && !family.help().contains('\n'), "{name}");
        }
    }
}
