//! The tail of the χ² distribution, from the incomplete gamma function.

/// Coefficients of the Lanczos approximation of Γ for g = 7.
const LANCZOS: [f64; 9] = [
    0.999_999_999_999_809_9,
    676.520_368_121_885_1,
    -1_259.139_216_722_402_8,
    771.323_428_777_653_1,
    -176.615_029_162_140_6,
    12.507_343_278_686_905,
    -0.138_571_095_265_720_12,
    9.984_369_578_019_572e-6,
    1.505_632_735_149_311_6e-7,
];
const G: f64 = 7.0;

/// The maximum number of terms of the series and of the continued fraction. Both converge much earlier, except for thousands of
/// degrees of freedom.
const MOST: usize = 100_000;

/// ln Γ(x) for x > 0.
pub(crate) fn ln_gamma(x: f64) -> f64 {
    if x < 0.5 {
        // Γ(x) Γ(1 - x) = π / sin(πx)
        return (std::f64::consts::PI / (std::f64::consts::PI * x).sin()).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let t = x + G + 0.5;
    let sum = (1..9).fold(LANCZOS[0], |sum, i| sum + LANCZOS[i] / (x + i as f64));
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

/// ln n!
pub(crate) fn ln_factorial(n: usize) -> f64 {
    ln_gamma(n as f64 + 1.0)
}

/// The probability that a χ²-distributed variable with `freedom` degrees of freedom exceeds `x`.
pub(crate) fn chi_squared_tail(x: f64, freedom: usize) -> f64 {
    if x <= 0.0 {
        return 1.0;
    }
    upper(freedom as f64 / 2.0, x / 2.0)
}

/// Q(a, x) = Γ(a, x) / Γ(a): for x < a + 1 from the series of P = 1 - Q, otherwise from the continued fraction by Lentz's method.
/// Each converges fast and without cancellation in its range.
fn upper(a: f64, x: f64) -> f64 {
    let front = (a * x.ln() - x - ln_gamma(a)).exp();
    if x < a + 1.0 {
        let (mut term, mut sum) = (1.0 / a, 1.0 / a);
        for n in 1..MOST {
            term *= x / (a + n as f64);
            sum += term;
            if term < sum * f64::EPSILON {
                break;
            }
        }
        return (1.0 - front * sum).clamp(0.0, 1.0);
    }
    let mut b = x + 1.0 - a;
    let mut c = 1.0 / f64::MIN_POSITIVE;
    let mut d = 1.0 / b;
    let mut h = d;
    for n in 1..MOST {
        let n = n as f64;
        let factor = -n * (n - a);
        b += 2.0;
        d = 1.0 / nonzero(factor * d + b);
        c = nonzero(b + factor / c);
        h *= d * c;
        if (d * c - 1.0).abs() < f64::EPSILON {
            break;
        }
    }
    (front * h).min(1.0)
}

fn nonzero(x: f64) -> f64 {
    if x.abs() < f64::MIN_POSITIVE { f64::MIN_POSITIVE } else { x }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_degrees_of_freedom_are_an_exponential() {
        for x in [0.01_f64, 0.5, 1.0, 3.0, 10.0, 50.0, 200.0] {
            let (found, expected) = (chi_squared_tail(x, 2), (-x / 2.0).exp());
            assert!((found / expected - 1.0).abs() < 1e-12, "{x}: {found}, {expected}");
        }
    }

    #[test]
    fn four_and_six_degrees_of_freedom_are_poisson_sums() {
        for x in [0.1_f64, 2.0, 7.0, 30.0] {
            let h = x / 2.0;
            assert!((chi_squared_tail(x, 4) / ((-h).exp() * (1.0 + h)) - 1.0).abs() < 1e-12);
            assert!((chi_squared_tail(x, 6) / ((-h).exp() * (1.0 + h + h * h / 2.0)) - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn factorials_are_those_of_whole_numbers() {
        let mut product = 1.0_f64;
        for n in 1..100 {
            product *= n as f64;
            assert!((ln_factorial(n) - product.ln()).abs() < 1e-12 * product.ln().max(1.0), "{n}");
        }
    }
}
