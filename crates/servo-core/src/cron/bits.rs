//! Sets of small numbers as bits: how many are below a value, and which is the n-th.

/// How many members are below `value`, which is at most 63.
pub(super) fn below(set: u64, value: i64) -> i64 {
    i64::from((set & ((1 << value) - 1)).count_ones())
}

/// Whether `value`, which is at most 63, is a member.
pub(super) fn has(set: u64, value: i64) -> bool {
    set >> value & 1 == 1
}

/// How many members there are.
pub(super) fn len(set: u64) -> i64 {
    i64::from(set.count_ones())
}

/// The member that has `n` others below it; there are more than `n` members.
pub(super) fn nth(mut set: u64, n: i64) -> i64 {
    for _ in 0..n {
        set &= set - 1;
    }
    i64::from(set.trailing_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_member_has_n_members_below_it() {
        let set = 1 << 59 | 0b1011_0001;
        let members: Vec<_> = (0..len(set)).map(|n| nth(set, n)).collect();
        assert_eq!(members, [0, 4, 5, 7, 59]);
        for (n, member) in members.into_iter().enumerate() {
            assert!(has(set, member));
            assert_eq!(below(set, member), n as i64);
        }
    }
}
