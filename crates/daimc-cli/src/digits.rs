//! Fast formatting of numbers with few digits.

use std::io::Write;

/// The powers of ten that are exact in `f64`.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

/// Significant digits of [`significant`].
const DIGITS: i32 = 6;

/// Appends a number with six significant digits, as `%g` of C does: no trailing zeros, and an exponent for values below
/// 0.0001 or from a million on.
pub fn significant(out: &mut Vec<u8>, value: f64) {
    if value == 0.0 || !value.is_finite() {
        let _ = write!(out, "{}", value.abs());
        return;
    }
    if value < 0.0 {
        out.push(b'-');
    }
    let (mut digits, exponent) = split(value.abs());
    let mut count = DIGITS as usize;
    while digits % 10 == 0 {
        digits /= 10;
        count -= 1;
    }
    match exponent {
        -4..0 => {
            out.extend_from_slice(&b"0.000"[..=exponent.unsigned_abs() as usize]);
            padded(out, digits, count);
        }
        0..DIGITS => {
            let whole = exponent as usize + 1;
            let scale = 10_u32.pow(count.abs_diff(whole) as u32);
            if count <= whole {
                padded(out, digits * scale, whole);
            } else {
                padded(out, digits / scale, whole);
                out.push(b'.');
                padded(out, digits % scale, count - whole);
            }
        }
        _ => {
            let scale = 10_u32.pow(count as u32 - 1);
            padded(out, digits / scale, 1);
            if count > 1 {
                out.push(b'.');
                padded(out, digits % scale, count - 1);
            }
            let _ = write!(out, "e{exponent}");
        }
    }
}

/// Appends a number from −1 to 1 with four decimals.
pub fn decimals(out: &mut Vec<u8>, value: f64) {
    let digits = (value.abs() * 1e4).round() as u32;
    if value < 0.0 && digits > 0 {
        out.push(b'-');
    }
    padded(out, digits / 10_000, 1);
    out.push(b'.');
    padded(out, digits % 10_000, 4);
}

/// Six digits as a whole number, and the power of ten of the first of them.
fn split(value: f64) -> (u32, i32) {
    let scaled = |exponent: i32| {
        let power = POWERS.get((DIGITS - 1 - exponent).unsigned_abs() as usize)?;
        // One rounding, as the power is exact.
        let scaled = if exponent < DIGITS { value * power } else { value / power };
        Some((scaled.round(), exponent))
    };
    // The logarithm may be off by one next to a power of ten.
    let about = value.log10().floor() as i32;
    let found = [about, about + 1, about - 1].into_iter().filter_map(scaled);
    if let Some((digits, exponent)) = { found }.find(|(digits, _)| (1e5..1e6).contains(digits)) {
        return (digits as u32, exponent);
    }
    // Beyond the exact powers the standard library formats; such values are rare.
    let text = format!("{value:.5e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    (digits.replace('.', "").parse().unwrap_or(0), exponent.parse().unwrap_or(0))
}

/// Appends the last `width` digits of a number.
fn padded(out: &mut Vec<u8>, mut number: u32, width: usize) {
    let start = out.len();
    out.resize(start + width, b'0');
    for digit in out[start..].iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

#[cfg(test)]
mod tests {
    use daimc_fuzz::Random;

    use super::*;

    fn text(write: fn(&mut Vec<u8>, f64), value: f64) -> String {
        let mut out = Vec::new();
        write(&mut out, value);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_have_six_significant_digits_and_no_more() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1"),
            (0.5, "0.5"),
            (-0.25, "-0.25"),
            (100.0, "100"),
            (999_999.4, "999999"),
            (999_999.6, "1e6"),
            (1_234_567.0, "1.23457e6"),
            (0.1 + 0.2, "0.3"),
            (0.999_999_96, "1"),
            (1.0 / 3.0, "0.333333"),
            (200.0 / 3.0, "66.6667"),
            (0.000_123_456_7, "0.000123457"),
            (0.000_012_345_67, "1.23457e-5"),
            (9.999_999e-5, "0.0001"),
            (1e-12, "1e-12"),
            (1.5e-200, "1.5e-200"),
            (f64::MIN_POSITIVE, "2.22507e-308"),
            (5e-324, "4.94066e-324"),
            (f64::MAX, "1.79769e308"),
        ] {
            assert_eq!(text(significant, value), expected);
        }
    }

    #[test]
    fn numbers_are_read_back_to_six_digits() {
        let mut random = Random::of_case(0, 0, 0);
        for _ in 0..200_000 {
            let value = f64::from_bits(random.next());
            // The smallest have fewer digits themselves.
            if !value.is_finite() || value.abs() < f64::MIN_POSITIVE {
                continue;
            }
            for value in [value, value.abs().sqrt().sqrt().sqrt().sqrt().sqrt().sqrt().sqrt()] {
                let read: f64 = text(significant, value).parse().unwrap();
                assert!((read - value).abs() <= 5.000_001e-6 * value.abs(), "{value:e}, read as {read:e}");
            }
        }
    }

    #[test]
    fn decimals_are_four() {
        for (value, expected) in
            [(0.0, "0.0000"), (1.0, "1.0000"), (-1.0, "-1.0000"), (0.12345, "0.1235"), (-1e-9, "0.0000")]
        {
            assert_eq!(text(decimals, value), expected);
        }
    }
}
