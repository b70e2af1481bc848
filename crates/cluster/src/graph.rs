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

/// The stages of a query. The result of each task is used once, or the query fails.
///
/// Ballista 55 keeps the results of tasks that it runs again. Without this type, other stages and clients would read them
/// twice, or from an executor that is lost.
#[derive(Debug)]
pub(crate) struct Graph {
    inner: ExecutionGraphBox,
    /// Receives queries that have failed.
    failed: UnboundedSender<JobId>,
}

/// Results that others than their stage know.
struct Results {
    stages: HashSet<usize>,
    /// The tasks of the last stage, whose results are rows for the client.
    last: HashSet<(usize, usize)>,
}

impl Graph {
    pub(crate) fn new(inner: ExecutionGraphBox, failed: UnboundedSender<JobId>) -> Self {
        Self { inner, failed }
    }

    /// The results before a change. `ended` are statuses that the change contains.
    fn results(&self, ended: &[TaskStatus]) -> Results {
        let mut results = Results { stages: HashSet::new(), last: HashSet::new() };
        for (id, stage) in self.inner.stages() {
            let ExecutionStage::Running(running) = stage else { continue };
            let of_stage = ended.iter().any(|task| {
                task.stage_id as usize == *id
                    && task.stage_attempt_num as usize == running.stage_attempt_num
                    && is_successful(task.status.as_ref())
            });
            if of_stage || successful(stage).next().is_some() {
                results.stages.insert(*id);
            }
            if stage.output_links().is_empty() {
                results.last.extend(successful(stage).map(|task| (*id, task)));
            }
        }
        results
    }

    /// Fails the query if a change has lost results, or computes them again for others that have them.
    fn check(&mut self, before: &Results) {
        let stages = self.inner.stages();
        let starts_again = |stage: &ExecutionStage| {
            matches!(stage, ExecutionStage::UnResolved(_) | ExecutionStage::Resolved(_))
        };
        let again = before.stages.iter().any(|id| stages.get(id).is_some_and(starts_again));
        let is_kept = |(stage, task): &(usize, usize)| {
            stages.get(stage).is_some_and(|stage| successful(stage).any(|each| each == *task))
        };
        if again || !before.last.iter().all(is_kept) {
            self.inner.fail_job(LOST.to_owned());
            // Without a receiver, the scheduler has ended.
            let _ = self.failed.send(self.inner.job_id().clone());
        }
    }
}

/// The tasks of a stage that have ended with a result.
fn successful(stage: &ExecutionStage) -> impl Iterator<Item = usize> {
    let tasks = stage.task_infos().unwrap_or_default().iter().enumerate();
    tasks.filter(|(_, task)| is_successful(Some(&task.task_status))).map(|(at, _)| at)
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
        let before = self.results(&statuses);
        let events = self.inner.update_task_status(
            executor,
            statuses,
            max_task_failures,
            max_stage_failures,
        )?;
        self.check(&before);
        Ok(events)
    }

    fn reset_stages_on_lost_executor(
        &mut self,
        executor: &str,
    ) -> Result<(HashSet<usize>, Vec<RunningTaskInfo>)> {
        let before = self.results(&[]);
        let reset = self.inner.reset_stages_on_lost_executor(executor)?;
        self.check(&before);
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
