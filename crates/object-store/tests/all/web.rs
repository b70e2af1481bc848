//! HTTP servers as they are: without ranges, with encodings, queries and passwords, and with wrong sizes.

use std::io;
use std::time::Duration;

use blosc2::storage::{Folder, ReadAt};
use blosc2::{ErrorKind, NDArray};
use blosc2_object_store::Remote;

use crate::data::{self, within_a_minute};
use crate::server::{Faults, Server};

const QUICK: [(&str, &str); 3] =
    [("timeout", "20s"), ("max_retries", "1"), ("retry_timeout", "5s")];

fn open(url: &str, options: &[(&str, &str)]) -> blosc2::Result<NDArray> {
    let (remote, path) = Remote::from_url(url, QUICK.iter().chain(options).copied())?;
    remote.array(path)
}

/// A server with an array of some MiB and one below 64 KiB, and their items.
fn start() -> (Server, Vec<f32>, Vec<i16>) {
    let server = Server::start();
    let (frame, items) = data::array([1024, 1024], [128, 1024], [16, 1024]);
    assert!(frame.len() > 1 << 20);
    server.put("large.b2nd", frame);
    let small = NDArray::builder().arange(0i16, 10_000, 1).unwrap();
    server.put("small.b2nd", small.schunk().to_cframe().unwrap());
    let small = small.read(..).unwrap();
    (server, items, small)
}

#[test]
fn whole_objects_are_downloaded_once() {
    within_a_minute(|| {
        let ignoring = Faults { ignores_ranges: true, ..Faults::default() };
        let unsized_ = Faults { no_sizes: true, ..ignoring.clone() };
        let refusing = Faults { refuses_ranges: true, ..Faults::default() };
        let gzip = Faults { encoding: Some("gzip"), ..Faults::default() };
        let gzip_ranges = Faults { encodes_ranges: true, ..gzip.clone() };
        let x_gzip = Faults { no_sizes: true, no_etags: true, ..gzip.clone() };
        let identity = Faults { encoding: Some("identity"), ..ignoring.clone() };
        for (faults, requests) in [
            (ignoring, 1),
            (unsized_, 1),
            (refusing, 2),
            (gzip, 1),
            (gzip_ranges, 2),
            (x_gzip, 1),
            (identity, 1),
        ] {
            let (server, large, small) = start();
            server.set(faults.clone());
            let array = open(&server.url("large.b2nd"), &[]).unwrap();
            assert_eq!(array.read::<Vec<f32>>((5, 10..13)).unwrap(), large[5 * 1024 + 10..][..3]);
            assert!(array.read::<Vec<f32>>(..).unwrap() == large, "{faults:?}");
            let (log, _) = server.taken();
            assert_eq!(log.len(), requests, "{faults:?}: {log:?}");
            let array = open(&server.url("small.b2nd"), &[]).unwrap();
            assert!(array.read::<Vec<i16>>(..).unwrap() == small, "{faults:?}");
            let (log, _) = server.taken();
            assert_eq!(log.len(), requests, "{faults:?}: {log:?}");
        }
    });
}

#[test]
fn ranges_that_are_whole_objects_can_be_ignored() {
    within_a_minute(|| {
        let (server, large, small) = start();
        server.set(Faults { ignores_whole_ranges: true, ..Faults::default() });
        let array = open(&server.url("small.b2nd"), &[]).unwrap();
        assert!(array.read::<Vec<i16>>(..).unwrap() == small);
        assert_eq!(server.taken().0.len(), 1);
        let array = open(&server.url("large.b2nd"), &[]).unwrap();
        assert!(array.read::<Vec<f32>>(..).unwrap() == large);
    });
}

/// A server can lose its ranges while an object is open, for example after a failover.
#[test]
fn a_server_can_stop_to_support_ranges() {
    within_a_minute(|| {
        let (server, large, _) = start();
        let array = open(&server.url("large.b2nd"), &[]).unwrap();
        server.set(Faults { ignores_ranges: true, ..Faults::default() });
        assert!(array.read::<Vec<f32>>(..).unwrap() == large);
        server.taken();
        assert!(array.read::<Vec<f32>>(..).unwrap() == large);
        assert!(server.taken().0.is_empty(), "it is kept");

        // Another version of the object.
        for no_etags in [false, true] {
            let (server, ..) = start();
            let array = open(&server.url("large.b2nd"), &[]).unwrap();
            let changes_after = Some(0);
            server.set(Faults {
                ignores_ranges: true,
                no_etags,
                changes_after,
                ..Faults::default()
            });
            assert_eq!(array.read::<Vec<f32>>(..).unwrap_err().kind(), ErrorKind::Busy);
            // A shorter version, which does not contain the ranges.
            server.set(Faults {
                ignores_ranges: true,
                ignores_conditions: true,
                ..Faults::default()
            });
            server.put("large.b2nd", vec![1; 10]);
            assert_eq!(array.read::<Vec<f32>>(..).unwrap_err().kind(), ErrorKind::Busy);
            let (server, ..) = start();
            let (remote, path) = Remote::from_url(&server.url("large.b2nd"), QUICK).unwrap();
            let object = remote.object(path).unwrap();
            server.set(Faults { ignores_conditions: true, ..Faults::default() });
            server.put("large.b2nd", vec![1; 10]);
            let error = blosc2::Error::from(object.read_vec_at(500_000, 10).unwrap_err());
            assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
        }
    });
}

#[test]
fn downloads_have_a_limit() {
    within_a_minute(|| {
        let (server, large, _) = start();
        let url = server.url("large.b2nd");
        let ignoring = Faults { ignores_ranges: true, ..Faults::default() };
        let without_size = Faults { no_sizes: true, ..ignoring.clone() };
        let gzip = Faults { encoding: Some("gzip"), ..Faults::default() };
        for faults in [ignoring.clone(), without_size, gzip] {
            server.set(faults);
            let error = open(&url, &[("download_limit", "1000000")]).unwrap_err().to_string();
            for part in
                ["the server 127.0.0.1", "1000000 bytes", "download the file", "download_limit"]
            {
                assert!(error.contains(part), "{part}: {error}");
            }
            assert!(!error.contains('\n'), "{error}");
            let array = open(&url, &[("download_limit", "1GiB")]).unwrap();
            assert!(array.read::<Vec<f32>>(..).unwrap() == large);
        }

        // The encoded object is below the limit, the decoded one above.
        server.set(Faults { encoding: Some("gzip"), ..Faults::default() });
        server.put("zeros", vec![0; 2_000_000]);
        let object = |limit| {
            let (remote, path) =
                Remote::from_url(&server.url("zeros"), [("download_limit", limit)]).unwrap();
            remote.object(path)
        };
        let error = object("1999999").unwrap_err().to_string();
        assert!(error.contains("limit of 1999999"), "{error}");
        for limit in ["2000000", "18446744073709551615"] {
            let object = object(limit).unwrap();
            assert_eq!(object.size().unwrap(), 2_000_000);
            assert_eq!(object.read_vec_at(1_999_997, 3).unwrap(), [0; 3]);
        }

        // The default.
        server.set(ignoring);
        for (size, is_allowed) in [(64 << 20, true), ((64 << 20) + 1, false)] {
            server.put("large", vec![7; size]);
            let (remote, path) = Remote::from_url(&server.url("large"), [("", ""); 0]).unwrap();
            assert_eq!(remote.object(path).is_ok(), is_allowed, "{size}");
        }
    });
}

#[test]
fn other_encodings_are_errors() {
    within_a_minute(|| {
        let (server, ..) = start();
        for encoding in ["br", "gzip, br", "deflate"] {
            server.set(Faults { encoding: Some(encoding), ..Faults::default() });
            let error = open(&server.url("small.b2nd"), &[]).unwrap_err().to_string();
            assert!(error.contains("encoding") && error.contains("127.0.0.1"), "{error}");
        }
        // It is not in this encoding.
        server.set(Faults { encoding: Some("x-gzip"), ..Faults::default() });
        let error = open(&server.url("small.b2nd"), &[]).unwrap_err().to_string();
        assert!(error.contains("`x-gzip`") && error.contains("invalid"), "{error}");
    });
}

#[test]
fn empty_objects_are_objects() {
    within_a_minute(|| {
        let ignoring = Faults { ignores_ranges: true, ..Faults::default() };
        let gzip = Faults { encoding: Some("gzip"), ..Faults::default() };
        for faults in [Faults::default(), ignoring, gzip] {
            for refuses_head in [false, true] {
                let server = Server::start();
                server.put("empty", Vec::new());
                server.set(Faults { refuses_head, ..faults.clone() });
                let (remote, path) = Remote::from_url(&server.url("empty"), QUICK).unwrap();
                let object = remote.object(path).unwrap();
                assert_eq!(object.size().unwrap(), 0);
                assert_eq!(object.e_tag(), Some("\"one\""));
                object.read_exact_at(0, &mut []).unwrap();
                assert!(object.read_exact_at(0, &mut [0]).is_err());
            }
        }
    });
}

const SECRET: &str = "X-Amz-Signature=s3cret%2Fvalue+1&X-Amz-Expires=60";

#[test]
fn queries_are_sent_with_each_request() {
    within_a_minute(|| {
        let (server, large, _) = start();
        server.set(Faults { query: Some(SECRET), refuses_head: true, ..Faults::default() });
        let url = format!("{}?{SECRET}", server.url("large.b2nd"));
        let array = open(&url, &[]).unwrap();
        assert!(array.read::<Vec<f32>>(..).unwrap() == large);
        let (log, _) = server.taken();
        assert!(log.len() > 2 && log.iter().all(|(path, _)| path.ends_with(SECRET)), "{log:?}");
        // Other objects of the same server.
        let (remote, _) = Remote::from_url(&url, QUICK).unwrap();
        remote.array("small.b2nd").unwrap();
        server.put("empty", Vec::new());
        assert_eq!(remote.object("empty").unwrap().size().unwrap(), 0);
        // A query without an equals sign, and an empty one.
        for query in ["download", ""] {
            server.set(Faults { query: Some(query), ..Faults::default() });
            open(&format!("{}?{query}", server.url("small.b2nd")), &[]).unwrap();
        }
    });
}

#[test]
fn urls_are_sent_as_they_are_written() {
    within_a_minute(|| {
        let (server, _, small) = start();
        let frame = NDArray::from_slice(&small, &[10_000]).unwrap().schunk().to_cframe().unwrap();
        for path in ["a%2Fb%20c.b2nd", "a+b=c@d:e,f;g.b2nd", "%7Etilde/%C3%A4.b2nd", "folder/", ""]
        {
            server.put(path, frame.clone());
            let array = open(&format!("{}?x=%2f", server.url(path)), &[]).unwrap();
            assert!(array.read::<Vec<i16>>(..).unwrap() == small);
            let (log, _) = server.taken();
            assert_eq!(log[0].0, format!("/{path}?x=%2f"));
            if !path.is_empty() {
                open(&server.url(path), &[]).unwrap();
                assert_eq!(server.taken().0[0].0, format!("/{path}"));
            }
        }
    });
}

#[test]
fn a_user_and_a_password_are_sent() {
    within_a_minute(|| {
        let (server, _, small) = start();
        // `me` and `p@ss`.
        server.set(Faults { authorization: Some("Basic bWU6cEBzcw=="), ..Faults::default() });
        let url = server.url("small.b2nd").replace("//", "//me:p%40ss@");
        assert!(open(&url, &[]).unwrap().read::<Vec<i16>>(..).unwrap() == small);
        let error = open(&server.url("small.b2nd"), &[]).unwrap_err();
        assert!(error.to_string().contains("403"), "{error}");
    });
}

/// Whatever fails, the message is one line without the secrets of the URL.
#[test]
fn secrets_are_in_no_message() {
    within_a_minute(|| {
        let (server, ..) = start();
        let secret = |url: &str| {
            let url = url.replace("//", "//user5678:pass1234@");
            format!("{url}?key=s3cret99&sig=abc777")
        };
        let check = |text: &str| {
            for secret in ["user5678", "pass1234", "s3cret99", "abc777", "dXNlcjU2Nzg"] {
                assert!(!text.contains(secret), "{secret}: {text}");
            }
            assert!(!text.contains('\n'), "{text}");
        };
        let fail = |url: &str| {
            let error = open(url, &[]).unwrap_err();
            check(&error.to_string());
            check(&format!("{error:?}"));
            error.to_string()
        };
        let url = secret(&server.url("large.b2nd"));
        let faults: [Faults; 9] = [
            Faults { query: Some("another"), ..Faults::default() },
            Faults { fail: 10, ..Faults::default() },
            Faults { drop: 10, no_etags: true, ..Faults::default() },
            Faults { drop: 10, ignores_ranges: true, ..Faults::default() },
            Faults { wrong_range: true, ..Faults::default() },
            Faults { content_range: Some("bytes".to_owned()), ..Faults::default() },
            Faults { encoding: Some("br"), ..Faults::default() },
            Faults { changes_after: Some(1), ..Faults::default() },
            Faults { delay: Duration::from_secs(3), ..Faults::default() },
        ];
        for each in faults {
            let is_slow = each.delay > Duration::ZERO;
            server.set(each);
            let error = open(&url, if is_slow { &[("timeout", "1s")] } else { &[] }).unwrap_err();
            check(&format!("{error} {error:?}"));
        }
        server.set(Faults::default());
        println!("{}", fail(&secret(&server.url("missing"))));
        for url in [
            "http://user5678:pass1234@127.0.0.1:1/a?key=s3cret99",
            "http://user5678:pass1234@no-such-host.invalid/a?key=s3cret99",
            "http://user5678:pass1234@h/a#s3cret99",
            "http://user5678:pass1234@h:port/a?s3cret99",
            "ftp://user5678:pass1234@h/a?s3cret99",
            "ftp://user5678:pass1234@h/a",
            "ftp://user5678:pa?ss1234@h/a",
            "user5678:pass1234@h/a",
            "user5678?pass1234",
            "s3://b/a?s3cret99",
            "//user5678:pass1234@h/a?s3cret99",
            "http://user5678:pass1234@h//a?s3cret99",
            "https://user5678:p/pass1234@h/a",
            "https://user5678:pass1234?abc777@h/a",
            "https://user5678:pass1234#abc777@h/a?s3cret99",
            "https://user5678:pa?ss/abc777@h/a",
            "http://127.0.0.1:1/a?user5678@pass1234&sig=s3cret99",
            "HTTP://s3cret99@127.0.0.1:1/a",
            " \tht\ntp://user5678@127.0.0.1:1/a",
            "http:user5678:pass1234@127.0.0.1:1/a",
            "http:/user5678:pass1234@127.0.0.1:1/a",
            "http:///user5678:pass1234@127.0.0.1:1/a",
            "http:\\\\/user5678:pass1234@127.0.0.1:1/a",
        ] {
            println!("{}", fail(url));
        }
        let (remote, path) = Remote::from_url(&url, QUICK).unwrap();
        check(&format!("{remote:?}"));
        check(&format!("{:?} {:?}", remote.object(&path).unwrap(), remote.folder(&path).unwrap()));
        check(&format!("{:?} {}", remote.store(), remote.store()));
        let options = [("access_key_id", "user5678"), ("secret_access_key", "s3cret99")];
        check(&format!("{:?}", Remote::from_url("s3://bucket/a", options).unwrap().0));
    });
}

#[test]
fn errors_name_the_host_and_the_cause() {
    within_a_minute(|| {
        let error = open("http://127.0.0.1:1/a.b2nd", &[]).unwrap_err().to_string();
        assert!(error.contains("connect to 127.0.0.1:1:") && error.contains("refused"), "{error}");
        let error = open("http://no-such-host.invalid/a", &[]).unwrap_err().to_string();
        assert!(error.contains("connect to no-such-host.invalid:"), "{error}");
        let (server, ..) = start();
        server.set(Faults { stalls: true, ..Faults::default() });
        let error = open(&server.url("large.b2nd"), &[("timeout", "1s")]).unwrap_err().to_string();
        assert!(error.contains("127.0.0.1") && error.contains("timed out"), "{error}");
    });
}

/// A server that has objects of any size.
#[test]
fn ranges_of_huge_objects_are_read() {
    within_a_minute(|| {
        let (server, ..) = start();
        let url = server.url("large.b2nd");
        for size in [1, 65_536, 65_537, 1 << 32, (1 << 63) - 1, 1 << 63, u64::MAX - 1, u64::MAX] {
            server.set(Faults { size: Some(size), ..Faults::default() });
            // 89,999 bytes in requests of at most 50,000 bytes are two parts: of 45,000 and of 44,999 bytes.
            for (cache, request_size) in [(0, 8 << 20), (32 << 20, 8 << 20), (0, 50_000)] {
                let (remote, path) = Remote::from_url(&url, QUICK).unwrap();
                let remote = remote.cache(cache).request_size(request_size);
                let object = remote.object(&path).unwrap();
                assert_eq!(object.size().unwrap(), size);
                for start in [0, size / 2, size.saturating_sub(89_999), size - 1] {
                    let len = (size - start).min(89_999);
                    assert_eq!(object.read_vec_at(start, len).unwrap(), vec![0; len as usize]);
                    // Two ranges that do not share a request, and one that is outside.
                    let (mut first, mut second) = ([1], [1]);
                    let middle = size / 3;
                    object
                        .read_ranges_at(&mut [(start, &mut first), (middle, &mut second)])
                        .unwrap();
                    assert_eq!([first, second], [[0], [0]]);
                }
                // A long range, and a short one near the end, before the bytes that opening reads.
                let (mut long, mut short) = (vec![1; size.min(90_000) as usize], [1]);
                let ranges = &mut [(0, &mut long[..]), (size.saturating_sub(70_000), &mut short)];
                object.read_ranges_at(ranges).unwrap();
                assert!(long.iter().chain(&short).all(|&byte| byte == 0));
                for start in [size, size - 1, u64::MAX, u64::MAX - 1] {
                    assert!(object.read_exact_at(start, &mut [0; 2]).is_err());
                }
                assert!(remote.array(&path).is_err() && remote.tree_store(&path).is_err());
                assert!(remote.container(&path).is_err());
            }
        }
    });
}

/// Without ETags, the version of a directory is a hash of its index.
#[test]
fn indexes_without_etags_have_a_maximum_size() {
    within_a_minute(|| {
        let (server, ..) = start();
        server.put("folder/index", vec![0]);
        let size = Some((8 << 30) + 1);
        server.set(Faults { no_etags: true, size, ..Faults::default() });
        let (remote, _) = Remote::from_url(&server.url("large.b2nd"), QUICK).unwrap();
        let error = remote.folder("folder").unwrap().version("index").unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidData, "{error}");
        assert!(error.to_string().contains("8589934593 bytes"), "{error}");
    });
}

/// All lengths that a server states in its answers, with values near 2^63 and 2^64.
#[test]
fn stated_lengths_do_not_overflow() {
    within_a_minute(|| {
        let (server, ..) = start();
        let url = server.url("large.b2nd");
        let lengths =
            [0, 1, 65_535, 65_536, 65_537, (1 << 63) - 1, 1 << 63, u64::MAX - 1, u64::MAX];
        for size in lengths {
            let stated = format!("bytes 0-65535/{size}");
            server.set(Faults { content_range: Some(stated.clone()), ..Faults::default() });
            let (remote, path) = Remote::from_url(&url, QUICK).unwrap();
            match remote.object(path) {
                // The end is not in the object, as if the object had become shorter.
                Err(error) if error.kind() == ErrorKind::Busy => {
                    assert!(size > 1 << 32, "{stated}")
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::Io, "{stated}: {error}"),
                Ok(object) => assert_eq!((size, object.size().unwrap()), (65_536, size)),
            }
            for other in lengths {
                for stated in
                    [format!("bytes {size}-{other}/{size}"), format!("bytes {size}-{other}/*")]
                {
                    server.set(Faults { content_range: Some(stated.clone()), ..Faults::default() });
                    let (remote, path) = Remote::from_url(&url, QUICK).unwrap();
                    let error = remote.object(path).unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::Io, "{stated}: {error}");
                }
            }
        }
    });
}

/// The session token and the query are in no message, and little is read.
#[test]
fn errors_of_services_are_short() {
    within_a_minute(|| {
        let server = Server::start();
        let token = "FwoGZXIvYXdzEBYaDHqa0AP1/s3cret99";
        let open = || {
            let options = [
                ("endpoint", server.url("")),
                ("region", "us-east-1".to_owned()),
                ("access_key_id", "key".to_owned()),
                ("secret_access_key", "s3cret99".to_owned()),
                ("session_token", token.to_owned()),
                ("max_retries", "0".to_owned()),
            ];
            let (remote, path) = Remote::from_url("s3://bucket/a.b2nd", options).unwrap();
            let error = remote.object(path).unwrap_err();
            for text in [error.to_string(), format!("{error:?}")] {
                assert!(!text.contains("s3cret99") && !text.contains("FwoGZX"), "{text}");
                assert!(!text.contains('\n') && text.len() < 1000, "{text}");
            }
            error.to_string()
        };
        let xml = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>InvalidToken</Code><Message>The provided \
             token is malformed: {token}</Message><Token-0>{token}</Token-0></Error>"
        );
        for status in ["400 Bad Request", "403 Forbidden", "500 Internal Server Error"] {
            server.set(Faults { error: Some((status, xml.clone())), ..Faults::default() });
            let error = open();
            assert!(error.contains("InvalidToken: The provided token is malformed"), "{error}");
            assert!(!error.contains("Token-0"), "{error}");
        }
        let page = format!("<html>\n<p>x-amz-security-token: {token}\n{}", "text ".repeat(1000));
        server.set(Faults { error: Some(("400 Bad Request", page)), ..Faults::default() });
        let error = open();
        assert!(error.contains("<p>x-amz-security-token: ... text text"), "{error}");

        let error = Some(("400 Bad Request", xml));
        server.set(Faults { error, long_errors: true, ..Faults::default() });
        assert!(open().contains("InvalidToken"));
        // The buffers of the connection.
        assert!(server.sent() < 32 << 20, "{} bytes", server.sent());
    });
}

/// The next server gets neither the URL with its query, nor the password.
#[test]
fn redirects_have_no_referer() {
    within_a_minute(|| {
        let (first, ..) = start();
        let (second, large, _) = start();
        first.set(Faults { redirect: Some(second.clone()), ..Faults::default() });
        let url = first.url("large.b2nd").replace("//", "//me:pass1234@") + "?token=s3cret99";
        let array = open(&url, &[]).unwrap();
        assert!(array.read::<Vec<f32>>(..).unwrap() == large);
        let (log, _) = second.taken();
        assert!(log.len() > 2 && log.iter().all(|(path, _)| path == "/large.b2nd"), "{log:?}");
        assert_eq!(second.referers(), [""; 0]);
    });
}

/// Most servers have no lists of files, and refuse the request in different ways. Any other failure is reported.
#[test]
fn servers_without_lists_are_recognized() {
    within_a_minute(|| {
        let (server, ..) = start();
        for status in ["200 OK", "400 Bad Request", "403 Forbidden", "405 No", "501 No"] {
            server.set(Faults { list: Some(status), ..Faults::default() });
            let (remote, path) = Remote::from_url(&server.url("none"), QUICK).unwrap();
            let error = remote.tree_store(&path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound, "{status}: {error}");
            let error = remote.folder(&path).unwrap().names().unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::Unsupported, "{status}: {error}");
            assert!(error.to_string().contains("does not list the files"), "{status}: {error}");
        }
        for status in ["401 Unauthorized", "500 Internal Server Error", "503 Unavailable"] {
            server.set(Faults { list: Some(status), ..Faults::default() });
            let (remote, path) = Remote::from_url(&server.url("none"), QUICK).unwrap();
            for error in [
                remote.tree_store(&path).map(drop).unwrap_err(),
                remote.container(&path).map(drop).unwrap_err(),
            ] {
                assert_eq!(error.kind(), ErrorKind::Io, "{status}: {error}");
                assert!(error.to_string().contains(&status[..3]), "{status}: {error}");
            }
        }
    });
}

/// All options of the HTTP client are still known.
#[test]
fn options_of_the_client_are_checked() {
    for (key, value) in [
        ("allow_http", "maybe"),
        ("allow_invalid_certificates", "maybe"),
        ("disable_system_certificates", "maybe"),
        ("connect_timeout", "soon"),
        ("http1_only", "maybe"),
        ("http2_only", "maybe"),
        ("http2_keep_alive_interval", "soon"),
        ("http2_keep_alive_timeout", "soon"),
        ("http2_keep_alive_while_idle", "maybe"),
        ("http2_max_frame_size", "-1"),
        ("pool_idle_timeout", "soon"),
        ("pool_max_idle_per_host", "-1"),
        ("proxy_url", "http://"),
        ("randomize_addresses", "maybe"),
        ("read_timeout", "soon"),
        ("timeout", "soon"),
    ] {
        let error = Remote::from_url("https://host/a", [(key, value)]).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{key}: {error}");
        let is_named = error.to_string().contains(key) || key == "proxy_url";
        assert!(is_named, "{key}: {error}");
    }
    let (server, _, small) = start();
    let all = [
        ("allow_http", "on"),
        ("allow_invalid_certificates", "yes"),
        ("connect_timeout", "1min 30s"),
        ("http1_only", "true"),
        ("http2_keep_alive_interval", "10s"),
        ("http2_keep_alive_timeout", "10s"),
        ("http2_max_frame_size", "20000"),
        ("pool_idle_timeout", "90s"),
        ("pool_max_idle_per_host", "3"),
        ("randomize_addresses", "false"),
        ("read_timeout", "10s"),
        ("user_agent", "test"),
    ];
    let array = open(&server.url("small.b2nd"), &all).unwrap();
    assert!(array.read::<Vec<i16>>(..).unwrap() == small);
    // A host with a name, with random and other addresses.
    for random in ["true", "false"] {
        let url = server.url("small.b2nd").replace("127.0.0.1", "localhost");
        let array = open(&url, &[("randomize_addresses", random)]).unwrap();
        assert!(array.read::<Vec<i16>>(..).unwrap() == small);
    }
}
