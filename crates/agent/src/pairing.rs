//! Pairing with the people who read this agent's code: who may try, how often, and until when.

use linerate_control::pairing::{Paired, PairingCode, PairingEnd, PairingKey, PairingMessage, PairingProof};
use linerate_control::{ApiError, ErrorKind};
use linerate_engine::Report;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a code can be used.
pub const PAIRING_TIME: Duration = Duration::from_secs(600);

/// Each guess at a code of six digits is right once in a million times.
const GUESSES: u32 = 3;

/// A code that an agent shows, and what has become of it.
#[derive(Debug)]
pub(crate) struct Pairing {
    code: PairingCode,
    /// What the holder of the code is to prove the key for, and what he gets.
    fingerprint: String,
    token: String,
    until: Instant,
    report: Report,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    guesses_left: u32,
    /// A client that has begun and is yet to prove that it has the code.
    begun: Option<PairingKey>,
    is_over: bool,
}

impl Pairing {
    /// Pairs once with whoever has `code`, from `now` on for [`PAIRING_TIME`].
    pub(crate) fn new(code: PairingCode, fingerprint: String, token: String, now: Instant, report: Report) -> Self {
        let state = State { guesses_left: GUESSES, begun: None, is_over: false };
        Self { code, fingerprint, token, until: now + PAIRING_TIME, report, state: Mutex::new(state) }
    }

    /// Begins with a client. It counts as a guess, since the client could leave when it finds that it was wrong.
    ///
    /// # Errors
    /// The code was used, has expired, or was guessed at too often; or the message is none.
    pub(crate) fn begin(&self, theirs: &PairingMessage, now: Instant) -> Result<PairingMessage, ApiError> {
        let mut state = self.open(now)?;
        if state.guesses_left == 0 {
            return Err(locked());
        }
        state.guesses_left -= 1;
        let (end, message) = PairingEnd::agent(&self.code);
        let unread = || ApiError::new(ErrorKind::BadRequest, "the pairing message cannot be read");
        state.begun = Some(end.finish(&theirs.message).ok_or_else(unread)?);
        Ok(PairingMessage { message })
    }

    /// Ends it with the client at `peer`, which gets the token if it has the code.
    ///
    /// # Errors
    /// It does not, or did not begin.
    pub(crate) fn confirm(&self, theirs: &PairingProof, peer: IpAddr, now: Instant) -> Result<Paired, ApiError> {
        let mut state = self.open(now)?;
        let Some(key) = state.begun.take() else {
            return Err(ApiError::new(ErrorKind::Conflict, "another pairing has begun meanwhile: try again"));
        };
        let peer = peer.to_canonical();
        if !key.is_of_client(&theirs.proof, &self.fingerprint) {
            return Err(if state.guesses_left == 0 {
                (self.report.0)(&format!(
                    "{peer} gave a wrong pairing code; pairing is locked until the agent is started anew"
                ));
                locked()
            } else {
                let left = state.guesses_left;
                let tries = if left == 1 { "1 try is left" } else { "2 tries are left" };
                (self.report.0)(&format!("{peer} gave a wrong pairing code; {tries}"));
                ApiError::new(ErrorKind::Limit, format!("the pairing code is wrong; {tries}"))
            });
        }
        state.is_over = true;
        (self.report.0)(&format!("{peer} has paired, and has the agent URL now; the pairing code is used up"));
        Ok(Paired { proof: key.of_agent(&self.fingerprint), token: self.token.clone() })
    }

    /// Its state, while the code can be used.
    fn open(&self, now: Instant) -> Result<MutexGuard<'_, State>, ApiError> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let why = match () {
            () if state.is_over => "the pairing code was used already",
            () if now >= self.until => "the pairing code has expired",
            () => return Ok(state),
        };
        Err(ApiError::new(ErrorKind::Limit, format!("{why}: start `linerate serve --pair` anew for another")))
    }
}

fn locked() -> ApiError {
    let message = "three pairing codes were wrong: pairing is locked until `linerate serve --pair` is started anew";
    ApiError::new(ErrorKind::Limit, message)
}

/// What an agent says that shows no code.
pub(crate) fn none() -> ApiError {
    let message = "this agent shows no pairing code: start it with `linerate serve --pair`, or use its agent URL";
    ApiError::new(ErrorKind::Limit, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(198, 18, 0, 2));

    fn code(text: &str) -> PairingCode {
        text.parse().expect("a code")
    }

    /// An agent that shows 417-293, when it began to, and what it reported.
    fn pairing() -> (Pairing, Instant, Arc<Mutex<Vec<String>>>) {
        let (now, lines) = (Instant::now(), Arc::new(Mutex::new(Vec::new())));
        let report = Arc::clone(&lines);
        let report = Report(Arc::new(move |line: &str| report.lock().expect("no panic").push(line.to_owned())));
        (Pairing::new(code("417-293"), "ab".repeat(32), "0f".repeat(16), now, report), now, lines)
    }

    /// A client's whole attempt with a code.
    fn attempt(pairing: &Pairing, with: &str, now: Instant) -> Result<Paired, ApiError> {
        let (end, message) = PairingEnd::client(&code(with));
        let theirs = pairing.begin(&PairingMessage { message }, now)?;
        let key = end.finish(&theirs.message).expect("a message of an agent");
        let proof = PairingProof { proof: key.of_client(&"ab".repeat(32)) };
        pairing.confirm(&proof, PEER, now)
    }

    #[test]
    fn whoever_has_the_code_gets_the_token_once() {
        let (pairing, now, lines) = pairing();
        assert_eq!(attempt(&pairing, "417-293", now).expect("paired").token, "0f".repeat(16));
        let again = attempt(&pairing, "417-293", now).expect_err("it is used up");
        assert!(again.message.contains("used already"), "{again:?}");
        assert!(lines.lock().expect("no panic")[0].contains("198.18.0.2 has paired"));
    }

    #[test]
    fn three_wrong_codes_lock_it_even_for_the_right_one() {
        let (pairing, now, lines) = pairing();
        for part in ["2 tries are left", "1 try is left", "locked"] {
            let error = attempt(&pairing, "417-294", now).expect_err("wrong");
            assert!(error.error == ErrorKind::Limit && error.message.contains(part), "{error:?}");
            assert!(lines.lock().expect("no panic").last().expect("a line").contains(part));
        }
        assert!(attempt(&pairing, "417-293", now).expect_err("locked").message.contains("locked"));
    }

    #[test]
    fn a_client_that_begins_and_leaves_has_guessed() {
        let (pairing, now, _) = pairing();
        for _ in 0..GUESSES {
            let (_, message) = PairingEnd::client(&code("417-293"));
            pairing.begin(&PairingMessage { message }, now).expect("begun");
        }
        assert!(attempt(&pairing, "417-293", now).expect_err("locked").message.contains("locked"));
    }

    #[test]
    fn what_is_no_message_no_proof_or_too_late_is_refused() {
        let (pairing, now, _) = pairing();
        let garbage = pairing.begin(&PairingMessage { message: vec![7; 40] }, now).expect_err("no message");
        assert_eq!(garbage.error, ErrorKind::BadRequest);
        let early = pairing.confirm(&PairingProof { proof: vec![0; 32] }, PEER, now).expect_err("nobody began");
        assert_eq!(early.error, ErrorKind::Conflict);
        assert!(attempt(&pairing, "417-293", now + PAIRING_TIME).expect_err("late").message.contains("expired"));
        attempt(&pairing, "417-293", now + PAIRING_TIME - Duration::from_secs(1)).expect("in time");
    }

    /// The attack: somebody between the two shows the client a certificate of his own, and passes all messages on.
    #[test]
    fn a_proof_for_another_certificate_gets_no_token() {
        let (pairing, now, _) = pairing();
        let (end, message) = PairingEnd::client(&code("417-293"));
        let theirs = pairing.begin(&PairingMessage { message }, now).expect("begun");
        let proof = end.finish(&theirs.message).expect("a key").of_client(&"cd".repeat(32));
        pairing.confirm(&PairingProof { proof }, PEER, now).expect_err("the certificate is another");
    }
}
