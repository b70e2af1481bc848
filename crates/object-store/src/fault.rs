//! Why requests fail.

use std::error::Error as StdError;
use std::fmt;
use std::io;

use blosc2::{Error, ErrorKind};
use blosc2_store::without_secrets;

/// The maximum number of characters that are shown of the body of an error that is not XML.
const SHOWN: usize = 200;
const READ: &str = "read an object";

/// A failure that this crate describes itself. The crate `object_store` passes it on as the source of its errors.
#[derive(Debug)]
#[cfg_attr(
    not(any(feature = "aws", feature = "azure", feature = "gcp", feature = "http")),
    allow(dead_code, reason = "only the client for servers creates it")
)]
pub(crate) enum Fault {
    /// The object has no bytes, so that no range of it can be requested. With its ETag.
    Empty(Option<String>),
    /// This server does not list files.
    Unlisted(String),
    /// Any other failure: what has failed, at which host.
    Other(String),
}

impl Fault {
    /// Finds the failure in the sources of an error.
    pub(crate) fn of(error: &object_store::Error) -> Option<&Self> {
        sources(error).find_map(|source| source.downcast_ref())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty(_) => f.write_str("the object is empty"),
            Self::Unlisted(host) => write!(f, "the server {host} does not list the files"),
            Self::Other(detail) => f.write_str(detail),
        }
    }
}

impl StdError for Fault {}

/// Returns an error and its sources, from the outermost to the cause.
fn sources<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// Returns the text of the innermost source of an error.
pub(crate) fn cause(error: &(dyn StdError + 'static)) -> String {
    sources(error).last().map(ToString::to_string).unwrap_or_default()
}

fn is_denied(error: &(dyn StdError + 'static)) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

/// Converts the error of a request. Its text is one line that contains the cause.
pub(crate) fn failed(error: object_store::Error) -> io::Error {
    use object_store::Error as E;
    let kind = match &error {
        E::NotFound { .. } => io::ErrorKind::NotFound,
        E::AlreadyExists { .. } => io::ErrorKind::AlreadyExists,
        E::PermissionDenied { .. } | E::Unauthenticated { .. } => io::ErrorKind::PermissionDenied,
        E::NotSupported { .. } | E::NotImplemented { .. } => io::ErrorKind::Unsupported,
        E::Generic { .. } if matches!(Fault::of(&error), Some(Fault::Unlisted(_))) => {
            io::ErrorKind::Unsupported
        }
        // Of a local file.
        E::Generic { .. } if sources(&error).any(is_denied) => io::ErrorKind::PermissionDenied,
        E::Precondition { path, .. } => {
            let detail =
                format!("the object `{path}` has changed since it was opened: open it again");
            return Error::new(ErrorKind::Busy, READ, detail).into();
        }
        _ => io::ErrorKind::Other,
    };
    if let Some(fault) = Fault::of(&error) {
        return io::Error::new(kind, fault.to_string());
    }
    let (mut text, cause) = (error.to_string(), cause(&error));
    if !text.contains(&cause) {
        text = format!("{text}: {cause}");
    }
    // Some services report errors in the body of a successful response.
    if let Some(at) = text.find("<?xml").or_else(|| text.find("<Error")) {
        let body = summary(&text[at..], false);
        text.replace_range(at.., &body);
    }
    let words: Vec<String> = text.split_whitespace().map(without_secrets).collect();
    io::Error::new(kind, words.join(" ").trim_end_matches(':').to_owned())
}

/// Returns the body of an error for messages: the elements `<Code>` and `<Message>`, or the start of a body without
/// them, in one line and without secrets. If `is_cut` is set, the end of the body is missing.
pub(crate) fn summary(body: &str, is_cut: bool) -> String {
    // The start of a secret may not look like one.
    let end = if is_cut { body.rfind(char::is_whitespace) } else { None };
    let body = &body[..end.unwrap_or(body.len())];
    let element = |name: &str| {
        let start = body.find(&format!("<{name}>"))? + name.len() + 2;
        let text = &body[start..];
        Some(redacted(&text[..text.find("</").unwrap_or(text.len())]))
    };
    match [element("Code"), element("Message")] {
        [None, None] => redacted(body).chars().take(SHOWN).collect(),
        elements => {
            let text = elements.into_iter().flatten().collect::<Vec<_>>().join(": ");
            text.chars().take(4 * SHOWN).collect()
        }
    }
}

/// Replaces what can be a secret: passwords and queries of URLs, values of headers and fields with telling names, and
/// long sequences of letters and digits. Joins the lines.
fn redacted(text: &str) -> String {
    const LONG: usize = 20;
    const NAMES: [&str; 9] =
        ["x-amz-", "x-goog-", "auth", "credential", "key", "pass", "secret", "sig", "token"];
    let is_part = |each: char| each.is_alphanumeric() || "+/_-.%~".contains(each);
    let names_secret = |name: &str| {
        let name = name.to_ascii_lowercase();
        NAMES.iter().any(|part| name.contains(part))
    };
    let is_long = |word: &str| {
        let has_digit = word.contains(|each: char| each.is_ascii_digit());
        word.len() >= if has_digit { LONG } else { 2 * LONG }
    };
    let words = text.split_inclusive(char::is_whitespace).map(|word| {
        let (word, space) = word.split_at(word.trim_end().len());
        without_secrets(word) + space
    });
    let text: String = words.collect();
    let (mut shown, mut rest) = (String::new(), text.as_str());
    let (mut name, mut is_secret) = ("", false);
    while !rest.is_empty() {
        let (between, from) = rest.split_at(rest.find(is_part).unwrap_or(rest.len()));
        let (word, after) = from.split_at(from.find(|each| !is_part(each)).unwrap_or(from.len()));
        // A value ends with its line, its quotes or a separator.
        is_secret &= !between.contains(['\n', ',', ';', '"', '\'', '<', '>', '{', '}', '&']);
        is_secret |= between.contains([':', '>', '"', '\'']) && names_secret(name);
        let is_hidden = is_secret || between.contains('=') || is_long(word);
        shown.extend(between.chars().map(|each| if each.is_control() { ' ' } else { each }));
        shown.push_str(if is_hidden && !word.is_empty() { "..." } else { word });
        (name, rest) = (word, after);
    }
    shown.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether an error can be that of an empty object, which has no first byte. The stores report it in different ways.
pub(crate) fn may_be_empty(error: &object_store::Error) -> bool {
    let object_store::Error::Generic { .. } = error else { return false };
    sources(error).skip(1).any(|source| {
        let text = source.to_string();
        text.contains("416") || text.contains("0 bytes long")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_of_errors_are_short() {
        let secret = "FwoGZXIvYXdzEBYaDHqa0AP1";
        let xml = format!(
            "<?xml version=\"1.0\"?>\n<Error><Code>InvalidToken</Code>\n<Message>The token {secret} is\n malformed. \
             </Message><Token-0>{secret}</Token-0><HostId>abc</HostId></Error>"
        );
        assert_eq!(summary(&xml, false), "InvalidToken: The token ... is malformed.");
        assert_eq!(summary("<Message>cut in its tex", true), "cut in its");
        assert_eq!(summary("<Code>SlowDown</Code>", false), "SlowDown");
        for (body, shown) in [
            ("", ""),
            ("<html>\r\n<p>Not\tfound</p>", "<html> <p>Not found</p>"),
            ("see http://me:p@h/a?b=c d", "see http://...@h/a?... d"),
            (
                "GET /a?X-Amz-Date=1&X-Amz-Signature=ab failed",
                "GET /a?X-Amz-Date=...&X-Amz-Signature=... failed",
            ),
            ("x-amz-security-token: ab cd\nnext: e", "x-amz-security-token: ... ... next: e"),
            ("Authorization: Bearer abc\r\n", "Authorization: ... ..."),
            (
                "{\"error\": {\"code\": 403, \"token\": \"ab cd\"}}",
                "{\"error\": {\"code\": 403, \"token\": \"... ...\"}}",
            ),
            ("<Status>4</Status><Token>ab</Token>", "<Status>4</Status><Token>...</Token>"),
            ("password='ab cd', size=5 here", "password='... ...', size=... here"),
            ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx.c2ln", "..."),
            ("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "..."),
        ] {
            assert_eq!(summary(body, false), shown, "{body}");
        }
        assert_eq!(summary(&"ab ".repeat(1000), true).len(), SHOWN);
        // The start of a secret that does not look like one.
        assert_eq!(summary("a b\nsecre", true), "a b");
    }
}
