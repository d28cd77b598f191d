//! Runs the models of the protocols between sessions and servers (`scripts/loom.sh`). A test with canary in its name
//! leaves out one protection and must fail: this shows that the models can fail.
#![cfg(loom)]

use nuthatch_cluster::Fault;
use nuthatch_cluster::models::{self, Missing, Use};

const ALL: Missing = Missing {
    fences: false,
    loads: false,
};
const NO_FENCES: Missing = Missing {
    fences: true,
    ..ALL
};
const NO_LOADS: Missing = Missing { loads: true, ..ALL };

#[test]
fn messages_arrive_whole_and_in_order() {
    models::messages_arrive(ALL);
}

#[test]
#[should_panic(expected = "a message is not whole")]
fn canary_a_position_before_its_words() {
    models::messages_arrive(NO_FENCES);
}

#[test]
fn sets_exclude_each_other() {
    models::sets_exclude_each_other(Fault::None, ALL);
}

#[test]
fn sets_by_calls_exclude_each_other() {
    models::sets_exclude_each_other(Fault::None, NO_LOADS);
}

#[test]
fn a_set_of_another_key_gives_the_block_back() {
    models::a_set_of_another_key_gives_the_block_back(NO_LOADS);
}

#[test]
#[should_panic(expected = "the block stays locked")]
fn canary_a_lock_before_the_head() {
    models::sets_exclude_each_other(Fault::LockBeforeHead, ALL);
}

#[test]
fn a_session_sets_twice_and_does_not_wait_in_between() {
    models::a_session_sets_twice(NO_LOADS);
}

#[test]
fn reads_are_whole() {
    models::reads_are_whole(ALL);
}

#[test]
#[should_panic(expected = "a torn read is accepted")]
fn canary_content_in_any_order() {
    models::reads_are_whole(NO_FENCES);
}

#[test]
fn a_server_sets_beside_a_session() {
    models::a_server_sets_beside_a_session();
}

#[test]
fn a_block_that_a_session_sets_is_used_again() {
    models::a_block_is_used_again(Use::Set);
}

#[test]
fn a_block_that_a_session_reads_is_used_again() {
    models::a_block_is_used_again(Use::Get);
}

#[test]
fn a_lock_is_taken_over() {
    models::a_lock_is_taken_over();
}

#[test]
fn a_page_changes_while_no_session_is_there() {
    models::a_page_changes_while_no_session_is_there(Fault::None);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn canary_a_page_changes_at_once() {
    models::a_page_changes_while_no_session_is_there(Fault::NoQuiescence);
}
