//! The stages of a query, when an executor is lost.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ballista_core::JobId;
use ballista_core::error::Result;
use ballista_core::serde::protobuf::{JobStatus, TaskStatus, job_status, task_status};
use ballista_core::serde::scheduler::{ExecutorMetadata, PartitionLocation};
use ballista_scheduler::scheduler_server::event::QueryStageSchedulerEvent;
use ballista_scheduler::state::execution_graph::{
    ExecutionGraph, ExecutionGraphBox, RunningTaskInfo,
};
use ballista_scheduler::state::execution_stage::{ExecutionStage, RunningStage};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionConfig;
use tokio::sync::mpsc::UnboundedSender;

/// What clients are told.
const LOST: &str =
    "an executor was lost, and with it results that the query still needs: run the query again";

/// The stages of a query. Each result of a task is used once.
///
/// Ballista 55 keeps the results of tasks that it runs again. Rows of the last stage would be returned from both, or from
/// an executor that is lost. The results of other stages would be read twice: then the query fails.
#[derive(Debug)]
pub(crate) struct Graph {
    inner: ExecutionGraphBox,
    /// Receives queries that have failed.
    failed: UnboundedSender<JobId>,
}

impl Graph {
    pub(crate) fn new(inner: ExecutionGraphBox, failed: UnboundedSender<JobId>) -> Self {
        Self { inner, failed }
    }

    /// The stages of which other stages have results.
    fn with_results(&self) -> HashSet<usize> {
        let stages = self.inner.stages().iter().filter(|(_, stage)| {
            let is_running = matches!(stage, ExecutionStage::Running(_));
            let mut tasks = stage.task_infos().unwrap_or_default().iter();
            is_running && tasks.any(|task| is_successful(Some(&task.task_status)))
        });
        stages.map(|(id, _)| *id).collect()
    }

    /// Fails if one of these stages starts again: other stages would have its results twice.
    fn check(&mut self, with_results: &HashSet<usize>) {
        let starts_again = |stage: &ExecutionStage| {
            let waits =
                matches!(stage, ExecutionStage::UnResolved(_) | ExecutionStage::Resolved(_));
            waits && !stage.output_links().is_empty()
        };
        let stages = self.inner.stages();
        if with_results.iter().any(|id| stages.get(id).is_some_and(starts_again)) {
            self.inner.fail_job(LOST.to_owned());
            // Without a receiver, the scheduler has ended.
            let _ = self.failed.send(self.inner.job_id().clone());
        }
    }

    /// Of the rows of the result that were computed several times, keeps the last ones.
    fn keep_last(&mut self) {
        let mut status = self.inner.status().clone();
        let Some(job_status::Status::Successful(job)) = &mut status.status else { return };
        let mut found = HashSet::new();
        job.partition_location.reverse();
        job.partition_location.retain(|location| {
            let partition = location.partition_id.as_ref();
            found.insert(partition.map(|partition| partition.partition_id))
        });
        job.partition_location.reverse();
        self.inner.update_status(status);
    }
}

fn is_successful(status: Option<&task_status::Status>) -> bool {
    matches!(status, Some(task_status::Status::Successful(_)))
}

/// Calls the same method of `inner`.
macro_rules! delegate {
    ($(fn $name:ident(&self) -> $type:ty;)*) => { $(fn $name(&self) -> $type { self.inner.$name() })* };
    (mut $(fn $name:ident($($argument:ident: $of:ty),*) -> $type:ty;)*) => {
        $(fn $name(&mut self, $($argument: $of),*) -> $type { self.inner.$name($($argument),*) })*
    };
}

impl ExecutionGraph for Graph {
    fn update_task_status(
        &mut self,
        executor: &ExecutorMetadata,
        statuses: Vec<TaskStatus>,
        max_task_failures: usize,
        max_stage_failures: usize,
    ) -> Result<Vec<QueryStageSchedulerEvent>> {
        let ended = statuses.iter().filter(|status| is_successful(status.status.as_ref()));
        let mut with_results = self.with_results();
        with_results.extend(ended.map(|status| status.stage_id as usize));
        let events = self.inner.update_task_status(
            executor,
            statuses,
            max_task_failures,
            max_stage_failures,
        )?;
        self.check(&with_results);
        self.keep_last();
        Ok(events)
    }

    fn reset_stages_on_lost_executor(
        &mut self,
        executor: &str,
    ) -> Result<(HashSet<usize>, Vec<RunningTaskInfo>)> {
        let with_results = self.with_results();
        let reset = self.inner.reset_stages_on_lost_executor(executor)?;
        self.check(&with_results);
        Ok(reset)
    }

    /// Keeps the first reason: the scheduler cancels a query that has failed.
    fn fail_job(&mut self, error: String) {
        if !matches!(self.inner.status().status, Some(job_status::Status::Failed(_))) {
            self.inner.fail_job(error);
        }
    }

    fn cloned(&self) -> ExecutionGraphBox {
        Box::new(Self { inner: self.inner.cloned(), failed: self.failed.clone() })
    }

    fn fetch_running_stage(&mut self, black_list: &[usize]) -> Option<&mut RunningStage> {
        // A query that has failed starts no task.
        match self.inner.status().status {
            Some(job_status::Status::Failed(_)) => None,
            _ => self.inner.fetch_running_stage(black_list),
        }
    }

    delegate! {
        fn job_id(&self) -> &JobId;
        fn job_name(&self) -> &str;
        fn session_id(&self) -> &str;
        fn scheduler_id(&self) -> Option<&str>;
        fn session_config(&self) -> Arc<SessionConfig>;
        fn status(&self) -> &JobStatus;
        fn logical_plan(&self) -> Option<&str>;
        fn physical_plan(&self) -> Arc<dyn ExecutionPlan>;
        fn start_time(&self) -> u64;
        fn end_time(&self) -> u64;
        fn completed_stages(&self) -> usize;
        fn is_successful(&self) -> bool;
        fn running_stages(&self) -> Vec<usize>;
        fn running_tasks(&self) -> Vec<RunningTaskInfo>;
        fn available_tasks(&self) -> usize;
        fn output_locations(&self) -> Vec<PartitionLocation>;
        fn stages(&self) -> &HashMap<usize, ExecutionStage>;
        fn stage_count(&self) -> usize;
    }

    delegate! { mut
        fn revive() -> bool;
        fn update_status(status: JobStatus) -> ();
        fn resolve_stage(stage: usize) -> Result<bool>;
        fn succeed_stage(stage: usize) -> bool;
        fn fail_stage(stage: usize, error: String) -> bool;
        fn rollback_running_stage(stage: usize, reasons: HashSet<String>) -> Result<Vec<RunningTaskInfo>>;
        fn rollback_resolved_stage(stage: usize) -> Result<bool>;
        fn rerun_successful_stage(stage: usize) -> bool;
        fn succeed_job() -> Result<()>;
    }
}
