//! A server and its readers as processes: no reader ever finds a wrong value, whatever the server does and however it ends;
//! and no reader can do harm.
//!
//! This program is all of them: started with the name of a role it plays that role, else it starts the others.
#![cfg_attr(
    not(all(target_os = "linux", not(any(nuthatch_unix, nuthatch_portable)))),
    allow(unused)
)]

#[cfg(all(target_os = "linux", not(any(nuthatch_unix, nuthatch_portable))))]
mod cases;
#[cfg(all(target_os = "linux", not(any(nuthatch_unix, nuthatch_portable))))]
mod databases;
#[cfg(all(target_os = "linux", not(any(nuthatch_unix, nuthatch_portable))))]
mod hostile;
#[cfg(all(target_os = "linux", not(any(nuthatch_unix, nuthatch_portable))))]
mod reader;
#[cfg(all(target_os = "linux", not(any(nuthatch_unix, nuthatch_portable))))]
mod ring;
#[cfg(all(target_os = "linux", not(any(nuthatch_unix, nuthatch_portable))))]
mod server;
#[cfg(all(target_os = "linux", not(any(nuthatch_unix, nuthatch_portable))))]
mod stepped;
mod values;

fn main() {
    #[cfg(all(target_os = "linux", not(any(nuthatch_unix, nuthatch_portable))))]
    cases::main();
}
