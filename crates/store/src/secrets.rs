//! URLs in messages, without their secrets.

/// The schemes of object stores and files. Their URLs can contain `@` without a user name: it is a valid character of
/// keys and names, and in `abfs://container@account` it precedes the account.
const STORES: [&str; 10] =
    ["s3", "s3a", "gs", "az", "azure", "adl", "abfs", "abfss", "wasbs", "file"];

/// Returns a text for messages, without the secrets of the URL that it is or contains: the query, the fragment, and the
/// user name with the password are replaced by `...`. A text without a URL is returned unchanged.
///
/// Everything from the start of the URL to the end of the text counts as the URL. It need not be valid: a password can
/// contain `/`, `?`, `#` and `@`, although they have to be escaped. Therefore a part without secrets can also be
/// replaced, for example a path that contains `@`.
///
/// ```
/// use blosc2_store::without_secrets;
///
/// let url = "https://me:password@host/a.b2nd?token=1234";
/// assert_eq!(without_secrets(url), "https://...@host/a.b2nd?...");
/// assert_eq!(without_secrets("--output=ftp://me:pa?ss@host"), "--output=ftp://...");
/// assert_eq!(without_secrets("a@b?c.b2nd"), "a@b?c.b2nd");
/// ```
pub fn without_secrets(text: &str) -> String {
    // The parser of URLs ignores these characters, so that they can be anywhere in a URL.
    let clean = text.replace(['\t', '\n', '\r'], "");
    match start_of_url(&clean) {
        Some(start) => format!("{}{}", &clean[..start], hidden(&clean[start..])),
        None => text.to_owned(),
    }
}

/// Returns the position of the first URL in a text.
fn start_of_url(text: &str) -> Option<usize> {
    let scheme_before = |end: usize| text[..end].trim_end_matches(is_of_scheme).len();
    let with_scheme = text.match_indices(':').find_map(|(at, _)| {
        let (start, rest) = (scheme_before(at), &text[at + 1..]);
        let scheme = &text[start..at];
        // The parser of URLs also accepts these schemes without slashes.
        let is_web = ["http", "https"].iter().any(|web| scheme.eq_ignore_ascii_case(web));
        (is_web || !scheme.is_empty() && has_slashes(rest)).then_some(start)
    });
    // A password shows that it is meant as a URL: `http//me:password@host`.
    let with_password = || {
        let password = text[..text.rfind('@')?].rfind(':')?;
        let mut slashes = text[..password].match_indices(is_slash);
        let (at, _) = slashes.find(|&(at, _)| has_slashes(&text[at..]))?;
        Some(scheme_before(at))
    };
    // A password can look like another URL.
    [with_scheme, with_password()].into_iter().flatten().min()
}

fn hidden(url: &str) -> String {
    let after = url.trim_start_matches(is_of_scheme);
    let scheme = &url[..url.len() - after.len()];
    let after = after.strip_prefix(':').unwrap_or(after).trim_start_matches(is_slash);
    let start = &url[..url.len() - after.len()];
    let end = after.find(['?', '#']).unwrap_or(after.len());
    let (mut shown, query) = (after[..end].to_owned(), &after[end..]);
    if let Some(at) = after.rfind('@') {
        let host = after.split(|each| is_slash(each) || matches!(each, '?' | '#')).next();
        let is_host = |host: &str| host.contains('.') && !host.contains('@');
        let is_store = STORES.iter().any(|store| scheme.eq_ignore_ascii_case(store));
        if after[..at].contains(':') || !is_store && !host.is_some_and(is_host) {
            if at > end {
                // The end of a password and a query look the same.
                return format!("{start}...");
            }
            shown.replace_range(..at, "...");
        }
    }
    let query = match query.len() {
        0 | 1 => query.to_owned(),
        _ => format!("{}...", &query[..1]),
    };
    format!("{start}{shown}{query}")
}

fn is_of_scheme(each: char) -> bool {
    each.is_ascii_alphanumeric() || matches!(each, '+' | '-' | '.')
}

fn is_slash(each: char) -> bool {
    matches!(each, '/' | '\\')
}

fn has_slashes(text: &str) -> bool {
    let mut slashes = text.chars().map(is_slash);
    slashes.next() == Some(true) && slashes.next() == Some(true)
}

#[cfg(all(test, feature = "c"))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn urls_without_secrets() {
        for (url, shown) in [
            ("https://me:p/w@host.org/a", "https://...@host.org/a"),
            ("https://me:pa?ss@host.org/a", "https://..."),
            ("ftp://me:pa?ss@h", "ftp://..."),
            ("http:/me:pw@h/a", "http:/...@h/a"),
            ("http:me:pw@h/a", "http:...@h/a"),
            ("//me:pw@h/a?b", "//...@h/a?..."),
            ("http//me:pw@h/a", "http//...@h/a"),
            ("--output=https://me:pw@h.org/a", "--output=https://...@h.org/a"),
            ("https://host.org/a?id=me@project&sig=1", "https://host.org/a?..."),
            ("https://host.org/@public/a.b2nd", "https://host.org/@public/a.b2nd"),
            ("HTTPS://token@host.org/a", "HTTPS://...@host.org/a"),
            ("http://localhost:9000/a?x=1", "http://localhost:9000/a?..."),
            ("abfs://container@account/a", "abfs://container@account/a"),
            ("s3://bucket/a@b.b2nd#c", "s3://bucket/a@b.b2nd#..."),
            ("s3://key:sec?ret@bucket/a", "s3://..."),
            (" ht\ntp://me@h", " http://...@h"),
            ("https://h.org/a?", "https://h.org/a?"),
            ("https:", "https:"),
        ] {
            assert_eq!(without_secrets(url), shown);
        }
        for other in ["", "http", "a@b", "a?b#c", "a:b@c", "/data//a.b2nd", "C:\\a@b", "1:2,3:4"] {
            assert_eq!(without_secrets(other), other);
        }
    }

    /// Secrets consist of these letters, which are in no other part of the texts, and of other characters.
    const SECRET: &str = "[XYZ]{1,4}([XYZ]|[-/\\\\?#@:.=&%+ \t\n'\"äß]){0,8}";

    proptest! {
        /// No letter of a password or of a query is in a message, wherever it is in the URL, and whatever else is there.
        #[test]
        fn secrets_are_hidden(
            before in prop::sample::select(vec!["", " ", "--url=", "see '", "dir/", "é:"]),
            scheme in prop::sample::select(vec![
                "http", "HTTPS", "ftp", "s3", "abfs", "file", "git+ssh", "h\nttp",
            ]),
            slashes in prop::sample::select(vec!["://", ":\\\\", ":\t//", ":///"]),
            user in "[a-w0-9./?#@\\\\]{0,6}",
            password in prop::option::of(SECRET),
            path in "[a-w0-9./@:]{0,8}",
            host in prop::sample::select(vec!["host", "host.org", "h:80", "[::1]", ""]),
            mark in prop::sample::select(vec!["?", "#"]),
            query in prop::option::of(SECRET),
        ) {
            let user = password.map_or(String::new(), |password| format!("{user}:{password}@"));
            let query = query.map_or(String::new(), |query| format!("{mark}a={query}"));
            let text = format!("{before}{scheme}{slashes}{user}{host}/{path}{query}");
            let shown = without_secrets(&text);
            prop_assert!(!shown.contains(['X', 'Y', 'Z']), "{shown}");
            prop_assert_eq!(without_secrets(&shown), shown);
        }

        /// The parser of URLs needs no slashes after these schemes.
        #[test]
        fn secrets_without_slashes_are_hidden(
            scheme in prop::sample::select(vec!["http:", "https:/", "http:\\", "http//", "//"]),
            password in SECRET,
        ) {
            let shown = without_secrets(&format!("{scheme}me:{password}@host.org/a"));
            prop_assert!(!shown.contains(['X', 'Y', 'Z']), "{shown}");
        }

        #[test]
        fn any_text_is_accepted(text in ".{0,40}") {
            without_secrets(&text);
        }
    }
}
