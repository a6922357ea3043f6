//! Copies of boxes of every order against plain loops.
#![allow(clippy::unwrap_used)]

use super::{Axis, Copying, Plain};

fn check<T: Plain + PartialEq + std::fmt::Debug + Default>(value: impl Fn(usize) -> T) {
    // Extents that do not divide by the side of a square, one of them 1.
    for extents in [
        vec![5, 19, 8],
        vec![16, 1, 24],
        vec![33, 2, 9, 11],
        vec![3],
        vec![],
    ] {
        let rank = extents.len();
        let count: usize = extents.iter().product();
        let strides = |order: &[usize]| {
            let mut steps = vec![0; rank];
            let mut step = 1;
            for d in order.iter().rev() {
                steps[*d] = step as isize;
                step *= extents[*d];
            }
            steps
        };
        let orders = permutations(rank);
        for from in &orders {
            for to in &orders {
                let (from, to) = (strides(from), strides(to));
                let axes: Vec<Axis> = (0..rank)
                    .map(|d| Axis {
                        extent: extents[d],
                        from: from[d],
                        to: to[d],
                    })
                    .collect();
                let source: Vec<T> = (0..count).map(&value).collect();
                let mut target = vec![T::default(); count];
                // SAFETY: both sides are dense boxes of these extents.
                unsafe { Copying::new(&axes).copy(source.as_ptr(), target.as_mut_ptr()) };
                let mut again = vec![T::default(); count];
                // SAFETY: as above.
                unsafe { Copying::new(&axes).copy_by_all(source.as_ptr(), again.as_mut_ptr()) };
                assert_eq!(again, target, "{axes:?}");
                for number in 0..count {
                    let (mut rest, mut f, mut t) = (number, 0, 0);
                    for d in (0..rank).rev() {
                        let i = (rest % extents[d]) as isize;
                        rest /= extents[d];
                        f += i * from[d];
                        t += i * to[d];
                    }
                    assert_eq!(target[t as usize], source[f as usize], "{axes:?}");
                }
            }
        }
    }
}

fn permutations(n: usize) -> Vec<Vec<usize>> {
    if n == 0 {
        return vec![vec![]];
    }
    let smaller = permutations(n - 1);
    let inserted = smaller.iter().flat_map(|p| {
        (0..n).map(move |at| {
            let mut p = p.clone();
            p.insert(at, n - 1);
            p
        })
    });
    inserted.collect()
}

#[test]
fn boxes_of_every_order() {
    check(|e| e as f32);
    check(|e| e as f64);
}

#[test]
fn a_diagonal_and_a_repeated_line() {
    // to[i, j] = from[i, i], to dense 9 by 4.
    let source: Vec<f32> = (0..81u8).map(f32::from).collect();
    let mut target = vec![0f32; 36];
    let axes = [
        Axis {
            extent: 9,
            from: 10,
            to: 4,
        },
        Axis {
            extent: 4,
            from: 0,
            to: 1,
        },
    ];
    // SAFETY: the diagonal of 9 by 9 is inside the source, and the target is dense.
    unsafe { Copying::new(&axes).copy(source.as_ptr(), target.as_mut_ptr()) };
    for i in 0..9 {
        assert_eq!(target[4 * i..4 * i + 4], [source[10 * i]; 4]);
    }
}
