//! The layouts before 2.0.0-rc.1: frames of the betas, and packed super-chunks of the alphas.

mod chunks;
pub mod early;
pub mod packed;
mod spans;

/// The bytes of a header at `at`, which the caller knows to be there; zeros otherwise.
fn field<const N: usize>(head: &[u8], at: usize) -> [u8; N] {
    head.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}
