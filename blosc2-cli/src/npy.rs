//! The item order of npy files.

/// Reorders items from Fortran order to C order.
pub(crate) fn fortran_to_c(bytes: &[u8], shape: &[u64], typesize: usize) -> Vec<u8> {
    let mut strides = Vec::new();
    let mut stride = typesize;
    for &size in shape {
        strides.push(stride);
        // All items are in memory, so the product fits.
        stride *= size as usize;
    }
    let mut out = Vec::with_capacity(bytes.len());
    let mut index = vec![0; shape.len()];
    let mut at = 0;
    while out.len() < bytes.len() {
        out.extend_from_slice(&bytes[at..at + typesize]);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            at += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            at -= strides[axis] * shape[axis] as usize;
            index[axis] = 0;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_turned() {
        assert_eq!(fortran_to_c(b"adbecf", &[2, 3], 1), b"abcdef");
        assert_eq!(fortran_to_c(b"aabb", &[2], 2), b"aabb");
        assert_eq!(fortran_to_c(b"ab", &[], 2), b"ab");
        assert_eq!(fortran_to_c(b"", &[0, 3], 2), b"");
        // c[i][j][k] is at i + 2 j + 6 k.
        let bytes: Vec<u8> = (0..24).collect();
        let out = fortran_to_c(&bytes, &[2, 3, 4], 1);
        for (place, &found) in out.iter().enumerate() {
            let (i, j, k) = (place / 12, place / 4 % 3, place % 4);
            assert_eq!(usize::from(found), i + 2 * j + 6 * k);
        }
    }
}
