//! Spacing of labels that would overlap at their own places.

/// Places for labels that belong at `wanted`, at least `gap` apart and between `top` and `bottom`, as near to where
/// they belong as that allows (in the sum of squares). The order of `wanted` is kept. If there is not room for all,
/// they go on below `bottom`.
pub fn apart(wanted: &[f64], gap: f64, top: f64, bottom: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&one, &other| wanted[one].total_cmp(&wanted[other]));
    // Without the gaps that must lie above a label, the places need only not decrease: isotonic regression, by
    // merging neighbours that would change places into blocks at their mean.
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for (rank, &index) in order.iter().enumerate() {
        let mut block = (wanted[index] - rank as f64 * gap, 1);
        while let Some(&(mean, count)) = blocks.last() {
            if mean <= block.0 {
                break;
            }
            blocks.pop();
            let sum = mean * count as f64 + block.0 * block.1 as f64;
            block = (sum / (count + block.1) as f64, count + block.1);
        }
        blocks.push(block);
    }
    let lowest = bottom - wanted.len().saturating_sub(1) as f64 * gap;
    let packed = blocks
        .iter()
        .flat_map(|&(mean, count)| std::iter::repeat_n(mean, count));
    let mut places = vec![0.0; wanted.len()];
    for (rank, (&index, packed)) in order.iter().zip(packed).enumerate() {
        places[index] = packed.min(lowest).max(top) + rank as f64 * gap;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_with_room_stay_where_they_belong() {
        assert_eq!(apart(&[50.0, 10.0], 15.0, 0.0, 100.0), [50.0, 10.0]);
        assert_eq!(apart(&[], 15.0, 0.0, 100.0), Vec::<f64>::new());
    }

    #[test]
    fn labels_at_one_place_spread_around_it() {
        assert_eq!(
            apart(&[50.0, 50.0, 50.0], 10.0, 0.0, 100.0),
            [40.0, 50.0, 60.0]
        );
    }

    #[test]
    fn labels_at_the_edges_stay_inside() {
        assert_eq!(
            apart(&[100.0, 99.0, 0.0], 10.0, 0.0, 100.0),
            [100.0, 90.0, 0.0]
        );
        assert_eq!(apart(&[0.0, 0.0], 10.0, 0.0, 100.0), [0.0, 10.0]);
    }
}
