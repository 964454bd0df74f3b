//! Selectors of variables and their cells: `X`, `X{2}`, `X{1,2}`, `X{1}{2}`.

/// A parsed selector.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Selector<'a> {
    pub name: &'a str,
    /// Subscripts from 1.
    pub cells: Vec<Vec<usize>>,
}

impl<'a> Selector<'a> {
    /// Parses a selector; `None` if it is invalid.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (name, mut rest) = text.split_at(text.find('{').unwrap_or(text.len()));
        let mut cells = Vec::new();
        while !rest.is_empty() {
            let (inner, after) = rest.strip_prefix('{')?.split_once('}')?;
            let subscripts = inner.split(',').map(|number| number.trim().parse().ok().filter(|&i| i > 0));
            cells.push(subscripts.collect::<Option<_>>()?);
            rest = after;
        }
        (!name.is_empty()).then_some(Self { name, cells })
    }
}

/// The index of a cell in the file, from 0, in column-major order.
pub(crate) fn position(subscripts: &[usize], shape: &[usize]) -> Option<usize> {
    if let [linear] = subscripts {
        return Some(linear - 1);
    }
    if subscripts.len() != shape.len() {
        return None;
    }
    let mut position: usize = 0;
    for (&subscript, &size) in subscripts.iter().zip(shape).rev() {
        if subscript > size {
            return None;
        }
        position = position.checked_mul(size)?.checked_add(subscript - 1)?;
    }
    Some(position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_parsed() {
        let cells = |text| Selector::parse(text).map(|selector| selector.cells);
        assert_eq!(cells("X"), Some(vec![]));
        assert_eq!(cells("X{2}"), Some(vec![vec![2]]));
        assert_eq!(cells("X{1, 2}{3}"), Some(vec![vec![1, 2], vec![3]]));
        for text in ["", "{1}", "X{", "X{}", "X{0}", "X{a}", "X{1}y", "X}"] {
            let none = if text == "X}" { Some(vec![]) } else { None };
            assert_eq!(cells(text), none, "{text}");
        }
    }

    #[test]
    fn cells_are_in_column_major_order() {
        assert_eq!(position(&[4], &[2, 3]), Some(3));
        assert_eq!(position(&[2, 3], &[2, 3]), Some(5));
        assert_eq!(position(&[1, 2], &[2, 3]), Some(2));
        assert_eq!(position(&[3, 1], &[2, 3]), None);
        assert_eq!(position(&[1, 1, 1], &[2, 3]), None);
    }
}
