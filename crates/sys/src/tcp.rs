//! TCP: sending without copies, TCP_INFO.
