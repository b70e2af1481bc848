//! JSON as text.

use serde::Serialize;

/// A value as JSON with line breaks and indentation.
pub(crate) fn pretty(value: &impl Serialize) -> serde_json::Result<String> {
    Ok(escape(serde_json::to_string_pretty(value)?))
}

/// A value as JSON in one line.
pub(crate) fn compact(value: &impl Serialize) -> serde_json::Result<String> {
    Ok(escape(serde_json::to_string(value)?))
}

/// Escapes the control characters U+007F to U+009F, which JSON allows in strings and a terminal may obey.
fn escape(json: String) -> String {
    let is_control = |each: char| matches!(each, '\u{7f}'..='\u{9f}');
    if !json.contains(is_control) {
        return json;
    }
    let mut escaped = String::with_capacity(json.len());
    for each in json.chars() {
        match is_control(each) {
            true => escaped += &format!("\\u{:04x}", u32::from(each)),
            false => escaped.push(each),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn no_control_character_is_written() {
        let text: String = (0..=0xff).filter_map(char::from_u32).collect();
        let value = json!({ &text: [&text, 1, null], "\u{9b}31m": {} });
        let one_line = compact(&value).unwrap();
        assert!(!one_line.contains(char::is_control));
        assert!(one_line.contains("\\u007f\\u0080") && one_line.contains("\\u009f\u{a0}"));
        assert_eq!(serde_json::from_str::<Value>(&one_line).unwrap(), value);
        let lines = pretty(&value).unwrap();
        assert!(!lines.contains(|each: char| each.is_control() && each != '\n'));
        assert_eq!(serde_json::from_str::<Value>(&lines).unwrap(), value);
        assert_eq!(pretty(&json!(["a"])).unwrap(), "[\n  \"a\"\n]");
    }
}
