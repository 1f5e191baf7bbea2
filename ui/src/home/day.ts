// The last day in half hours, by group of assets, from what a few bounded requests tell: the newest runs, the newest that
// failed, and the assets that were made or failed last.
import type { Schemas } from "../api/client";
import { groupOf } from "../assets/grouping";
import type { Run } from "../runs/useRun";

export const CELLS = 48;
export const CELL_MS = 30 * 60_000;
const MOST_ROWS = 8;
/** What cannot be said to be of one group. */
export const SEVERAL = "several groups";

type Asset = Schemas["Asset"];

export interface Cell {
  runs: number;
  failed: number;
  active: number;
  /** Assets that were made then, as far as it was the last time. */
  made: number;
  /** Whether every run of that time is known. */
  isKnown: boolean;
}

export interface Row {
  group: string;
  cells: Cell[];
}

export interface Day {
  rows: Row[];
  /** Groups that are not shown. */
  more: number;
  /** Since when all runs are known; before that only those that failed, and what was made last. */
  knownSince: number;
}

interface Known {
  start: number;
  newest: readonly Run[];
  /** Whether there are runs that are older, and not known. */
  isCut: boolean;
  failed: readonly Run[];
  isFailedCut: boolean;
  assets: readonly Asset[];
}

/** The group of what a run makes, from the names in its selection. */
export function groupOfRun(selection: string | null | undefined, groups: ReadonlyMap<string, string>): string {
  if (selection == null || selection === "") return SEVERAL;
  const found = new Set<string>();
  for (const word of selection.split(/\s*(?:,|\||\bor\b)\s*/)) {
    const group = /^group:"?([\w.-]+)"?$/.exec(word)?.[1];
    const name = /^([\w-]+)[./]([\w-]+|\*)$/.exec(word);
    if (group !== undefined) found.add(group);
    else if (name === null) return SEVERAL;
    else if (name[2] === "*") {
      const inside = [...groups].filter(([key]) => key.startsWith(`${name[1] ?? ""}/`)).map(([, each]) => each);
      for (const each of inside.length === 0 ? [name[1] ?? ""] : inside) found.add(each);
    } else found.add(groups.get(`${name[1] ?? ""}/${name[2] ?? ""}`) ?? name[1] ?? "");
  }
  const [only] = found;
  return found.size === 1 && only !== undefined ? only : SEVERAL;
}

export function dayOf({ start, newest, isCut, failed, isFailedCut, assets }: Known): Day {
  const end = start + CELLS * CELL_MS;
  const groups = new Map(assets.map((asset) => [asset.asset_key, groupOf(asset)]));
  const oldest = Math.min(...newest.map((run) => Date.parse(run.created_at)));
  const knownSince = isCut && Number.isFinite(oldest) ? oldest : start;
  const oldestFailed = isFailedCut ? Math.min(...failed.map((run) => Date.parse(run.created_at))) : start;
  const rows = new Map<string, Cell[]>();
  const cellAt = (group: string, at: number): Cell | undefined => {
    if (at < start || at >= end) return undefined;
    let cells = rows.get(group);
    if (cells === undefined) {
      cells = Array.from({ length: CELLS }, (_, index) => ({ runs: 0, failed: 0, active: 0, made: 0, isKnown: start + index * CELL_MS >= knownSince }));
      rows.set(group, cells);
    }
    return cells[Math.floor((at - start) / CELL_MS)];
  };
  const seen = new Set<string>();
  for (const run of [...newest, ...failed]) {
    if (seen.has(run.run_id)) continue;
    seen.add(run.run_id);
    const cell = cellAt(groupOfRun(run.selection, groups), Date.parse(run.created_at));
    if (cell === undefined) continue;
    cell.runs++;
    if (run.state === "FAILED") cell.failed++;
    if (!["SUCCEEDED", "FAILED", "CANCELLED"].includes(run.state)) cell.active++;
  }
  for (const asset of assets) {
    const { last_success_at: success, last_failure_at: failure } = asset.health ?? {};
    if (success != null) {
      const cell = cellAt(groupOf(asset), Date.parse(success));
      if (cell !== undefined) cell.made++;
    }
    // A failure whose run is not among those that are known.
    if (failure != null && Date.parse(failure) < oldestFailed) {
      const cell = cellAt(groupOf(asset), Date.parse(failure));
      if (cell !== undefined) cell.failed = Math.max(1, cell.failed);
    }
  }
  const weight = (cells: readonly Cell[]) => cells.reduce((sum, cell) => sum + cell.failed * 1000 + cell.runs + cell.made, 0);
  const sorted = [...rows].sort(([a, one], [b, other]) => (a === SEVERAL ? 1 : b === SEVERAL ? -1 : weight(other) - weight(one) || (a < b ? -1 : 1)));
  return { rows: sorted.slice(0, MOST_ROWS).map(([group, cells]) => ({ group, cells })), more: Math.max(0, sorted.length - MOST_ROWS), knownSince };
}

/** The fill of a cell: the worst of it first. */
export function fillOf(cell: Cell): string {
  if (cell.failed > 0) return "fill-failed";
  if (cell.active > 0) return "fill-running";
  if (cell.runs > 0 || cell.made > 0) return "fill-succeeded";
  return cell.isKnown ? "" : "is-unknown";
}
