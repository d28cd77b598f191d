//! The meta commands.

use super::fixture::Fixture;

#[test]
fn mg_returns_what_its_flags_ask_for_in_their_order() {
    let server = Fixture::new();
    let mut client = server.client();
    client.ask("mg k\r\n", "EN\r\n");
    client.ask("mg k v k Oop\r\n", "EN kk Oop\r\n");
    client.ask("ms k 2 F5 T100\r\nhi\r\n", "HD\r\n");
    client.ask("mg k\r\n", "HD\r\n");
    client.ask("mg k v\r\n", "VA 2\r\nhi\r\n");
    client.ask("mg k s t f k Oop\r\n", "HD s2 t100 f5 kk Oop\r\n");
    client.ask("mg k Oop v f s\r\n", "VA 2 Oop f5 s2\r\nhi\r\n");
    client.ask("mg k T50 t\r\n", "HD t50\r\n");
}

#[test]
fn quiet_leaves_out_what_is_no_news() {
    let server = Fixture::new();
    let mut client = server.client();
    client.ask(
        "mg none q\r\nms k 1 q\r\na\r\nmg k q v\r\nmd k q\r\nmg k q v\r\n",
        "VA 1\r\na\r\n",
    );
    client.ask(
        "md k q O1\r\nma k q k\r\nms k 1 q C5\r\na\r\n",
        "NF O1\r\nNF kk\r\nNF\r\n",
    );
    client.ask("ms k 1 q ME\r\na\r\nms k 1 q ME\r\nb\r\n", "NS\r\n");
    client.ask("md k q C12345678\r\n", "EX\r\n");
}

#[test]
fn mn_answers_behind_what_came_before() {
    let server = Fixture::new();
    let mut client = server.client();
    client.ask("mn\r\nmn\r\n", "MN\r\nMN\r\n");
    client.ask(
        "mg a q\r\nmn\r\nmg a\r\nmn\r\nmn\r\n",
        "MN\r\nEN\r\nMN\r\nMN\r\n",
    );
    client.ask("get a\r\nmn\r\n", "END\r\nMN\r\n");
}

#[test]
fn ms_has_the_modes_of_the_text_commands() {
    let server = Fixture::new();
    let mut client = server.client();
    client.ask("ms k 1 MR\r\na\r\n", "NS\r\n");
    client.ask("ms k 1 MA\r\na\r\n", "NS\r\n");
    client.ask("ms k 1 ME\r\nb\r\n", "HD\r\n");
    client.ask("ms k 1 ME\r\nx\r\n", "NS\r\n");
    client.ask("ms k 1 MA\r\nc\r\n", "HD\r\n");
    client.ask("ms k 1 MP\r\na\r\n", "HD\r\n");
    client.ask("mg k v\r\n", "VA 3\r\nabc\r\n");
    client.ask("ms new 1 MA N60\r\na\r\n", "HD\r\n");
    client.ask("mg new v t\r\n", "VA 1 t60\r\na\r\n");
}

#[test]
fn ms_tells_and_demands_a_cas() {
    let server = Fixture::new();
    let mut client = server.client();
    client.ask("ms k 1 E100 c\r\na\r\n", "HD c100\r\n");
    client.ask("ms k 1 C99\r\nb\r\n", "EX\r\n");
    client.ask("ms none 1 C99\r\nb\r\n", "NF\r\n");
    client.ask("ms k 1 C100 E200\r\nb\r\n", "HD\r\n");
    client.ask("mg k c v\r\n", "VA 1 c200\r\nb\r\n");
    client.ask("mg k C200 v\r\n", "HD\r\n");
    client.ask("ms none 1 MA C1\r\na\r\n", "NS\r\n");
    client.ask("ms k 1 C0 I\r\nc\r\nms k 1 MA C0\r\nc\r\n", "EX\r\nHD\r\n");
}

#[test]
fn a_stale_item_is_won_once() {
    let server = Fixture::new();
    let mut client = server.client();
    client.ask("ms k 1\r\na\r\nmd k I T30\r\n", "HD\r\nHD\r\n");
    client.ask("mg k v t\r\n", "VA 1 t30 X W\r\na\r\n");
    client.ask("mg k v\r\n", "VA 1 Z X\r\na\r\n");
    client.ask("ms k 1\r\nb\r\nmg k v\r\n", "HD\r\nVA 1\r\nb\r\n");
    // Only mg shows it.
    client.ask("ms k 1 E5\r\n1\r\nms k 1 C4 I\r\n2\r\n", "HD\r\nHD\r\n");
    client.ask("ma k\r\nmg k v\r\n", "HD\r\nVA 1 X W\r\n3\r\n");
}

#[test]
fn a_miss_can_be_vivified_and_won() {
    let server = Fixture::new();
    let mut client = server.client();
    client.ask("mg k v N30 t\r\n", "VA 0 t30 W\r\n\r\n");
    client.ask("mg k v N30 t\r\n", "VA 0 t30 Z\r\n\r\n");
}

#[test]
fn a_short_life_can_be_won_for_recaching() {
    let server = Fixture::new();
    let mut client = server.client();
    client.ask("ms k 1 T50\r\na\r\n", "HD\r\n");
    client.ask("mg k R30\r\n", "HD\r\n");
    // For a moment in the past, no remaining time is too short.
    client.ask(
        "mg k R-1\r\nmg k R0\r\nmg k R1600000000\r\n",
        "HD\r\n".repeat(3),
    );
    client.ask("mg k R60\r\n", "HD W\r\n");
    client.ask("mg k R60\r\n", "HD Z\r\n");
}

#[test]
fn md_can_leave_the_item_empty() {
    let server = Fixture::new();
    let mut client = server.client();
    client.ask("ms k 3 F7\r\nabc\r\nmd k x\r\n", "HD\r\nHD\r\n");
    client.ask("mg k v f\r\n", "VA 0 f0\r\n\r\n");
    // It is another item: it does not expire, unless the command gives an expiry.
    client.ask("ms k 1 T100\r\na\r\nmd k x\r\n", "HD\r\nHD\r\n");
    client.ask("mg k v t\r\n", "VA 0 t-1\r\n\r\n");
    client.ask("md k x T50\r\nmg k t\r\n", "HD\r\nHD t50\r\n");
    client.ask("md k\r\nmd k\r\n", "HD\r\nNF\r\n");
}

#[test]
fn ma_counts() {
    let server = Fixture::new();
    let mut client = server.client();
    client.ask("ma n\r\n", "NF\r\n");
    client.ask("ma n N60 J13 v t\r\n", "VA 2 t60\r\n13\r\n");
    client.ask("ma n v\r\n", "VA 2\r\n14\r\n");
    client.ask("ma n D10\r\n", "HD\r\n");
    client.ask("ma n MD D20 v\r\n", "VA 1\r\n4\r\n");
    client.ask("ma n MD D20 v\r\n", "VA 1\r\n0\r\n");
    client.ask("ma n C1\r\nma n C0 v\r\n", "EX\r\nVA 1\r\n1\r\n");
    client.ask(
        "ms s 1\r\nx\r\nma s\r\n",
        "HD\r\nCLIENT_ERROR cannot increment or decrement non-numeric value\r\n",
    );
}

#[test]
fn base64_keys_are_the_same_keys() {
    let server = Fixture::new();
    let mut client = server.client();
    client.ask("ms Zm9v 3 b\r\nbar\r\n", "HD\r\n");
    client.ask("get foo\r\n", "VALUE foo 0 3\r\nbar\r\nEND\r\n");
    client.ask("mg Zm9v b v k\r\n", "VA 3 kZm9v b\r\nbar\r\n");
    // Many in one batch: each has its own room.
    client.ask("ms AAEC 1 b\r\n1\r\nms AAED 1 b\r\n2\r\n", "HD\r\nHD\r\n");
    client.ask(
        "mg AAEC b v\r\nmg AAED b v\r\n",
        "VA 1\r\n1\r\nVA 1\r\n2\r\n",
    );
}

#[test]
fn me_describes_an_item() {
    let server = Fixture::new();
    let mut client = server.client();
    client.ask("me k\r\n", "EN\r\n");
    client.ask("ms k 1 E5\r\na\r\n", "HD\r\n");
    // Class and size are the engine's.
    let described = |line: String| line.split(" cls=").next().unwrap().to_owned();
    client.send("me k\r\n");
    assert_eq!(described(client.line()), "ME k exp=-1 la=0 cas=5 fetch=no");
    client.ask("mg k v\r\n", "VA 1\r\na\r\n");
    client.send("me aw== b\r\n");
    assert_eq!(
        described(client.line()),
        "ME aw== exp=-1 la=0 cas=5 fetch=yes"
    );
}
