//! The numbers that the paper reports; its figures have none.

/// Table 2 of the paper: data, method, NMI, AC. Two-view methods have no value for the whole set.
pub const TABLE_2: [(&str, &str, f64, f64); 18] = [
    ("bbc+guardian", "daimc-paper", 0.4264, 0.5399),
    ("bbc+guardian", "mic", 0.3813, 0.4988),
    ("bbc+guardian", "pvc", 0.2412, 0.4334),
    ("bbc+guardian", "img", 0.2614, 0.4511),
    ("bbc+guardian", "multinmf", 0.3647, 0.4693),
    ("bbc+reuters", "daimc-paper", 0.4482, 0.5641),
    ("bbc+reuters", "mic", 0.3814, 0.4912),
    ("bbc+reuters", "pvc", 0.2931, 0.4252),
    ("bbc+reuters", "img", 0.3612, 0.4624),
    ("bbc+reuters", "multinmf", 0.3687, 0.4517),
    ("guardian+reuters", "daimc-paper", 0.3805, 0.5124),
    ("guardian+reuters", "mic", 0.3800, 0.4612),
    ("guardian+reuters", "pvc", 0.2488, 0.4145),
    ("guardian+reuters", "img", 0.3411, 0.4384),
    ("guardian+reuters", "multinmf", 0.3487, 0.4281),
    ("3sources", "daimc-paper", 0.4733, 0.5963),
    ("3sources", "mic", 0.4512, 0.5631),
    ("3sources", "multinmf", 0.4134, 0.4756),
];

/// The methods that the paper compares DAIMC with.
pub const COMPARED: [&str; 4] = ["multinmf", "mic", "pvc", "img"];

/// A score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Score {
    Ac,
    Nmi,
}

/// The improvement of a score by DAIMC that the text of the paper claims, in per cent, over these shares of missing instances. The
/// paper does not name the method it is relative to.
pub struct Claim {
    pub data: &'static str,
    pub score: Score,
    pub rates: &'static [f64],
    pub percent: f64,
}

/// The shares of missing instances of Figure 1.
pub const RATES: [f64; 6] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5];

pub const CLAIMS: [Claim; 6] = [
    Claim { data: "digit", score: Score::Nmi, rates: &[0.4, 0.5], percent: 60.78 },
    Claim { data: "digit", score: Score::Ac, rates: &[0.4, 0.5], percent: 64.67 },
    Claim { data: "wikipedia", score: Score::Nmi, rates: &RATES, percent: 8.65 },
    Claim { data: "wikipedia", score: Score::Ac, rates: &[0.0, 0.1], percent: 3.53 },
    Claim { data: "flowers17", score: Score::Nmi, rates: &RATES, percent: 10.29 },
    Claim { data: "flowers17", score: Score::Ac, rates: &RATES, percent: 20.37 },
];
