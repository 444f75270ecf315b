//! What a driver says of its interface.
