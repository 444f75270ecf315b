//! Network, user and mount namespaces.
