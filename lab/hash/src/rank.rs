//! The ranking of functions, and the advice which one to take.
//!
//! A function is good enough when a hit and a miss together search at most 5 % more objects than under a perfect hash:
//! a better one would make no visible difference. Among the good ones the cheapest comes first; the others follow by
//! what they search. Where untrusted parties choose the keys, take the cheapest good one with a seed, independent of
//! its rank.

use crate::analyze::Assessment;

/// How many objects a good function may search / those of a perfect one.
const SLACK: f64 = 1.05;

/// The order of the functions, and which to take.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// Places in the list of assessments, the best first.
    pub order: Vec<usize>,
    /// What to take and why, in one line.
    pub advice: String,
}

/// Objects searched for a hit and a miss / those of a perfect hash.
pub fn searched_ratio(assessment: &Assessment) -> f64 {
    let (seen, perfect) = (&assessment.histogram, assessment.perfect());
    let perfect = perfect.searched_hit() + perfect.searched_miss();
    (seen.searched_hit() + seen.searched_miss()) / perfect
}

/// Ranks functions that were judged on the same keys and table. There must be one.
pub fn rank(assessments: &[Assessment]) -> Ranking {
    let is_good = |assessment: &Assessment| searched_ratio(assessment) <= SLACK;
    let mut order: Vec<usize> = (0..assessments.len()).collect();
    order.sort_by(|&one, &other| {
        let (one, other) = (&assessments[one], &assessments[other]);
        let classes = is_good(other).cmp(&is_good(one));
        classes.then_with(|| match is_good(one) {
            true => one.cost.ns_per_key.total_cmp(&other.cost.ns_per_key),
            false => searched_ratio(one).total_cmp(&searched_ratio(other)),
        })
    });
    let advice = advise(assessments, &order, is_good);
    Ranking { order, advice }
}

fn advise(
    assessments: &[Assessment],
    order: &[usize],
    is_good: impl Fn(&Assessment) -> bool,
) -> String {
    let best = &assessments[order[0]];
    let good = assessments
        .iter()
        .filter(|assessment| is_good(assessment))
        .count();
    let perfect = best.perfect();
    let searched = format!(
        "{:.2} objects a hit and {:.2} a miss (perfect: {:.2} and {:.2})",
        best.histogram.searched_hit(),
        best.histogram.searched_miss(),
        perfect.searched_hit(),
        perfect.searched_miss()
    );
    let (name, ns) = (best.name, best.cost.ns_per_key);
    let mut advice = match good {
        0 => format!("take {name}, the least bad: {searched}; none is within 5 % of perfect"),
        1 => {
            format!("take {name}: {searched}, {ns:.1} ns a key; no other is within 5 % of perfect")
        }
        _ => format!(
            "take {name}: {searched}, and at {ns:.1} ns a key the cheapest of the {good} that are \
             within 5 % of perfect"
        ),
    };
    let seeded = order
        .iter()
        .map(|&at| &assessments[at])
        .find(|assessment| assessment.seeded);
    if let Some(seeded) = seeded.filter(|_| !best.seeded) {
        advice += &format!(
            "; if untrusted parties choose your keys, {} ({:.1} ns): without a seed a function can be flooded",
            seeded.name, seeded.cost.ns_per_key
        );
    }
    advice
}
