//! Transactions: requests with their responses.

use crate::blocks::table::Table;
use crate::column;
use crate::language::Language;
use crate::said;
use crate::subjects::contract::Subject;
use crate::subjects::flow_sentences::{
    busiest_threads_of_requests, completed, failures, led, request_costs, requests_per_second, tester_limit,
};
use crate::subjects::flow_table::{REQUESTS, of_task, results_table};
use crate::subjects::live::{self, Live, LiveChart, LiveColumn, LiveRate};
use linerate_model::text;
use linerate_model::{Measurement, Record, TaskKind};

/// Requests with their responses.
pub(crate) struct Transact;

const LIVE: Live = Live::new(
    LiveRate::Requests,
    text!("live-panel-transactions", "Transactions"),
    &[LiveColumn::Transactions, LiveColumn::P50, LiveColumn::P99, LiveColumn::Retransmits],
    CHARTS,
)
.over_udp(&[LiveColumn::Transactions, LiveColumn::P50, LiveColumn::P99], CHARTS);

const CHARTS: &[LiveChart] = &[live::operations(text!("charts-axis-transactions", "transactions")), live::RETRANSMITS];

impl Subject for Transact {
    fn live(&self) -> &'static Live {
        &LIVE
    }

    fn sentences(&self, lang: Language, record: &Record, result: &Measurement) -> (Vec<String>, usize) {
        let costs = request_costs(result);
        let further = [
            tester_limit(lang, result, requests_per_second),
            failures(lang, result),
            costs.map(|[sender, receiver]| {
                said!(
                    lang,
                    "results-cpu-transaction",
                    "CPU time per transaction: client {sender}, server {receiver}.",
                    sender = sender,
                    receiver = receiver
                )
            }),
            busiest_threads_of_requests(lang, result),
        ];
        let answer = completed(lang, record, result, |rate, runs| {
            said!(lang, "results-transactions", "{rate} transactions a second ({runs}).", rate = rate, runs = runs)
        });
        led(answer, further)
    }

    fn table(&self, lang: Language, results: &[&Measurement]) -> Option<Table> {
        let caption = said!(lang, "tables-transactions", "Transactions");
        results_table(
            lang,
            caption,
            column!("column-transaction", "transaction", "name of the result"),
            &of_task(results, TaskKind::Transact),
            &REQUESTS,
        )
    }
}
