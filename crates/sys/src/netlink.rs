//! Counters and links by netlink.
