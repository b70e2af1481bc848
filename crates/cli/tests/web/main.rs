//! `blosc2 view --web`: what the server answers, and to whom.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

#[cfg(unix)]
use blosc2_testing::with_default_signals;
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_blosc2");
/// A name with characters that have a meaning in addresses.
const NAME: &str = "a b&c=d%41+é.b2nd";

/// The command, which serves a file of 1000 bytes.
struct Server {
    folder: TempDir,
    child: Child,
    address: String,
    port: u16,
    token: String,
}

impl Server {
    fn new(options: &[&str]) -> Self {
        Self::start(Command::new(PROGRAM), options)
    }

    fn start(mut command: Command, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(NAME), content()).unwrap();
        fs::write(folder.path().join("other"), "secret").unwrap();
        command.current_dir(folder.path()).args(["view", "--web", NAME]).args(options);
        // Programs that open a browser are looked for there.
        command.env("PATH", folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut address).unwrap();
        let address = address.trim_end().to_owned();
        let rest = address.strip_prefix("http://127.0.0.1:").unwrap();
        let mut parts = rest.split('/');
        let port = parts.next().unwrap().parse().unwrap();
        let token = parts.next().unwrap().to_owned();
        Self { folder, child, address, port, token }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join(NAME)
    }

    /// The path of the file on the server, which is in the query of the address once more encoded.
    fn path(&self) -> String {
        let (_, query) = self.address.split_once("/?url=").unwrap();
        format!("/{}/{}", self.token, query.replace("%25", "%"))
    }

    /// Sends a request with these lines as headers, and the right `Host` if there is none among them.
    fn request(&self, method: &str, path: &str, headers: &[&str]) -> Answer {
        let mut text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|line| line.starts_with("Host:")) {
            text += &format!("Host: 127.0.0.1:{}\r\n", self.port);
        }
        for line in headers {
            text += &format!("{line}\r\n");
        }
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.write_all(format!("{text}\r\n").as_bytes()).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head, body: bytes[end + 4..].to_vec() }
    }

    fn get(&self, path: &str, headers: &[&str]) -> Answer {
        self.request("GET", path, headers)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Debug)]
struct Answer {
    status: u16,
    /// In lower case.
    head: String,
    body: Vec<u8>,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        let start = format!("{name}: ");
        self.head.lines().find_map(|line| line.strip_prefix(&start))
    }
}

fn content() -> Vec<u8> {
    (0..1000u32).map(|at| (at * 7 / 3) as u8).collect()
}

fn run(folder: &TempDir, args: &[&str]) -> Output {
    Command::new(PROGRAM).current_dir(folder.path()).args(args).output().unwrap()
}

/// The line of a command that fails.
fn error(folder: &TempDir, args: &[&str], status: i32) -> String {
    let output = run(folder, args);
    let line = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(status), "{args:?}: {line}");
    assert_eq!(line.lines().count(), 1, "{args:?}: {line}");
    line
}

#[test]
fn the_page_and_the_file_are_served() {
    let server = Server::new(&["--no-open"]);
    let root = format!("/{}/", server.token);
    let index = server.get(&root, &[]);
    assert_eq!(
        (index.status, index.header("content-type")),
        (200, Some("text/html; charset=utf-8"))
    );
    let html = String::from_utf8(index.body.clone()).unwrap();
    // The page finds its files, and their types are those that browsers demand.
    for (name, kind) in [
        ("style.css", "text/css; charset=utf-8"),
        ("page.js", "text/javascript; charset=utf-8"),
        ("worker.js", "text/javascript; charset=utf-8"),
        ("blosc2_web_bg.wasm", "application/wasm"),
    ] {
        let answer = server.get(&format!("{root}{name}"), &[]);
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(kind)), "{name}");
        assert!(!answer.body.is_empty(), "{name}");
    }
    let file = server.get(&server.path(), &[]);
    assert_eq!((file.status, file.body.clone()), (200, content()));
    assert_eq!(file.header("content-type"), Some("application/octet-stream"));
    let missing = server.get(&format!("{root}missing"), &[]);
    for answer in [&index, &file, &missing] {
        let policy = answer.header("content-security-policy").unwrap();
        let (policy, last) = policy.rsplit_once("; ").unwrap();
        assert!(html.to_lowercase().contains(policy), "{policy}");
        assert_eq!(last, "frame-ancestors 'none'");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(answer.header("cross-origin-resource-policy"), Some("same-origin"));
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
}

#[test]
fn ranges_are_served() {
    let server = Server::new(&["--no-open"]);
    for (range, part) in [
        ("0-0", 0..1),
        ("10-19", 10..20),
        ("990-", 990..1000),
        ("990-5000", 990..1000),
        ("-7", 993..1000),
    ] {
        let answer = server.get(&server.path(), &[&format!("Range: bytes={range}")]);
        assert_eq!(answer.status, 206, "{range}: {answer:?}");
        let expected = format!("bytes {}-{}/1000", part.start, part.end - 1);
        assert_eq!(answer.header("content-range"), Some(expected.as_str()), "{range}");
        assert_eq!(answer.body, content()[part], "{range}");
    }
    // RFC 9110 answers the last one with the complete file; the library does not, and the page never sends it.
    for range in ["1000-1000", "5-4", "x", "1000-", "-5000"] {
        let answer = server.get(&server.path(), &[&format!("Range: bytes={range}")]);
        assert_eq!(answer.status, 416, "{range}: {answer:?}");
        assert_eq!(answer.header("content-range"), Some("bytes */1000"), "{range}");
    }
    let head = server.request("HEAD", &server.path(), &[]);
    assert_eq!((head.status, head.header("content-length")), (200, Some("1000")));
    assert!(head.body.is_empty());
}

#[test]
fn nothing_else_is_served() {
    let server = Server::new(&["--no-open"]);
    let (token, file) = (&server.token, server.path());
    assert_eq!(token.len(), 32);
    assert_ne!(*token, Server::new(&["--no-open"]).token);
    let wrong = "0".repeat(32);
    let file_of = |token: &str| file.replace(server.token.as_str(), token);
    for path in [
        "/".to_owned(),
        "/index.html".to_owned(),
        format!("/{token}"),
        format!("/{wrong}/"),
        format!("/{}/", &token[1..]),
        format!("/x{token}/"),
        file_of(&wrong),
        file_of(""),
        format!("/{token}/file/"),
        format!("/{token}/file/other"),
        format!("/{token}/file/../other"),
        format!("/{token}/file/%2e%2e/other"),
        format!("/{token}/../other"),
        format!("/{token}/..%2fother"),
        format!("/{token}//etc/passwd"),
        format!("/{token}/file//etc/passwd"),
        format!("/{token}/file/%2fetc%2fpasswd"),
        format!("/{token}/file/{}", server.file().display())
            .replace(' ', "%20")
            .replace('é', "%c3%a9"),
        format!("{file}/"),
        format!("{file}%00"),
    ] {
        let answer = server.get(&path, &[]);
        assert_eq!(answer.status, 404, "{path}: {answer:?}");
        assert!(answer.body.is_empty(), "{path}: {answer:?}");
    }
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"] {
        for path in [&file, &format!("/{token}/")] {
            let answer = server.request(method, path, &["Content-Length: 0"]);
            assert_eq!(answer.status, 405, "{method} {path}: {answer:?}");
        }
    }
    assert_eq!(fs::read(server.file()).unwrap(), content());
}

#[test]
fn other_hosts_are_refused() {
    let server = Server::new(&["--no-open"]);
    let port = server.port;
    let status = |headers: &[&str]| server.get(&server.path(), headers).status;
    assert_eq!(status(&[&format!("Host: localhost:{port}")]), 200);
    let good = format!("Host: 127.0.0.1:{port}");
    assert_eq!(status(&[&good]), 200);
    for host in ["", " ", " localhost", " 127.0.0.1", " attacker.example"] {
        assert_eq!(status(&[&format!("Host:{host}")]), 403, "{host}");
    }
    for host in ["attacker.example", "127.0.0.1.attacker.example", "localhost.", "127.0.0.2"] {
        assert_eq!(status(&[&format!("Host: {host}:{port}")]), 403, "{host}");
    }
    assert_eq!(status(&[&good, "Host: attacker.example"]), 403);
    // The page too, and before the token is compared.
    let host = format!("Host: attacker.example:{port}");
    assert_eq!(server.get("/", &[&host]).status, 403);
    assert_eq!(server.get(&format!("/{}/", server.token), &[&host]).status, 403);
}

#[test]
fn a_changed_file_has_another_tag() {
    let server = Server::new(&["--no-open"]);
    let tag = || {
        let answer = server.get(&server.path(), &["Range: bytes=0-0"]);
        assert_eq!(answer.status, 206);
        assert!(answer.header("last-modified").is_some());
        (answer.header("etag").unwrap().to_owned(), answer.body)
    };
    let (first, byte) = tag();
    assert_eq!((first.clone(), byte), tag());
    // Replaced by another file of the same size.
    let new = server.folder.path().join("new");
    fs::write(&new, vec![9; 1000]).unwrap();
    fs::rename(&new, server.file()).unwrap();
    let (second, byte) = tag();
    assert_ne!(first, second);
    assert_eq!(byte, [9]);
    fs::remove_file(server.file()).unwrap();
    assert_eq!(server.get(&server.path(), &[]).status, 404);
}

#[test]
#[cfg(unix)]
fn ctrl_c_ends_it() {
    for signal in ["-INT", "-TERM"] {
        let mut server = Server::start(with_default_signals(PROGRAM), &["--no-open"]);
        // An open connection does not keep it.
        let _connection = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        let id = server.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
        let status = server.child.wait().unwrap();
        assert_eq!(status.code(), Some(130), "{signal}");
        let mut rest = String::new();
        server.child.stdout.take().unwrap().read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "", "one line on stdout");
    }
}

/// The programs that open a browser are different on other systems.
#[test]
#[cfg(target_os = "linux")]
fn the_browser_is_opened() {
    use std::os::unix::fs::PermissionsExt;
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(NAME), content()).unwrap();
    let (program, found) = (folder.path().join("xdg-open"), folder.path().join("address"));
    let script = "#!/bin/sh\nprintf '%s' \"$1\" > address.part\nmv address.part address\n";
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let paths = std::env::var("PATH").unwrap();
    let mut command = Command::new(PROGRAM);
    command.current_dir(folder.path()).args(["view", "--web", NAME]).stdout(Stdio::piped());
    command.env("PATH", format!("{}:{paths}", folder.path().display())).env_remove("BROWSER");
    let mut child = command.spawn().unwrap();
    let mut address = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut address).unwrap();
    let start = Instant::now();
    while !found.exists() {
        assert!(start.elapsed() < Duration::from_secs(60), "no browser is opened");
        sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(fs::read_to_string(found).unwrap(), address.trim_end());
    // Without such a program it still serves.
    let server = Server::new(&[]);
    assert_eq!(server.get(&server.path(), &[]).status, 200);
}

#[test]
fn a_port_can_be_chosen() {
    let server = Server::new(&["--no-open"]);
    let port = server.port.to_string();
    // It is in use.
    let line = error(&server.folder, &["view", "--web", "other", "--no-open", "--port", &port], 1);
    assert!(line.contains(&format!("cannot serve (other): port {port}: ")), "{line}");
    drop(server);
    let server = Server::new(&["--no-open", "--port", &port]);
    assert_eq!(server.port.to_string(), port);
}

#[test]
fn what_the_page_cannot_open_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("run.b2d")).unwrap();
    fs::write(folder.path().join("a.b2nd"), content()).unwrap();
    for (args, status, text) in [
        (&["missing.b2nd"][..], 1, "cannot open (missing.b2nd): no such file"),
        (&["run.b2d"], 1, "cannot serve (run.b2d): `--web` needs a single file, found a directory"),
        (&["-"], 1, "cannot serve (-): `--web` needs a file that can be read at any position"),
        (&["https://example.org/a.b2nd"], 1, "`--web` serves local files"),
        (&["a.b2nd", "--slice", "0"], 2, "cannot be used with"),
        (&["a.b2nd", "--key", "/a"], 2, "cannot be used with"),
        (&["a.b2nd", "--json"], 2, "cannot be used with"),
        (&["a.b2nd", "--port", "70000"], 2, "invalid value"),
    ] {
        let args = [&["view", "--web"], args].concat();
        let line = error(&folder, &args, status);
        assert!(line.contains(text), "{args:?}: {line}");
    }
    let line = error(&folder, &["view", "a.b2nd", "--port", "80"], 2);
    assert!(line.contains("--web"), "{line}");
}
