//! The states of a test. One byte on the control connection says which comes next.

/// A state, or what ends a test.
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
    /// Two numbers follow that say why.
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

    /// The state that `byte` stands for; none if there is none.
    pub(crate) fn of(byte: u8) -> Option<Self> {
        Self::ALL.iter().find(|(_, number, _)| *number == byte.cast_signed()).map(|(state, ..)| *state)
    }

    /// The byte that stands for it.
    pub(crate) fn byte(self) -> u8 {
        self.entry().1.cast_unsigned()
    }

    /// iperf3's own name for it.
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
    fn bytes_and_states_go_both_ways() {
        for byte in 0..=u8::MAX {
            assert!(State::of(byte).is_none_or(|state| state.byte() == byte), "{byte}");
        }
        assert_eq!((State::of(0xff), State::of(9)), (Some(State::AccessDenied), Some(State::ParameterExchange)));
        assert_eq!((State::of(0), State::of(3)), (None, None));
        assert_eq!(State::ServerError.name(), "SERVER_ERROR");
    }
}
