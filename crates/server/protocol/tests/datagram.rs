//! Property tests of memcached's datagrams with arbitrary and partly valid input.

mod datagram_invariants;

use datagram_invariants::check;
use proptest::prelude::*;

/// Headers that are often those of a whole request, and texts that are often requests.
fn soup() -> impl Strategy<Value = Vec<u8>> {
    let number = |lawful: u16| prop_oneof![8 => Just(lawful), 1 => any::<u16>()];
    let header = (any::<u16>(), number(0), number(1), any::<u16>());
    let words: [&[u8]; 7] = [
        b"get a\r\n",
        b"set a 0 0 1\r\nx\r\n",
        b"set a 0 0 65\r\n",
        b"mg a v\r\n",
        b"\x80\x0a\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        b"\x80\x00\0\x01\0\0\0\0\0\0\0\x01",
        b"\xff\r\n",
    ];
    let word = prop::sample::select(words.to_vec());
    (header, prop::collection::vec(word, 0..6), 0..20_usize).prop_map(|(header, words, cut)| {
        let (request, number, of, later) = header;
        let mut bytes = [request, number, of, later].map(u16::to_be_bytes).concat();
        bytes.extend(words.concat());
        bytes.truncate(bytes.len().saturating_sub(cut / 4));
        bytes
    })
}

proptest! {
    #[test]
    fn any_bytes(input in prop::collection::vec(any::<u8>(), 0..300)) {
        check(&input);
    }

    #[test]
    fn half_right_bytes(input in soup()) {
        check(&input);
    }
}

#[test]
fn an_answer_may_end_with_a_frame_or_beside_one() {
    for len in [0, 1, 1391, 1392, 1393, 2783, 2784, 2785, 10_000] {
        for seed in [0, 1, 126, 127, 255] {
            check(&[&[seed, 0][..], &vec![b'x'; len]].concat());
        }
    }
}
