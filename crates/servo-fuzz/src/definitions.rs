//! Manifests of projects.

use std::sync::Arc;

use servo_core::Timestamp;
use servo_engine::definitions::{Definitions, Manifest};
use servo_engine::event::{decode_batch, encode_batch};
use servo_engine::{Caller, Deploy, Engine, Input, State};

use crate::tables::layout;

/// A manifest of definitions: it is written as it was read, and what passes the check can be deployed and recovered.
pub fn definitions(bytes: &[u8]) {
    let Ok(manifest) = serde_json::from_slice::<Manifest>(bytes) else { return };
    let written = serde_json::to_vec(&manifest).expect("a manifest is JSON");
    assert_eq!(serde_json::from_slice::<Manifest>(&written).ok().as_ref(), Some(&manifest));
    let definitions = match Definitions::check(manifest) {
        Ok(definitions) => definitions,
        Err(problems) => {
            assert!(!problems.to_string().is_empty());
            return;
        }
    };
    let state = State::new(layout().tenant().clone(), layout().workspace().clone());
    let mut engine = Engine::new(state, *b"secret");
    let assets = definitions.assets().iter().map(|asset| Arc::clone(&asset.def)).collect();
    let project = definitions.project().to_owned();
    let deploy = Deploy {
        schedules: definitions.schedules().to_vec(),
        sensors: definitions.sensors().to_vec(),
        notifications: definitions.notifications().to_vec(),
        time_zones: "2026e".into(),
        digest: "sha256:0".into(),
        project,
        assets,
        caller: Caller::user("me"),
    };
    let step = engine.step(&[Input::Deploy(deploy)], Timestamp::EPOCH);
    let mut batch = Vec::new();
    encode_batch(&step.events, &mut batch);
    assert_eq!(decode_batch(&batch).expect("what was deployed can be recovered"), step.events);
}
