//! The cleaning of typed and pasted numbers, the same on every screen and on the server.

/// White space and the characters that have no width: what a paste brings along unseen.
pub(crate) fn is_unseen(c: char) -> bool {
    c.is_whitespace()
        || matches!(c, '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

/// Drops unseen characters around and inside a number and turns full-width digits into ASCII ones.
///
/// Everything else stays as it is, so that the parser refuses it: a dash, a letter or another script's digits must not
/// vanish in silence.
pub fn clean_digits(typed: &str) -> String {
    typed
        .chars()
        .filter(|c| !is_unseen(*c))
        .map(|c| match c {
            '０'..='９' => char::from(b'0' + (c as u32 - '０' as u32) as u8),
            other => other,
        })
        .collect()
}

/// Drops unseen characters around a text, none inside it.
pub fn trim(text: &str) -> &str {
    text.trim_matches(is_unseen)
}
