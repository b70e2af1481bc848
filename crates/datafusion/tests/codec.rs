//! Plans as bytes: scans keep their partitions.
#![cfg(feature = "proto")]

mod common;

use std::sync::Arc;

use blosc2_datafusion::{Blosc2Codec, Blosc2LogicalCodec, Blosc2Source};
use common::{add, context, create, query, rows, segments};
use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, collect};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_proto::bytes::{
    logical_plan_from_bytes_with_extension_codec, logical_plan_to_bytes_with_extension_codec,
    physical_plan_from_bytes_with_extension_codec, physical_plan_to_bytes_with_extension_codec,
};
use datafusion_proto::logical_plan::DefaultLogicalExtensionCodec;
use futures::TryStreamExt;
use object_store::ObjectStoreExt;
use object_store::memory::InMemory;

/// A session of another machine, whose plans execute one partition each.
fn other() -> SessionContext {
    let config = SessionConfig::new()
        .set_bool("datafusion.execution.enable_file_stream_work_stealing", false);
    SessionContext::new_with_config(config)
}

fn copied(plan: &Arc<dyn ExecutionPlan>, session: &SessionContext) -> Arc<dyn ExecutionPlan> {
    let bytes =
        physical_plan_to_bytes_with_extension_codec(Arc::clone(plan), &Blosc2Codec).unwrap();
    physical_plan_from_bytes_with_extension_codec(&bytes, &session.task_ctx(), &Blosc2Codec)
        .unwrap()
}

fn sum(batches: &[RecordBatch]) -> i64 {
    let ids = batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values());
    ids.sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_for_other_machines_read_their_partitions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.b2z");
    let all = rows(30_000);
    create(&path, &all, 2048, |row| row.is_deleted());
    let expected: i64 = all.iter().filter(|row| !row.is_deleted()).map(|row| row.id()).sum();
    let context = context(5);
    add(&context, "t", path.display()).await;

    let frame = context.sql("SELECT id FROM t WHERE id >= 0").await.unwrap();
    let plan = frame.clone().create_physical_plan().await.unwrap();
    let partitions = plan.output_partitioning().partition_count();
    assert_eq!(partitions, 5);
    let mut found = 0;
    for partition in 0..partitions {
        let session = other();
        let copy = copied(&plan, &session);
        let stream = copy.execute(partition, session.task_ctx()).unwrap();
        found += sum(&stream.try_collect::<Vec<_>>().await.unwrap());
    }
    assert_eq!(found, expected);

    let session = other();
    let grouped = context.sql("SELECT sum(id) FROM t GROUP BY word, flag").await.unwrap();
    let grouped = copied(&grouped.create_physical_plan().await.unwrap(), &session);
    assert_eq!(sum(&collect(grouped, session.task_ctx()).await.unwrap()), expected);

    // The bytes contain the filter that skips blocks.
    let last = context.sql("SELECT id FROM t WHERE id >= 29000").await.unwrap();
    let copy = copied(&last.create_physical_plan().await.unwrap(), &session);
    let expected: i64 =
        all.iter().map(|row| row.id()).filter(|id| *id >= 29_000 && id % 13 != 5).sum();
    assert_eq!(sum(&collect(Arc::clone(&copy), session.task_ctx()).await.unwrap()), expected);
    let (matched, pruned) = segments(&copy);
    assert!(matched < pruned, "{matched} segments match, {pruned} are skipped");

    // The bytes contain the size and the time of the file; of an object store, the ETag too.
    let e_tags = |plan: &Arc<dyn ExecutionPlan>| {
        let scan = plan.downcast_ref::<DataSourceExec>().unwrap();
        let (config, _) = scan.downcast_to_file_source::<Blosc2Source>().unwrap();
        let files = config.file_groups.iter().flat_map(|group| group.iter());
        files.map(|file| file.object_meta.e_tag.clone()).collect::<Vec<_>>()
    };
    let memory = InMemory::new();
    memory.put(&"t.b2z".into(), std::fs::read(&path).unwrap().into()).await.unwrap();
    context.register_object_store(&"memory://".try_into().unwrap(), Arc::new(memory));
    add(&context, "m", "memory:///t.b2z").await;
    let scan = context.sql("SELECT id FROM m").await.unwrap();
    let scan = scan.create_physical_plan().await.unwrap();
    assert_eq!(e_tags(&scan)[0].as_deref(), Some("0"));
    assert_eq!(e_tags(&copied(&scan, &session)), e_tags(&scan));
    let copy = copied(&frame.create_physical_plan().await.unwrap(), &session);
    std::fs::remove_file(&path).unwrap();
    create(&path, &all[1..], 2048, |_| false);
    let error = collect(copy, session.task_ctx()).await.unwrap_err().to_string();
    assert!(error.contains("has changed"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn logical_plans_contain_the_locations() {
    let folder = tempfile::tempdir().unwrap();
    let all = rows(3000);
    for (name, part) in ["a1", "a2", "b"].iter().zip(all.chunks(1000)) {
        create(&folder.path().join(format!("{name}.b2z")), part, 2048, |_| false);
    }
    let context = context(2);
    add(&context, "t", folder.path().join("a*.b2z").display()).await;
    let array = folder.path().join("x.b2nd");
    blosc2::NDArray::from_slice(&[1i64, 2, 3][..], [3]).unwrap().save(&array).unwrap();
    let create = "CREATE EXTERNAL TABLE x STORED AS B2ND";
    let create = format!("{create} LOCATION '{}' OPTIONS ('dims' 'at')", array.display());
    query(&context, &create).await;

    let codec = Blosc2LogicalCodec::new(Arc::new(DefaultLogicalExtensionCodec {}));
    let sql = "SELECT sum(t.id), sum(x.value) FROM t JOIN x ON t.id = x.at";
    for (sql, expected) in [("SELECT sum(id) FROM t", 1_999_000), (sql, 3)] {
        let plan = context.sql(sql).await.unwrap().into_optimized_plan().unwrap();
        let bytes = logical_plan_to_bytes_with_extension_codec(&plan, &codec).unwrap();
        // Without registering the formats.
        let session = other();
        let copy =
            logical_plan_from_bytes_with_extension_codec(&bytes, &session.task_ctx(), &codec);
        let frame = session.execute_logical_plan(copy.unwrap()).await.unwrap();
        assert_eq!(sum(&frame.collect().await.unwrap()), expected, "{sql}");
    }
}
