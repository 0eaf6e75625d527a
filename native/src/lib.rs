//! The wire of podtrail in Rust: functions of bytes, without state, threads or unsafe code.
//!
//! Whatever is unusual is answered by None: podtrail then looks itself, in Python, which is the reference. So what is
//! refused, and in which words, is decided in one place only.

#![forbid(unsafe_code)]

pub mod check;
pub mod cut;
pub mod facts;
#[cfg(feature = "python")]
mod python;
pub mod search;
pub mod wire;
