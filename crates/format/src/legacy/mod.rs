//! The formats before 2.0.0-rc.1: frames of the betas, and packed super-chunks of the alphas.

mod chunks;
pub mod early;
pub mod packed;
mod spans;

/// Returns the bytes of a header at `at`. The caller ensures that they exist; otherwise they are
/// zeros.
fn field<const N: usize>(head: &[u8], at: usize) -> [u8; N] {
    head.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}
