//! Assets that are given another name, with all that is known of them (ADR-181).

use servo_core::EventId;
use servo_engine::HotRows;

use super::compare::Differences;
use super::data::AssetPartition;
use super::follow::{Judged, only_if};
use super::log::text;
use super::{Event, Model};

/// A rename: both names, the event, and whether the data has followed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Rename {
    pub from: String,
    pub to: String,
    pub by: EventId,
    pub moved: bool,
}

impl Model {
    fn has_history(&self, asset: &str) -> bool {
        let data = &self.data;
        let mut places = data.statuses.keys().chain(data.prior.keys()).chain(data.quarantine.keys());
        places.any(|place| place.0 == asset)
            || self.assets.knows(asset)
            || data.approved.keys().any(|(of, _)| of == asset)
    }

    pub(super) fn asset_renamed(&mut self, event: &Event) -> Judged {
        let (from, to) = (text(&event.payload, "asset_key")?, text(&event.payload, "renamed_to")?);
        only_if(!self.has_history(to), "not in that state")?;
        only_if(!self.memory.knows(&event.key), "duplicate")?;
        self.memory.remember(&event.key, self.elapsed, &self.rules);
        let is_reused = self.renames.iter().any(|rename| rename.from == to);
        let renamed = |place: AssetPartition| (to.to_owned(), place.1);
        let places: Vec<AssetPartition> =
            self.data.statuses.keys().filter(|place| place.0 == from).cloned().collect();
        for place in places {
            let Some(mut status) = self.data.statuses.remove(&place) else { continue };
            if is_reused {
                status.last.event = event.id;
            }
            self.data.statuses.insert(renamed(place), status);
        }
        let places: Vec<AssetPartition> =
            self.data.prior.keys().filter(|place| place.0 == from).cloned().collect();
        for place in places {
            let prior = self.data.prior.remove(&place).filter(|_| !is_reused);
            self.data.prior.extend(prior.map(|prior| (renamed(place), prior)));
        }
        let places: Vec<AssetPartition> =
            self.data.quarantine.keys().filter(|place| place.0 == from).cloned().collect();
        for place in places {
            let Some(mut waiting) = self.data.quarantine.remove(&place) else { continue };
            waiting.event = event.id;
            self.data.quarantine.insert(renamed(place), waiting);
        }
        self.assets.rename(from, to);
        let rename = Rename { from: from.to_owned(), to: to.to_owned(), by: event.id, moved: false };
        self.renames.push(rename);
        self.look_again(to, event.at);
        Ok(())
    }

    pub(super) fn asset_moved(&mut self, event: &Event) -> Judged {
        let (from, by) = (text(&event.payload, "asset_key")?, text(&event.payload, "renamed_by")?);
        let mut renames = self.renames.iter_mut();
        let found = renames.find(|known| known.from == from && known.by.to_string() == by && !known.moved);
        only_if(found.is_some(), "duplicate")?;
        found.into_iter().for_each(|known| known.moved = true);
        Ok(())
    }

    /// Why something should not have been handed out: its data, or what it reads, is on its way to another name.
    pub(super) fn begins_while_moving(&self, assets: &[String]) -> Option<String> {
        let mut moving = self.renames.iter().filter(|rename| !rename.moved);
        let on_its_way =
            moving.find(|rename| assets.contains(&rename.from) || assets.contains(&rename.to))?;
        Some(format!("the data of {} is on its way to {}", on_its_way.from, on_its_way.to))
    }

    /// Data that has not followed its asset.
    pub fn left_behind(&self) -> impl Iterator<Item = String> {
        let left = self.renames.iter().filter(|rename| !rename.moved);
        left.map(|rename| format!("the data of {} has not followed it to {}", rename.from, rename.to))
    }

    pub(super) fn compare_renames(&self, found: &mut Differences, rows: &HotRows) {
        let known = rows.asset_renames.iter().map(|row| {
            let (from, to) = (row.asset_key.canonical().to_owned(), row.renamed_to.canonical().to_owned());
            (from, to, row.renamed_event_id, row.moved_at.is_some())
        });
        let expected = self.renames.iter().map(|it| (it.from.clone(), it.to.clone(), it.by, it.moved));
        found.same_keys("renames", &known.collect(), &expected.collect());
    }
}
