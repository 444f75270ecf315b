//! Pairing with the people who read this agent's code: who may try, how often, and until when.

use linerate_control::pairing::{Paired, PairingCode, PairingEnd, PairingKey, PairingMessage, PairingProof};
use linerate_control::{ApiError, ErrorKind};
use linerate_engine::Report;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time in which a code can be used.
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
    /// Clients that have begun and are yet to prove that they have the code: at most as many as there are guesses.
    begun: Vec<Attempt>,
    is_over: bool,
    /// The lock was reported.
    is_said: bool,
}

/// A client that has begun.
#[derive(Debug)]
struct Attempt {
    peer: IpAddr,
    key: PairingKey,
}

impl Pairing {
    /// Pairs once with whoever has `code`, from `now` on for [`PAIRING_TIME`].
    pub(crate) fn new(code: PairingCode, fingerprint: String, token: String, now: Instant, report: Report) -> Self {
        let state = State { guesses_left: GUESSES, begun: Vec::new(), is_over: false, is_said: false };
        Self { code, fingerprint, token, until: now + PAIRING_TIME, report, state: Mutex::new(state) }
    }

    /// Begins with the client at `peer`. It counts as a guess, since the client could leave when it finds that it was
    /// wrong.
    ///
    /// # Errors
    /// The code was used, has expired, or was guessed at too often; or the message is none.
    pub(crate) fn begin(
        &self,
        theirs: &PairingMessage,
        peer: IpAddr,
        now: Instant,
    ) -> Result<PairingMessage, ApiError> {
        let mut state = self.open(now)?;
        let peer = peer.to_canonical();
        if state.guesses_left == 0 {
            // Who leaves in the middle says nothing, and nobody else would say that the code is dead.
            if !std::mem::replace(&mut state.is_said, true) {
                self.report.line(&format!("{peer} would pair, but three attempts were wrong or broken off; {LOCKED}"));
            }
            return Err(locked());
        }
        state.guesses_left -= 1;
        let (end, message) = PairingEnd::agent(&self.code);
        let Some(key) = end.finish(&theirs.message) else {
            self.report_wrong(&mut state, &format!("{peer} sent a pairing message that cannot be read"));
            return Err(ApiError::new(ErrorKind::BadRequest, "the pairing message cannot be read"));
        };
        state.begun.push(Attempt { peer, key });
        Ok(PairingMessage { message })
    }

    /// Ends it with the client at `peer`, which gets the token if it has the code.
    ///
    /// # Errors
    /// It does not, or did not begin.
    pub(crate) fn confirm(&self, theirs: &PairingProof, peer: IpAddr, now: Instant) -> Result<Paired, ApiError> {
        let mut state = self.open(now)?;
        let peer = peer.to_canonical();
        let has_code = |attempt: &Attempt| attempt.key.is_of_client(&theirs.proof, &self.fingerprint);
        if let Some(at) = state.begun.iter().position(has_code) {
            let key = state.begun.swap_remove(at).key;
            state.is_over = true;
            self.report.line(&format!("{peer} has paired, and has the agent URL now; the pairing code is used up"));
            return Ok(Paired { proof: key.of_agent(&self.fingerprint), token: self.token.clone() });
        }
        // Who is wrong ends an attempt of his own, and nobody else's.
        let Some(at) = state.begun.iter().position(|attempt| attempt.peer == peer) else {
            return Err(ApiError::new(ErrorKind::Conflict, "this host has not begun to pair: try again"));
        };
        state.begun.remove(at);
        let left = self.report_wrong(&mut state, &format!("{peer} gave a wrong pairing code"));
        Err(left.map_or_else(locked, |tries| {
            ApiError::new(ErrorKind::Limit, format!("the pairing code is wrong; {tries}"))
        }))
    }

    /// Reports `what` was wrong, and what is left. Returns how many tries are left, in words; none if pairing is
    /// locked.
    fn report_wrong(&self, state: &mut State, what: &str) -> Option<&'static str> {
        let left = match state.guesses_left {
            0 => None,
            1 => Some("1 try is left"),
            _ => Some("2 tries are left"),
        };
        state.is_said |= left.is_none();
        self.report.line(&format!("{what}; {}", left.unwrap_or(LOCKED)));
        left
    }

    /// Returns the state while the code can be used.
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

/// Message on this host when a code is locked.
const LOCKED: &str = "pairing is locked until the agent is started anew";

fn locked() -> ApiError {
    let message = "three attempts to pair were wrong or broken off: pairing is locked until `linerate serve --pair` is started \
                   anew";
    ApiError::new(ErrorKind::Limit, message)
}

/// Returns the answer of an agent that shows no code.
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
        let report = Report::new(move |line| report.lock().expect("no panic").push(line.to_owned()));
        (Pairing::new(code("417-293"), "ab".repeat(32), "0f".repeat(16), now, report), now, lines)
    }

    /// A client's whole attempt with a code.
    fn attempt(pairing: &Pairing, with: &str, now: Instant) -> Result<Paired, ApiError> {
        let (end, message) = PairingEnd::client(&code(with));
        let theirs = pairing.begin(&PairingMessage { message }, PEER, now)?;
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
        let (pairing, now, lines) = pairing();
        for _ in 0..GUESSES {
            let (_, message) = PairingEnd::client(&code("417-293"));
            pairing.begin(&PairingMessage { message }, PEER, now).expect("begun");
        }
        assert!(lines.lock().expect("no panic").is_empty(), "nobody was wrong yet");
        for _ in 0..2 {
            assert!(attempt(&pairing, "417-293", now).expect_err("locked").message.contains("locked"));
        }
        let lines = lines.lock().expect("no panic");
        assert!(lines.len() == 1 && lines[0].contains("broken off; pairing is locked"), "{lines:?}");
    }

    #[test]
    fn clients_that_pair_at_the_same_time_do_not_disturb_each_other() {
        let (pairing, now, lines) = pairing();
        let begin = |with: &str, peer: IpAddr| {
            let (end, message) = PairingEnd::client(&code(with));
            let theirs = pairing.begin(&PairingMessage { message }, peer, now).expect("begun");
            let key = end.finish(&theirs.message).expect("a message of an agent");
            PairingProof { proof: key.of_client(&"ab".repeat(32)) }
        };
        let [neighbour, stranger] = [3, 4].map(|host| IpAddr::V4(std::net::Ipv4Addr::new(198, 18, 0, host)));
        let (right, wrong) = (begin("417-293", PEER), begin("417-294", neighbour));
        let error = pairing.confirm(&PairingProof { proof: vec![0; 32] }, stranger, now).expect_err("it did not begin");
        assert_eq!(error.error, ErrorKind::Conflict);
        let error = pairing.confirm(&wrong, neighbour, now).expect_err("wrong");
        assert!(error.message.contains("1 try is left"), "{error:?}");
        pairing.confirm(&right, PEER, now).expect("whoever has the code gets the token");
        let lines = lines.lock().expect("no panic");
        assert!(
            lines[0].starts_with("198.18.0.3 gave a wrong") && lines[1].contains("198.18.0.2 has paired"),
            "{lines:?}"
        );
        assert_eq!(lines.len(), 2);
    }

    #[test]
    fn what_is_no_message_no_proof_or_too_late_is_refused() {
        let (pairing, now, lines) = pairing();
        let garbage = pairing.begin(&PairingMessage { message: vec![7; 40] }, PEER, now).expect_err("no message");
        assert_eq!(garbage.error, ErrorKind::BadRequest);
        assert!(lines.lock().expect("no panic")[0].contains("cannot be read; 2 tries are left"));
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
        let theirs = pairing.begin(&PairingMessage { message }, PEER, now).expect("begun");
        let proof = end.finish(&theirs.message).expect("a key").of_client(&"cd".repeat(32));
        pairing.confirm(&PairingProof { proof }, PEER, now).expect_err("the certificate is another");
    }
}
