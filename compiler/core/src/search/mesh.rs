//! The meshes that are worth trying for a number of sites.
//!
//! All products of at most three factors (three being enough for any three-way product) of every number of sites
//! that the balance rule allows. A dimension may be cut along several axes, so `2x2x4` contains `16`, `2x8` and
//! `4x4`: only the finest factorisations are listed. Must not know programs.
//!
//! ```text
//! 12 sites, at least 10: 2x2x3, 11, 2x5
//! ```

use ein_plan::Mesh;

/// The most axes of a mesh.
pub const AXES: usize = 3;

/// Candidate meshes of `fewest` to `sites` sites, more sites first, then in the order of their axes.
pub fn meshes(sites: u32, fewest: u32) -> Vec<Mesh> {
    let fewest = fewest.clamp(1, sites.max(1));
    (fewest..=sites.max(1))
        .rev()
        .flat_map(factorisations)
        .map(|axes| Mesh { axes })
        .collect()
}

/// The fewest sites that can do the work within `kappa` times an even share of `sites` sites.
pub fn fewest_sites(sites: u32, kappa: f64) -> u32 {
    // Four of five sites are exactly 1.25 times as busy: rounding must not exclude them.
    let least = f64::from(sites) / kappa.max(1.0) * (1.0 - 1e-9);
    (least.ceil() as u32).clamp(1, sites.max(1))
}

/// Ways to write `n` as an ascending product of min([`AXES`], number of prime factors) factors from 2.
fn factorisations(n: u32) -> Vec<Vec<u32>> {
    let primes = prime_factors(n);
    if primes.is_empty() {
        return vec![vec![1]];
    }
    let mut found = vec![];
    extend(n, 2, primes.len().min(AXES), &mut vec![], &mut found);
    found
}

fn extend(n: u32, least: u32, parts: usize, chosen: &mut Vec<u32>, found: &mut Vec<Vec<u32>>) {
    if parts == 1 {
        if n >= least {
            found.push(chosen.iter().copied().chain([n]).collect());
        }
        return;
    }
    for factor in (least..=n).take_while(|f| f.saturating_mul(*f) <= n) {
        if n.is_multiple_of(factor) {
            chosen.push(factor);
            extend(n / factor, factor, parts - 1, chosen, found);
            chosen.pop();
        }
    }
}

fn prime_factors(mut n: u32) -> Vec<u32> {
    let mut primes = vec![];
    let mut factor = 2;
    while n > 1 {
        if factor * factor > n {
            factor = n;
        }
        while n.is_multiple_of(factor) {
            primes.push(factor);
            n /= factor;
        }
        factor += 1;
    }
    primes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(sites: u32, kappa: f64) -> String {
        let meshes = meshes(sites, fewest_sites(sites, kappa));
        let names: Vec<String> = meshes.iter().map(Mesh::to_string).collect();
        names.join(", ")
    }

    #[test]
    fn every_number_of_sites_that_balance_allows() {
        assert_eq!(text(1, 1.25), "1");
        assert_eq!(text(5, 1.25), "5, 2x2");
        assert_eq!(text(8, 1.25), "2x2x2, 7");
        assert_eq!(text(8, 1.0), "2x2x2");
        assert_eq!(text(12, 1.2), "2x2x3, 11, 2x5");
        assert_eq!(text(64, 1.0), "2x2x16, 2x4x8, 4x4x4");
        let most = meshes(128, fewest_sites(128, 1.25));
        assert_eq!(most.len(), 48);
        assert!(most.iter().all(|mesh| (103..=128).contains(&mesh.sites())));
    }
}
