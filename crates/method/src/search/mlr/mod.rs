//! MLRsearch, RFC 9971.
