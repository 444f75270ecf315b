//! Memory files for sendfile.
