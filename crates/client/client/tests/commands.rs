//! Each call, on real servers.

use std::time::Duration;

use nuthatch_client::{BINARY_KEY_MAX, Client, Error, KEY_MAX, Keep, Login, Options, Outcome};

mod servers;

use servers::*;

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn each_call_does_what_it_says() {
    for server in both("") {
        let client = Client::connect(&server.address()).unwrap();
        assert_eq!(client.get("k"), Ok(None));
        client
            .set("k", "value", Keep::from(MINUTE).flags(7))
            .unwrap();
        assert_eq!(client.get("k"), Ok(Some(b"value".to_vec())));
        let flagged = client.get_with_flags("k");
        assert_eq!(flagged, Ok(Some((b"value".to_vec(), 7))));
        let item = client.get_item("k").unwrap().unwrap();
        assert_eq!((item.value.as_slice(), item.flags), (&b"value"[..], 7));
        assert!(item.left.unwrap() <= MINUTE && item.left.unwrap() > MINUTE / 2);

        assert_eq!(client.add("k", "other", None), Ok(Outcome::NotStored));
        assert_eq!(client.add("new", "", None), Ok(Outcome::Done));
        assert_eq!(client.get("new"), Ok(Some(vec![])));
        assert_eq!(client.replace("none", "v", None), Ok(Outcome::NotStored));
        assert_eq!(client.append("none", "v"), Ok(Outcome::NotStored));
        assert_eq!(client.append("k", ">"), Ok(Outcome::Done));
        assert_eq!(client.prepend("k", "<"), Ok(Outcome::Done));
        assert_eq!(client.get("k"), Ok(Some(b"<value>".to_vec())));

        let cas = client.get_item("k").unwrap().unwrap().cas;
        assert_eq!(client.cas("k", "mine", None, cas), Ok(Outcome::Done));
        assert_eq!(client.cas("k", "late", None, cas), Ok(Outcome::Changed));
        assert_eq!(client.cas("none", "v", None, cas), Ok(Outcome::NotFound));
        assert_eq!(client.get_item("k").unwrap().unwrap().left, None);

        assert_eq!(client.touch("k", Some(MINUTE)), Ok(Outcome::Done));
        assert!(client.get_item("k").unwrap().unwrap().left.is_some());
        assert_eq!(client.touch("none", None), Ok(Outcome::NotFound));
        assert_eq!(client.get_and_touch("k", None), Ok(Some(b"mine".to_vec())));
        assert_eq!(client.get_item("k").unwrap().unwrap().left, None);

        let item = client.get_item_and_touch("k", Some(MINUTE)).unwrap();
        assert_eq!(item.unwrap().value, b"mine");
        assert!(client.get_item("k").unwrap().unwrap().left.is_some());

        assert_eq!(client.incr("n", 1), Ok(None));
        client.set("n", "9", None).unwrap();
        assert_eq!(client.incr("n", 3), Ok(Some(12)));
        assert_eq!(client.decr("n", 5), Ok(Some(7)));
        assert_eq!(client.decr("n", 50), Ok(Some(0)));
        assert_eq!(client.incr("k", 1), Err(Error::NotANumber));

        assert_eq!(client.delete("k"), Ok(Outcome::Done));
        assert_eq!(client.delete("k"), Ok(Outcome::NotFound));
        client.set("gone", "v", Duration::ZERO).unwrap();
        assert_eq!(client.get("gone"), Ok(None));

        let versions = client.version();
        assert_eq!(versions[0].0, server.name());
        assert!(
            versions[0].1.as_ref().unwrap().contains('.'),
            "{versions:?}"
        );
        client.flush_all(Duration::ZERO).unwrap();
        assert_eq!(client.get("n"), Ok(None));
    }
}

#[test]
fn keys_and_values_are_any_bytes() {
    for server in both("") {
        let client = Client::connect(&server.address()).unwrap();
        let every_byte: Vec<u8> = (0..=255).collect();
        let keys = [
            b"plain".to_vec(),
            "größe".as_bytes().to_vec(),
            b"with space\r\n".to_vec(),
            vec![0],
            every_byte[..BINARY_KEY_MAX].to_vec(),
            vec![b'x'; KEY_MAX],
            vec![0xff; KEY_MAX],
        ];
        for key in &keys {
            let value = [&every_byte[..], key].concat();
            client.set(key, &value, MINUTE).unwrap();
            assert_eq!(client.get(key), Ok(Some(value)), "{key:?}");
        }
        let many = client.get_many(&keys).complete().unwrap();
        assert!(many.iter().all(Option::is_some));
        for key in &keys {
            assert_eq!(client.delete(key), Ok(Outcome::Done));
        }
        for (length, limit, key) in [
            (0, KEY_MAX, vec![]),
            (251, KEY_MAX, vec![b'x'; 251]),
            (187, BINARY_KEY_MAX, vec![0; 187]),
        ] {
            let error = client.get(key).unwrap_err();
            assert_eq!(error, Error::Key { length, limit });
            // The other limit is no news to who has to do with this one.
            let names_both = error.to_string().contains("and fewer with white space");
            assert_eq!(names_both, limit == KEY_MAX, "{error}");
        }
    }
}

#[test]
fn many_keys_come_in_their_order_and_bad_ones_fail_alone() {
    for server in both("") {
        let client = Client::connect(&server.address()).unwrap();
        let keys: Vec<String> = (0..5000).map(|number| format!("key-{number}")).collect();
        for key in keys.iter().step_by(3) {
            client.set(key, key, None).unwrap();
        }
        let values = client.get_many(&keys).complete().unwrap();
        for (number, (key, value)) in keys.iter().zip(values).enumerate() {
            assert_eq!(value.is_some(), number % 3 == 0, "{key}");
            assert!(value.is_none_or(|value| value == key.as_bytes()));
        }
        let many = client.get_many(&["key-0", "", "key-3"]);
        assert_eq!(many.failed.len(), 1);
        assert!(matches!(many.failed[0], (1, Error::Key { length: 0, .. })));
        assert!(many.values[0].is_some() && many.values[2].is_some());
        assert!(many.complete().is_err());
        assert_eq!(client.get_many::<&str>(&[]).complete(), Ok(vec![]));
    }
}

/// The kind of fault is a reply that is taken for the one to another request.
#[test]
fn many_items_are_stored_read_and_removed() {
    for server in both("-m 256") {
        let client = Client::connect(&server.address()).unwrap();
        // More than one part: 3 MiB.
        let value = vec![b'v'; 100 << 10];
        let keys: Vec<_> = (0..30).map(|number| format!("key-{number}")).collect();
        let keep = Keep::from(MINUTE).flags(7);
        let mut stored: Vec<_> = keys.iter().map(|key| (&key[..], &value, keep)).collect();
        stored[3].0 = "";
        let failed = client.set_many(&stored).failed;
        let limit = KEY_MAX;
        assert_eq!(failed, [(3, Error::Key { length: 0, limit })]);
        let items = client.get_many_items(&keys).complete().unwrap();
        for (place, item) in items.into_iter().enumerate() {
            let found = item.map(|item| (item.value, item.flags));
            assert_eq!(found, (place != 3).then(|| (value.clone(), 7)));
        }
        let removed = client.delete_many(&keys).complete().unwrap();
        assert!(
            removed
                .iter()
                .enumerate()
                .all(|(place, &is)| is == (place != 3))
        );
        assert_eq!(client.get(&keys[0]), Ok(None));
    }
}

#[test]
fn statistics_come_by_their_kinds() {
    for server in both("") {
        let client = Client::connect(&server.address()).unwrap();
        client.set("k", "v", None).unwrap();
        let (name, stats) = client.stats("").remove(0);
        assert_eq!(name, server.name());
        let of = |name: &str| {
            stats
                .clone()
                .unwrap()
                .into_iter()
                .find(|stat| stat.0 == name)
        };
        assert_eq!(of("curr_items").unwrap().1, "1");
        assert!(client.stats("settings")[0].1.is_ok());
        assert!(client.stats("a\r\nflush_all")[0].1.is_err());
        // The kind of fault: a kind that there is not ends the connection, and the calls of others with it.
        let unknown = client.stats("unheard_of").remove(0).1;
        assert!(matches!(unknown, Err(Error::Refused(_))), "{unknown:?}");
        assert_eq!(client.stats("reset")[0].1, Ok(vec![]));
        assert_eq!(client.get("k"), Ok(Some(b"v".to_vec())));
    }
}

#[test]
fn a_value_that_is_too_large_is_refused_and_the_connection_goes_on() {
    for server in both("") {
        let client = Client::connect(&server.address()).unwrap();
        let refused = client.set("large", vec![b'x'; 5 << 20], None);
        assert!(
            matches!(&refused, Err(Error::Refused(words)) if words.contains("large")),
            "{refused:?}"
        );
        client.set("k", "v", None).unwrap();
        assert_eq!(client.get("k"), Ok(Some(b"v".to_vec())));
        let strict = Client::connect(&server.address_with("value_max=3")).unwrap();
        let (length, limit) = (4, 3);
        assert_eq!(
            strict.set("k", "1234", None),
            Err(Error::Value { length, limit })
        );
    }
}

#[test]
fn a_server_with_passwords_lets_in_who_has_one() {
    let folder = tempfile::tempdir().unwrap();
    let users = folder.path().join("users");
    std::fs::write(&users, "me:secret\n").unwrap();
    std::fs::set_permissions(
        folder.path(),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    for server in both(&format!("-Y {}", users.display())) {
        let address = server.address_with(&format!("login_file={}", users.display()));
        let client = Client::connect(&address).unwrap();
        client.set("k", "v", None).unwrap();
        assert_eq!(client.get("k"), Ok(Some(b"v".to_vec())));

        let mut options = Options::default();
        options.login = Some(Login {
            name: "me".to_owned(),
            password: "wrong".to_owned(),
        });
        let wrong = Client::connect_with(&server.address(), options).unwrap();
        let error = wrong.get("k").unwrap_err();
        assert!(
            matches!(&error, Error::Down { reason, .. } if reason.contains("login refused")),
            "{error}"
        );
        let without = Client::connect(&server.address()).unwrap();
        assert!(matches!(without.get("k"), Err(Error::Down { .. })));
    }
}

#[test]
fn unix_sockets_are_served_too() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let _server = running::Running::start(&format!("-s {} -t 1", socket.display()));
    let client = Client::connect(&format!("unix://{}", socket.display())).unwrap();
    client.set("k", "v", None).unwrap();
    assert_eq!(client.get("k"), Ok(Some(b"v".to_vec())));
}

#[cfg(feature = "tls")]
#[test]
fn tls_trusts_whom_it_is_told_to() {
    let Some((server, ca)) = with_tls() else {
        return;
    };
    let other = ca.with_file_name("other");
    let address = |ca: &std::path::Path| format!("tls://{}?ca={}", server.place(), ca.display());
    let client = Client::connect(&address(&ca)).unwrap();
    let large = vec![b'x'; 500_000];
    client.set("k", &large, None).unwrap();
    assert_eq!(client.get("k"), Ok(Some(large.clone())));
    // More than sockets take at once, both ways.
    let values = client.get_many(&vec!["k"; 100]).complete().unwrap();
    assert!(values.iter().all(|value| value.as_ref() == Some(&large)));

    let distrusting = Client::connect(&address(&other)).unwrap();
    let error = distrusting.get("k").unwrap_err().to_string();
    assert!(error.contains("certificate"), "{error}");
    let plain = Client::connect(&server.address()).unwrap();
    assert!(matches!(plain.get("k"), Err(Error::Down { .. })));
    let error = Client::connect("tls://127.0.0.1").unwrap_err().to_string();
    assert!(error.contains("ca=FILE"), "{error}");
}
