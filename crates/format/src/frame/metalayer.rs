//! Named metadata of a frame.

/// A metalayer: a name, and the content that an application stores with it.
///
/// ```
/// use blosc2_format::Limits;
/// use blosc2_format::chunk::Params;
/// use blosc2_format::frame::{Frame, Metalayer, Writer};
///
/// let axis = Metalayer { name: "axis".into(), content: b"time".to_vec() };
/// let out = std::io::Cursor::new(Vec::new());
/// let bytes = Writer::new(out, Params::default(), &[axis])?.finish()?.into_inner();
/// let frame = Frame::open(bytes, &Limits::default())?;
/// assert_eq!(frame.metalayer("axis"), Some(&b"time"[..]));
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metalayer {
    /// The name, of 1 to 31 bytes.
    pub name: String,
    /// The content.
    pub content: Vec<u8>,
}
