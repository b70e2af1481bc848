//! The executors of a scheduler, their free threads, and the queries that run on them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use ballista_core::JobId;
use ballista_core::error::Result;
use ballista_core::serde::protobuf::ExecutorHeartbeat;
use ballista_core::serde::scheduler::{ExecutorData, ExecutorMetadata};
use ballista_scheduler::cluster::memory::InMemoryClusterState;
use ballista_scheduler::cluster::{BoundTask, ClusterState, ClusterStateEventStream, ExecutorSlot};
use ballista_scheduler::config::TaskDistributionPolicy;
use ballista_scheduler::state::task_manager::JobInfoCache;
use tokio::sync::Mutex;
use tokio::sync::mpsc::UnboundedSender;

use crate::graph::Graph;

/// The executors in memory. The free threads of an executor are those that no running task uses.
///
/// Ballista 55 counts instead: a task takes threads, and its end returns them. If an executor is lost, Ballista resets the
/// tasks that need its results, and ignores their ends. Their threads on other executors would never be free again, and the
/// query and all later ones could wait without an end.
pub(crate) struct Executors {
    known: InMemoryClusterState,
    /// The queries that are a [`Graph`]. One at a time assigns tasks.
    graphs: Mutex<HashSet<JobId>>,
    /// Receives queries that have failed.
    failed: UnboundedSender<JobId>,
}

impl Executors {
    pub(crate) fn new(failed: UnboundedSender<JobId>) -> Self {
        Self { known: InMemoryClusterState::default(), graphs: Mutex::default(), failed }
    }
}

#[async_trait]
impl ClusterState for Executors {
    async fn bind_schedulable_tasks(
        &self,
        distribution: TaskDistributionPolicy,
        jobs: Arc<HashMap<JobId, JobInfoCache>>,
        executors: Option<HashSet<String>>,
    ) -> Result<Vec<BoundTask>> {
        let mut graphs = self.graphs.lock().await;
        graphs.retain(|id| jobs.contains_key(id));
        let mut used: HashMap<String, u32> = HashMap::new();
        for (id, job) in jobs.iter() {
            let mut graph = job.execution_graph.write().await;
            // Before its first task.
            if graphs.insert(id.clone()) {
                *graph = Box::new(Graph::new(graph.cloned(), self.failed.clone()));
            }
            for task in graph.running_tasks() {
                let vcores = graph.task_vcores(task.stage_id, task.task_id).unwrap_or_default();
                *used.entry(task.executor_id).or_default() += vcores;
            }
        }
        let free = InMemoryClusterState::default();
        for executor in self.known.registered_executor_metadata().await {
            let total = executor.specification.vcores;
            let used = used.get(&executor.id).copied().unwrap_or_default();
            let data = ExecutorData {
                executor_id: executor.id.clone(),
                total_vcores: total,
                available_vcores: total.saturating_sub(used),
            };
            free.register_executor(executor, data).await?;
        }
        free.bind_schedulable_tasks(distribution, jobs, executors).await
    }

    /// Does nothing: a task that has ended uses no threads.
    async fn unbind_tasks(&self, _: Vec<ExecutorSlot>) -> Result<()> {
        Ok(())
    }

    async fn register_executor(
        &self,
        metadata: ExecutorMetadata,
        data: ExecutorData,
    ) -> Result<()> {
        self.known.register_executor(metadata, data).await
    }

    async fn save_executor_metadata(&self, metadata: ExecutorMetadata) -> Result<()> {
        self.known.save_executor_metadata(metadata).await
    }

    async fn get_executor_metadata(&self, id: &str) -> Result<ExecutorMetadata> {
        self.known.get_executor_metadata(id).await
    }

    async fn registered_executor_metadata(&self) -> Vec<ExecutorMetadata> {
        self.known.registered_executor_metadata().await
    }

    async fn save_executor_heartbeat(&self, heartbeat: ExecutorHeartbeat) -> Result<()> {
        self.known.save_executor_heartbeat(heartbeat).await
    }

    async fn remove_executor(&self, id: &str) -> Result<()> {
        self.known.remove_executor(id).await
    }

    fn executor_heartbeats(&self) -> HashMap<String, ExecutorHeartbeat> {
        self.known.executor_heartbeats()
    }

    fn get_executor_heartbeat(&self, id: &str) -> Option<ExecutorHeartbeat> {
        self.known.get_executor_heartbeat(id)
    }

    async fn cluster_state_events(&self) -> Result<ClusterStateEventStream> {
        self.known.cluster_state_events().await
    }
}
