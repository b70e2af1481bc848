//! Decodes all items of an array natively, as the page does: prints the MB/s of five runs. `tests/browser/bench.js` runs it.

use std::sync::Arc;
use std::time::Instant;

use blosc2_web::viewer::Viewer;
use serde_json::json;

fn main() -> Result<(), String> {
    let path = std::env::args().nth(1).ok_or("usage: decode FILE")?;
    let bytes = std::fs::read(&path).map_err(|error| format!("cannot read {path}: {error}"))?;
    for _ in 0..5 {
        let mut viewer = Viewer::open(Arc::new(bytes.clone()))?;
        let facts = viewer.facts();
        let sides = facts["items"]["shape"].as_array().ok_or("it is not an array")?;
        let ranges: Vec<_> = sides.iter().map(|side| json!([0, side])).collect();
        let start = Instant::now();
        viewer.export(&json!({ "ranges": ranges }))?;
        while viewer.export_step()? {}
        let seconds = start.elapsed().as_secs_f64();
        let nbytes = facts["facts"]["nbytes"].as_f64().unwrap_or_default();
        println!("{}", (nbytes / seconds / 1e6).round());
    }
    Ok(())
}
