//! Frames that are made to crash a reader are errors, in bounded time and memory.

mod common;

use std::path::Path;
use std::time::Duration;

use common::context;
use datafusion::prelude::SessionContext;

/// The longest time of a query, far above that of a damaged file.
const LONGEST: Duration = Duration::from_secs(60);
/// The most memory of the process, in KiB.
const MOST: u64 = 2 << 20;

/// Runs a query. Errors are expected; a panic is not.
async fn run(context: &SessionContext, sql: &str, what: &str) -> bool {
    let run = async {
        match context.sql(sql).await {
            Ok(frame) => frame.collect().await.is_ok(),
            Err(_) => false,
        }
    };
    tokio::time::timeout(LONGEST, run).await.unwrap_or_else(|_| panic!("{what}: {sql}: no end"))
}

fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn crashing_frames_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let frames = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/hostile");
    let (mut count, mut good) = (0, 0);
    for kind in ["crashing", "intact"] {
        for file in std::fs::read_dir(frames.join(kind)).unwrap() {
            let file = file.unwrap().path();
            let what = file.display().to_string();
            let path = folder.path().join("frame.b2nd");
            std::fs::copy(&file, &path).unwrap();
            let location = path.display();
            for format in ["B2ND", "CTABLE"] {
                let context = context(2);
                let create =
                    format!("CREATE EXTERNAL TABLE t STORED AS {format} LOCATION '{location}'");
                if !run(&context, &create, &what).await {
                    continue;
                }
                for sql in [
                    "SELECT count(*) FROM t",
                    "SELECT * FROM t LIMIT 1000",
                    "SELECT * FROM t WHERE axis_0 = 1 LIMIT 1000",
                ] {
                    good += usize::from(run(&context, sql, &what).await);
                }
            }
            count += 1;
        }
    }
    assert!(count > 100 && good >= 3, "{count} frames, {good} queries are good");
    if let Some(peak) = peak_memory() {
        assert!(peak < MOST, "{peak} KiB of memory");
    }
}
