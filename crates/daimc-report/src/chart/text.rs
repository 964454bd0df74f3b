//! Formatting of text and numbers for the page.

/// Appends formatted text to a string. Writing to a string cannot fail.
macro_rules! put {
    ($out:expr, $($text:tt)*) => {{
        use std::fmt::Write as _;
        let _ = write!($out, $($text)*);
    }};
}
pub(crate) use put;

/// Escapes text for HTML elements and quoted attributes. Control characters, which are not allowed, become spaces.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' => out.push('\n'),
            other if other.is_control() => out.push(' '),
            other => out.push(other),
        }
    }
    out
}

/// JSON for a script element: nothing in it can end the element.
pub(crate) fn script_json(value: &impl serde::Serialize) -> String {
    let json = serde_json::to_string(value).expect("plain data can be written as JSON");
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

/// Shortens text to at most `most` characters, ending with an ellipsis.
pub(crate) fn shorten(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.into();
    }
    let mut short: String = text.chars().take(most.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// As [`shorten`], but keeps the end too, so that names with a common prefix stay different.
pub(crate) fn middle(text: &str, most: usize) -> String {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= most {
        return text.into();
    }
    let end = most / 2;
    let start = most - end - 1;
    letters[..start].iter().chain(['…'].iter()).chain(&letters[letters.len() - end..]).collect()
}

/// The maximum length of a name, which keeps long names from filling the page.
pub(crate) const LONGEST: usize = 100;

/// An escaped name, shortened to [`LONGEST`] characters.
pub(crate) fn name(text: &str) -> String {
    escape(&shorten(text, LONGEST))
}

/// A whole number with thousands separators.
pub(crate) fn count(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A count with its noun: `1 view`, `2 views`.
pub(crate) fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", count(number))
}

/// A number with four significant digits.
pub(crate) fn number(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        "0".into()
    } else if !value.is_finite() {
        "–".into()
    } else if !(1e-3..1e7).contains(&size) {
        format!("{value:.2e}").replace('-', "−")
    } else if size >= 1000.0 {
        let sign = if value < 0.0 { "−" } else { "" };
        format!("{sign}{}", count(size.round() as usize))
    } else {
        let decimals = (3.0 - size.log10().floor()).clamp(0.0, 6.0) as usize;
        format!("{value:.decimals$}").replace('-', "−")
    }
}

/// A p-value, in scientific notation below 10⁻⁴.
pub(crate) fn p_value(p: f64) -> String {
    if p < 1e-4 { format!("{p:.1e}").replace('-', "−") } else { format!("{p:.4}") }
}

/// A number from −1 to 1 with three decimals.
pub(crate) fn score(value: f64) -> String {
    format!("{value:.3}").replace('-', "−")
}

/// A number from −1 to 1 with its sign and two decimals.
pub(crate) fn signed(value: f64) -> String {
    let text = format!("{value:+.2}").replace('-', "−");
    if ["+0.00", "−0.00"].contains(&text.as_str()) { "0.00".into() } else { text }
}

/// A share in per cent, with one decimal. Shares just above 0 or just below 1 are not rounded to 0% or 100%.
pub(crate) fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    match percent {
        p if p > 0.0 && p < 0.05 => "<0.1%".into(),
        p if p < 100.0 && p > 99.95 => ">99.9%".into(),
        p if p == 0.0 || p == 100.0 => format!("{p:.0}%"),
        p => format!("{p:.1}%"),
    }
}

/// A number of standard deviations. Above a hundred, the exact number is meaningless.
pub(crate) fn sigmas(value: f64) -> String {
    if value > 100.0 { "over 100 σ".into() } else { format!("{value:.1} σ").replace('-', "−") }
}

/// Encodes bytes in base64.
pub(crate) fn base64(bytes: impl IntoIterator<Item = u8>) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bytes: Vec<u8> = bytes.into_iter().collect();
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let at = |i: usize| u32::from(three.get(i).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for digit in 0..4 {
            let value = (bits >> (18 - 6 * digit)) as usize & 63;
            out.push(if digit > three.len() { '=' } else { DIGITS[value].into() });
        }
    }
    out
}

/// A duration in a unit that suits its length.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => format!("{:.0} ms", 1000.0 * s),
        s if s < 100.0 => format!("{s:.1} s"),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_escaped_in_text_and_in_json() {
        assert_eq!(escape("<a b='\"&\u{7}'>"), "&lt;a b=&#39;&quot;&amp; &#39;&gt;");
        assert_eq!(script_json(&"</script>\u{2028}"), "\"\\u003c/script>\\u2028\"");
    }

    #[test]
    fn numbers_are_formatted_consistently() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [0.0, 0.1234, 12.345, 1234.5, -0.5].map(number),
            ["0", "0.1234", "12.35", "1,235", "−0.5000"]
        );
        assert_eq!(number(1.5e-9), "1.50e−9");
        assert_eq!([0.0, 0.0001, 0.5, 0.9999, 1.0].map(percent), ["0%", "<0.1%", "50.0%", ">99.9%", "100%"]);
        assert_eq!([0.4, -0.4, 0.001, -0.001].map(signed), ["+0.40", "−0.40", "0.00", "0.00"]);
        assert_eq!([0.25, 12.3, 600.0].map(duration), ["250 ms", "12.3 s", "10 min"]);
        assert_eq!((counted(1, "view"), counted(1200, "view")), ("1 view".into(), "1,200 views".into()));
    }

    #[test]
    fn bytes_become_base64() {
        let of = |text: &str| base64(text.bytes());
        assert_eq!(["", "f", "fo", "foo", "foobar"].map(of), ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYmFy"]);
        assert_eq!(base64([0xff, 0xff, 0xfe]), "///+");
    }

    #[test]
    fn long_names_are_cut_by_characters() {
        assert_eq!(shorten("äöüß", 4), "äöüß");
        assert_eq!(shorten("äöüßé", 4), "äöü…");
        assert_eq!((middle("sample 0001", 8), middle("sample", 8)), ("sam…0001".into(), "sample".into()));
    }
}
