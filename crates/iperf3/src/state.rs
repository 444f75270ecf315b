//! States of a test, which single bytes on the control connection announce.

/// State or end of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    TestStart,
    TestRunning,
    TestEnd,
    ParameterExchange,
    CreateStreams,
    ServerTerminate,
    ClientTerminate,
    ExchangeResults,
    DisplayResults,
    Done,
    /// The server is busy with another test.
    AccessDenied,
    /// Two error numbers follow.
    ServerError,
}

impl State {
    const ALL: [(Self, i8, &'static str); 12] = [
        (Self::TestStart, 1, "TEST_START"),
        (Self::TestRunning, 2, "TEST_RUNNING"),
        (Self::TestEnd, 4, "TEST_END"),
        (Self::ParameterExchange, 9, "PARAM_EXCHANGE"),
        (Self::CreateStreams, 10, "CREATE_STREAMS"),
        (Self::ServerTerminate, 11, "SERVER_TERMINATE"),
        (Self::ClientTerminate, 12, "CLIENT_TERMINATE"),
        (Self::ExchangeResults, 13, "EXCHANGE_RESULTS"),
        (Self::DisplayResults, 14, "DISPLAY_RESULTS"),
        (Self::Done, 16, "IPERF_DONE"),
        (Self::AccessDenied, -1, "ACCESS_DENIED"),
        (Self::ServerError, -2, "SERVER_ERROR"),
    ];

    /// Returns the state of `byte`, or `None` if there is no such state.
    pub(crate) fn of(byte: u8) -> Option<Self> {
        Self::ALL.iter().find(|(_, number, _)| *number == byte.cast_signed()).map(|(state, ..)| *state)
    }

    /// Returns the byte of the state.
    pub(crate) fn byte(self) -> u8 {
        self.entry().1.cast_unsigned()
    }

    /// Returns iperf3's name of the state.
    pub(crate) fn name(self) -> &'static str {
        self.entry().2
    }

    fn entry(self) -> &'static (Self, i8, &'static str) {
        Self::ALL.iter().find(|(state, ..)| *state == self).expect("the table has every state")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_states_convert_both_ways() {
        for byte in 0..=u8::MAX {
            assert!(State::of(byte).is_none_or(|state| state.byte() == byte), "{byte}");
        }
        assert_eq!((State::of(0xff), State::of(9)), (Some(State::AccessDenied), Some(State::ParameterExchange)));
        assert_eq!((State::of(0), State::of(3)), (None, None));
        assert_eq!(State::ServerError.name(), "SERVER_ERROR");
    }
}
