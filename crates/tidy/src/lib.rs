//! No code: this crate's [tests](../tests/tidy/main.rs) read the repository's files. They import no other crate, so they are built in seconds.
