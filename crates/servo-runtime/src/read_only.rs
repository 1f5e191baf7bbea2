//! A workspace that is only read: what the log says at this moment, beside whoever writes it. Nothing is written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use servo_engine::{Deploy, Engine, Event, EventData, Input, Run, State};
use tokio::sync::{broadcast, watch};

use crate::compaction::FlushTracker;
use crate::config::{Config, Stores};
use crate::data::Data;
use crate::effects::StuckPaths;
use crate::error::Error;
use crate::messages::EngineMessage;
use crate::recovery::from_tables;
use crate::spawner::TaskTracker;
use crate::workspace::{CloseOnExit, Inner, Workspace};

impl Workspace {
    /// Loads the state to answer reads from. Requests that would change something are refused with [`Error::ReadOnly`].
    ///
    /// With definitions, reads and plans are answered as if these were deployed.
    pub async fn open_read_only(
        stores: Stores,
        config: Config,
        definitions: Option<Deploy>,
    ) -> Result<Self, Error> {
        let recovered = from_tables(&stores).await?;
        let mut state = recovered.state;
        if let Some(deploy) = definitions {
            pretend(&mut state, deploy, &config)?;
        }
        let flushes = Arc::new(FlushTracker::default());
        flushes.adopt(recovered.manifest);
        let stopping = Arc::new(AtomicBool::new(false));
        let closed = Arc::new(AtomicBool::new(false));
        let (inputs, queue) = flume::bounded(config.input_capacity);
        let close_on_exit = CloseOnExit { closed: closed.clone(), inputs: queue.clone() };
        // Nothing will be told, and whoever follows waits instead of being sent away.
        let followers: broadcast::Sender<Arc<[Event]>> = broadcast::Sender::new(1);
        let weak_followers = followers.downgrade();
        let snapshot = Arc::new(state.snapshot());
        let (tracker, work) = TaskTracker::new(config.spawner.clone());
        tracker.thread("servo-reads", {
            let stopping = stopping.clone();
            async move {
                let _last_out = close_on_exit;
                let _followers = followers;
                while let Ok(message) = queue.recv_async().await {
                    answer(message, &state);
                    if stopping.load(Ordering::Acquire) {
                        break;
                    }
                }
            }
        });
        let (_, leased) = flume::bounded(1);
        // The state never changes, and a receiver keeps its last value.
        let (_, snapshots) = watch::channel(snapshot);
        Ok(Self {
            inner: Arc::new(Inner {
                inputs,
                flushes,
                cache: Arc::default(),
                clock: config.clock,
                spawner: config.spawner,
                snapshots,
                ids: config.put_ids,
                keys: config.keys,
                token_lifetime: config.token_lifetime,
                secret: config.secret,
                read_only: true,
                stopping,
                data: stores.data.clone().map(|root| Data { root, layout: stores.layout.clone() }),
                logs: config.logs,
                vitals: Arc::default(),
                stuck: StuckPaths::default(),
                signs_of_life: Arc::default(),
                closed,
                work,
                evaluations: Arc::default(),
                followers: weak_followers,
                leased,
                stores,
            }),
        })
    }
}

/// Folds a deployment that is in no log. Of what follows from it only the definitions are wanted: nothing is
/// dispatched.
fn pretend(state: &mut State, deploy: Deploy, config: &Config) -> Result<(), Error> {
    let mut engine = Engine::new(state.clone(), config.secret.clone());
    engine.set_automation(false);
    engine.set_backfills(false);
    let step = engine.step(&[Input::Deploy(deploy)], config.clock.now());
    step.replies.into_iter().collect::<Result<Vec<_>, _>>()?;
    let is_deployment = |event: &Event| {
        matches!(
            event.data,
            EventData::AssetsDeployed(_)
                | EventData::ScheduleDefined(_)
                | EventData::ScheduleRemoved(_)
                | EventData::SensorDefined(_)
                | EventData::SensorRemoved(_)
                | EventData::NotificationRuleDefined(_)
                | EventData::NotificationRuleChanged(_)
        )
    };
    let deployed: Vec<Event> = step.events.into_iter().filter(is_deployment).collect();
    state.suppose(&deployed);
    Ok(())
}

fn answer(message: EngineMessage, state: &State) {
    match message {
        EngineMessage::Query(query) => query(state)(),
        EngineMessage::Watch(run, answer) => {
            let ended = state.run(run).filter(|run| run.state.is_terminal());
            let _gone = answer.send(ended.map(Run::row));
        }
        EngineMessage::Input(_, Some(reply_to)) | EngineMessage::Early(_, reply_to) => {
            let _gone = reply_to.send(Err(Error::ReadOnly));
        }
        EngineMessage::Input(_, None) | EngineMessage::Flush | EngineMessage::Wake => {}
    }
}
